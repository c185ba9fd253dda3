"""What an attempt cost us, where its provider tells a cost of its own; pure.

A report is booked exactly, however far from the quote, and doubted aloud; what can't be a cost is not booked:
the estimate by the rule stands then, and says that it is one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from billing.money import MICROS, half_up
from billing.pricing import Ratio

DOUBTED_FROM: Final = Fraction(1, 10)  # of the estimate
_MOST_MICROS: Final = 10**15
_DECIMAL: Final = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?")  # no exponent that takes a day


@dataclass(frozen=True, slots=True)
class Cost:
    """`doubt` is empty where report and estimate agree, or where there is no report."""

    micros: int
    by: str  # "report" or "rule"
    doubt: str = ""
    reported: str = ""  # as it came, with its currency

    def as_details(self) -> dict[str, str]:
        return {"by": self.by} | ({"reported": self.reported} if self.reported else {})


def reported_cost(
    estimate_micros: int, currency: str, usage: Mapping[str, Any], rates: Mapping[str, Ratio]
) -> Cost:
    """`usage["cost"]` in `usage["currency"]`, as adapters hand them on; `rates` into `currency`."""
    if usage.get("cost") is None:
        return Cost(estimate_micros, "rule")
    said, told_in = str(usage["cost"])[:40], str(usage.get("currency") or "")[:8]
    reported = f"{said} {told_in}".strip()
    rate = (1, 1) if told_in == currency else rates.get(told_in)
    amount = _amount(said)
    if amount is None:
        return Cost(estimate_micros, "rule", "no amount", reported)
    if amount < 0:
        return Cost(estimate_micros, "rule", "negative", reported)
    if rate is None:
        return Cost(estimate_micros, "rule", "no rate for its currency", reported)
    micros = half_up(amount.numerator * rate[0] * MICROS, amount.denominator * rate[1])
    if micros > _MOST_MICROS:
        return Cost(estimate_micros, "rule", "absurdly large", reported)
    return Cost(micros, "report", _doubt(micros, estimate_micros), reported)


def _amount(said: str) -> Fraction | None:
    return Fraction(said) if _DECIMAL.fullmatch(said) else None


def _doubt(micros: int, estimate_micros: int) -> str:
    return "differs" if abs(micros - estimate_micros) > estimate_micros * DOUBTED_FROM else ""
