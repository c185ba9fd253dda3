"""`manage.py prepare`: makes an installation ready to be served; changes nothing in one that is."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from catalog.vault import VaultError
from config import demo_content
from config.installation import DEMO_API_KEY, DEMO_PASSWORD
from config.migrating import TablesStayBusy, migrate
from dispatch.catalogue.source import InvalidCatalogue


class Command(BaseCommand):
    help = "Migrate, collect static files, and add a first operator with FRAMEYARD_DEMO_PASSWORD, if set."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--demo", action="store_true", help="add the demo catalogue and its customer as well"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            migrate(options["verbosity"])
        except TablesStayBusy as error:
            raise CommandError(str(error)) from error
        call_command("collectstatic", interactive=False, verbosity=0)
        try:
            for problem in demo_content.unopened_credentials():
                self.stderr.write(f"A stored credential can't be opened: {problem}")
            if DEMO_PASSWORD in os.environ:  # elsewhere `createsuperuser` adds the first operator
                demo_content.add_operator(os.environ[DEMO_PASSWORD])
            if options["demo"]:
                demo_content.add_demo(os.environ, os.environ[DEMO_API_KEY], timezone.now())
                demo_content.follow_simulator(os.environ[demo_content.SIMULATOR_URL], timezone.now())
        except VaultError as error:
            raise CommandError(f"No credential can be opened or stored: {error}") from error
        except InvalidCatalogue as error:
            raise CommandError(f"{demo_content.CATALOGUE}: {error}") from error
