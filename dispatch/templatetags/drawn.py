"""Rows of lists, drawn once for their values: on a beat most of them are as they were."""

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, Final

from django import template
from django.template.loader import get_template
from django.utils import timezone
from django.utils.translation import get_language

register = template.Library()

_KEPT: Final = 3_000  # rows, of a few kB each at most; the longest list shows 200


@register.simple_tag(takes_context=True)
def drawn(context: Mapping[str, Any], name: str, row: Hashable, here: str = "") -> str:
    """`row`: a frozen value of plain values. It, `here` and what the person may do are all that the template
    can show, beside language and zone: rows that are equal look alike. Never a model, which is equal to
    itself whatever it says."""
    zone = timezone.get_current_timezone_name()
    return _drawn(name, row, here, frozenset(context["shell"]["may"]), get_language(), zone)


@lru_cache(maxsize=_KEPT)
def _drawn(
    name: str, row: Hashable, here: str, may: frozenset[str], _language: str | None, _zone: str
) -> str:
    return get_template(name).render({"row": row, "here": here, "may": may})
