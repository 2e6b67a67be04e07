"""Runs a program under nsys for the commands that record: their options, and what becomes of the report."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsysdiag.cli.completion import output_path
from nsysdiag.cli.console import complain, note
from nsysdiag.cli.manual import GroupedCommand
from nsysdiag.messages import InputError, NsysdiagError, ProgramFailedError, UsageError, printable
from nsysdiag.signals import Ended

if TYPE_CHECKING:
    from nsysdiag.capture.plan import Plan, RecordedSpan
    from nsysdiag.capture.run import Nsys, RecordingResult

ProgramOption = Annotated[
    list[str],
    typer.Argument(metavar="PROGRAM ARGS...", help="The program and its arguments.", show_default=False),
]
DelayOption = Annotated[
    float | None,
    typer.Option("--delay", metavar="SECONDS", min=0, help="Start recording this long after the program starts."),
]
DurationOption = Annotated[
    float | None,
    typer.Option("--duration", metavar="SECONDS", min=0, help="Record for this long, then end the program (SIGTERM)."),
]
CaptureRangeOption = Annotated[
    str | None,
    typer.Option(
        "--capture-range",
        metavar="RANGE",
        help="Record from cudaProfilerStart to cudaProfilerStop (cudaProfilerApi), or the first NVTX range of this "
        "name. Then end the program (SIGTERM).",
    ),
]
NsysOption = Annotated[
    str | None, typer.Option("--nsys", metavar="PROGRAM", help="The nsys to use; by default the one on the PATH.")
]

RecordedOutputOption = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--output",
        metavar="PATH",
        help="Write to PATH; repeatable. The suffix picks the format.",
        show_default=False,
        autocompletion=output_path,
    ),
]


def refuse_stdout(output: list[str] | None) -> None:
    """Raises UsageError for '-o -'."""
    from nsysdiag.cli.output import STDOUT

    if STDOUT in (output or ()):
        raise UsageError("'-o -' cannot be used: standard output is the program's", hint="write to a file with -o PATH")


SEPARATOR = "--"
SIGNALLED = 128
"""A shell adds this to the number of the signal that ended a program."""
TERMINATED = 143


class RecordCommand(GroupedCommand):
    """What follows the program belongs to it. Without `--` in front, none of its options may be ours as well."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raises UsageError if an option could be meant for nsysdiag or for the program."""
        given = list(args)
        rest = super().parse_args(ctx, args)
        words: list[str] = ctx.params.get("program") or []
        separated = given[: len(given) - len(words)][-1:] == [SEPARATOR]
        if words and not separated and not ctx.resilient_parsing:
            self._refuse_ours(ctx, words)
        return rest

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """With the -- that is never wrong."""
        return [
            "[OPTIONS]",
            SEPARATOR,
            *(each.metavar or "" for each in self.params if each.param_type_name == "argument"),
        ]

    def _refuse_ours(self, ctx: Any, words: list[str]) -> None:
        ours = {name for each in self.get_params(ctx) if each.param_type_name == "option" for name in each.opts}
        for word in words[1:]:
            if word.partition("=")[0] in ours:
                shown, program = printable(word), printable(words[0])
                raise UsageError(
                    f"'{shown}' after the program may be meant for nsysdiag or for '{program}'",
                    hint=f"write -- before the program: nsysdiag {ctx.info_name} [OPTIONS] -- {program} ...",
                )


def recorded(
    nsys: "Nsys", words: list[str], span: "RecordedSpan", target: Path, folder: Path, *, force: bool, quiet: bool
) -> tuple[Path, int]:
    """Record the program. Where the report is, and the code that this command ends with: 0 unless the program failed or
    a signal came, which is said here."""
    from nsysdiag.capture.plan import STREAM, beside, is_python, keep, planned, uses_mpi
    from nsysdiag.capture.run import this_host

    plan = planned(nsys, this_host(), span, python=is_python(words), mpi=uses_mpi(words))
    if not quiet:
        _say(nsys, plan)
    written = beside(target)
    stream = written.with_suffix(STREAM)
    try:
        done = _run(nsys, plan, span, words, written, folder, quiet=quiet)
    except BaseException:
        for left in (written, stream):
            left.unlink(missing_ok=True)
        raise
    code = _code_of(done, span, captured=written.exists())
    if not written.exists():
        kept = keep(stream, target.with_suffix(STREAM), force=force) if stream.exists() else None
        with ending_with(code):
            raise _nothing(nsys, done, span, kept)
    target = keep(written, target, force=force)
    if not quiet:
        note(f"wrote {target}")
    return target, code


