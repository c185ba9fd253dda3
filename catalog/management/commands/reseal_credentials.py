"""`manage.py reseal_credentials`: after a new master key was put first in FRAMEYARD_MASTER_KEYS."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from catalog.audit import Actor
from catalog.services.reseal_credentials import reseal_credentials
from catalog.vault import VaultError

ACTOR = Actor("command:reseal_credentials", "command")


class Command(BaseCommand):
    help = "Put every stored credential under the current master key."

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            count = reseal_credentials(actor=ACTOR, now=timezone.now())
        except VaultError as error:
            raise CommandError(f"Nothing was changed: {error}") from error
        self.stdout.write(f"{count} credentials resealed; keys after the first may go now.")
