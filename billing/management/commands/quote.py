"""`manage.py quote NAME FILE`: what a request costs at a supply, or at every supply of a public model."""

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from billing.money import written
from billing.quotes import SupplyQuote, quotes
from catalog.document import DocumentError, Section
from catalog.models import PublicModel, Supply
from catalog.shape import Shape, fields_of, read_shape

STANDARD_INPUT = "-"


class Command(BaseCommand):
    """Exit 2: the name or the request is wrong. Nothing is asked of any provider."""

    help = (
        "Shows what a request costs at a supply, or at every supply that a public model is bound to."
        ' The request is JSON such as {"mode": "text_to_video", "duration_s": 5, "resolution": "720p"}.'
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="slug of a supply or of a public model")
        parser.add_argument("file", metavar="FILE", help="the request as JSON, or -")
        parser.add_argument("--currency", default="", help="default: the policy's, or USD for a supply")
        parser.add_argument("--at", default="", help="a time such as 2026-06-01T12:00:00Z; default: now")
        parser.add_argument("--json", action="store_true", help="print the quotes as JSON")

    def handle(self, *, name: str, file: str, currency: str, at: str, json: bool, **_options: Any) -> None:
        supplies, modality, own_currency = _named(name)
        shape = _shape(_source(file), modality)
        found = quotes(supplies, shape, currency or own_currency, _time(at))
        self.stdout.write(_as_json(found) if json else "\n".join(map(_line, found)))


def _named(name: str) -> tuple[list[Supply], str, str]:
    """The supplies of that name, their modality, and the currency to quote in."""
    model = PublicModel.objects.select_related("policy").filter(slug=name).first()
    if model is not None:
        bound = Supply.objects.filter(bindings__public_model=model).distinct().order_by("slug")
        return list(bound), model.modality, model.policy.parsed.currency
    supply = Supply.objects.filter(slug=name).first()
    if supply is None:
        raise CommandError(f"There is no supply and no public model {name!r}", returncode=2)
    return [supply], supply.modality, "USD"


def _source(file: str) -> Any:
    try:
        return json.loads(
            sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
        )
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(f"{file} can't be read: {error}", returncode=2) from error


def _shape(document: Any, modality: str) -> Shape:
    try:
        return read_shape(modality, Section(document, "", tuple(fields_of(modality))))
    except DocumentError as error:
        raise CommandError(str(error), returncode=2) from error


def _time(at: str) -> datetime:
    if not at:
        return timezone.now()
    try:
        moment = datetime.fromisoformat(at)
    except ValueError as error:
        raise CommandError(f"--at {at!r} is not a time such as 2026-06-01T12:00:00Z", returncode=2) from error
    if moment.tzinfo is None:
        raise CommandError(f"--at {at!r} has no time zone: add Z", returncode=2)
    return moment


def _as_json(found: list[SupplyQuote]) -> str:
    return json.dumps([each.as_json() for each in found])


def _line(found: SupplyQuote) -> str:
    if found.quote is None:
        return f"{found.supply}  –  {found.missing}"
    quoted = found.quote
    native = ""
    if quoted.native_currency != quoted.currency:
        native = f" ({written(quoted.native_micros)} {quoted.native_currency} by {found.rate_version})"
    return f"{found.supply}  {written(quoted.micros)} {quoted.currency}{native}  by {found.cost_rule_version}"
