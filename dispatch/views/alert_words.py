"""The filter of the list of alerts in words that can be taken away."""

from django.http import QueryDict

from dispatch.queries.alert_list import AlertFilter
from dispatch.views import vocabulary as words
from dispatch.views.bulk import TICKED
from dispatch.views.listing import Word, query_without


def active(query: QueryDict, wanted: AlertFilter) -> list[Word]:
    found = [
        (words.word(words.ALERTS, code), query_without(query, TICKED, value=("code", code)))
        for code in wanted.codes
    ]
    if wanted.severity:
        severity = words.word(words.SEVERITIES, wanted.severity)
        found.append((severity, query_without(query, TICKED, "severity")))
    if wanted.subject:
        found.append((wanted.subject, query_without(query, TICKED, "subject")))
    return found
