"""`nsysdiag record`: profile a program under nsys, and analyze what came of it. `try` records with the same options."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsysdiag.cli import options
from nsysdiag.cli.console import complain
from nsysdiag.cli.help import GroupedCommand
from nsysdiag.messages import InputError, NsysdiagError, OutputError, ProgramFailedError, UsageError, note, printable
from nsysdiag.signals import Ended

if TYPE_CHECKING:
    from nsysdiag.capture.plan import Plan, RecordedSpan
    from nsysdiag.capture.run import Nsys, RecordingResult
    from nsysdiag.cli.output import Wanted


ProgramOption = Annotated[
    list[str], typer.Argument(metavar="PROGRAM ARGS...", help="The program and its arguments.", show_default=False)
]


class Recording(options.OptionGroup):
    """When nsys records, and which nsys."""

    delay: Annotated[
        float | None, options.value("--delay", "SECONDS", "Start recording this long after the program starts.", min=0)
    ] = None
    duration: Annotated[
        float | None,
        options.value("--duration", "SECONDS", "Record for this long, then end the program (SIGTERM).", min=0),
    ] = None
    capture_range: Annotated[
        str | None,
        options.value(
            "--capture-range",
            "RANGE",
            "Record from cudaProfilerStart to cudaProfilerStop (cudaProfilerApi), or the first NVTX range of this "
            "name. Then end the program (SIGTERM).",
        ),
    ] = None
    nsys: Annotated[
        str | None, options.value("--nsys", "PROGRAM", "The nsys to use; by default the one on the PATH.")
    ] = None

    def check(self) -> None:
        """Raise UsageError for a pattern of ranges."""
        from nsysdiag.capture.plan import require_whole

        if self.capture_range:
            require_whole(self.capture_range)

    @property
    def span(self) -> "RecordedSpan":
        """The time that is recorded."""
        from nsysdiag.capture.plan import RecordedSpan

        return RecordedSpan(self.delay, self.duration, self.capture_range)


def refuse_stdout(out: options.Outputs) -> None:
    """Raises UsageError for '-o -'."""
    from nsysdiag.cli.output import STDOUT

    if STDOUT in (out.output or ()):
        raise UsageError("'-o -' cannot be used: standard output is the program's", hint="write to a file with -o PATH")


SEPARATOR = "--"
SIGNALLED = 128
"""A shell adds this to the number of the signal that ended a program."""
TERMINATED = 143


class RecordCommand(GroupedCommand):
    """What follows the program belongs to it. Without `--` in front, none of its options may be ours as well."""

    allow_interspersed_args = False

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
    nsys: "Nsys", words: list[str], span: "RecordedSpan", target: Path, folder: Path, out: options.Writing
) -> tuple[Path, int]:
    """Record the program. Where the report is, and the code that this command ends with: 0 unless the program failed or
    a signal came, which is said here."""
    from nsysdiag.capture.plan import STREAM, beside, is_python, keep, planned, uses_mpi
    from nsysdiag.capture.run import this_host

    plan = planned(nsys, this_host(), span, python=is_python(words), mpi=uses_mpi(words))
    if not out.quiet:
        _say(nsys, plan)
    written = beside(target)
    stream = written.with_suffix(STREAM)
    try:
        done = _run(nsys, plan, span, words, written, folder, quiet=out.quiet)
    except BaseException:
        for left in (written, stream):
            left.unlink(missing_ok=True)
        raise
    code = _code_of(done, span, captured=written.exists())
    if not written.exists():
        kept = keep(stream, target.with_suffix(STREAM), force=out.force) if stream.exists() else None
        with ending_with(code):
            raise _nothing(nsys, done, span, kept)
    target = keep(written, target, force=out.force)
    if not out.quiet:
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
        note(f"nsys refuses that{f': {recorded.said[0]}' if recorded.said else ''}; it records less")
        _say(nsys, basic)
    return run(nsys, basic.options, words, written, folder, span.environment)


def _code_of(recorded: "RecordingResult", span: "RecordedSpan", *, captured: bool) -> int:
    """What this command ends with, and a sentence on why that is not 0."""
    if recorded.signal is not None:
        ended = Ended(recorded.signal)
        complain(f"{ended.sentence}{'; the capture up to then is analyzed' if captured else ''}")
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
    if recorded.code < 0 or recorded.ended:
        return InputError(f"nsys {nsys.version} {_death(recorded)}", shown=said)
    if span.capture_range:
        name = printable(span.capture_range)
        what = "cudaProfilerStart was never called" if name == RANGE_OF_CUDA else f"the range '{name}' never began"
        return InputError(f"nothing was recorded: {what}")
    if span.delay:
        return InputError("nothing was recorded: the program ended before --delay was over")
    hint = "'nsys status --environment' shows what is missing on this machine"
    return InputError(f"nsys {nsys.version} made no report (exit code {recorded.code})", hint=hint, shown=said)


def _death(recorded: "RecordingResult") -> str:
    """How nsys ended, and what became of what it had begun."""
    how = f"exited with code {recorded.code}"
    if recorded.code < 0:
        how = f"was ended by signal {-recorded.code}{_signal_in(SIGNALLED - recorded.code)}"
    rest = "; the program and the other processes of nsys were ended" if recorded.ended else ""
    return f"{how} and made no report{rest}"


@contextmanager
def ending_with(code: int) -> Iterator[None]:
    """Exit with this code, if it is not 0, whatever else goes wrong: that is said."""
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


EPILOG = """\b
Examples:
  nsysdiag record -- python train.py --epochs 1
  nsysdiag record --delay 30 --duration 20 -o report.html -- python train.py
  nsysdiag record --capture-range cudaProfilerApi --keep before.nsys-rep -- ./solver
  nsysdiag record --keep 'rank%q{SLURM_PROCID}.nsys-rep' -- python train.py
  nsysdiag record --capture-range step --open -- torchrun --nproc-per-node 2 train.py"""


@options.spread
def record(
    program: ProgramOption,
    *,
    recording: Recording,
    keep: Annotated[
        str | None,
        options.value(
            "--keep",
            "PATH",
            "Path of the .nsys-rep. By default PROGRAM.nsys-rep in the current folder, PROGRAM.rankN.nsys-rep for a "
            "rank, with a number if that exists. Here and in -o, %q{NAME} is a variable, %h the host, %p the process.",
        ),
    ] = None,
    same_gpu: options.SameGpuOption = False,
    judging: options.Budgets,
    gpu_hour_cost: options.GpuHourCostOption = None,
    memory_limit: options.MemoryLimitOption = None,
    out: options.RecordedOutputs,
) -> None:
    """Run a program under nsys, and say what the GPU waited for.

    Records what this nsys, the kernel and the user's rights permit, says what it leaves out, and asks nothing. The
    program keeps its streams and its environment. Then the report is kept, exported and analyzed: a summary is printed
    and, without -o, PROGRAM.nsysdiag.html is written into the current folder. Exits with 6 if the program fails,
    after that.
    """
    from msgspec.structs import replace

    from nsysdiag.capture.plan import SUFFIX, filled_in, free_stem, name_of, require_program, with_rank
    from nsysdiag.capture.run import find_nsys, probe, require_system
    from nsysdiag.ci.budgets import refuse_changes
    from nsysdiag.cli.output import Wanted, plan
    from nsysdiag.cli.settings import budgets_of_options, settings_of_file, with_price
    from nsysdiag.process import private_folder
    from nsysdiag.units import parse_bytes

    budgets = budgets_of_options(judging)
    refuse_changes(budgets)
    refuse_stdout(out)
    require_system()
    require_program(program)
    path = find_nsys(recording.nsys)
    found = settings_of_file(judging, quiet=out.quiet)
    settings = replace(
        found.settings,
        same_gpu=same_gpu or found.settings.same_gpu,
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit),
        cost=with_price(found.settings.cost, gpu_hour_cost),
        nsys=path,
    )
    name = with_rank(name_of(program))
    stem = name if out.force else free_stem(name, (SUFFIX, ".nsysdiag.html"))
    target = Path(f"{stem}{SUFFIX}" if keep is None else filled_in(keep))
    out = out.but(output=[filled_in(each) for each in out.output]) if out.output else out
    _require_place(target, force=out.force)
    page = options.REDACTED_STEM if out.redact else target.name.removesuffix(SUFFIX)
    wanted = Wanted(settings, found, budgets, plan(out, page, inputs=[target]), out)
    with private_folder() as folder:
        target, code = recorded(probe(path, folder), program, recording.span, target, folder, out)
    if out.output is None and keep is None and not out.redact:
        wanted = replace(wanted, destinations=plan(out, target.name.removesuffix(SUFFIX)))
    with ending_with(code):
        _analyzed(target, wanted)


def _require_place(target: Path, *, force: bool) -> None:
    """Raise UsageError or OutputError if the report cannot be kept there."""
    from nsysdiag.capture.plan import SUFFIX
    from nsysdiag.cli.output import check_file

    if not target.name.endswith(SUFFIX):
        raise UsageError(
            f"--keep: '{printable(target)}' does not end with {SUFFIX}", hint=f"name it {printable(target)}{SUFFIX}"
        )
    check_file(target, None, force=True)
    if not force and (target.is_symlink() or target.exists()):
        hint = "choose another --keep PATH, or overwrite it with --force"
        raise OutputError(f"{printable(target)} exists", hint=hint)


def _analyzed(target: Path, wanted: "Wanted") -> None:
    from nsysdiag.arrays.spill import share_one_heap
    from nsysdiag.cli.output import conclude
    from nsysdiag.cli.settings import analyze_trace

    share_one_heap()
    conclude(analyze_trace(target, wanted.settings, quiet=wanted.out.quiet), str(target), wanted)
