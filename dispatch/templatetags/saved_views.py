"""The menu of saved views above a list."""

from collections.abc import Mapping
from typing import Any

from django import template

from dispatch.queries.saved_views import views_of
from dispatch.views.bulk import filter_of
from dispatch.views.saved_views import NAME_LENGTH

register = template.Library()


@register.inclusion_tag("console/parts/views.html", takes_context=True)
def saved_views(context: Mapping[str, Any], page: str) -> dict[str, Any]:
    """One query. `page`: the name of the list's URL."""
    request = context["request"]
    query = filter_of(request.GET)
    lines = views_of(request.user, page, query)
    here = next((line.view.name for line in lines if line.is_here and query), "")
    return {
        "lines": lines,
        "page": page,
        "query": query,
        "here": here,
        "address": request.build_absolute_uri(f"{request.path}?{query}" if query else request.path),
        "name_length": NAME_LENGTH,
        "csrf_token": context.get("csrf_token"),
    }
