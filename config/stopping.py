"""How a long-running command is asked to stop, and sleeps until then."""

import os
import select
import signal
from types import FrameType

_ASKS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopRequest:
    """Remembers that this process was asked to stop. However often the signal comes, nothing else happens:
    who loops looks here between two steps.

    Made in the main thread, once in a process."""

    def __init__(self) -> None:
        self.came = False
        # Python writes a byte for each signal, so that a wait ends at once, even with nothing to poll.
        self._awake, wakes = os.pipe()
        os.set_blocking(self._awake, False)
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        for number in _ASKS:
            signal.signal(number, self._remember)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # a child that ends wakes us too

    def _remember(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True

    def wait(self, seconds: float) -> bool:
        """Sleeps for so long, or until a signal or the end of a child; whether we were asked to stop."""
        if not self.came and select.select([self._awake], [], [], max(seconds, 0))[0]:
            os.read(self._awake, 512)
        return self.came

    def leave_to_parent(self) -> None:
        """In a forked child: signals mean again what they mean to a new program."""
        signal.set_wakeup_fd(-1)
        for number in (*_ASKS, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
