"""The config app: only for its commands and system checks; it has no tables."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"
