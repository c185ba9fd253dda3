"""The words of the pages of refusals, customers, money, changes and help."""

from typing import Final

from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from dispatch.queries.days import Days
from dispatch.views.vocabulary import Words

REFUSAL_STATES: Final[Words] = {
    "cooldown": _("Cooling down"),
    "frozen": _("Frozen"),
    "ended": pgettext_lazy("refusal", "Ended"),
}
ISOLATION: Final[Words] = {  # of public models
    "provider": _("Other providers may take it."),
    "model": _("Closed for this content at every provider."),
}
PRICE_STATES: Final[Words] = {
    "past": _("Past"),
    "in_force": _("In force"),
    "scheduled": _("Scheduled"),
    "cancelled": pgettext_lazy("price", "Cancelled before its start"),
}
COST_MODES: Final[Words] = {
    "per_second": _("by the second"),
    "per_request": _("by the result"),
    "per_token": _("by the token"),
}
BOOKS: Final[Words] = {"customers": _("What customers owe"), "providers": _("What providers charge")}
SCOPES: Final[Words] = {"read": _("read"), "submit": _("submit")}
SOURCES: Final[Words] = {  # of audit entries: a door, or a part of the product that acted by itself
    "console": _("console"),
    "command": _("command"),
    "reconciler": _("the recount of each minute"),
    "pulse": _("the watch on the clock"),
    "housekeeping": _("housekeeping, by the clock"),
}
ROLES: Final[Words] = {
    "viewer": _("viewer: reads"),
    "operator": _("operator: edits, acknowledges, settles"),
    "publisher": _("publisher: publishes"),
    "finance": _("finance: cost rules, bills, credit"),
    "admin": _("admin: users, credentials, keys"),
}
ACTIONS: Final[Words] = {  # of audit entries
    "acknowledge alert": _("acknowledge alert"),
    "add supply": _("add supply"),
    "cancel job": _("cancel job"),
    "cancel price": _("cancel a planned price"),
    "change limit": _("change limit"),
    "change roles": _("change roles"),
    "choose notifications": _("choose notifications"),
    "correct queue": _("correct the queue's counts"),
    "correct slots": _("correct the slots' counts"),
    "create customer": _("create customer"),
    "decide submission": _("decide an uncertain submission"),
    "deposit credit": _("deposit credit"),
    "disable channel health": _("disable channel"),
    "disable supply health": _("disable supply"),
    "enable channel health": _("enable channel"),
    "enable supply health": _("enable supply"),
    "end maintenance": _("end maintenance"),
    "export jobs": _("export jobs"),
    "follow clock": _("follow a clock that was put back"),
    "issue api key": _("issue API key"),
    "lift refusal": _("lift refusal"),
    "limit customer": _("limit customer"),
    "note on alert": _("note on alert"),
    "probe channel health": _("probe channel before its time"),
    "probe supply health": _("probe supply before its time"),
    "propose to give up": _("propose to give up"),
    "publish capability": _("publish capability"),
    "publish model": _("publish model"),
    "publish price": _("publish price"),
    "query provider": _("query provider"),
    "refused change": _("refused change"),
    "reseal credential": _("reseal credential"),
    "revoke api key": _("revoke API key"),
    "save channel": _("save channel"),
    "save customer group": _("save customer group"),
    "save health policy": _("save health policy"),
    "save model": _("save model"),
    "save policy": _("save policy"),
    "save rule": _("save rule"),
    "save supply": _("save supply"),
    "schedule price": _("schedule price"),
    "send alert again": _("send alert again"),
    "set group capacity": _("set the group's capacity"),
    "set priorities": _("set priorities"),
    "set rate": _("set exchange rate"),
    "show content": _("show content"),
    "start maintenance": _("start maintenance"),
    "switch on or off": _("switch on or off"),
    "take attempt": _("take attempt"),
    "take over alert": _("take over alert"),
    "try supply": _("try supply by a call"),
    "look at trial": _("look at a trial call"),
    "unacknowledge alert": _("take the acknowledgement back"),
    "withdraw model": _("withdraw model"),
}
SUBJECT_KINDS: Final[Words] = {  # of audit entries: what stands before the colon
    "address": _("Address"),
    "alert": _("Alert"),
    "attempt": _("Attempt"),
    "capacity_group": _("Capacity group"),
    "channel": _("Channel"),
    "customer": _("Customer"),
    "customer_group": _("Customer group"),
    "delivery": _("Message of an alert"),
    "group": _("Capacity group"),  # in old entries
    "health_policy": _("Health policy"),
    "installation": _("Installation"),
    "job": _("Job"),
    "api_key": _("API key"),
    "model": _("Public model"),
    "policy": _("Policy"),
    "rate": _("Exchange rate"),
    "refusal": _("Refusal"),
    "rule": _("Degradation rule"),
    "supply": _("Supply"),
    "user": _("User"),
}


def days_said(days: Days) -> str:
    return _now("%(first)s to %(last)s") % {"first": days.first.isoformat(), "last": days.last.isoformat()}
