"""What `manage.py check` says of settings that reach operators: every wrong value by id, and silence else."""

from typing import Any

import pytest

from config import checks
from tests.alert_receiver import SECRET


@pytest.fixture(autouse=True)
def _good_settings(settings: Any) -> None:
    settings.PUBLIC_URL = "https://frameyard.example"
    settings.ALERT_WEBHOOK_URL, settings.ALERT_WEBHOOK_SECRET = "https://hooks.example/f", SECRET
    settings.ALERT_EMAILS, settings.DEFAULT_FROM_EMAIL = ["li@example.org"], "frameyard@localhost"
    settings.MAIL_SECURITY, settings.MAIL_PASSWORD = "none", ""


def ids() -> list[str]:
    findings = [
        *checks.alert_webhook_can_be_signed(),
        *checks.alerts_can_be_mailed(),
        *checks.links_lead_here(),
        *checks.somebody_is_told(),
    ]
    assert all(finding.hint for finding in findings)
    return [str(finding.id) for finding in findings]


def test_good_settings_are_met_with_silence() -> None:
    assert ids() == []


@pytest.mark.parametrize("key", ["", "too short"])
def test_a_missing_or_short_secret_key_is_told_by_its_variable(settings: Any, key: str) -> None:
    settings.SECRET_KEY = key
    (finding,) = checks.secret_key_is_set()
    assert finding.id == "frameyard.E002"
    assert finding.msg.startswith(f"FRAMEYARD_SECRET_KEY has {len(key)} characters")


@pytest.mark.parametrize("secret", ["", "secret", "whsec_!!!"])
def test_a_webhook_needs_a_secret_that_can_sign(settings: Any, secret: str) -> None:
    settings.ALERT_WEBHOOK_SECRET = secret
    assert ids() == ["frameyard.E005"]


def test_without_a_webhook_no_secret_is_asked_for(settings: Any) -> None:
    settings.ALERT_WEBHOOK_URL = settings.ALERT_WEBHOOK_SECRET = ""
    assert ids() == []


@pytest.mark.parametrize("url", ["hooks.example", "ftp://hooks.example", "https://", "https://[bad"])
def test_an_address_that_is_none_is_found(settings: Any, url: str) -> None:
    settings.ALERT_WEBHOOK_URL = settings.PUBLIC_URL = url
    assert ids() == ["frameyard.E005", "frameyard.E008"]


def test_each_wrong_mail_address_is_named(settings: Any) -> None:
    settings.ALERT_EMAILS, settings.DEFAULT_FROM_EMAIL = ["li@example.org", "li at home"], "nobody"
    assert ids() == ["frameyard.E006", "frameyard.E006"]


def test_mail_security_is_one_of_three_words(settings: Any) -> None:
    settings.MAIL_SECURITY = "ssl"
    assert ids() == ["frameyard.E007"]


def test_a_password_does_not_go_in_the_clear(settings: Any) -> None:
    settings.MAIL_PASSWORD = "opensesame"
    assert ids() == ["frameyard.W003"]
    settings.MAIL_SECURITY = "starttls"
    assert ids() == []


def test_links_of_messages_must_lead_somewhere(settings: Any) -> None:
    settings.PUBLIC_URL = ""
    assert ids() == ["frameyard.W004"]


def test_an_installation_that_tells_nobody_is_warned(settings: Any) -> None:
    settings.ALERT_WEBHOOK_URL, settings.ALERT_EMAILS = "", []
    assert ids() == ["frameyard.W005"]
