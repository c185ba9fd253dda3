"""Of which alerts mail comes to a person: what was chosen, and what is wrong with what was typed."""

from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dispatch.views.vocabulary import Words
from health.deliveries import targets
from health.services.subscribe import LEVELS, NONE, chosen_by

LEVEL_WORDS: Final[Words] = {
    "none": gettext_lazy("no alert"),
    "critical": gettext_lazy("critical alerts"),
    "all": gettext_lazy("critical alerts and warnings"),
}
_ADDRESS_LENGTH: Final = 254


@dataclass(frozen=True, slots=True)
class Choice:
    """One of LEVELS, and an address."""

    level: str
    address: str

    @property
    def fault(self) -> str:
        """In words; "" where it can be kept."""
        if self.level not in LEVELS:
            return _("Choose one.")
        if self.level != NONE and not _is_address(self.address):
            return _("Give an address such as li.m@example.com.")
        return ""


def typed_in(form: QueryDict) -> Choice:
    return Choice(form.get("alerts", ""), form.get("address", "").strip()[:_ADDRESS_LENGTH])


def notifications_of(user: User, typed: Choice | None) -> dict[str, Any]:
    """With whom the installation tells besides; `typed`: what was not taken."""
    told = targets()
    return {
        "choice": typed or Choice(*chosen_by(user)),
        "fault": typed.fault if typed else "",
        "levels": LEVEL_WORDS.items(),
        "has_webhook": bool(told.webhook_url),
        "emails": told.emails,
    }


def _is_address(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True
