"""`manage.py customer NAME`: makes a customer, or shows one, adds credit, sets its projects' priorities."""

from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from billing import ledger
from billing.models import Customer
from billing.money import MoneyError, micros_of, written
from billing.priorities import LEVELS, PriorityError, parse_priorities
from billing.services.create_customer import create_customer
from catalog.audit import Actor, Change, record
from catalog.currency import is_currency

ACTOR = Actor("command:customer", "command")


class Command(BaseCommand):
    help = "Make a customer, or show one; --deposit adds credit, --priority orders its projects."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--group", default="", help="slug of a customer group, made where there is none")
        parser.add_argument("--currency", default="USD", help="of a new customer (default %(default)s)")
        parser.add_argument("--deposit", metavar="AMOUNT", help="credit to add, e.g. 100.00")
        parser.add_argument(
            "--priority",
            metavar="PROJECT=LEVEL",
            action="append",
            default=[],
            help=f"from {LEVELS.start} to {LEVELS.stop - 1}, higher first, among its own jobs; 0 forgets it",
        )
        parser.add_argument("--note", default="", help="why, for the ledger")

    def handle(self, *_: Any, **options: Any) -> None:
        deposit_micros = self._micros(options["deposit"])
        priorities = self._priorities(options["priority"])
        if not is_currency(options["currency"]):
            raise CommandError(f"--currency {options['currency']}: not a three-letter code", returncode=2)
        now = timezone.now()
        with transaction.atomic():
            is_new = not Customer.objects.filter(name=options["name"]).exists()
            customer = create_customer(
                options["name"], now, group=options["group"], currency=options["currency"]
            )
            after = {"name": customer.name, "group": options["group"], "currency": customer.currency}
            subject = f"customer:{customer.public_id}"
            if is_new:
                record(ACTOR, Change("create customer", subject, after=after), now)
            if deposit_micros:
                ledger.deposit(customer, deposit_micros, options["note"], now)
                added = {"deposit": written(deposit_micros), "note": options["note"]}
                record(ACTOR, Change("deposit credit", subject, after=added), now)
            if priorities:
                self._set_priorities(customer, priorities, subject, now)
        customer.refresh_from_db()
        balance = f"{written(customer.balance_micros)} {customer.currency}"
        self.stdout.write(f"{customer.public_id} {customer.name}: balance {balance}")

    def _priorities(self, wished: list[str]) -> dict[str, int]:
        try:
            pairs = (each.rpartition("=") for each in wished)
            return parse_priorities({project: int(level) for project, _, level in pairs})
        except ValueError as error:
            raise CommandError(f"--priority: {error}", returncode=2) from error

    def _set_priorities(
        self, customer: Customer, wished: Mapping[str, int], subject: str, now: datetime
    ) -> None:
        """For jobs that come from now on."""
        row = Customer.objects.select_for_update(no_key=True).get(pk=customer.pk)
        before = row.project_priorities
        after = {project: level for project, level in {**before, **wished}.items() if level}
        row.project_priorities = self._checked(after)
        row.save(update_fields=["project_priorities"])
        record(ACTOR, Change("set priorities", subject, before, after), now)

    def _checked(self, priorities: Mapping[str, int]) -> dict[str, int]:
        try:
            return parse_priorities(priorities)
        except PriorityError as error:
            raise CommandError(f"--priority: {error}", returncode=2) from error

    def _micros(self, amount: str | None) -> int:
        if amount is None:
            return 0
        try:
            micros = micros_of(amount)
        except (MoneyError, ValueError) as error:
            raise CommandError(f"--deposit {amount}: not an amount in whole micros", returncode=2) from error
        if micros <= 0:
            raise CommandError(f"--deposit {amount}: a deposit is above 0", returncode=2)
        return micros
