"""System checks: every setting that can be wrong says so in words, with an id and what to do."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from catalog.vault import VaultError, parse_master_keys
from config import env

SECRET_KEY_LENGTH = 50


@register()
def environment_is_readable(**_: Any) -> list[CheckMessage]:
    return [
        Error(f"{problem.name}: {problem.message}", hint="See .env.example.", id="frameyard.E001")
        for problem in env.problems
    ]


@register()
def secret_key_is_set(**_: Any) -> list[CheckMessage]:
    if len(settings.SECRET_KEY) >= SECRET_KEY_LENGTH:
        return []
    return [
        Error(
            f"FRAMEYARD_SECRET_KEY has {len(settings.SECRET_KEY)} characters, fewer than {SECRET_KEY_LENGTH}",
            hint="Set it to a long random text and keep it: sessions and queued tasks are signed with it.",
            id="frameyard.E002",
        )
    ]


@register()
def master_keys_can_be_used(**_: Any) -> list[CheckMessage]:
    try:
        parse_master_keys(settings.MASTER_KEYS)
    except VaultError as error:
        return [
            Error(
                f"FRAMEYARD_MASTER_KEYS: {error}",
                hint="Set it to id:base64 of 32 random bytes. Without it no stored credential can be read.",
                id="frameyard.E003",
            )
        ]
    return []


@register()
def waits_fit_together(**_: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    longest_call = settings.PROVIDER_CONNECT_TIMEOUT_S + settings.PROVIDER_READ_TIMEOUT_S
    if longest_call > settings.PROVIDER_DEADLINE_S:
        messages.append(
            Warning(
                f"connecting and reading may take {longest_call} s, the whole call only "
                f"{settings.PROVIDER_DEADLINE_S} s",
                hint="Raise FRAMEYARD_PROVIDER_DEADLINE_S, or lower the connect or read timeout.",
                id="frameyard.W001",
            )
        )
    traffic = settings.Q_CLUSTER["ALT_CLUSTERS"]["traffic"]
    outputs_s = settings.OUTPUT_FETCH_TIMEOUT_S + 10 * settings.OUTPUT_VERIFY_TIMEOUT_S
    slowest = max(settings.PROVIDER_DEADLINE_S, outputs_s)
    if slowest >= traffic["timeout"]:
        messages.append(
            Error(
                f"a task may take {slowest} s, but its worker is killed after {traffic['timeout']} s",
                hint="Lower FRAMEYARD_PROVIDER_DEADLINE_S or FRAMEYARD_OUTPUT_FETCH_TIMEOUT_S.",
                id="frameyard.E004",
            )
        )
    return messages


@register(Tags.security, deploy=True)
def no_private_addresses_in_production(**_: Any) -> list[CheckMessage]:
    if not settings.ALLOW_PRIVATE_ADDRESSES:
        return []
    return [
        Warning(
            "FRAMEYARD_ALLOW_PRIVATE_ADDRESSES opens loopback and private networks to fetched addresses",
            hint="It is for the simulator; leave it out in production.",
            id="frameyard.W002",
        )
    ]
