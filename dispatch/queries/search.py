"""From any id that somebody pastes to the page that shows it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.db.models import Model
from django.urls import reverse

from billing.models import CostRuleVersion, Customer
from catalog.models import AuditEntry, CapabilityVersion, Channel, PublicModel, Supply
from dispatch.models import (
    Asset,
    Attempt,
    CapacityLease,
    Job,
    Maintenance,
    ProviderJob,
    SelectionRound,
    TrialCall,
)
from health.models import Alert, HealthEvent, RefusalRecord

LIMIT: Final = 20
_LEAST: Final = 4  # characters after the prefix, below which an id says nothing


@dataclass(frozen=True, slots=True)
class Hit:
    """`kind` is the word for what was found; `url` where it is shown."""

    kind: str
    label: str
    url: str


def find(text: str) -> list[Hit]:
    """What the id, or its beginning, belongs to. The stored prefix decides the kind; what has none is looked
    for as a name, a provider's task id, our reference at a provider, a customer's idempotency key, and the id
    of a request that changed something."""
    text = text.strip()
    prefix, underscore, body = text.partition("_")
    if underscore and prefix in _BY_PREFIX:
        return (_BY_PREFIX[prefix](text) if len(body) >= _LEAST else []) or _at_customers(text)
    if not text:
        return []
    return [*_named(text), *_at_providers(text), *_at_customers(text), *_requests(text)]


def _job_url(public_id: str) -> str:
    return reverse("job", args=[public_id])


def _jobs(text: str) -> list[Hit]:
    ids = Job.objects.filter(public_id__startswith=text).values_list("public_id", flat=True)[:LIMIT]
    return [Hit("job", each, _job_url(each)) for each in ids]


def _attempts(text: str) -> list[Hit]:
    found = Attempt.objects.filter(public_id__startswith=text).values_list("public_id", "job__public_id")
    return [Hit("attempt", own, f"{_job_url(job)}#{own}") for own, job in found[:LIMIT]]


def _rounds(text: str) -> list[Hit]:
    found = SelectionRound.objects.filter(public_id__startswith=text).values_list(
        "public_id", "job__public_id", "number"
    )
    return [Hit("round", own, reverse("round", args=[job, number])) for own, job, number in found[:LIMIT]]


def _outputs(text: str) -> list[Hit]:
    found = Asset.objects.filter(public_id__startswith=text, attempt__isnull=False).values_list(
        "public_id", "attempt__job__public_id"
    )
    return [Hit("output", own, f"{_job_url(job)}#outputs") for own, job in found[:LIMIT]]


def _customers(text: str) -> list[Hit]:
    found = Customer.objects.filter(public_id__startswith=text).values_list("public_id", "name")[:LIMIT]
    return [Hit("customer", name, reverse("customer", args=[own])) for own, name in found]


def _refusals(text: str) -> list[Hit]:
    ids = RefusalRecord.objects.filter(public_id__startswith=text).values_list("public_id", flat=True)[:LIMIT]
    return [Hit("refusal", each, reverse("refusal", args=[each])) for each in ids]


def _prices(text: str) -> list[Hit]:
    found = CostRuleVersion.objects.filter(public_id__startswith=text)
    told = found.values_list("public_id", "rule__supply__slug", "number")[:LIMIT]
    return [
        Hit("price", own, f"{reverse('price', args=[slug])}#version-{number}") for own, slug, number in told
    ]


def _alerts(text: str) -> list[Hit]:
    ids = Alert.objects.filter(public_id__startswith=text).values_list("public_id", flat=True)[:LIMIT]
    return [Hit("alert", each, reverse("alert", args=[each])) for each in ids]


def _models(text: str) -> list[Hit]:
    found = PublicModel.objects.filter(public_id__startswith=text).values_list("slug", flat=True)[:LIMIT]
    return [Hit("model", slug, reverse("model", args=[slug])) for slug in found]


def _channels(text: str) -> list[Hit]:
    found = Channel.objects.filter(public_id__startswith=text).values_list("slug", flat=True)[:LIMIT]
    return [Hit("channel", slug, reverse("channel", args=[slug])) for slug in found]


def _supplies(text: str) -> list[Hit]:
    found = Supply.objects.filter(public_id__startswith=text).values_list("slug", flat=True)[:LIMIT]
    return [Hit("supply", slug, reverse("supply", args=[slug])) for slug in found]


def _health_events(text: str) -> list[Hit]:
    ids = HealthEvent.objects.filter(public_id__startswith=text).values_list("public_id", flat=True)[:LIMIT]
    return [Hit("health_event", each, reverse("health_event", args=[each])) for each in ids]


def _trials(text: str) -> list[Hit]:
    found = TrialCall.objects.filter(public_id__startswith=text).values_list("public_id", "supply__slug")
    return [Hit("trial", own, f"{reverse('try_supply', args=[slug])}#{own}") for own, slug in found[:LIMIT]]


def _capabilities(text: str) -> list[Hit]:
    found = CapabilityVersion.objects.filter(public_id__startswith=text)
    told = found.values_list("public_id", "supply__slug")[:LIMIT]
    return [
        Hit("capability", own, f"{reverse('supply', args=[slug])}#capability-heading") for own, slug in told
    ]


def _maintenances(text: str) -> list[Hit]:
    found = Maintenance.objects.filter(public_id__startswith=text).values_list("public_id", "channel__slug")
    return [Hit("maintenance", own, reverse("channel", args=[slug])) for own, slug in found[:LIMIT]]


def _requests(text: str) -> list[Hit]:
    """One request by its whole id: what it changed."""
    is_known = AuditEntry.objects.filter(request_id=text).exists()
    return [Hit("request", text, f"{reverse('audit')}?{urlencode({'request': text})}")] if is_known else []


def _leases(text: str) -> list[Hit]:
    found = CapacityLease.objects.filter(token__startswith=text)
    told = found.values_list("token", "attempt__public_id", "attempt__job__public_id")[:LIMIT]
    return [Hit("lease", token, f"{_job_url(job)}#{attempt}") for token, attempt, job in told]


def _named(text: str) -> list[Hit]:
    """Public models, channels and supplies: a whole name opens, a beginning lists."""
    kinds: Sequence[tuple[str, type[Model]]] = (
        ("model", PublicModel),
        ("channel", Channel),
        ("supply", Supply),
    )
    whole: list[Hit] = []
    begun: list[Hit] = []
    for kind, model in kinds:
        names = model._default_manager.filter(slug__startswith=text).order_by("slug")
        for slug in names.values_list("slug", flat=True)[:LIMIT]:
            (whole if slug == text else begun).append(Hit(kind, slug, reverse(kind, args=[slug])))
    return whole or (begun if len(text) >= _LEAST - 1 else [])


_BY_PREFIX: Final[Mapping[str, Callable[[str], list[Hit]]]] = {
    "job": _jobs,
    "att": _attempts,
    "rnd": _rounds,
    "ast": _outputs,
    "cus": _customers,
    "alr": _alerts,
    "mod": _models,
    "chn": _channels,
    "sup": _supplies,
    "hev": _health_events,
    "ref": _refusals,
    "prv": _prices,
    "trl": _trials,
    "cap": _capabilities,
    "mnt": _maintenances,
    "lse": _leases,
    "req": _requests,
}


def _at_providers(text: str) -> list[Hit]:
    # By all channels, since the index that finds these ids begins with the channel.
    channels: Sequence[int] = list(Channel.objects.values_list("id", flat=True))
    tasks = ProviderJob.objects.filter(channel__in=channels, provider_job_id=text)
    ours = Attempt.objects.filter(channel__in=channels, client_request_key=text)
    found = [*tasks.values_list("attempt__public_id", "attempt__job__public_id")[:LIMIT]]
    found += ours.values_list("public_id", "job__public_id")[:LIMIT]
    return [Hit("attempt", text, f"{_job_url(job)}#{own}") for own, job in dict(found).items()]


def _at_customers(text: str) -> list[Hit]:
    """By all customers and calls, since the index that finds a key begins with them."""
    calls, customers = ("jobs", "images"), list(Customer.objects.values_list("id", flat=True))
    jobs = Job.objects.filter(customer__in=customers, call__in=calls, idempotency_key=text)
    return [Hit("job", each, _job_url(each)) for each in jobs.values_list("public_id", flat=True)[:LIMIT]]
