"""What goes to which stream: results to stdout as bytes; notes, errors and progress to stderr with safe characters.

Either may be the log of a CI job, so neither holds a workflow command.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from typer.main import get_command

from nsysdiag.messages import (
    TEXT,
    MemoryShortError,
    NsysdiagError,
    OutputError,
    note,
    note_traceback,
    printable,
    without_workflow_commands,
)
from nsysdiag.plugins import PROBLEMS
from nsysdiag.shortage import is_shortage, memory_short
from nsysdiag.signals import Ended
from nsysdiag.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


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
def progress_bar(
    begin: str = "opening the trace", total: float = 1.0, *, quiet: bool
) -> Iterator[Callable[[str, float], None] | None]:
    """Yields what shows a step and how much is done of the `total`, or None if stderr is not a terminal."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(begin, total=total)
        yield lambda step, done: bar.update(
            task, description=without_workflow_commands(printable(step)), completed=done
        )


@contextmanager
def batch_bar(total: int, *, quiet: bool) -> Iterator[Callable[[int, list[str]], None]]:
    """Yields what a batch reports to how many inputs are left, and which are in hand."""
    with progress_bar("starting", total, quiet=quiet) as progress:

        def show(left: int, running: list[str]) -> None:
            more = f" and {len(running) - 1} more" if len(running) > 1 else ""
            if progress:
                progress(f"{left} left{f'; {running[0]}{more}' if running else ''}", total - left)

        yield show


# Small tables as text, Markdown and JSON.


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Columns padded to their widest cell, a space of two between; names are made safe for a terminal."""
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "".join(f"{indent}{line.rstrip()}\n" for line in lines)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A GitHub table; a pipe inside a cell is escaped."""
    cells = [[printable(cell).replace("|", "\\|") for cell in row] for row in rows]
    lines = [header, ["---"] * len(header), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_json(value: object) -> str:
    """Indented JSON, keys sorted, one final newline: same value, same text."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


# Runs a command and turns whatever it raises into one clear sentence and an exit code.

BROKEN_BUDGET = 1
BUG = 70
MORE_MEMORY = "give the program more memory"
_PART = "nsysdiag analyze TRACE --memory-limit SIZE"
HINTS = {
    "analyze": "analyze a part with --memory-limit SIZE or with --from and --to",
    "record": "analyze a part of the .nsys-rep, which is kept, with --memory-limit SIZE or with --from and --to",
    "batch": "fewer --jobs or a --memory-limit leave each input more memory",
    "baseline": f"save a report of each run, as with '{_PART} -o report.json', and add those",
    "compare": f"save a report of each trace, as with '{_PART} -o report.json', and compare those",
    "ranks": f"name fewer traces, or look at a part of each: {_PART}",
    "try": "record less, with --delay and --duration or with --capture-range",
    "whatif": "replay a part of the trace, with --from and --to or --iterations",
    "bundle": f"look at a part of the trace: {_PART}",
    "render": "ask for fewer outputs at once, or " + MORE_MEMORY,
}
"""What helps if memory runs out, by the command."""
GONE = {"--redact-key": "names are numbered by --redact alone; to compare traces without names, use compare --redact"}
"""What to use in place of options that earlier versions had."""


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """The exit code of one command line. Nothing that a command raises gets past this function."""
    context = None
    try:
        # Not through the command's own main(): that one ends a closed pipe with 1, a broken budget.
        with get_command(app).make_context("nsysdiag", list(arguments)) as context:
            context.command.invoke(context)
            if sys.stdout is not None:
                sys.stdout.flush()
    except typer.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, typer.Abort) as stop:
        return _ended(stop if isinstance(stop, Ended) else Ended(signal.SIGINT))
    except BrokenPipeError:
        abandon_stdout()
    except Exception as error:
        if Ended.last is not None:
            return _ended(Ended.last)
        if "--debug" in arguments:
            note_traceback(error)
        return _short(error, context.invoked_subcommand if context else None) if is_shortage(error) else _explain(error)
    finally:
        while PROBLEMS:
            note(f"nsysdiag: {printable(PROBLEMS.pop(0))}")
    return 0 if Ended.last is None else _ended(Ended.last)


def _ended(ended: Ended) -> int:
    complain(ended.sentence)
    return ended.exit_code


def _short(error: Exception, command: str | None) -> int:
    shown = error if isinstance(error, MemoryShortError) else memory_short(error, "run this command")
    complain(shown.message, shown.hint or HINTS.get(command or "", MORE_MEMORY))
    return MemoryShortError.exit_code


def _explain(error: Exception) -> int:
    if isinstance(error, NsysdiagError):
        complain(error.message, error.hint, error.shown)
        return error.exit_code
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        hint = GONE.get(
            getattr(error, "option_name", ""), f"see '{context.command_path if context else 'nsysdiag'} --help'"
        )
        complain(error.format_message().replace("Value error, ", ""), hint)
        return error.exit_code
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        abandon_stdout()
        complain(f"cannot write: {error.strerror}")
        return OutputError.exit_code
    complain(
        f"this is a bug in nsysdiag {__version__}: {type(error).__name__}: {error}; "
        "run with --debug for the traceback, and please report it"
    )
    return BUG
