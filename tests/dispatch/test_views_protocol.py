"""A channel's page says what its protocol can do, as the adapter declares it."""

import re
from dataclasses import fields
from html import unescape

import pytest
from django.test import Client

from catalog.models import Channel
from catalog.providers.types import AdapterCapabilities
from tests.console import SignIn
from tests.factories import ChannelFactory

pytestmark = pytest.mark.django_db


def facts_of(client: Client, channel: Channel) -> dict[str, str]:
    page = " ".join(client.get(f"/console/channels/{channel.slug}/").content.decode().split())
    _, found, card = page.partition('aria-labelledby="protocol-heading"')
    pairs = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", card.partition("</section>")[0]) if found else []
    return {name: unescape(told) for name, told in pairs}


def test_every_capability_of_the_adapter_is_shown(sign_in: SignIn) -> None:
    facts = facts_of(sign_in("viewer"), ChannelFactory(provider="ark"))
    hint = "A call proves who calls, not what is said: it only hints that it is time to ask."
    by_kind = ("Image: by address, within the request", "Video: by address", "Sound: by address")
    assert facts == {
        "A submission is answered with": "Video: a task to be asked about · Image: the result itself",
        "A lost submission is found": "Video: by our reference in the account's list · Image: not at all",
        "Failed statuses that prove that nothing was created": "none",
        "A task can be cancelled": "Video: while it is queued · Image: not at all",
        "What it tells unasked": hint,
        "References are given": " · ".join(by_kind),
        "Addresses of outputs last": "1 d 0 h",
        "Free account check": "yes",
    }
    assert len(facts) == len(fields(AdapterCapabilities))


def test_a_channel_without_an_adapter_says_nothing_of_it(sign_in: SignIn) -> None:
    assert facts_of(sign_in("viewer"), ChannelFactory(provider="gone")) == {}
