"""Runs a command and turns whatever it raises into one clear sentence and an exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import typer
from typer.main import get_command

from nsysdiag.cli.console import abandon_stdout, complain
from nsysdiag.errors import MemoryShortError, NsysdiagError, OutputError
from nsysdiag.messages import note_traceback
from nsysdiag.shortage import LAST_WORDS, is_shortage, memory_short, released
from nsysdiag.signals import Ended, EndingByExceptions
from nsysdiag.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

BROKEN_BUDGET = 1
BUG = 70
MORE_MEMORY = "give the program more memory"
_PART = "nsysdiag analyze TRACE --memory-limit SIZE"
HINTS = {
    "analyze": "analyse a part with --memory-limit SIZE or with --from and --to",
    "record": "analyse a part of the .nsys-rep, which is kept, with --memory-limit SIZE or with --from and --to",
    "batch": "fewer --jobs or a --memory-limit leave each input more memory",
    "baseline": f"save a report of each run, as with '{_PART} -o report.json', and add those",
    "compare": f"save a report of each trace, as with '{_PART} -o report.json', and compare those",
    "ranks": f"name fewer traces, or look at a part of each: {_PART}",
    "whatif": "replay a part of the trace, with --from and --to or --iterations",
    "bundle": f"look at a part of the trace: {_PART}",
    "render": "ask for fewer outputs at once, or " + MORE_MEMORY,
}
"""What helps where memory runs out, by the command."""


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """The exit code of one command line. Nothing that a command raises gets past this function."""
    context = None
    try:
        # Not through the command's own main(): that one ends a closed pipe with 1, a broken budget.
        with EndingByExceptions(), get_command(app).make_context("nsysdiag", list(arguments)) as context:
            context.command.invoke(context)
            if sys.stdout is not None:
                sys.stdout.flush()
    except typer.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, typer.Abort) as stop:
        ended = stop if isinstance(stop, Ended) else Ended(signal.SIGINT)
        complain(ended.sentence)
        return ended.exit_code
    except BrokenPipeError:
        abandon_stdout()
    except Exception as error:
        if "--debug" in arguments:
            with suppress(MemoryError):
                note_traceback(error)
        return _short(error, context.invoked_subcommand if context else None) if is_shortage(error) else _explain(error)
    return 0


def _short(error: Exception, command: str | None) -> int:
    """What holds the memory goes first: to make the sentence takes some too."""
    released(error)
    try:
        shown = error if isinstance(error, MemoryShortError) else memory_short(error, "run this command")
        complain(shown.message, shown.hint or HINTS.get(command or "", MORE_MEMORY))
    except MemoryError:
        os.write(2, LAST_WORDS)
    return MemoryShortError.exit_code


def _explain(error: Exception) -> int:
    if isinstance(error, NsysdiagError):
        complain(error.message, error.hint, error.shown)
        return error.exit_code
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        hint = f"see '{context.command_path if context else 'nsysdiag'} --help'"
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
