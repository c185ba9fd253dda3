"""The words of what the audit's entries changed: fields that only they name, and values by their field."""

from collections.abc import Mapping
from typing import Final

from django.utils.translation import gettext_lazy as _

from dispatch.views import field_words, model_words, money_words, supply_words
from dispatch.views import vocabulary as words
from dispatch.views.notifications import LEVEL_WORDS
from dispatch.views.vocabulary import Words

HEALTH_PARAMETERS: Final[Words] = {  # of health.parameters
    "degrade_after": _("Failures in a row until degraded health"),
    "open_after": _("Failures in a row until its circuit opens"),
    "rate_limit": _("Share of failures above which its circuit opens"),
    "rate_samples": _("Least samples for that share"),
    "rate_window_s": _("Span of that share (s)"),
    "restore_after": _("Successes until degraded health ends"),
    "channel_network_open_after": _("Failed connections in a row until a channel's circuit opens"),
    "correlation_supplies": _("Supplies with the same error until their channel's circuit opens"),
    "correlation_window_s": _("Span of that error (s)"),
    "cooldowns_s": _("Cooldowns (s), by openings in a row"),
}
FIELDS: Final[Words] = {
    **{name: parameter.label for name, parameter in model_words.WORDS.items()},
    **field_words.FIELDS,
    **HEALTH_PARAMETERS,
    "account": _("Account"),
    "active": _("May ask for jobs"),
    "address": _("Mail address"),
    "alert": _("Alert"),
    "alerts": _("Mail comes of"),
    "allowed_groups": _("Only for"),
    "answer": _("What the provider said"),
    "appointments": _("Appointments brought forward"),
    "as_of": _("As of"),
    "at_end": _("At the end time"),
    "base_url": _("Address"),
    "baseline": _("Baseline"),
    "because_of_rule": _("Because of the rule"),
    "bindings": _("Binding"),
    "brackets": _("Whole price"),
    "capacity": _("Limit"),
    "config": _("Configuration"),
    "confirmed": _("In use"),
    "credential_expires": _("The credential's last day"),
    "credential_hint": _("The credential ends in"),
    "credential_reference": _("Reference of the credential"),
    "currency": _("Currency"),
    "customer": _("Customer"),
    "decision": _("Decision"),
    "deposit": _("Deposit"),
    "display_name": _("Name"),
    "drop_inputs": _("Dropped inputs"),
    "endpoint": _("Address"),
    "example_requests": _("Example request"),
    "factor": _("Factor"),
    "filter": _("Filter"),
    "first": _("Who found it first"),
    "first_reason": _("Their reason"),
    "fixed": _("Whole price"),
    "free_on_failure": _("A failure costs nothing"),
    "from": _("In force from"),
    "from_profile": _("From profile"),
    "frozen": _("Frozen"),
    "group": _("Group"),
    "job": _("Job"),
    "jobs": _("Jobs"),
    "key": _("Key"),
    "last_error": _("Last error"),
    "last_supply_of": _("Models that lose their last supply"),
    "lease": _("Lease"),
    "line": _("Counted in the project's line"),
    "maintenance": _("Maintenance"),
    "max_in_flight": _("Jobs running at once"),
    "max_platform_loss_micros": _("Loss of ours on one job at most"),
    "max_queued": _("Jobs waiting at once"),
    "max_s": _("To (s), included"),
    "method": _("Method"),
    "min_s": _("From (s)"),
    "multipliers": _("Factor"),
    "name": _("Name"),
    "needs": _("Needs the permission"),
    "operator": _("Who is on it"),
    "per_credit": _("Price of one provider credit"),
    "per_request": _("Unit price"),
    "per_second": _("Unit price"),
    "policy": _("Policy"),
    "price": _("Price"),
    "priorities": _("Priority of the project"),
    "profile": _("Profile"),
    "prompt": _("Prompt"),
    "provider": _("Provider"),
    "provider_job_id": _("Provider's task id"),
    "published": _("Published"),
    "put_back_s": _("Put back by"),
    "queue": _("Counted in the customer's queue"),
    "quote_micros": _("Quote"),
    "rate": _("Rate"),
    "refusal_isolation": _("After a refusal of content"),
    "refusals": _("Refusals"),
    "region": _("Region"),
    "require": _("then"),
    "roles": _("Roles"),
    "scopes": _("May"),
    "sessions_ended": _("Sessions that ended"),
    "stats_window_s": _("Span of the success rate (s)"),
    "step_s": _("Charged in steps of (s)"),
    "target": _("Sent to"),
    "task": _("Task at the provider"),
    "then": _("Then"),
    "to_profile": _("To profile"),
    "trial": _("Trial call"),
    "tries": _("Tries"),
    "unknown": _("Unknown"),
    "verified": _("Verified"),
    "version": _("Version"),
    "weight": _("Weight in the fair queue"),
    "when": _("Where"),
    "withdrawn_models": _("Taken out of production"),
}
MODES_OF_PRICE: Final = _("How it is charged")
MODES_OF_MAINTENANCE: Final = _("What stops")
CONTRACT: Final = _("What a request may ask")
ENABLED_MODEL: Final = _("Enabled")
LEAST_LENGTH: Final = _("Least length charged (s)")

ADMIN_STATES: Final[Words] = {
    "enabled": _("switched on"),
    "draining": _("draining"),
    "disabled": _("switched off"),
}
MAINTENANCE_MODES: Final[Words] = {"drain": _("Drain"), "stop": _("Stop")}
AT_END: Final[Words] = {"probe": _("Probe it"), "stay_off": _("Stay off")}
LEASES: Final[Words] = {"live": _("in use"), "unknown": _("unknown"), "released": _("free")}
DECISIONS: Final[Words] = {  # as the entries say them
    "exists": _("Provider has it"),
    "does not exist": _("Provider does not have it"),
    "cannot be found out": _("Cannot be found out"),
}
PERMISSIONS: Final[Words] = {  # of dispatch.views.access.MATRIX
    "read": _("read"),
    "acknowledge": _("acknowledge alerts"),
    "edit": _("edit models, supplies and channels"),
    "settle": _("settle uncertain attempts and refusals"),
    "stop": _("stop a customer's job"),
    "try": _("try supplies and circuits"),
    "publish": _("publish"),
    "withdraw": _("take models out of production"),
    "price": _("cost rules"),
    "administer": _("users, credentials, keys"),
}
VALUES: Final[Mapping[str, Words]] = {  # by field
    "alerts": LEVEL_WORDS,
    "answer": words.FINDINGS,
    "at_end": AT_END,
    "decision": DECISIONS,
    "degradation": words.DEGRADATION,
    "drop_inputs": words.INPUTS,
    "lease": LEASES,
    "lifecycle": words.LIFECYCLES,
    "modality": words.MODALITIES,
    "mode": {**supply_words.MODES, **money_words.COST_MODES, **MAINTENANCE_MODES},
    "needs": PERMISSIONS,
    "order": words.ORDERS,
    "real_person_policy": supply_words.REAL_PERSON,
    "refusal_isolation": money_words.ISOLATION,
    "scopes": money_words.SCOPES,
    "shadow_order": words.ORDERS,
    "then": words.HEALTH,
    "tier": words.TIERS,
}
STATES: Final[Mapping[str, Words]] = {  # what `state` means, by the last word of the action
    "health": words.HEALTH,
    "job": words.JOB_STATES,
    "submission": words.ATTEMPT_STATES,
    "again": words.DELIVERIES,
}
