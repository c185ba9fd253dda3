"""Addresses of the console, below /console/."""

from django.urls import path
from django.views.i18n import set_language

from dispatch.views import alerts, job, jobs, overview, rounds, search, session

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("login/", session.login, name="login"),
    path("logout/", session.logout, name="logout"),
    path("language/", set_language, name="set_language"),
    path("theme/", session.set_theme, name="set_theme"),
    path("strips/", alerts.strips, name="strips"),
    path("search/", search.search, name="search"),
    path("alerts/", alerts.alerts, name="alerts"),
    path("alerts/<str:alert_id>/", alerts.alert, name="alert"),
    path("alerts/<str:alert_id>/acknowledge/", alerts.acknowledge_alert, name="acknowledge"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<str:job_id>/", job.job, name="job"),
    path("jobs/<str:job_id>/content/", job.content, name="content"),
    path("jobs/<str:job_id>/outputs/<str:asset_id>/", job.output, name="output"),
    path("jobs/<str:job_id>/rounds/<int:number>/", rounds.selection_round, name="round"),
]
