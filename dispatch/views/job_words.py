"""The words of the list of jobs: what it may be narrowed to."""

from typing import Final

from django.utils.translation import gettext_lazy as _

from dispatch.views.vocabulary import Words

JOB_SPANS: Final[Words] = {  # of dispatch.queries.job_filter
    "1h": _("Last hour"),
    "24h": _("Last 24 hours"),
    "7d": _("Last 7 days"),
    "30d": _("Last 30 days"),
}
JOB_HAD: Final[Words] = {
    "switch": _("had a switch"),
    "dropped": _("inputs dropped"),
    "uncertain": _("outcome unknown"),
}
