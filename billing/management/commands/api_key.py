"""`manage.py api_key issue|revoke|list`: a customer's keys. A new one is shown once."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from billing.keys import SCOPES
from billing.models import ApiKey, Customer
from billing.services.hand_out_key import hand_out_key
from billing.services.revoke_key import revoke_key
from catalog.audit import Actor

ACTOR = Actor("command:api_key", "command")


class Command(BaseCommand):
    help = "Issue, revoke or list a customer's API keys."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("verb", choices=("issue", "revoke", "list"))
        parser.add_argument("subject", help="the customer's name; for revoke the key's id (key_…)")
        parser.add_argument("--name", default="", help="what the key is for")
        parser.add_argument("--scope", choices=SCOPES, action="append", help="may be repeated (default: all)")

    def handle(self, *_: Any, **options: Any) -> None:
        verbs = {"issue": self._issue, "revoke": self._revoke, "list": self._list}
        verbs[options["verb"]](options["subject"], options)

    def _issue(self, customer_name: str, options: dict[str, Any]) -> None:
        customer, now = self._customer(customer_name), timezone.now()
        scopes = tuple(options["scope"] or SCOPES)
        row, key = hand_out_key(customer, options["name"], scopes, actor=ACTOR, now=now)
        self.stdout.write(f"{row.public_id} for {customer.name}, shown this once: {key.secret}")

    def _revoke(self, key_id: str, _options: dict[str, Any]) -> None:
        row = ApiKey.objects.select_related("customer").filter(public_id=key_id).first()
        if row is None:
            raise CommandError(f"There is no key {key_id}; `api_key list CUSTOMER` shows their ids.")
        revoke_key(row, actor=ACTOR, now=timezone.now())
        self.stdout.write(f"{key_id} opens nothing any more.")

    def _list(self, customer_name: str, _options: dict[str, Any]) -> None:
        for key in self._customer(customer_name).api_keys.order_by("pk"):
            state = "revoked" if key.revoked_at else "in force"
            self.stdout.write(f"{key.public_id} {key} {','.join(key.scopes)} {state} {key.name}".rstrip())

    def _customer(self, name: str) -> Customer:
        customer = Customer.objects.filter(name=name).first()
        if customer is None:
            raise CommandError(f"There is no customer {name!r}; `manage.py customer NAME` makes one.")
        return customer
