"""SIGINT, SIGTERM and SIGHUP raise `Ended`: what was begun is tidied up, and the exit code is 128 + their number."""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import Any, NoReturn, Self

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C, what a CI system sends on cancel, and what a terminal sends when it is closed."""


class Ended(KeyboardInterrupt):
    """A signal asked the program to end. `exit_code` is 128 + its number, as shells have it."""

    last: Ended | None = None
    """The last one raised in this process. C code, such as an import, may clear an exception or raise another."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code: int = 128 + number
        self.sentence = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


def raise_ended() -> None:
    """From now on a signal raises Ended in the main thread. One that is ignored, as under nohup, stays ignored."""
    for number in _answered():
        signal.signal(number, _raise)


def ignore() -> None:
    """From now on no signal changes the exit code of this process, which is decided."""
    for number in _answered():
        signal.signal(number, signal.SIG_IGN)


def _answered() -> list[int]:
    return [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]


def _raise(number: int, _frame: FrameType | None) -> NoReturn:
    Ended.last = Ended(number)
    raise Ended.last


class HandedOn:
    """Within, a signal calls a function with its number and raises nothing: another program answers it. One that is
    ignored stays so. Only the main thread gets signals: in another one this does nothing."""

    def __init__(self, function: Callable[[int], None]) -> None:
        self._function = function
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        try:
            for number in _answered():
                self._before[number] = signal.signal(number, lambda number, _frame: self._function(number))
        except ValueError:  # this is not the main thread
            pass
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
