"""Entry point of the program: installs signal handlers before slow imports, and uses UTF-8 for names."""

from __future__ import annotations

import gc
import os
import signal
import sys

from nsysdiag.signals import SIGNALS, exit_at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

UTF8 = "utf8"
GARBAGE_SEARCHED = 200_000
"""Python looks for cycles among new objects once there are so many: more than imports make, which drop none."""


def main() -> NoReturn:
    """Run the command line of this process, and exit with its code."""
    exit_at_once()
    _in_utf8()
    gc.set_threshold(GARBAGE_SEARCHED)
    try:
        _program()()
    finally:
        gc.freeze()  # all that is left goes with the process


def _program() -> Callable[[], NoReturn]:
    """The command line. Ends the process with one sentence where there is not enough memory to import it."""
    from nsysdiag.errors import MemoryShortError
    from nsysdiag.shortage import LAST_WORDS, is_shortage, one_thread_of_openblas, released

    one_thread_of_openblas()
    try:
        from nsysdiag.cli.app import main as run
    except Exception as error:
        if not is_shortage(released(error)):
            raise
        if sys.stderr is not None:
            os.write(2, LAST_WORDS)
        sys.exit(MemoryShortError.exit_code)
    return run


def _in_utf8() -> None:
    """Start this process again in Python's UTF-8 mode where the locale has another encoding.

    Python has decoded the arguments by then, and later decodes file names and the environment in the same way. Names
    would be shown, compared and sorted differently than elsewhere. UTF-8 mode can only be set at the start, so such a
    locale takes one more start of the interpreter. Under the locale C, Python turns the mode on by default. An explicit
    `-X utf8=0` is respected.
    """
    if UTF8 in sys._xoptions:
        _hold_signals(False)
    elif sys.getfilesystemencoding() != "utf-8" and sys.executable:
        _hold_signals(True)
        try:
            os.execv(sys.executable, [sys.executable, "-X", UTF8, *sys.orig_argv[1:]])
        except OSError:
            _hold_signals(False)


def _hold_signals(hold: bool) -> None:
    """Between the two starts a signal waits, for it would be answered by nothing of ours."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK if hold else signal.SIG_UNBLOCK, SIGNALS)
