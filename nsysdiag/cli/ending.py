"""Signals that ask the program to end. They do what Ctrl-C does: what was begun is tidied up on the way out."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What a CI system sends on cancel, and what a terminal sends that goes away."""


class Ended(KeyboardInterrupt):
    """Such a signal came. `exit_code` is the one that shells give a program that a signal ended."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.name = signal.Signals(number).name
        self.exit_code = 128 + number


@contextmanager
def ending_by_exceptions() -> Iterator[None]:
    """Within, such a signal raises Ended. One that somebody ignores, as nohup does, or handles stays as it is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    mine = [each for each in SIGNALS if signal.getsignal(each) == signal.SIG_DFL]
    for each in mine:
        signal.signal(each, _end)
    try:
        yield
    finally:
        for each in mine:
            signal.signal(each, signal.SIG_DFL)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise Ended(number)
