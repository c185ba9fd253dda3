"""`manage.py catalogue export|import|check FILE`: the whole routing configuration as one YAML document."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from catalog.audit import Actor
from catalog.exceptions import StaleRevision
from catalog.providers.registry import config_problems
from catalog.vault import VaultError
from dispatch.catalogue.difference import as_yaml, lines
from dispatch.catalogue.document import read_document, schema, without_defaults
from dispatch.catalogue.repository import stored_entries
from dispatch.catalogue.source import InvalidCatalogue
from dispatch.services.import_catalogue import Plan, apply_import, plan_import

STANDARD_STREAM = "-"


class Command(BaseCommand):
    """`check` reads the file alone, without database or environment. `import` shows what it would change,
    asks, and applies all of it or nothing; what the file does not name stays. Exit 2: the file is wrong."""

    help = "Export, import or check the catalogue as one YAML document (- for standard input or output)."
    requires_system_checks: list[str] = []  # a file is checked where there are no settings yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("verb", choices=("export", "import", "check"))
        parser.add_argument("file", help="a YAML file, or -")
        parser.add_argument("--yes", action="store_true", help="import: apply without asking")
        parser.add_argument("--dry-run", action="store_true", help="import: run it whole, then undo it")

    def handle(self, *_: Any, **options: Any) -> None:
        if options["verb"] != "check":
            self.check()
        try:
            {"export": self._export, "import": self._import, "check": self._check}[options["verb"]](options)
        except InvalidCatalogue as error:
            raise self._told(options["file"], error) from error
        except (StaleRevision, VaultError) as error:
            raise CommandError(str(error)) from error

    def _export(self, options: dict[str, Any]) -> None:
        text = as_yaml(without_defaults(stored_entries(timezone.now()), schema()))
        if options["file"] == STANDARD_STREAM:
            self.stdout.write(text, ending="")
        else:
            Path(options["file"]).write_text(text, encoding="utf-8")

    def _check(self, options: dict[str, Any]) -> None:
        read_document(_read(options["file"]), config_problems)
        self.stdout.write(f"{options['file']}: nothing is wrong with it")

    def _import(self, options: dict[str, Any]) -> None:
        now = timezone.now()
        plan = plan_import(_read(options["file"]), os.environ, now)
        self._show(plan)
        if not plan.changes:
            return
        if not (options["dry_run"] or options["yes"] or self._confirmed(options["file"])):
            self.stdout.write("Nothing was changed.")
            return
        with transaction.atomic():
            apply_import(plan, actor=Actor("command:catalogue import", "command"), now=now)
            transaction.set_rollback(options["dry_run"])
        self.stdout.write("It would apply; nothing was changed." if options["dry_run"] else "Applied.")

    def _show(self, plan: Plan) -> None:
        for line in lines(plan.changes):
            self.stdout.write(line)
        for path in plan.unnamed:
            self.stdout.write(f"  {path}: not in the file, stays as it is")
        if not plan.changes:
            self.stdout.write("Nothing to change.")

    def _told(self, file: str, error: InvalidCatalogue) -> CommandError:
        """Each problem on a line of its own, in the form that editors jump to."""
        name = "standard input" if file == STANDARD_STREAM else file
        for each in error.problems:
            self.stderr.write(f"{name}:{each.line}: {each.path}: {each.message}")
        return CommandError(f"{name} cannot be used; nothing was changed.", returncode=2)

    def _confirmed(self, file: str) -> bool:
        if file == STANDARD_STREAM or not sys.stdin.isatty():
            raise CommandError("There is nobody to ask: say --yes to apply, or --dry-run to try.")
        return input("Apply? [y/N] ").strip().lower() in ("y", "yes")


def _read(file: str) -> str:
    if file == STANDARD_STREAM:
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}", returncode=2) from error
