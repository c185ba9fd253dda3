"""Leads lives of jobs through the product's own processes, which somebody else runs: HOW, LIVES, its address.

HOW they enter and end: `failing` are put into the queue at once and fail at their provider after two polls;
`posted` are the same, sent through the web server by eight clients; `whole` succeed and are kept.
`killed` are failing ones in whose midst every worker of the cluster with the given process id is killed."""

import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import django

django.setup()

import requests  # noqa: E402 - Django stands only now
from django.db import transaction  # noqa: E402
from django.utils.timezone import now  # noqa: E402

from billing.authentication import Caller  # noqa: E402
from billing.models import Customer  # noqa: E402
from billing.services.create_customer import create_customer  # noqa: E402
from billing.services.issue_key import issue_key  # noqa: E402
from dispatch.models import Attempt, Bell, Job  # noqa: E402
from dispatch.services.accept import accept  # noqa: E402
from tests.benchmarks.serving import serve_windows  # noqa: E402
from tests.engine import VIDEO  # noqa: E402
from tests.journeys.processes import family_of, kill, wait_until  # noqa: E402

CLIENTS = 8
PATIENCE_S = 600
BODIES = {
    "failing": VIDEO | {"duration_s": 4, "resolution": "480p"},
    "whole": {"model": "seedance-1.0-pro", "prompt": "fog", "duration_s": 5, "resolution": "480p"},
}


class Lives:
    """Of one customer, whose jobs nobody else's are counted with."""

    def __init__(self, how: str, lives: int, place: str) -> None:
        self.lives, self.place = lives, place
        self.body = BODIES.get(how, BODIES["failing"])
        self.enter: Callable[[], None] = self._post if how == "posted" else self._put
        self.customer = create_customer(f"bench-{how}", now(), group="studio", deposit_micros=10**15)
        Customer.objects.filter(pk=self.customer.pk).update(max_queued=10**7, max_in_flight=10**7)
        self.customer.refresh_from_db()
        self.key, shown = issue_key(self.customer)
        self.headers = {"Authorization": f"Bearer {shown.secret}"}

    def lead(self) -> dict[str, float]:
        """From the end of the first fifth of them to that of the third: as many begin as end, since the queue
        is not empty before two thirds have ended."""
        began = now()
        self.enter()
        ends = self.ends(began)
        early, late = ends[len(ends) // 5], ends[len(ends) * 3 // 5]
        return {
            "units": len(ends) * 3 // 5 - len(ends) // 5,
            "cpu_s": 0,  # of many processes, which whoever runs them counts
            "wall_s": (late - early).total_seconds(),
        }

    def ends(self, since: datetime) -> list[datetime]:
        mine = Job.objects.filter(customer=self.customer, created_at__gte=since)
        wait_until(lambda: self._ended(mine.filter(finished_at__isnull=False).count()), PATIENCE_S, "ended")
        return sorted(at for at in mine.values_list("finished_at", flat=True) if at is not None)

    def _ended(self, ended: int) -> bool:
        time.sleep(1)
        return ended >= self.lives

    def _put(self) -> None:
        caller = Caller(self.customer, self.key)
        with transaction.atomic():
            for _ in range(self.lives):
                accept(caller, self.body, None, now())

    def _post(self) -> None:
        with ThreadPoolExecutor(CLIENTS) as clients, requests.Session() as session:
            for status in clients.map(lambda _: self._posted(session), range(self.lives)):
                assert status == 201

    def _posted(self, session: requests.Session) -> int:
        return session.post(
            f"{self.place}jobs/", json=self.body, headers=self.headers, timeout=60
        ).status_code

    def killed(self) -> dict[str, float]:
        """Units: the lives that ended; the span: until the next worker took something up."""
        began = now()
        self.enter()
        mine = Attempt.objects.filter(job__customer=self.customer, job__created_at__gte=began)
        wait_until(mine.filter(accepted_at__isnull=False).exists, PATIENCE_S, "under way")
        at = now()
        for process in family_of(int(self.place))[1:]:
            kill(process.pid, signal.SIGKILL)
        again_s = wait_until(
            Bell.objects.filter(name="poll", answered_at__gt=at).exists, 60, "the next owner"
        )
        return {"units": len(self.ends(began)), "cpu_s": 0, "wall_s": again_s}


def main(how: str, lives: int, place: str) -> None:
    led = Lives(how, lives, place)
    if how == "failing":
        accept(Caller(led.customer, led.key), led.body, None, now())
        wait_until(Job.objects.filter(finished_at__isnull=False).exists, PATIENCE_S, "the template has ended")
    template = Job.objects.order_by("pk").values_list("public_id", flat=True).first() or ""
    serve_windows(led.killed if how == "killed" else led.lead, template=template)


if __name__ == "__main__":
    os.environ["NO_PROXY"] = "*"
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
