"""`manage.py worker control|traffic`: a cluster of workers under a guard that replaces it when it hangs."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.clusters import ClusterGuard, run_cluster
from config.stopping import StopRequest
from dispatch.pulse import BELLS


class Command(BaseCommand):
    help = "Run a worker cluster: control (scan, reconcile: the database only) or traffic (providers)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("cluster", choices=sorted({bell.cluster for bell in BELLS.values()}))
        parser.add_argument(
            "--grace",
            type=float,
            default=float(settings.PROVIDER_DEADLINE_S),
            help="seconds that running tasks have to end when the worker is stopped (default %(default)s)",
        )
        parser.add_argument(
            "--unguarded", action="store_true", help="run the cluster itself, as its guard does"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        if options["unguarded"]:
            run_cluster()
            return
        name = options["cluster"]
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "worker", name, "--unguarded", "--skip-checks"]
        ClusterGuard(name, command, StopRequest(), grace_s=options["grace"]).run()
