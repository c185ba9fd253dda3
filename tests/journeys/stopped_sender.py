"""A worker that is stopped on its way to a provider, with the arguments ATTEMPT MOMENT PLACE.

PLACE is `allowed`, when the moment of sending is committed, or `writing`, when the clock was looked at for
the last time and the body is to be written. It stops itself there (SIGSTOP) until it is told to go on."""

import http.client
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import django

from catalog.providers.http import Transport

QUICK_DEPARTURE_S = 0.5


def main(attempt_id: int, moment: datetime, place: str) -> None:
    from dispatch.services import submit

    for_sending = submit.transport_for_sending

    def quick(*given: Any) -> Transport:
        transport = for_sending(*given)
        transport.limits = replace(transport.limits, departure_s=QUICK_DEPARTURE_S)
        return transport

    if place == "allowed":
        submit.transport_for_sending = quick  # type: ignore[assignment]
        submit._allow = _then(submit._allow, _stop)
    else:
        http.client.HTTPConnection.send = _stopped_before_body(http.client.HTTPConnection.send)  # type: ignore[method-assign]
    submit.submit([attempt_id], lambda: moment)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _then(first: Callable[..., Any], then: Callable[[], None]) -> Callable[..., Any]:
    def both(*given: Any) -> Any:
        answer = first(*given)
        then()
        return answer

    return both


def _stopped_before_body(write: Callable[..., None]) -> Callable[..., None]:
    def send(connection: Any, data: bytes) -> None:
        if data.startswith(b"{"):
            _stop()
        write(connection, data)

    return send


if __name__ == "__main__":
    django.setup()
    main(int(sys.argv[1]), datetime.fromisoformat(sys.argv[2]), sys.argv[3])
