"""The config app: commands and system checks, no tables."""

from django.apps import AppConfig


class WiringConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        from config import checks  # noqa: F401 -- registers them; needs the loaded apps
