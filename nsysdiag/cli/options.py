"""The options that more than one command has, each declared once, and what is checked of their values."""

import inspect
import re
from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar, get_origin

import typer

from nsysdiag.cli.help import DebugOption, format_of, one_of, output_path
from nsysdiag.messages import UsageError
from nsysdiag.trace.formats import INPUT_FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsysdiag.config.settings import Settings
    from nsysdiag.formats import Destination
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
TraceArgument = Annotated[str, typer.Argument(metavar="TRACE", help=f"{A_TRACE}.")]
DeviceOption = Annotated[str | None, value("--device", "D", "One GPU: its index, key or part of its name.")]


def _same_gpu(which: str) -> Any:
    return typer.Option("--same-gpu", help=f"The processes of {which} trace shared one GPU.")


SameGpuOption = Annotated[bool, _same_gpu("this")]
SameGpuOfEachOption = Annotated[bool, _same_gpu("each")]


def _output(more: str = "") -> Any:
    what = f"Write to PATH; repeatable. The suffix picks the format{more}."
    return typer.Option("-o", "--output", metavar="PATH", help=what, show_default=False, autocompletion=output_path)


def _format(names: str, of: str = "'-o -', and of a PATH without a known suffix") -> Any:
    return value("--format", "F", f"Format of {of}: {names}.", autocompletion=format_of(names))


FORMATS = "html, json, md, txt, csv, prom or perfetto"
"""Those of a report that are named; the others are for CI."""
OF_COMPARISONS = "html, json, md or txt"
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


RedactOption = Annotated[
    bool,
    typer.Option(
        "--redact",
        help="Replace names of kernels, NVTX ranges, functions, libraries, threads, processes and files by numbers.",
    ),
]


BaselinesOption = Annotated[
    str | None,
    value(
        "--baselines",
        "DIR",
        "The folder of all baselines; unless said, that of the settings file, else .nsysdiag/baselines.",
    ),
]
GpuHourCostOption = Annotated[
    float | None, value("--gpu-hour-cost", "X", "Price of a GPU hour: the report then shows what lost time costs.")
]
MemoryLimitOption = Annotated[
    str | None,
    value(
        "--memory-limit",
        "SIZE",
        "Use at most about this much memory, as 2GB. Of a larger trace only the middle is analyzed.",
    ),
]


# Groups of options. A command has one parameter for each group, and `spread` makes each field an option.


