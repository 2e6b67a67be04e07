"""The options that more than one command has, each declared once, and what is checked of their values."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from nsysdiag.cli.help import format_of, one_of, output_path
from nsysdiag.messages import UsageError
from nsysdiag.trace.formats import INPUT_FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsysdiag.formats.documents import Destination
    from nsysdiag.ranks.report import RanksReport
    from nsysdiag.replay.facts import WhatIf
    from nsysdiag.report import Report

Document = TypeVar("Document", bound="Report | RanksReport | WhatIf")


def value(option: str, metavar: str, help: str, words: str | None = None, **more: Any) -> Any:
    """An option with a value, whose default is not shown. `words` are the kind that it completes to."""
    if words:
        more["autocompletion"] = one_of(words)
    return typer.Option(option, metavar=metavar, help=help, show_default=False, **more)


A_TRACE = f"A trace ({', '.join(each.noun for each in INPUT_FORMATS[:-1])}, or {INPUT_FORMATS[-1].noun})"
"""What a command takes: how its help begins."""
DeviceOption = Annotated[str | None, value("--device", "D", "One GPU: its index, key or part of its name.")]


def _same_gpu(which: str) -> Any:
    return typer.Option("--same-gpu", help=f"The processes of {which} trace shared one GPU.")


SameGpuOption = Annotated[bool, _same_gpu("this")]
SameGpuOfEachOption = Annotated[bool, _same_gpu("each")]
OutputOption = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--output",
        metavar="PATH",
        help="Write to PATH; repeatable. The suffix picks the format; '-' is stdout, with --format.",
        show_default=False,
        autocompletion=output_path,
    ),
]


def _format(names: str) -> Any:
    return value(
        "--format",
        "F",
        f"Format of '-o -', and of a PATH without a known suffix: {names}.",
        autocompletion=format_of(names),
    )


FORMATS = "html, json, md, txt, csv, prom or perfetto"
"""Those of a report that are named; the others are for CI."""
FormatOption = Annotated[str | None, _format(FORMATS)]
RanksFormatOption = Annotated[str | None, _format("html, json, md, txt or csv")]
ComparisonFormatOption = Annotated[str | None, _format("html, json, md or txt")]
PredictionFormatOption = Annotated[str | None, _format("html, json, md or txt")]
FromOption = Annotated[
    str | None, value("--from", "T", "Start of the window: 1.5s, 20ms or 300us; a bare number is ns.")
]
ToOption = Annotated[str | None, value("--to", "T", "End of the window.")]
NvtxOption = Annotated[
    str | None, value("--nvtx", "NAME", "Only the NVTX ranges of this name; * and ? match any text and one character.")
]
IterationsOption = Annotated[
    str | None,
    value(
        "--iterations",
        "A:B",
        "Only iterations A to B - 1, counted from 0. 3: and :10 are open ranges, 7 is one iteration, -5: is the "
        "last five.",
    ),
]
StepOption = Annotated[
    str | None,
    value(
        "--step",
        "WHAT",
        "What a step is: the NVTX ranges of this name (* and ? as in --nvtx); kernel=NAME, from each kernel of "
        "this name to the next; count=N equal ones; every=N of those found.",
    ),
]


def _of_each(option: str, metavar: str, what: str) -> Any:
    return value(option, metavar, f"{what} Twice: before, then after.")


DeviceOfEachOption = Annotated[
    list[str] | None, _of_each("--device", "D", "One GPU: its index, key or part of its name.")
]
NvtxOfEachOption = Annotated[list[str] | None, _of_each("--nvtx", "NAME", "Only the NVTX ranges of this name.")]
FromOfEachOption = Annotated[
    list[str] | None, _of_each("--from", "T", "Start of the window: 1.5s or 20ms; a bare number is ns.")
]
ToOfEachOption = Annotated[list[str] | None, _of_each("--to", "T", "End of the window.")]
PhaseOfEachOption = Annotated[
    list[str] | None,
    _of_each("--phase", "NAME", "Only start-up, steady, pause or teardown; 'steady 2' is the second one."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite files that nsysdiag did not write.")]
OpenOption = Annotated[bool, typer.Option("--open", help="Open the HTML report in the browser when done.")]
DetailsOption = Annotated[
    bool, typer.Option("--details", help="Text and Markdown with all sections, not only the first screen.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only: no summary, progress or notes.")]
RedactOption = Annotated[
    bool,
    typer.Option(
        "--redact",
        help="Replace names of kernels, NVTX ranges, functions, libraries, threads, processes and files by numbers.",
    ),
]
FailOnOption = Annotated[
    list[str] | None,
    value("--fail-on", "EXPR", "Exit with 1 if this is true, as 'idle_share > 20%'; repeatable. See docs/budgets.md."),
]
WarnOnOption = Annotated[list[str] | None, value("--warn-on", "EXPR", "Only warn if this is true; repeatable.")]


class Unjudged(StrEnum):
    """What becomes of the run where a budget is about something that the trace does not tell."""

    IGNORE = "ignore"
    WARN = "warn"
    FAIL = "fail"


UnjudgedOption = Annotated[
    Unjudged,
    value(
        "--unjudged",
        "WHAT",
        "What a budget does that the trace cannot tell: 'fail' (exit code 2), 'warn' or 'ignore'. One that only "
        "warns never fails.",
    ),
]
CommentOption = Annotated[
    str | None,
    value(
        "--comment",
        "KEY",
        "Markdown as a comment for a pull request: with budgets, of limited length, and with a hidden line with "
        "KEY for scripts.",
    ),
]


class IfNoBaseline(StrEnum):
    """What a comparison with a baseline does that has no run yet."""

    FAIL = "fail"
    PASS = "pass"


IfNoBaselineOption = Annotated[
    IfNoBaseline,
    value(
        "--if-no-baseline",
        "WHAT",
        "Where the baseline has no run yet: 'fail' (exit code 2), or 'pass', which says so and compares nothing.",
    ),
]
ReportUrlOption = Annotated[
    str | None, value("--report-url", "URL", "Where the whole report will be: a comment links to it.")
]
BaselinesOption = Annotated[
    str | None,
    value(
        "--baselines",
        "DIR",
        "The folder of all baselines; unless said, that of the settings file, else .nsysdiag/baselines.",
    ),
]
SettingsFileOption = Annotated[
    str | None, value("--config", "FILE", "Settings from this TOML file; options override it.")
]
ConfigOption = Annotated[
    str | None, value("--config", "FILE", "Settings and budgets from this TOML file; options override it.")
]
GpuHourCostOption = Annotated[
    float | None, value("--gpu-hour-cost", "X", "Price of a GPU hour: the report then shows what lost time costs.")
]
MemoryLimitOption = Annotated[
    str | None,
    value(
        "--memory-limit",
        "SIZE",
        "Use at most about this much memory, as 2GB. Of a larger trace only the middle is analysed.",
    ),
]
NoConfigOption = Annotated[
    bool, typer.Option("--no-config", help="Do not search for a nsysdiag.toml or pyproject.toml.")
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def first_repeated(paths: Sequence[Path]) -> Path | None:
    """The first path that is named twice; None where none is."""
    seen: set[Path] = set()
    for path in paths:
        if path.absolute() in seen:
            return path
        seen.add(path.absolute())
    return None


REDACTED_STEM = "redacted"
"""What an output is called that would else bear the name of the trace."""


def redacted_for(document: Document, *, redact: bool) -> Document:
    """The document as it is written. Raises UsageError for one that was redacted before."""
    if not redact:
        return document

    from nsysdiag.share.redaction import is_redacted, redacted

    if is_redacted(document):
        raise UsageError("the report is redacted already", hint="leave --redact out, or use the trace itself")
    return redacted(document)


_URL = re.compile(r"https?://[A-Za-z0-9._~:/?#@!$&*+,;=%-]{1,2000}")


def check_comment(key: str | None, report_url: str | None = None) -> None:
    """Raise UsageError for a key that cannot stand in a hidden line, or a link that is none or goes into no comment."""
    from nsysdiag.document.markdown import KEY
    from nsysdiag.messages import printable

    if key is not None and not KEY.fullmatch(key):
        raise UsageError(
            f"--comment '{printable(key)}' is no key",
            hint="use letters, digits, '.', '_', '/' and single '-', 100 at most",
        )
    if report_url is not None and not _URL.fullmatch(report_url):
        raise UsageError(f"--report-url '{printable(report_url)}' is no address", hint="write it as https://host/path")
    if report_url is not None and key is None:
        raise UsageError("--report-url needs a comment that links to it", hint="add --comment KEY")


def require_markdown(key: str | None, destinations: Sequence[Destination]) -> None:
    """Raise UsageError for a comment that goes nowhere."""
    if key is not None and not any(each.format == "md" for each in destinations):
        raise UsageError("--comment needs a Markdown output", hint="add -o comment.md")


def narrowed_window(
    start: str | None, end: str | None, nvtx: str | None, iterations: str | None
) -> tuple[int | None, int | None]:
    """The times of --from and --to in ns. Raises UsageError where they leave nothing, or the window is narrowed in
    several ways."""
    from nsysdiag.units import parse_time

    ways = {"--nvtx": nvtx, "--iterations": iterations, "--from/--to": start if start is not None else end}
    given = [option for option, value in ways.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other", hint="choose one of them")
    start_ns = None if start is None else parse_time(start)
    end_ns = None if end is None else parse_time(end)
    if start_ns is not None and end_ns is not None and end_ns <= start_ns:
        raise UsageError(f"the window from {start} to {end} is empty", hint="--to must be later than --from")
    return start_ns, end_ns


def checked_step(text: str | None, otherwise: str | None) -> str | None:
    """The text of --step, or else the setting of a file. Raises UsageError for a text that says no step."""
    from nsysdiag.config.file import parse_step

    if text is None:
        return otherwise
    parse_step(text)
    return text


_SPAN = re.compile(r"\s*([+-]?\d{1,18})?\s*(?:(:)\s*([+-]?\d{1,18})?\s*)?", re.ASCII)
_HINT = "write 3:10 for 3 to 9, 3: from 3 on, :10 before 10, -5: for the last five, or 7 alone. The first one is 0"


def parse_iterations(text: str) -> tuple[int | None, int | None]:
    """From the first, up to but not including the second; None is open, negative counts from the end.

    Raises UsageError for anything else, and where no iteration can be in it.
    """
    match = _SPAN.fullmatch(text)
    if match is None or not (match.group(1) or match.group(2)):
        raise UsageError(f"'{text}' is not a range of iterations", hint=_HINT)
    first, colon, behind = match.groups()
    low = int(first) if first else None
    if not colon and low is not None:
        # One behind the last is no 0: that would be the first.
        return low, (low + 1 if low != -1 else None)
    high = int(behind) if behind else None
    if high == 0 or (low is not None and high is not None and high <= low and (low < 0) == (high < 0)):
        raise UsageError(f"no iteration is in '{text}'", hint=_HINT)
    return low, high
