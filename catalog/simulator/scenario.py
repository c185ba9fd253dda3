"""What the simulator is told to do, and what follows from it; pure.

A script is a list of rules. The first rule that fits a call and is not used up decides what becomes of it.
In JSON: {"rules": [{"when": {"call": "submit", "model": "seedance"}, "times": 1, "chance": 1,
"do": {"answer": "drop_after_acceptance"}}], "accounts": {"key-1": {"state": "overdue"}}}
An account is its API key; any key that no script names is a good one."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

CALLS: Final = ("submit", "status", "list", "cancel")

# What comes back of an accepted submission, or of any other call that was understood.
ANSWERS: Final = (
    "whole",
    "drop_before_response",  # nothing is created
    "reset_before_response",
    "drop_after_acceptance",  # created, and nobody is told
    "reset_after_acceptance",
    "hang",
    "truncated",
    "reset_in_body",
    "slow",  # a byte at a time
    "slow_headers",
    "endless",
    "empty",
    "not_json",
    "html",
    "list",
    "nan",
    "deep",
    "long_number",
    "twice_a_key",
    "missing_id",
    "wrong_type_id",
    "repeated_id",  # the id of the job of its kind before
    "redirect",
    "garbage",  # no HTTP at all
)
OUTPUTS: Final = (
    "missing",
    "expired",
    "wrong_type",
    "truncated",
    "empty",
    "slow",
    "too_large",
    "endless",
    "redirect",
    "playlist",
    "gzip_bomb",
    "needs_header",
)
CALLBACKS: Final = (
    "once",
    "none",
    "twice",
    "late",  # by `callback_late_s`
    "early",  # the first before the submission is answered
    "reordered",
    "forged",  # the token is guessed
    "wrong_place",  # the path is
)
ACCOUNT_STATES: Final = ("ok", "revoked", "overdue")

DEEP_LEVELS: Final = 200_000
LONG_NUMBER_DIGITS: Final = 5_000


class ScriptError(ValueError):
    """The script can't be read; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Do:
    """What becomes of one call. Spans in seconds."""

    latency_s: float = 0
    answer: str = "whole"
    error: str = ""  # a name of the face's error list; nothing is created
    error_after_acceptance: str = ""  # the same answer, though the job exists
    status: int = 0  # overrides the error's HTTP status, or the redirect's
    retry_after: str = ""
    location: str = "http://127.0.0.1:9/elsewhere"
    # of the task that a submission creates
    queue_s: float | None = None
    run_s: float | None = None  # negative: it never ends
    fail: str = ""  # a name of the face's error list
    without_output: bool = False
    usage: Mapping[str, Any] = field(default_factory=dict)  # told besides its own, such as a cost
    sequence: tuple[tuple[float, str], ...] = ()  # raw status words from so many seconds after creation
    hidden_from_list_s: float = 0
    without_reference: bool = False
    output: str = ""
    output_statuses: tuple[int, ...] = ()  # the first answers of its output, before the real one
    output_lifetime_s: float = 24 * 3600
    callback: str = "once"
    callback_times: int = 1  # that each is made
    callback_late_s: float = 400  # older than any replay window


@dataclass(frozen=True, slots=True)
class Rule:
    """Empty conditions fit everything; `times` None is for ever."""

    do: Do
    call: str = ""
    account: str = ""
    model: str = ""
    reference: str = ""
    times: int | None = None
    chance: float = 1


@dataclass(frozen=True, slots=True)
class Call:
    """One call as rules see it."""

    call: str
    account: str
    model: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """`concurrency` tasks run at once, others queue; more than `limit` unfinished ones are refused."""

    state: str = "ok"
    concurrency: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Script:
    rules: tuple[Rule, ...] = ()
    accounts: Mapping[str, Account] = field(default_factory=dict)

    def with_more(self, other: "Script") -> "Script":
        """The other's rules come first: the newest word holds."""
        return Script(other.rules + self.rules, {**self.accounts, **other.accounts})


@dataclass(frozen=True, slots=True)
class Timing:
    """How long tasks wait and run, unless a rule says so; each varies by `jitter` either way."""

    queue_s: float = 1
    run_s: float = 3
    jitter: float = 0.2


def decide(script: Script, call: Call, dice: random.Random) -> tuple[Do, Script]:
    """What to do with the call, and the script with that rule used once more."""
    for index, rule in enumerate(script.rules):
        if _fits(rule, call) and dice.random() < rule.chance:
            return rule.do, replace(script, rules=_used(script.rules, index))
    return Do(), script


