"""System checks: every setting that can be wrong says so in words, with an id and what to do."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import validate_email

from catalog.vault import VaultError, parse_master_keys
from config import env
from health.webhook_signature import SecretError, signing_key

SECRET_KEY_LENGTH = 50


@register()
def environment_is_readable(**_: Any) -> list[CheckMessage]:
    return [
        Error(f"{problem.name}: {problem.message}", hint="See .env.example.", id="frameyard.E001")
        for problem in env.problems
    ]


@register()
def secret_key_is_set(**_: Any) -> list[CheckMessage]:
    try:
        length = len(settings.SECRET_KEY)
    except ImproperlyConfigured:  # Django's own word for an empty one, which names no variable
        length = 0
    if length >= SECRET_KEY_LENGTH:
        return []
    return [
        Error(
            f"FRAMEYARD_SECRET_KEY has {length} characters, fewer than {SECRET_KEY_LENGTH}",
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


@register()
def alert_webhook_can_be_signed(**_: Any) -> list[CheckMessage]:
    if not settings.ALERT_WEBHOOK_URL:
        return []
    if not _is_web_address(settings.ALERT_WEBHOOK_URL):
        problem = "FRAMEYARD_ALERT_WEBHOOK_URL is not an address that begins with https:// or http://"
    else:
        problem = _problem_of_secret(settings.ALERT_WEBHOOK_SECRET)
    hint = "Give address and secret (whsec_ and base64 of 24 to 64 random bytes), or leave both out."
    return [Error(problem, hint=hint, id="frameyard.E005")] if problem else []


def _problem_of_secret(secret: str) -> str:
    try:
        signing_key(secret)
    except SecretError as error:
        return f"FRAMEYARD_ALERT_WEBHOOK_SECRET: {error}"
    return ""


@register()
def alerts_can_be_mailed(**_: Any) -> list[CheckMessage]:
    """Addresses only where mail is wanted at all."""
    messages: list[CheckMessage] = []
    wanted = [*settings.ALERT_EMAILS, settings.DEFAULT_FROM_EMAIL] if settings.ALERT_EMAILS else []
    for address in wanted:
        if not _is_mail_address(address):
            hint = "Correct FRAMEYARD_ALERT_EMAILS (separated by commas) or FRAMEYARD_MAIL_FROM."
            messages.append(Error(f"{address!r} is no mail address", hint=hint, id="frameyard.E006"))
    if settings.MAIL_SECURITY not in ("none", "starttls", "tls"):
        messages.append(
            Error(
                f"FRAMEYARD_MAIL_SECURITY: {settings.MAIL_SECURITY!r} is none of none, starttls, tls",
                hint="Say how the mail server is spoken to: starttls (port 587), tls (465) or none (25).",
                id="frameyard.E007",
            )
        )
    elif settings.MAIL_SECURITY == "none" and settings.MAIL_PASSWORD:
        messages.append(
            Warning(
                "FRAMEYARD_MAIL_PASSWORD would go over the network in the clear",
                hint="Set FRAMEYARD_MAIL_SECURITY to starttls or tls.",
                id="frameyard.W003",
            )
        )
    return messages


@register()
def links_lead_here(**_: Any) -> list[CheckMessage]:
    if settings.PUBLIC_URL and not _is_web_address(settings.PUBLIC_URL):
        return [
            Error(
                "FRAMEYARD_PUBLIC_URL is not an address that begins with https:// or http://",
                hint="Set it to where browsers find this installation, such as https://frameyard.example.com.",
                id="frameyard.E008",
            )
        ]
    if not settings.PUBLIC_URL and (settings.ALERT_WEBHOOK_URL or settings.ALERT_EMAILS):
        return [
            Warning(
                "alerts are sent out, but their links lead nowhere",
                hint="Set FRAMEYARD_PUBLIC_URL to where browsers find this installation.",
                id="frameyard.W004",
            )
        ]
    return []


@register(deploy=True)
def somebody_is_told(**_: Any) -> list[CheckMessage]:
    if settings.ALERT_WEBHOOK_URL or settings.ALERT_EMAILS:
        return []
    return [
        Warning(
            "critical alerts are shown in the console only, to whoever looks",
            hint="Set FRAMEYARD_ALERT_WEBHOOK_URL or FRAMEYARD_ALERT_EMAILS.",
            id="frameyard.W005",
        )
    ]


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _is_mail_address(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True
