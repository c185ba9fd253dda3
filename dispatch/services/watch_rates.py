"""Once a minute: which rates of the last quarter of an hour are out of their own last day."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings

from billing.money import written
from catalog.models import PublicModel, Supply
from dispatch.baselines import RateRule, Share, has_shifted, is_dear, is_high, is_slow, limit_of
from dispatch.held_channels import HELD_BY, subject_of
from dispatch.recent_rates import ModelFigures, Recent, SupplyFigures, model_figures, supply_figures
from health.alerts import raise_alert, resolve_all_but

type Found = Mapping[str, Mapping[str, Any]]  # details, by subject
type Shares = Mapping[str, tuple[Share, Share]]  # now and before, by subject
type Test = Callable[[Share, Share, RateRule], bool]

ERRORS, FAILOVER, SAFETY = "provider_errors_and_timeouts", "failover_rate_high", "safety_rate_shift"
LATENCY, COST = "latency_over_baseline", "cost_per_success_over"
MOST_UNKNOWN = 0.5  # of submissions: where more end so, nothing is sent, whatever the day was like


def watch_rates(now: datetime) -> None:
    """Raises what is out, and resolves what is not any more, code by code."""
    for code, found in (_of_supplies(now) | _of_models(now)).items():
        for subject, details in found.items():
            raise_alert(code, subject=subject, dedupe_key=_key(code, subject), details=details, now=now)
        keys = [_key(code, subject) for subject in found]
        resolve_all_but(code, keys, "the last 15 minutes are within the limit again", now)


def _key(code: str, subject: str) -> str:
    return f"{code}:{subject}"


def rule_of(code: str) -> RateRule:
    """The installation's parameters for one rate."""
    samples, floor_percent = {
        HELD_BY: (settings.ALERT_SURGE_SAMPLES, settings.ALERT_SURGE_PERCENT),
        ERRORS: (settings.ALERT_SAMPLES, settings.ALERT_ERRORS_PERCENT),
        FAILOVER: (settings.ALERT_SAMPLES, settings.ALERT_FAILOVER_PERCENT),
        SAFETY: (settings.ALERT_SAMPLES, settings.ALERT_SAFETY_PERCENT),
    }[code]
    rule = RateRule(samples, floor_percent / 100, settings.ALERT_RATE_FACTOR_PERCENT / 100)
    return replace(rule, ceiling=MOST_UNKNOWN) if code == HELD_BY else rule


def _of_supplies(now: datetime) -> dict[str, Found]:
    """Rates by channel: its supplies share one account, and one fate. How long work takes, by supply."""
    supplies = list(Supply.objects.values_list("pk", "slug", "channel__slug"))
    figures = supply_figures([pk for pk, _, _ in supplies], now)
    channels: dict[str, list[Recent[SupplyFigures]]] = defaultdict(list)
    for pk, _, channel in supplies:
        channels[subject_of(channel)].append(figures[pk])

    def rates(share: Callable[[SupplyFigures], Share]) -> Shares:
        return {
            subject: (_sum(share(each.now) for each in recent), _sum(share(each.before) for each in recent))
            for subject, recent in channels.items()
        }

    return {
        HELD_BY: _out(HELD_BY, is_high, rates(lambda each: each.unknown)),
        ERRORS: _out(ERRORS, is_high, rates(lambda each: each.errors)),
        SAFETY: _out(SAFETY, has_shifted, rates(lambda each: each.refusals)),
        LATENCY: _slow({f"supply:{slug}": figures[pk] for pk, slug, _ in supplies}),
    }


def _of_models(now: datetime) -> dict[str, Found]:
    models = {model.pk: model for model in PublicModel.objects.select_related("policy")}
    figures = {models[pk]: recent for pk, recent in model_figures(models, now).items()}
    switched = {_of(model): (each.now.switched, each.before.switched) for model, each in figures.items()}
    return {FAILOVER: _out(FAILOVER, is_high, switched), COST: _dear(figures)}


def _of(model: PublicModel) -> str:
    return f"model:{model.slug}"


def _sum(shares: Iterable[Share]) -> Share:
    return sum(shares, Share())


def _out(code: str, test: Test, shares: Shares) -> Found:
    rule = rule_of(code)
    return {
        subject: {
            "measured": _percent(now.rate),
            "samples": now.whole,
            "baseline": _percent(before.rate),
            "limit": _percent(limit_of(before, rule)),
        }
        for subject, (now, before) in shares.items()
        if test(now, before, rule)
    }


def _percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def _slow(supplies: Mapping[str, Recent[SupplyFigures]]) -> Found:
    factor = settings.ALERT_LATENCY_FACTOR_PERCENT / 100
    return {
        subject: {
            "measured": f"{recent.now.spans.median_s:.1f} s",
            "samples": recent.now.spans.samples,
            "baseline": f"{recent.before.spans.median_s:.1f} s",
            "limit": f"{factor * recent.before.spans.median_s:.1f} s",
        }
        for subject, recent in supplies.items()
        if is_slow(recent.now.spans, recent.before.spans, settings.ALERT_SAMPLES, factor)
    }


def _dear(models: Mapping[PublicModel, Recent[ModelFigures]]) -> Found:
    """Over the whole day: a success may take longer than a quarter of an hour to be paid for."""
    found = {}
    for model, recent in models.items():
        policy, costs = model.policy.parsed, recent.now.costs + recent.before.costs
        limit = policy.max_cost_per_success_micros
        if is_dear(costs, settings.ALERT_SAMPLES, limit):
            found[_of(model)] = {
                "measured": f"{written(costs.per_success_micros)} {policy.currency}",
                "samples": costs.ended,
                "limit": f"{written(limit or 0)} {policy.currency}",
            }
    return found
