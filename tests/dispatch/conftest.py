from tests.alert_receiver import receiver
from tests.console import plain_static_files, sign_in

__all__ = ["plain_static_files", "receiver", "sign_in"]
