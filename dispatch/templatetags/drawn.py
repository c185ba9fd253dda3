"""Rows of lists, drawn once for their values: on a beat most of them are as they were."""

from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from django import template
from django.template.loader import get_template
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.utils.translation import get_language

register = template.Library()

_KEPT: Final = 3_000  # rows, of a few kB each at most; the longest list shows 200


@register.simple_tag(takes_context=True)
def drawn(context: Mapping[str, Any], name: str, rows: Iterable[Hashable], here: str = "") -> str:
    """`rows`: frozen values of plain values. They, `here` and what the person may do are all that the
    template can show, beside language and zone: rows that are equal look alike. Never models, which are
    equal to themselves whatever they say."""
    alike = (here, frozenset(context["shell"]["may"]), get_language(), timezone.get_current_timezone_name())
    return mark_safe("".join(_drawn(name, row, *alike) for row in rows))  # noqa: S308 - by templates


@lru_cache(maxsize=_KEPT)
def _drawn(
    name: str, row: Hashable, here: str, may: frozenset[str], _language: str | None, _zone: str
) -> str:
    return get_template(name).render({"row": row, "here": here, "may": may})
