"""The health app."""

from django.apps import AppConfig


class HealthConfig(AppConfig):
    name = "health"

    def ready(self) -> None:
        from health import checks  # noqa: F401 - registers them; models must be loaded first
