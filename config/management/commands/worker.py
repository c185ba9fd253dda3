"""`manage.py worker control|traffic`: a cluster of workers under a guard that replaces it when it hangs."""

import os
import resource
import sys
from argparse import ArgumentParser
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand

from config.clusters import ClusterGuard
from config.stopping import StopRequest
from dispatch.pulse import BELLS

_NAME = "Q_CLUSTER_NAME"
OPEN_FILES: Final = 8_192  # each thread that polls keeps a connection to each of 32 channels


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
        allow_open_files()
        ClusterGuard(name, StopRequest(), options["grace"]).run()


def allow_open_files() -> None:
    """As many as the machine lets this process have: a usual soft limit of 1,024 is for programs of one
    thread."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
