"""`manage.py states_page`: writes docs/states.md from the transition tables."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dispatch.states_page import states_page


class Command(BaseCommand):
    help = "Writes docs/states.md from the transition tables in code."

    def handle(self, *args: Any, **options: Any) -> None:
        page = settings.BASE_DIR / "docs" / "states.md"
        page.write_text(states_page())
        self.stdout.write(f"Wrote {page}.")