class OptionGroup:
    """Options that several commands have. An attribute whose type holds no option is none: it keeps its default."""

    def __init__(self, **given: Any) -> None:
        """With these values; the others are the defaults. Raises what `check` does."""
        self.__dict__.update(given)
        self.check()

    def check(self) -> None:
        """Raise UsageError if the values contradict each other."""

    def but(self, **changed: Any) -> Self:
        """The same with other values."""
        return type(self)(**{**self.__dict__, **changed})

    @classmethod
    @cache
    def parameters(cls) -> list[inspect.Parameter]:
        """Its options as parameters of a command."""
        types: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            types |= inspect.get_annotations(base)
        return [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=getattr(cls, name), annotation=kind)
            for name, kind in types.items()
            if get_origin(kind) is Annotated
        ]


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of its groups as parameters, in place of each group."""
    signature = inspect.signature(command, eval_str=True)
    of = {each.name: each.annotation for each in signature.parameters.values()}
    groups = {name: kind for name, kind in of.items() if isinstance(kind, type) and issubclass(kind, OptionGroup)}
    own = [each for each in signature.parameters.values() if each.name not in groups]
    parameters = [*own, *(each for group in groups.values() for each in group.parameters())]

    @wraps(command)
    def with_groups(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in group.parameters()})
        command(**given)

    with_groups.__dict__["__signature__"] = inspect.Signature(parameters)
    with_groups.__annotations__ = {each.name: each.annotation for each in parameters}
    return with_groups


class Verbosity(OptionGroup):
    """What a command says on its streams."""

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only: no summary, progress or notes.")] = (
        False
    )
    debug: DebugOption = False


class Writing(Verbosity):
    """Whether files of others are overwritten."""

    force: Annotated[bool, typer.Option("--force", help="Overwrite files that nsysdiag did not write.")] = False


class Outputs(Writing):
    """Where the results go, in which format, and what is left out of them."""

    output: Annotated[list[str] | None, _output("; '-' is stdout, with --format")] = None
    format_name: Annotated[str | None, _format(FORMATS)] = None
    redact: RedactOption = False
    details: Annotated[
        bool, typer.Option("--details", help="Text and Markdown with all sections, not only the first screen.")
    ] = False
    open_html: Annotated[bool, typer.Option("--open", help="Open the HTML report in the browser when done.")] = False


class ComparisonOutputs(Outputs):
    """Those of a comparison."""

    format_name: Annotated[str | None, _format(OF_COMPARISONS)] = None


class PredictionOutputs(ComparisonOutputs):
    """Those of a prediction, which has no more details."""

    details: bool = False


class RanksOutputs(PredictionOutputs):
    """Those of a comparison of ranks."""

    format_name: Annotated[str | None, _format("html, json, md, txt or csv")] = None


class DemoOutputs(Outputs):
    """Those of the demo, whose names are not secret."""

    redact: bool = False
    details: bool = False


class RecordedOutputs(Outputs):
    """Those of a recorded program, to which stdout belongs."""

    output: Annotated[list[str] | None, _output()] = None
    format_name: Annotated[str | None, _format(FORMATS, "a PATH without a known suffix")] = None


class TrialOutputs(PredictionOutputs):
    """Those of a fix that is tried."""

    output: Annotated[list[str] | None, _output()] = None
    redact: bool = False
    open_html: bool = False


class SettingsFile(OptionGroup):
    """Which file the settings are from."""

    config: Annotated[str | None, value("--config", "FILE", "Settings from this TOML file; options override it.")] = (
        None
    )
    no_config: Annotated[
        bool, typer.Option("--no-config", help="Do not search for a nsysdiag.toml or pyproject.toml.")
    ] = False

    def check(self) -> None:
        """A file cannot be named and refused at once."""
        if self.config is not None and self.no_config:
            raise UsageError("--config and --no-config exclude each other")


class Budgets(SettingsFile):
    """Budgets, of the file and of options."""

    config: Annotated[
        str | None, value("--config", "FILE", "Settings and budgets from this TOML file; options override it.")
    ] = None
    fail_on: Annotated[
        list[str] | None,
        value(
            "--fail-on", "EXPR", "Exit with 1 if this is true, as 'idle_share > 20%'; repeatable. See docs/budgets.md."
        ),
    ] = None
    warn_on: Annotated[list[str] | None, value("--warn-on", "EXPR", "Only warn if this is true; repeatable.")] = None


class CiBudgets(Budgets):
    """Budgets, and what a CI job says of them."""

    unjudged: Annotated[
        Literal["ignore", "warn", "fail"],
        value(
            "--unjudged",
            "WHAT",
            "What a budget does that the trace cannot tell: 'fail' (exit code 2), 'warn' or 'ignore'. One that only "
            "warns never fails.",
        ),
    ] = "fail"
    comment: Annotated[
        str | None,
        value(
            "--comment",
            "KEY",
            "Markdown as a comment for a pull request: with budgets, of limited length, and with a hidden line with "
            "KEY for scripts.",
        ),
    ] = None
    report_url: Annotated[
        str | None, value("--report-url", "URL", "Where the whole report will be: a comment links to it.")
    ] = None

    def check(self) -> None:
        """A comment must be one."""
        super().check()
        check_comment(self.comment, self.report_url)


class ReportBudgets(CiBudgets):
    """Those of one report, which is the whole one."""

    report_url: str | None = None


class AnalyzedPart(OptionGroup):
    """What of a trace is analyzed."""

    device: DeviceOption = None
    same_gpu: SameGpuOption = False
    start: Annotated[
        str | None, value("--from", "T", "Start of the window: 1.5s, 20ms or 300us; a bare number is ns.")
    ] = None
    end: Annotated[str | None, value("--to", "T", "End of the window.")] = None
    nvtx: Annotated[
        str | None,
        value("--nvtx", "NAME", "Only the NVTX ranges of this name; * and ? match any text and one character."),
    ] = None
    iterations: Annotated[
        str | None,
        value(
            "--iterations",
            "A:B",
            "Only iterations A to B - 1, counted from 0. 3: and :10 are open ranges, 7 is one iteration, -5: is the "
            "last five.",
        ),
    ] = None
    step: StepOption = None

    def of(self, file: "Settings") -> "Settings":
        """The settings of a file with those of this part. Raises UsageError."""
        from msgspec.structs import replace

        start_ns, end_ns = narrowed_window(self.start, self.end, self.nvtx, self.iterations)
        return replace(
            file,
            device=self.device,
            same_gpu=self.same_gpu or file.same_gpu,
            start_ns=start_ns,
            end_ns=end_ns,
            nvtx=self.nvtx,
            iterations=None if self.iterations is None else parse_iterations(self.iterations),
            step=checked_step(self.step, file.step),
        )


class PartOfEach(OptionGroup):
    """What of both sides of a comparison is compared."""

    device: Annotated[list[str] | None, _of_each("--device", "D", "One GPU: its index, key or part of its name.")] = (
        None
    )
    nvtx: Annotated[list[str] | None, _of_each("--nvtx", "NAME", "Only the NVTX ranges of this name.")] = None
    start: Annotated[
        list[str] | None, _of_each("--from", "T", "Start of the window: 1.5s or 20ms; a bare number is ns.")
    ] = None
    end: Annotated[list[str] | None, _of_each("--to", "T", "End of the window.")] = None
    phase: Annotated[
        list[str] | None,
        _of_each("--phase", "NAME", "Only start-up, steady, pause or teardown; 'steady 2' is the second one."),
    ] = None


def first_repeated(paths: "Sequence[Path]") -> "Path | None":
    """The first path that is named twice; None if none is."""
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
    if key is None and report_url is None:
        return
    from nsysdiag.document.markup import COMMENT_KEY
    from nsysdiag.messages import printable

    if key is not None and not COMMENT_KEY.fullmatch(key):
        raise UsageError(
            f"--comment '{printable(key)}' is not a key",
            hint="use letters, digits, '.', '_', '/' and single '-', 100 at most",
        )
    if report_url is not None and not _URL.fullmatch(report_url):
        raise UsageError(
            f"--report-url '{printable(report_url)}' is not an address", hint="write it as https://host/path"
        )
    if report_url is not None and key is None:
        raise UsageError("--report-url needs a comment that links to it", hint="add --comment KEY")


def require_markdown(key: str | None, destinations: "Sequence[Destination]") -> None:
    """Raise UsageError for a comment that goes nowhere."""
    if key is not None and not any(each.format == "md" for each in destinations):
        raise UsageError("--comment needs a Markdown output", hint="add -o comment.md")


def narrowed_window(
    start: str | None, end: str | None, nvtx: str | None, iterations: str | None
) -> tuple[int | None, int | None]:
    """The times of --from and --to in ns. Raises UsageError if they leave nothing, or the window is narrowed in
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

    Raises UsageError for anything else, and if no iteration can be in it.
    """
    match = _SPAN.fullmatch(text)
    if match is None or not (match.group(1) or match.group(2)):
        raise UsageError(f"'{text}' is not a range of iterations", hint=_HINT)
    first, colon, behind = match.groups()
    low = int(first) if first else None
    if not colon and low is not None:
        # One behind the last is not 0: that would be the first.
        return low, (low + 1 if low != -1 else None)
    high = int(behind) if behind else None
    if high == 0 or (low is not None and high is not None and high <= low and (low < 0) == (high < 0)):
        raise UsageError(f"no iteration is in '{text}'", hint=_HINT)
    return low, high
