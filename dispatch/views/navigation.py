"""The pages of the console in their order: one line each, read by the menu, its keys and the help.

`g` and then the key opens a page; the keys of the design, in the order of all pages: o a d m s c h y i j u
f e r l b. A number beside a page says how many things wait there for a person, never how many exist."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from dispatch.queries.needs import firing_warnings
from dispatch.queries.uncertain import uncertain_count

type Shell = Mapping[str, Any]


@dataclass(frozen=True)
class Page:
    """`address` is the name of its URL, `within` those of the pages below it. `waiting` is asked on every
    page and every beat: it must be cheap."""

    address: str
    title: str | Promise
    key: str = ""
    within: tuple[str, ...] = ()
    waiting: Callable[[Shell], int] | None = None

    @property
    def is_counted(self) -> bool:
        """For templates, which would call `waiting`."""
        return self.waiting is not None


@dataclass(frozen=True)
class Section:
    title: str | Promise
    pages: tuple[Page, ...]


SECTIONS: Final = (
    Section(
        _("Now"),
        (
            Page("overview", _("Overview"), "o", ("overview_charts", "overview_changes")),
            Page(
                "alerts",
                _("Alerts"),
                "a",
                ("alert", "acknowledge_matching"),
                lambda shell: len(shell["alarms"]) + firing_warnings(),
            ),
            Page("dispatch", _("Dispatch"), "d"),
        ),
    ),
    Section(
        _("Routing"),
        (
            Page(
                "models",
                _("Public models"),
                "m",
                (
                    "model",
                    "model_picks",
                    "publication",
                    "edit_model",
                    "review_model",
                    "keep_edit",
                    "save_model",
                    "publish_model",
                    "publish_now",
                    "revisions",
                    "difference",
                    "withdraw",
                ),
                lambda shell: len(shell["off_air"]),
            ),
            Page(
                "supplies",
                _("Supplies"),
                "s",
                (
                    *("supply", "supply_seen", "supply_costs", "switch_supply"),
                    *("new_supply", "supply_step", "keep_supply_step", "try_supply", "try_supply_now"),
                ),
            ),
            Page("channels", _("Channels"), "c", ("channel", "maintenance", "probe", "probe_now")),
            Page("health", _("Health"), "h", ("health_events", "health_event")),
            Page("capacity", _("Capacity"), "y", ("limit",)),
            Page("simulator", _("Simulator"), "i"),
        ),
    ),
    Section(
        _("Work"),
        (
            Page("jobs", _("Jobs"), "j", ("job", "round", "export_jobs", "cancel_job")),
            Page(
                "uncertain",
                _("Uncertain attempts"),
                "u",
                ("uncertain_attempt", "take_attempt", "query_attempt", "decide_attempt"),
                lambda _shell: uncertain_count(),
            ),
            Page("refusals", _("Refusals"), "f", ("refusal",)),
            Page("degraded", _("Degraded deliveries"), "e"),
        ),
    ),
    Section(
        _("Money"),
        (
            Page("prices", _("Cost rules"), "r", ("price", "new_price", "review_price", "cancel_price")),
            Page("ledger", _("Ledger"), "l", ("ledger_totals",)),
            Page(
                "customers",
                _("Customers and keys"),
                within=("customer", "new_customer", "deposit", "revoke_key"),
            ),
        ),
    ),
    Section(
        _("Installation"),
        (
            Page("audit", _("Audit"), within=("audit_entry",)),
            Page("settings", _("Settings"), within=("user", "save_notifications")),
            Page("help", _("Help")),
        ),
    ),
)


def pages() -> Iterator[Page]:
    for section in SECTIONS:
        yield from section.pages


def numbers(shell: Shell) -> dict[str, int]:
    """How much waits for a person, by page, of those pages that can say."""
    return {page.address: page.waiting(shell) for page in pages() if page.waiting}
