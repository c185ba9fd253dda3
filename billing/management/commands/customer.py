"""`manage.py customer NAME`: makes a customer, or shows one, and adds credit."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from billing import ledger
from billing.models import Customer
from billing.money import MoneyError, micros_of, written
from billing.services.create_customer import create_customer
from catalog import audit

ACTOR, SOURCE = "command:customer", "command"


class Command(BaseCommand):
    help = "Make a customer, or show one; --deposit adds credit."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--group", default="", help="slug of a customer group, made where there is none")
        parser.add_argument("--currency", default="USD", help="of a new customer (default %(default)s)")
        parser.add_argument("--deposit", metavar="AMOUNT", help="credit to add, e.g. 100.00")
        parser.add_argument("--note", default="", help="why, for the ledger")

    def handle(self, *_: Any, **options: Any) -> None:
        deposit_micros = self._micros(options["deposit"])
        now = timezone.now()
        with transaction.atomic():
            is_new = not Customer.objects.filter(name=options["name"]).exists()
            customer = create_customer(
                options["name"], now, group=options["group"], currency=options["currency"]
            )
            after = {"name": customer.name, "group": options["group"], "currency": customer.currency}
            subject = f"customer:{customer.public_id}"
            if is_new:
                audit.record(ACTOR, SOURCE, "create customer", subject, None, after, now)
            if deposit_micros:
                ledger.deposit(customer, deposit_micros, options["note"], now)
                added = {"deposit": written(deposit_micros), "note": options["note"]}
                audit.record(ACTOR, SOURCE, "deposit credit", subject, None, added, now)
        customer.refresh_from_db()
        balance = f"{written(customer.balance_micros)} {customer.currency}"
        self.stdout.write(f"{customer.public_id} {customer.name}: balance {balance}")

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
