"""`manage.py check_invariants`: asserts the invariants on a live database; exits 1 where one is broken."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dispatch.invariants import QUERIES, violations


class Command(BaseCommand):
    help = "Checks what must hold in every committed state, and prints each violation with its ids."

    def handle(self, *args: Any, **options: Any) -> None:
        found = violations()
        for violation in found:
            self.stdout.write(f"{violation.subject}: not so: {violation.invariant} ({violation.found})")
        if found:
            raise CommandError(f"{len(found)} violations of {len(QUERIES)} invariants", returncode=1)
        self.stdout.write(f"{len(QUERIES)} invariants hold.")
