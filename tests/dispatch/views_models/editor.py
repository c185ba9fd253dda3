"""What operators do on the pages of a public model, step by step."""

from typing import Any

from django.test import Client
from django.utils import timezone

from catalog.models import PublicModel, SupplyBinding
from dispatch.services.save_model import save_model
from tests.models_world import BASE, SLUG, WANG, model_facts

KEEP, REVIEW, SAVE = f"{BASE}edit/keep/", f"{BASE}review/", f"{BASE}save/"
PUBLISH, OPEN = f"{BASE}publish/", f"{BASE}publish/now/"
OSPREY = "osprey-pro@exact:priority"


def keep(client: Client, base: int = 2, do: str = "review", **typed: str) -> Any:
    return client.post(KEEP, {"base": str(base), "do": do, **typed})


def edited(client: Client, **typed: str) -> None:
    """With a working copy that is ready for review."""
    response = keep(client, **(typed or {OSPREY: "950000"}))
    assert (response.status_code, response["Location"]) == (302, REVIEW)


def token(client: Client, address: str) -> str:
    return str(client.get(address).context["token"])


def save(client: Client, note: str = "more for Osprey") -> Any:
    return client.post(SAVE, {"confirm": token(client, REVIEW), "note": note})


def saved(client: Client, **typed: str) -> PublicModel:
    edited(client, **typed)
    assert save(client)["Location"] == PUBLISH
    return PublicModel.objects.get(slug=SLUG)


def wang_saves(first: int = 920_000) -> PublicModel:
    """The second operator."""
    stored = PublicModel.objects.get(slug=SLUG)
    return save_model(
        model_facts(first),
        expected_revision=stored.revision,
        actor=WANG,
        now=timezone.now(),
        note="mine first",
    )


def priorities() -> dict[str, int]:
    rows = SupplyBinding.objects.filter(public_model__slug=SLUG)
    return dict(rows.values_list("supply__slug", "priority"))
