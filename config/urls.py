"""Every address of the installation."""

from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView

from config import api

handler400 = "config.errors.bad_request"
handler404 = "config.errors.not_found"
handler500 = "config.errors.server_error"
urlpatterns = [
    path("", RedirectView.as_view(url="/console/", permanent=False)),
    path("live", api.live),
    path("ready", api.ready),
    path("api/v1/", include("dispatch.api.urls")),
    path("callbacks/", include("dispatch.callbacks.urls")),
    path("console/", include("dispatch.views.urls")),
    path(
        "api/schema/",
        SpectacularAPIView.as_view(permission_classes=[], authentication_classes=[]),
        name="schema",
    ),
]
