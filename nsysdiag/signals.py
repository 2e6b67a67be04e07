"""Handling of SIGINT, SIGTERM and SIGHUP, from the program's first instruction to its last.

```
starting   imports: nothing is begun yet             exit at once
running    a command is within EndingByExceptions    Ended is raised, and what was begun is tidied up on the way out
leaving    the exit code is decided                  exit at once
```

A signal that is ignored when the program starts, as under nohup, stays ignored.

Before `exit_at_once` runs, while the interpreter starts and imports `site`, Python's defaults apply. The program
imports this module first, so it imports next to nothing itself.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType, TracebackType
    from typing import Any, NoReturn, Self, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C, what a CI system sends on cancel, and what a terminal sends when it is closed."""
RETRY_S = 0.01
"""How long to wait before looking again whether an exception can be raised. Most imports take a few milliseconds."""
PATIENCE = 2
"""So many signals raise Ended: the second one cuts tidying up short. Any further one ends the process at once."""


class Ended(KeyboardInterrupt):
    """A signal asked the program to end. `exit_code` is 128 + its number, as shells have it."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code: int = 128 + number
        self.sentence = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


class _State:
    """What the handler consults. It is the same handler in all phases: to change the phase is one assignment, which no
    signal can interrupt halfway."""

    quiet = False
    running_in: CodeType | None = None
    """The function that contains EndingByExceptions, while a command runs."""
    came: int | None = None
    """The last signal that came while a command ran."""
    count = 0
    exiting = False
    """Whether the answer to a signal has begun to end the process: a further one changes nothing."""
    undisturbed: set[CodeType] = set()  # noqa: RUF012


def exit_at_once(*, quiet: bool = False) -> None:
    """Let the signals end this process with 128 + their number and one sentence; with none where `quiet`."""
    _State.quiet = quiet
    for number in SIGNALS:
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, _answer)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _retry)
    # The first exit function to be registered is the last to run. After it the interpreter puts back the default
    # actions, which would replace an exit code that is decided already.
    atexit.register(_ignore)


class EndingByExceptions:
    """Within, a signal raises Ended. One that is ignored, or has a handler of another program, stays as it is; so do
    all in another thread than the main one.

    Leaving the context raises Ended where a signal came and its exception was lost on the way: C code may clear an
    exception, or raise another one instead.
    """

    def __enter__(self) -> Self:
        self._before: dict[int, Any] = {}
        self._hook = sys.unraisablehook
        try:
            for number in SIGNALS:
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler, _answer):
                    self._before[number] = signal.signal(number, _answer)
        except ValueError:
            return self
        sys.unraisablehook = self._unraisable
        _State.came, _State.count = None, 0
        _State.running_in = sys._getframe(1).f_code
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _State.running_in = None
        for number, handler in self._before.items():
            signal.signal(number, handler)
        sys.unraisablehook = self._hook
        if self._before and _State.came is not None and not isinstance(error, KeyboardInterrupt):
            raise Ended(_State.came) from None

    def _unraisable(self, lost: sys.UnraisableHookArgs) -> None:
        """Python prints and drops what is raised in a finalizer or a callback: Ended is raised again, later."""
        if issubclass(lost.exc_type, Ended):
            _later()
        elif not issubclass(lost.exc_type, MemoryError):  # there is none to print it with
            self._hook(lost)


class HandedOn:
    """Within, a signal calls a function with its number and raises nothing: another program answers it. One that is
    ignored stays so."""

    def __init__(self, function: Callable[[int], None]) -> None:
        self._function = function
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        with_answers = [each for each in SIGNALS if signal.getsignal(each) not in (signal.SIG_IGN, None)]
        try:
            for number in with_answers:
                self._before[number] = signal.signal(number, self._hand_on)
        except ValueError:  # this is not the main thread, which alone gets signals
            return self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hand_on(self, number: int, _frame: FrameType | None) -> None:
        self._function(number)


def undisturbed(function: F) -> F:
    """While this function runs in the main thread, no signal raises Ended; it does so after that."""
    _State.undisturbed.add(function.__code__)
    return function


def _answer(number: int, frame: FrameType | None) -> None:
    if _State.exiting:
        return
    if _State.running_in is None:
        _exit(Ended(number))
    _State.came = number
    _State.count += 1
    if _State.count > PATIENCE:
        _exit(Ended(number))
    _end(number, frame)


def _retry(_number: int, frame: FrameType | None) -> None:
    if _State.running_in is not None and _State.came is not None:
        _end(_State.came, frame)


def _end(number: int, frame: FrameType | None) -> None:
    """Raise Ended; later, where the exception would be lost or leave something half done."""
    if _is_delicate(frame) and _later():
        return
    raise Ended(number)


def _is_delicate(frame: FrameType | None) -> bool:
    """Whether an undisturbed function runs, or an import: extension modules print a KeyboardInterrupt that is raised
    while they are imported, and raise ImportError instead."""
    while frame is not None and frame.f_code is not _State.running_in:
        if frame.f_code in _State.undisturbed or frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _later() -> bool:
    """Have `_retry` called. False where there is no timer, or it is not ours."""
    if not hasattr(signal, "setitimer") or signal.getsignal(signal.SIGALRM) is not _retry:
        return False
    signal.setitimer(signal.ITIMER_REAL, RETRY_S)
    return True


def _exit(ended: Ended) -> NoReturn:
    """Leave without the last steps of the interpreter, which could print a traceback or change the exit code."""
    _State.exiting = True
    if not _State.quiet and _State.came is None and sys.stderr is not None:
        try:  # noqa: SIM105, contextlib would have to be imported
            os.write(2, f"nsysdiag: {ended.sentence}\n".encode())
        except OSError:
            pass
    os._exit(ended.exit_code)


def _ignore() -> None:
    mine = [number for number in SIGNALS if signal.getsignal(number) is _answer]
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, mine)  # none may come while its handler is changed
    for number in mine:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) is _retry:
        signal.setitimer(signal.ITIMER_REAL, 0)  # it would end the process once its handler is gone