def _say(nsys: "Nsys", plan: "Plan") -> None:
    from nsysdiag.capture.plan import in_words

    note(f"nsys {nsys.version} records {in_words(plan.brings)}")
    for sentence in plan.left_out:
        note(sentence)


def _run(
    nsys: "Nsys", plan: "Plan", span: "RecordedSpan", words: list[str], written: Path, folder: Path, *, quiet: bool
) -> "RecordingResult":
    """Run the program; with fewer options if nsys refuses some before it starts the program."""
    from nsysdiag.capture.run import run

    recorded = run(nsys, plan.options, words, written, folder, span.environment)
    basic = plan.basic()
    refused = not recorded.started and recorded.code and recorded.signal is None
    if not refused or basic.options == plan.options:
        return recorded
    if not quiet:
        note(f"nsys refuses that{_quoted(recorded)}; it records less")
        _say(nsys, basic)
    return run(nsys, basic.options, words, written, folder, span.environment)


def _quoted(recorded: "RecordingResult") -> str:
    return f": {recorded.said[0]}" if recorded.said else ""


def _code_of(recorded: "RecordingResult", span: "RecordedSpan", *, captured: bool) -> int:
    """What this command ends with, and a sentence on why that is not 0."""
    if recorded.signal is not None:
        ended = Ended(recorded.signal)
        complain(f"{ended.sentence}{'; the capture up to then is analysed' if captured else ''}")
        return ended.exit_code
    if not recorded.started or recorded.code <= 0:
        return 0
    if recorded.code == TERMINATED and span.ends_program:
        return 0
    hint = None
    if span.ends_program and captured:
        hint = (
            "nsys sends it SIGTERM at the end of the recording; a program that handles SIGTERM ends with its own code"
        )
    complain(f"the program failed with exit code {recorded.code}{_signal_in(recorded.code)}", hint)
    return ProgramFailedError.exit_code


def _signal_in(code: int) -> str:
    import signal

    with suppress(ValueError):
        return f" ({signal.Signals(code - SIGNALLED).name})"
    return ""


def _nothing(nsys: "Nsys", recorded: "RecordingResult", span: "RecordedSpan", stream: Path | None) -> NsysdiagError:
    """Why there is no report."""
    from nsysdiag.capture.plan import RANGE_OF_CUDA

    said = recorded.said
    if not recorded.started:
        return UsageError(f"nsys {nsys.version} could not start the program (exit code {recorded.code})", shown=said)
    if stream is not None:
        hint = f"QdstrmImporter of a complete Nsight Systems makes one: QdstrmImporter -i {printable(stream)}"
        return InputError(f"nsys wrote {printable(stream)} and could not make a report of it", hint=hint, shown=said)
    if span.capture_range:
        name = printable(span.capture_range)
        what = "cudaProfilerStart was never called" if name == RANGE_OF_CUDA else f"the range '{name}' never began"
        return InputError(f"nothing was recorded: {what}")
    if span.delay:
        return InputError("nothing was recorded: the program ended before --delay was over")
    hint = "'nsys status --environment' shows what is missing on this machine"
    return InputError(f"nsys {nsys.version} made no report (exit code {recorded.code})", hint=hint, shown=said)


@contextmanager
def ending_with(code: int) -> Iterator[None]:
    """Exit with this code, where it is not 0, whatever else goes wrong: that is said."""
    try:
        yield
    except typer.Exit:
        if not code:
            raise
    except NsysdiagError as error:
        if not code:
            raise
        complain(error.message, error.hint, error.shown)
    if code:
        raise typer.Exit(code)
