"""Messages on stderr, and results on stdout, without workflow commands."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable

# Errors for the user: one tree of classes, each with its exit code and a hint.

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


class UsageError(NsysdiagError, ValueError):
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
    """Some inputs of a batch could not be analyzed. The others were, and their reports exist."""

    exit_code = 4


class NotComparableError(NsysdiagError):
    """Two profiles that have no unit of work in common, or are of different GPUs."""

    exit_code = 5


class ProgramFailedError(NsysdiagError):
    """The program that was recorded failed. What was captured is analyzed first."""

    exit_code = 6


# Workflow commands in CI logs: text from a trace must not be one.
#
# Runners read what a step writes line by line, stdout and stderr alike, and execute lines such as these:
#
# ```
#   ::error file=a.cc::message         GitHub, Gitea: the first text of a line
# text ##[set-env name=A]b             GitHub (legacy), Azure Pipelines: anywhere in a line
# text ##vso[task.setvariable ...]b    Azure Pipelines: anywhere
# text ##teamcity[message 'value']     TeamCity: anywhere
# section_start:1560896352:name        GitLab
# travis_fold:start:name               Travis CI
# ```
#
# A name that is wrapped puts its middle at the start of a line. What is written to files is not changed.

JOINER = "\u2060"
"""WORD JOINER: has no width and, unlike U+200B ZERO WIDTH SPACE, allows no line break."""
TEXT, JSON, MARKUP = "text", "json", "markup"
"""Syntaxes. In plain text, JOINER breaks a command; in JSON and in XML or HTML, an escape of one of its characters
does, which keeps the parsed value."""

# Line ends of .NET's StreamReader, Java's BufferedReader and Python's splitlines() together.
_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
# What a terminal does not show: some log viewers drop it, and culture-sensitive searches of .NET skip it.
_UNSEEN = r"\x00-\x08\x0e-\x1a\x7f-\x84\x86-\x9f\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
_STYLE = r"\x1b(?:\[[0-?]*[ -/]*[@-~])?"
# Each match ends with the sign that is to be escaped, or behind which the joiner stands.
_SIGNS = (
    re.compile(rf"[{_ENDS}](?:[^\S{_ENDS}]|[{_UNSEEN}]|{_STYLE})*:(?=:)"),
    re.compile(r"#(?=#(?:vso|teamcity)?\[)", re.IGNORECASE),
    re.compile(r"section_(?:start|end):(?=\d)"),
    re.compile(r"travis_(?:fold|time):(?=start|end)"),
)
# Scripts and styles know no character references. Their bytes are under a content security policy, except for data.
_RAW = re.compile(r"(<(?:script|style)\b.*?</(?:script|style)>)", re.DOTALL)
_DATA = '<script type="application/json"'
_ESCAPES: dict[str, Callable[[str], str]] = {
    TEXT: lambda sign: sign + JOINER,
    JSON: lambda sign: f"\\u{ord(sign):04x}",
    MARKUP: lambda sign: f"&#{ord(sign)};",
}


def without_workflow_commands(text: str, syntax: str = TEXT) -> str:
    """The text of whole lines, shown the same, in which no runner finds a command. `syntax` is TEXT, JSON or MARKUP;
    raises KeyError for another."""
    if syntax != MARKUP:
        return _broken(text, syntax)
    parts = _RAW.split(text)
    parts[::2] = [_broken(part, MARKUP) for part in parts[::2]]
    parts[1::2] = [_broken(raw, JSON) if raw.startswith(_DATA) else raw for raw in parts[1::2]]
    return "".join(parts)


def _broken(text: str, syntax: str) -> str:
    escape = _ESCAPES[syntax]
    text = f"\n{text}"  # the first line then starts like the others, and the search stays a quick one
    for signs in _SIGNS:
        text = signs.sub(lambda found: found[0][:-1] + escape(found[0][-1]), text)
    return text[1:]


def note(message: str) -> None:
    """One line for the person at the terminal; never mixed into results. What would act on a terminal or in the log of
    a CI job only shows."""
    if sys.stderr is not None:  # None where it was closed: print() would take stdout
        # One write: a signal between two would leave a line without its end.
        print(f"{without_workflow_commands(printable(message))}\n", end="", file=sys.stderr, flush=True)


def note_traceback(error: BaseException) -> None:
    """The traceback, whose messages may quote anything: no line of it starts at the margin like ours."""
    for line in "".join(traceback.format_exception(error)).rstrip("\n").split("\n"):
        note(f"  {line}")
