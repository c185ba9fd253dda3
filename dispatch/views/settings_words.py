"""The words of the settings and of the help: what the team has set, and what the four steps do."""

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

type Said = str | Promise

# Groups of settings that rule alerts and money: name in config.settings, and what it says.
TEAM: Final[tuple[tuple[Said, tuple[tuple[str, Said], ...]], ...]] = (
    (
        _("Alerts"),
        (
            ("ALERT_RERAISE_AFTER_S", _("A critical alert that still fires is raised again after (s)")),
            ("ALERT_SAMPLES", _("Least samples in 15 minutes for a rate to be judged")),
            (
                "ALERT_RATE_FACTOR_PERCENT",
                _("A rate is out of the ordinary above so many per cent of the day's"),
            ),
            ("ALERT_ERRORS_PERCENT", _("Errors and timeouts are never told below (%)")),
            ("ALERT_FAILOVER_PERCENT", _("Second supplies are never told below (%)")),
            ("ALERT_SAFETY_PERCENT", _("Content refusals are never told below (%)")),
            ("ALERT_SURGE_SAMPLES", _("Least submissions for a surge of unknown outcomes")),
            ("ALERT_SURGE_PERCENT", _("Unknown outcomes are a surge above (%)")),
            ("ALERT_LATENCY_FACTOR_PERCENT", _("Slow is above so many per cent of the day's time")),
            ("ALERT_CREDENTIAL_DAYS", _("Days before a credential's last one")),
        ),
    ),
    (
        _("Money"),
        (
            ("REPORTING_TIME_ZONE", _("Zone of days, months and starts of prices")),
            (
                "GIVE_UP_ALONE_UP_TO_MICROS",
                _("One person gives up an attempt alone up to, in the currency of its quote"),
            ),
        ),
    ),
)
STEPS: Final[tuple[Said, ...]] = (
    _(
        "Of all supplies that the public model is bound to, those stay that can do exactly what the job "
        "asks for: inputs, lengths, sizes, and what the content needs. Bound in the tier degraded, a "
        "supply stays only for a lesser request that a verified rule makes."
    ),
    _(
        "Of these, those stay whose circuits are closed, that are not switched off or in maintenance, and"
        " that have a free slot now. Content that was refused keeps its distance here. Health is never "
        "ignored to keep work moving: when nobody is left, the job waits."
    ),
    _(
        "The tier exact goes before the tier fallback, and this before the tier degraded. Within a tier "
        "the policy puts them in order: stability, cost or priorities. A cost limit excludes. The first "
        "one is selected; the others stay ranked in the record."
    ),
    _(
        "If the selected supply fails for its own sake, before it could have been paid for twice, the job"
        " may go to one other supply: all steps again, with what is known then. There is never a third "
        "attempt."
    ),
)
