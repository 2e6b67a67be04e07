"""Messages on stderr: those of the program, and those of Python itself."""

from __future__ import annotations

import sys
import threading
import traceback
import warnings
from types import TracebackType
from typing import TextIO

from nsysdiag.printable import printable
from nsysdiag.workflow_commands import without_workflow_commands


def note(message: str) -> None:
    """One line for the person at the terminal; never mixed into results. What would act on a terminal or in the log of
    a CI job only shows."""
    if sys.stderr is not None:  # None where it was closed: print() would take stdout
        print(without_workflow_commands(printable(message)), file=sys.stderr, flush=True)


def note_traceback(error: BaseException) -> None:
    """The traceback, whose messages may quote anything: no line of it starts at the margin like ours."""
    for line in "".join(traceback.format_exception(error)).rstrip("\n").split("\n"):
        note(f"  {line}")


def note_messages_of_python() -> None:
    """From now on warnings and exceptions that nothing catches, in this process, are notes: both may quote names."""
    warnings.showwarning = _warning
    sys.excepthook = _exception
    sys.unraisablehook = _unraisable
    threading.excepthook = _exception_of_thread


def _warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    note(f"{filename}:{lineno}: {category.__name__}: {message}")


def _exception(_type: type[BaseException], error: BaseException, _traceback: TracebackType | None) -> None:
    note_traceback(error)


def _exception_of_thread(found: threading.ExceptHookArgs) -> None:
    if found.exc_value is not None:
        note_traceback(found.exc_value)


def _unraisable(found: sys.UnraisableHookArgs) -> None:
    note(f"{found.err_msg or 'Exception ignored in'}: {found.object!r}")
    if found.exc_value is not None:
        note_traceback(found.exc_value)
