"""Fixtures of the health tests."""

from tests.alert_receiver import receiver

__all__ = ["receiver"]
