"""What a first start puts into an empty installation: an operator; for the demo, catalogue and customer."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from billing.services.create_customer import create_customer
from billing.services.issue_key import issue_key
from catalog.audit import Actor
from catalog.credentials import read_credential
from catalog.models import Channel
from catalog.repository import channel_facts
from catalog.services.save_channel import save_channel
from catalog.vault import VaultError
from dispatch.services.import_catalogue import apply_import, plan_import

OPERATOR = "admin"
CUSTOMER = "Demo customer"
DEPOSIT_MICROS = 10_000_000_000  # the sample jobs of thousands of starts
CATALOGUE: Path = settings.BASE_DIR / "catalog" / "demo" / "catalogue.yaml"
SIMULATOR_URL = "FRAMEYARD_SIMULATOR_URL"
# The catalogue file takes the simulated accounts' keys from here; the simulator knows an account by its key.
ACCOUNT_KEYS = {
    "FRAMEYARD_DEMO_ARK_BEIJING_KEY": "simulated-account-beijing",
    "FRAMEYARD_DEMO_ARK_SINGAPORE_KEY": "simulated-account-singapore",
}
_ACTOR = Actor("command:demo", "command")


def add_operator(password: str) -> None:
    """The first account of the console; nothing where somebody is there already."""
    if not User.objects.exists():
        User.objects.create_superuser(OPERATOR, password=password)


def add_demo(environment: Mapping[str, str], api_key: str, now: datetime) -> None:
    """The demo catalogue where the catalogue is empty, and a customer whose key is known.

    Raises InvalidCatalogue."""
    with transaction.atomic():
        if not Channel.objects.exists():
            plan = plan_import(CATALOGUE.read_text(encoding="utf-8"), environment, now)
            apply_import(plan, actor=_ACTOR, now=now)
        customer = create_customer(CUSTOMER, now, group="studio", deposit_micros=DEPOSIT_MICROS)
        issue_key(customer, name="demo", secret=api_key)


def follow_simulator(url: str, now: datetime) -> None:
    """Points the simulated accounts at the simulator's address, which may be another at each start."""
    for channel in simulated_channels():
        facts = channel_facts(channel)
        moved = replace(facts, base_url=url + _path(facts.base_url))
        save_channel(moved, expected_revision=channel.revision, actor=_ACTOR, now=now)


def simulated_channels() -> list[Channel]:
    """Those whose credential is one of the simulated accounts' keys."""
    references = [f"env:{name}" for name in ACCOUNT_KEYS]
    return list(Channel.objects.filter(credential_reference__in=references))


def is_all_simulated() -> bool:
    """Whether a job can cost nothing: every channel leads to the simulator."""
    return Channel.objects.exists() and len(simulated_channels()) == Channel.objects.count()


def unopened_credentials() -> list[str]:
    """What is wrong with each stored credential that the keys of this installation don't open.

    Raises VaultError where they open none: the keys are wrong, and not a row."""
    channels = Channel.objects.exclude(credential="")
    errors = [error for channel in channels if (error := _error_of(channel))]
    if errors and len(errors) == len(channels):
        raise errors[0]
    return [str(error) for error in errors]


def _error_of(channel: Channel) -> VaultError | None:
    try:
        read_credential(channel)
    except VaultError as error:
        return error
    return None


def _path(url: str) -> str:
    return "/" + url.split("/", 3)[3] if url.count("/") > 2 else ""
