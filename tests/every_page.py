"""One installation on which every page of the console has something to show, and the addresses of all."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.urls import resolve

from catalog.models import PublicModel, Supply
from dispatch.models import Job
from dispatch.views.urls import urlpatterns
from health.models import Alert
from tests.factories import AlertFactory, JobFactory, SelectionRoundFactory, SupplyFactory
from tests.figures_world import make_figures, now_within_its_hour
from tests.models_world import BASE, ModelsWorld
from tests.money_world import MoneyWorld, make_money_world
from tests.operations_world import OperationsWorld, make_operations_world
from tests.snapshots import recorded_image
from tests.switched_job import switched_job

# Fragments, files and actions that no page is made of; those by POST are told by `BY_POST`.
NO_PAGES: Final = {
    "strips",
    "effect",
    "output",
    "ledger_csv",
    "audit_csv",
    "degraded_csv",
    "logout",
    "set_language",
    "set_theme",
    "discard_supply_draft",
    "supply_step",  # of somebody's own draft: tests/browser/test_console_lists.py
}


@dataclass
class EveryPage:
    operations: OperationsWorld
    money: MoneyWorld
    switched: Job
    image: Job
    alert: Alert
    owned: Alert

    def pages(self) -> list[str]:
        """For everybody who is signed in by now."""
        job, image = (f"/console/jobs/{each.public_id}/" for each in (self.switched, self.image))
        running = self.operations.uncertain.job
        return list(
            dict.fromkeys(
                [
                    "/console/",
                    "/console/jobs/",
                    "/console/jobs/?state=cancelled&modality=image",
                    job,
                    f"{job}rounds/1/",
                    f"{job}rounds/2/",
                    image,
                    f"{image}rounds/1/",
                    f"/console/jobs/{running.public_id}/",
                    f"/console/jobs/{running.public_id}/cancel/",
                    "/console/jobs/export/?state=failed",
                    "/console/alerts/",
                    "/console/alerts/matching/?severity=warning",
                    f"/console/alerts/{self.alert.public_id}/",
                    f"/console/alerts/{self.owned.public_id}/",
                    "/console/search/?q=nothing-has-this-id",
                    "/console/search/?q=kestrel",
                    *ModelsWorld(self.operations.model, self._other()).pages(),
                    f"{BASE}edit/?osprey-pro@exact:priority=1,5e6",
                    f"{BASE}withdraw/",
                    "/console/simulator/",
                    "/console/simulator/?model=vid-hd-5s&duration_s=500",
                    *self.operations.pages(),
                    "/console/channels/kestrel-main/probe/",
                    "/console/supplies/new/",
                    "/console/supplies/kestrel-hd/try/?try=1&mode=text_to_video&duration_s=5",
                    *self.money.pages(),
                    *self._money(),
                    "/console/jobs/job_nothing_has_this_id/",
                    "/console/login/",
                ]
            )
        )

    def _other(self) -> PublicModel:
        return PublicModel.objects.get(slug="vid-std")

    def _money(self) -> list[str]:
        addresses = self.money.addresses()
        return [addresses[name] for name in ("new_customer", "revoke_key", "cancel_price")]

    def unseen(self) -> set[str]:
        """Names of pages that have no address here."""
        from tests.dispatch.test_views_access import BY_POST

        seen = {resolve(path.partition("?")[0]).url_name for path in self.pages()}
        return {str(pattern.name) for pattern in urlpatterns} - seen - BY_POST - NO_PAGES


def make_every_page() -> EveryPage:
    now = now_within_its_hour()
    operations, money = make_operations_world(now), make_money_world()
    kestrel = Supply.objects.get(slug="kestrel-hd")
    make_figures(operations.model, now)
    ago = now - timedelta(minutes=5)
    image = JobFactory(public_model__image=True, state="failed", error_code="no_supply", created_at=ago)
    SelectionRoundFactory(job=image, snapshot=recorded_image(), outcome="no_candidate")
    return EveryPage(
        operations=operations,
        money=money,
        switched=switched_job(kestrel, SupplyFactory(slug="kestrel-lite", channel=kestrel.channel), ago),
        image=image,
        alert=AlertFactory(opened_at=ago, details={"job": operations.uncertain.job.public_id}),
        owned=AlertFactory(
            code="exact_unavailable", severity="warning", acknowledged=True, opened_at=ago, count=3
        ),
    )
