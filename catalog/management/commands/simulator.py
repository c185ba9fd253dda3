"""Runs the simulated providers until it is stopped."""

import json
import secrets
import threading
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog.simulator.scenario import ScriptError, Timing
from catalog.simulator.server import FACES, Simulator


class Command(BaseCommand):
    help = "Runs simulated providers over HTTP, scripted at /_sim/script, with a log at /_sim/log."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8091)
        # By chance: a task that an earlier run was told of must not turn up as another one's.
        parser.add_argument(
            "--seed",
            type=int,
            default=secrets.randbits(32),
            help="decides ids, jitter and chances; by chance if it is not given",
        )
        parser.add_argument("--script", type=Path, help="a JSON file with rules and accounts to begin with")
        parser.add_argument("--queue-s", type=float, default=1.0, help="seconds that a task waits")
        parser.add_argument("--run-s", type=float, default=3.0, help="seconds that a task runs")

    def handle(self, *_: Any, **options: Any) -> None:
        timing = Timing(options["queue_s"], options["run_s"])
        try:
            simulator = Simulator(options["host"], options["port"], seed=options["seed"], timing=timing)
            if options["script"]:
                simulator.script(json.loads(options["script"].read_text()))
        except OSError as error:
            raise CommandError(
                f"{options['host']}:{options['port']} or the script can't be used: {error}"
            ) from error
        except (ScriptError, ValueError, TypeError) as error:
            raise CommandError(f"{options['script']}: {error}") from error
        with simulator:
            for name in FACES:
                self.stdout.write(f"{name}: {simulator.base_url(name)}")
            self.stdout.flush()
            self._wait()

    def _wait(self) -> None:
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            self.stdout.write("stopped")
