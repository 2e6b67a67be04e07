"""What goes to which stream: results to stdout as bytes; notes, errors and progress to stderr with safe characters.

Either may be the log of a CI job, so neither holds a workflow command.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nsysdiag.errors import OutputError
from nsysdiag.messages import note
from nsysdiag.printable import printable
from nsysdiag.workflow_commands import TEXT, without_workflow_commands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress

__all__ = ["abandon_stdout", "batch_bar", "complain", "emit", "emit_text", "note", "progress_bar"]


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


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[str, float], None] | None]:
    """Yields the progress function for the pipeline, or None if stderr is not a terminal."""
    if not _watched(quiet=quiet):
        yield None
        return
    with _bar() as bar:
        task = bar.add_task("opening the trace", total=1.0)
        yield lambda step, share: bar.update(task, description=_shown(step), completed=share)


@contextmanager
def batch_bar(total: int, *, quiet: bool) -> Iterator[Callable[[int, list[str]], None]]:
    """Yields what a batch reports to how many inputs are left, and which are in hand."""
    if not _watched(quiet=quiet):
        yield lambda _left, _running: None
        return
    with _bar() as bar:
        task = bar.add_task("starting", total=total)

        def show(left: int, running: list[str]) -> None:
            more = f" and {len(running) - 1} more" if len(running) > 1 else ""
            text = f"{left} left{f'; {running[0]}{more}' if running else ''}"
            bar.update(task, description=_shown(text), completed=total - left)

        yield show


def _shown(text: str) -> str:
    return without_workflow_commands(printable(text))


def _watched(*, quiet: bool) -> bool:
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    return Progress(*columns, console=Console(stderr=True), transient=True)
