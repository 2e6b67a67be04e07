"""Errors for the user: one tree of classes, each with its exit code and a hint."""

from __future__ import annotations

# Text from outside made fit to be shown: what does not print as itself is written out, so that it cannot act.


def printable(value: object) -> str:
    """The text of `value`; controls, line ends, bidirectional marks and lone surrogates as backslash escapes."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


class NsysdiagError(Exception):
    """Base of every error that the command line turns into one sentence and an exit code. `shown` are lines to look at
    below the sentence, as they are: what was written, and where in it the mistake is. Names of files and texts of a
    trace in the message and the hint cannot act on a terminal: what does not print in them is written out."""

    exit_code = 70

    def __init__(self, message: str, *, hint: str | None = None, shown: tuple[str, ...] = ()) -> None:
        self.message: str = printable(message)
        self.hint: str | None = None if hint is None else printable(hint)
        super().__init__(self.message)
        self.shown = shown


class UsageError(NsysdiagError):
    """Wrong use or configuration: an unknown cause, a window that cannot be read, a missing option."""

    exit_code = 2


class OutputError(NsysdiagError):
    """An output that cannot be written, or that would overwrite a file which is not ours."""

    exit_code = 2


class InputError(NsysdiagError):
    """The input is not a readable nsys export; the message says what it is and what to do."""

    exit_code = 3


class MemoryShortError(NsysdiagError, MemoryError):
    """There is not enough memory, or the system starts no more threads or processes for want of it. The message says
    what was tried."""

    exit_code = 2


class IncompleteError(NsysdiagError):
    """Some inputs of a batch could not be analysed. The others were, and their reports exist."""

    exit_code = 4


class NotComparableError(NsysdiagError):
    """Two profiles that have no unit of work in common, or are of different GPUs."""

    exit_code = 5


class ProgramFailedError(NsysdiagError):
    """The program that was recorded failed. What was captured is analysed first."""

    exit_code = 6
