"""What goes to which stream: results to stdout as bytes, notes and errors to stderr with safe characters.

Either may be the log of a CI job, so neither holds a workflow command.
"""

from __future__ import annotations

import os
import sys

from nsysdiag.errors import OutputError
from nsysdiag.messages import note
from nsysdiag.workflow_commands import TEXT, without_workflow_commands

__all__ = ["abandon_stdout", "complain", "emit", "emit_text", "note"]


def complain(message: str, hint: str | None = None, shown: tuple[str, ...] = ()) -> None:
    """An error in one line, lines to look at below it, and one on what to do about it."""
    note(f"nsysdiag: {message}")
    for line in shown:
        note(f"    {line}")
    if hint:
        note(f"  hint: {hint}")


def emit(data: bytes, syntax: str) -> None:
    """Write a result to stdout, without workflow commands: UTF-8 in one of the syntaxes of `workflow_commands`.

    A reader that went away ends it quietly; a full disk is an OutputError.
    """
    if sys.stdout is None:
        raise OutputError("standard output is closed", hint="write to a file with -o PATH")
    try:
        sys.stdout.flush()
        text = without_workflow_commands(data.decode("utf-8", "surrogateescape"), syntax)
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        abandon_stdout()
    except OSError as error:
        abandon_stdout()
        raise OutputError(f"cannot write to standard output: {error.strerror}") from error


def emit_text(text: str, syntax: str = TEXT) -> None:
    """Write lines of text to stdout as UTF-8; lone surrogates of odd file names become escapes."""
    emit(text.encode("utf-8", "backslashreplace"), syntax)


def abandon_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush cannot fail on what is still buffered."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
