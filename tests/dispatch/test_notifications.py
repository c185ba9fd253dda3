"""Of which alerts mail comes to a person, as they chose in the settings."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone

from catalog.models import AuditEntry
from health.alerts import raise_alert
from health.models import AlertDelivery
from health.services.deliver_alerts import deliver_alerts
from tests.console import SignIn

SETTINGS = "/console/settings/"


@pytest.fixture(autouse=True)
def mailbox(settings: Any) -> None:
    settings.MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
    settings.ALERT_EMAILS = ["team@example.org"]


def choose(person: Client, alerts: str, address: str = "") -> str:
    form = {"alerts": alerts, "address": address}
    return person.post(f"{SETTINGS}notifications/", form, follow=True).content.decode()


def told_of(code: str) -> list[str]:
    raise_alert(code, subject="attempt:att_1", dedupe_key=code, details={}, now=timezone.now())
    return sorted(AlertDelivery.objects.filter(alert__code=code).values_list("target", flat=True))


def test_mail_comes_of_what_was_chosen_beside_the_installations_own(sign_in: SignIn) -> None:
    li, wang = sign_in("viewer", username="li.m"), sign_in("viewer", username="wang.l")
    assert "team@example.org" in li.get(SETTINGS).content.decode()
    assert "Saved with your account." in choose(li, "critical", "li.m@example.org")
    assert 'value="li.m@example.org"' in li.get(SETTINGS).content.decode()
    choose(wang, "all", "wang.l@example.org")
    assert told_of("stuck_attempt") == ["team@example.org", "wang.l@example.org"]
    assert told_of("output_lost") == ["li.m@example.org", "team@example.org", "wang.l@example.org"]
    assert deliver_alerts(timezone.now()) == 5
    assert len(mail.outbox) == 5
    choose(wang, "none")
    choose(li, "all", "team@example.org")
    assert told_of("exact_unavailable") == ["team@example.org"], "an address is told once"


def test_a_wrong_address_is_refused_and_stays_as_typed(sign_in: SignIn) -> None:
    li = sign_in("viewer")
    for alerts, address in (("all", "li.m"), ("critical", ""), ("everything", "li.m@example.org")):
        answer = li.post(f"{SETTINGS}notifications/", {"alerts": alerts, "address": address})
        assert answer.status_code == 422
        text = answer.content.decode()
        assert 'aria-describedby="address-fault"' in text
        assert f'value="{address}"' in text
    assert told_of("output_lost") == ["team@example.org"]
    assert not AuditEntry.objects.exists()


def test_who_may_not_read_any_more_is_told_no_more(sign_in: SignIn) -> None:
    choose(sign_in("viewer", username="li.m"), "all", "li.m@example.org")
    choose(sign_in("viewer", username="wang.l"), "all", "wang.l@example.org")
    User.objects.get(username="li.m").groups.clear()
    User.objects.filter(username="wang.l").update(is_active=False)
    assert told_of("output_lost") == ["team@example.org"]


def test_a_choice_is_audited_once_and_a_repeated_one_not(sign_in: SignIn) -> None:
    li = sign_in("viewer")
    choose(li, "all", "li.m@example.org")
    assert "Nothing differs." in choose(li, "all", "li.m@example.org")
    assert "Nothing differs." not in choose(li, "none")
    assert "Nothing differs." in choose(li, "none", "li.m@example.org")
    first, second = AuditEntry.objects.order_by("pk")
    assert (first.actor, first.subject) == ("li.m", "user:li.m")
    assert (first.before, first.after) == (
        {"alerts": "none"},
        {"alerts": "all", "address": "li.m@example.org"},
    )
    assert second.after == {"alerts": "none"}
    assert "critical alerts and warnings" in li.get(f"/console/audit/{first.pk}/").content.decode()