def _fits(rule: Rule, call: Call) -> bool:
    return rule.times != 0 and all(
        getattr(rule, name) in ("", getattr(call, name)) for name in ("call", "account", "model", "reference")
    )


def _used(rules: tuple[Rule, ...], index: int) -> tuple[Rule, ...]:
    rule = rules[index]
    if rule.times is None:
        return rules
    left = (replace(rule, times=rule.times - 1),) if rule.times > 1 else ()
    return rules[:index] + left + rules[index + 1 :]


@dataclass(frozen=True, slots=True)
class Life:
    """When a task begins and ends, in seconds since the epoch; infinity: never."""

    created_at: float
    start_at: float
    end_at: float
    end: str = "succeeded"
    cancelled_at: float | None = None
    sequence: tuple[tuple[float, str], ...] = ()

    def word(self, now: float) -> str:
        """The raw status at `now`."""
        if self.cancelled_at is not None:
            return "cancelled"
        if self.sequence:
            passed = [word for after_s, word in self.sequence if now >= self.created_at + after_s]
            return passed[-1] if passed else "queued"
        if now < self.start_at:
            return "queued"
        return "running" if now < self.end_at else self.end

    def changes(self) -> list[tuple[float, str]]:
        """Each time that the status changes, with the new one."""
        if self.sequence:
            return [(self.created_at + after_s, word) for after_s, word in self.sequence]
        moments = [(self.created_at, "queued"), (self.start_at, "running"), (self.end_at, self.end)]
        return [(at, word) for at, word in moments if at != float("inf")]


def life_of(do: Do, timing: Timing, now: float, dice: random.Random, slot_free_at: float) -> Life:
    """`slot_free_at`: when the account has a slot to run it in."""
    queue_s = _around(timing.queue_s, timing.jitter, dice) if do.queue_s is None else do.queue_s
    run_s = _around(timing.run_s, timing.jitter, dice) if do.run_s is None else do.run_s
    start_at = max(now + queue_s, slot_free_at)
    end_at = start_at + run_s if run_s >= 0 else float("inf")
    return Life(now, start_at, end_at, "failed" if do.fail else "succeeded", None, do.sequence)


def _around(span_s: float, jitter: float, dice: random.Random) -> float:
    return span_s * (1 + jitter * (2 * dice.random() - 1))


def read_script(document: Any) -> Script:
    """Raises ScriptError for what it does not know, so that a misspelt fault is no silent success."""
    values = _object(document, "script", ("rules", "accounts"))
    rules = values.get("rules", [])
    if not isinstance(rules, list):
        raise ScriptError("rules: a list is meant")
    accounts = _object(values.get("accounts", {}), "accounts")
    return Script(
        tuple(_rule(rule, f"rules[{index}]") for index, rule in enumerate(rules)),
        {key: _account(value, f"accounts.{key}") for key, value in accounts.items()},
    )


def _rule(document: Any, path: str) -> Rule:
    values = _object(document, path, ("when", "times", "chance", "do"))
    when = _object(values.get("when", {}), f"{path}.when", ("call", "account", "model", "reference"))
    if "call" in when:
        _one_of(when["call"], CALLS, f"{path}.when.call")
    do = _do(values.get("do"), f"{path}.do")
    return Rule(do, **when, times=values.get("times"), chance=values.get("chance", 1))


def _do(document: Any, path: str) -> Do:
    values = dict(_object(document, path, tuple(each.name for each in fields(Do))))
    for name, allowed in (("answer", ANSWERS), ("output", OUTPUTS), ("callback", CALLBACKS)):
        if name in values:
            _one_of(values[name], allowed, f"{path}.{name}")
    values["sequence"] = tuple((float(after), str(word)) for after, word in values.get("sequence", ()))
    values["output_statuses"] = tuple(int(status) for status in values.get("output_statuses", ()))
    values["retry_after"] = str(values.get("retry_after", ""))
    return Do(**values)


def _account(document: Any, path: str) -> Account:
    values = _object(document, path, tuple(each.name for each in fields(Account)))
    _one_of(values.get("state", "ok"), ACCOUNT_STATES, f"{path}.state")
    return Account(**values)


def _object(value: Any, path: str, known: tuple[str, ...] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ScriptError(f"{path}: an object is meant")
    for key in value:
        if known is not None and key not in known:
            raise ScriptError(f"{path}.{key}: no such key; known are {', '.join(known)}")
    return value


def _one_of(value: Any, allowed: tuple[str, ...], path: str) -> None:
    if value not in allowed:
        raise ScriptError(f"{path}: {value!r} is none of {', '.join(allowed)}")
