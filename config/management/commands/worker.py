"""`manage.py worker control|traffic`: a cluster of workers under a guard that replaces it when it hangs."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.clusters import ClusterGuard
from config.stopping import StopRequest
from dispatch.pulse import BELLS

_NAME = "Q_CLUSTER_NAME"


class Command(BaseCommand):
    help = "Run a worker cluster: control (scan, reconcile: the database only) or traffic (providers)."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("cluster", choices=sorted({bell.cluster for bell in BELLS.values()}))
        parser.add_argument(
            "--grace",
            type=float,
            default=float(settings.PROVIDER_DEADLINE_S),
            help="seconds that running tasks have to end when the worker is stopped (default %(default)s)",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        name = options["cluster"]
        if os.environ.get(_NAME) != name:
            # django-q2 reads its name while it is imported, which was before this line.
            os.environ[_NAME] = name
            os.execv(sys.executable, sys.orig_argv)  # noqa: S606 -- this very command once more
        self.check()
        ClusterGuard(name, StopRequest(), options["grace"]).run()
