"""`manage.py pulse`: rings the recurring tasks once a second. Run two: one leads, the other takes over."""

import logging
from typing import Any

from django.core.management.base import BaseCommand
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from config.leadership import Seconds, try_to_lead
from config.stopping import StopRequest
from dispatch import pulse

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Ring the recurring tasks once a second; of several pulses one leads and the others stand by."

    def handle(self, *_: Any, **__: Any) -> None:
        request, seconds = StopRequest(), Seconds()
        leads = False
        while not request.wait(seconds.until_next_s()):
            leads = _second(leads)
        connection.close()


def _second(leads: bool) -> bool:
    """Rings if we lead, or tries to lead; whether we do now."""
    try:
        if not leads and try_to_lead():
            leads = True
            logger.info("This pulse leads now")
        if leads:
            pulse.beat(timezone.now())
    except (OperationalError, InterfaceError):
        # The lock went with the session: whoever gets it next leads, perhaps we.
        logger.exception("The pulse lost its database and tries again each second")
        connection.close()
        return False
    return leads
