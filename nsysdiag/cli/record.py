"""`nsysdiag record`: profile a program, and analyse what came of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsysdiag.cli import options
from nsysdiag.cli.completion import format_of
from nsysdiag.cli.recording import (
    CaptureRangeOption,
    DelayOption,
    DurationOption,
    NsysOption,
    ProgramOption,
    RecordedOutputOption,
    ending_with,
    recorded,
    refuse_stdout,
)
from nsysdiag.messages import OutputError, UsageError, printable

if TYPE_CHECKING:
    from nsysdiag.cli.verdicts import Wanted

EPILOG = """\b
Examples:
  nsysdiag record -- python train.py --epochs 1
  nsysdiag record --delay 30 --duration 20 -o report.html -- python train.py
  nsysdiag record --capture-range cudaProfilerApi --keep before.nsys-rep -- ./solver
  nsysdiag record --capture-range step --open -- torchrun --nproc-per-node 2 train.py"""


def record(
    program: ProgramOption,
    *,
    delay: DelayOption = None,
    duration: DurationOption = None,
    capture_range: CaptureRangeOption = None,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep",
            metavar="PATH",
            help="Path of the .nsys-rep. By default PROGRAM.nsys-rep in the current folder, with a number if that "
            "exists.",
        ),
    ] = None,
    nsys: NsysOption = None,
    output: RecordedOutputOption = None,
    format_name: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="F",
            help=f"Format of a PATH without a known suffix: {options.FORMATS}.",
            show_default=False,
            autocompletion=format_of(options.FORMATS),
        ),
    ] = None,
    same_gpu: options.SameGpuOption = False,
    config: options.ConfigOption = None,
    no_config: options.NoConfigOption = False,
    fail_on: options.FailOnOption = None,
    warn_on: options.WarnOnOption = None,
    gpu_hour_cost: options.GpuHourCostOption = None,
    memory_limit: options.MemoryLimitOption = None,
    redact: options.RedactOption = False,
    details: options.DetailsOption = False,
    open_html: options.OpenOption = False,
    force: options.ForceOption = False,
    quiet: options.QuietOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Run a program under nsys, and say what the GPU waited for.

    Records what this nsys, the kernel and the user's rights permit, says what it leaves out, and asks nothing. The
    program keeps its streams and its environment. Then the report is kept, exported and analysed: a summary is printed
    and, without -o, PROGRAM.nsysdiag.html is written into the current folder. Exits with 6 where the program fails,
    after that.
    """
    from msgspec.structs import replace

    from nsysdiag.capture.plan import SUFFIX, RecordedSpan, free_stem, name_of, require_program
    from nsysdiag.capture.run import find_nsys, probe, require_system
    from nsysdiag.ci.budgets import refuse_changes
    from nsysdiag.cli.output import plan
    from nsysdiag.cli.settings import budgets_of_options, require_one_way, settings_of_file, with_price
    from nsysdiag.cli.verdicts import Wanted
    from nsysdiag.pseudonyms import private_folder
    from nsysdiag.units import parse_bytes

    require_one_way(config, no_config=no_config)
    budgets = budgets_of_options(fail_on, warn_on)
    refuse_changes(budgets)
    refuse_stdout(output)
    require_system()
    require_program(program)
    path = find_nsys(nsys)
    found = settings_of_file(config, discover=not no_config, quiet=quiet)
    settings = replace(
        found.settings,
        same_gpu=same_gpu or found.settings.same_gpu,
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit),
        cost=with_price(found.settings.cost, gpu_hour_cost),
        nsys=path,
    )
    name = name_of(program)
    stem = name if force else free_stem(name, (SUFFIX, ".nsysdiag.html"))
    target = Path(f"{stem}{SUFFIX}" if keep is None else keep)
    _require_place(target, force=force)
    page = options.REDACTED_STEM if redact else target.name.removesuffix(SUFFIX)
    wanted = Wanted(
        settings=settings,
        file=found,
        budgets=budgets,
        destinations=plan(output, format_name, page, inputs=[target], force=force, open_html=open_html),
        redact=redact,
        details=details,
        open_html=open_html,
        force=force,
        quiet=quiet,
    )
    with private_folder() as folder:
        span = RecordedSpan(delay, duration, capture_range)
        target, code = recorded(probe(path, folder), program, span, target, folder, force=force, quiet=quiet)
    if output is None and keep is None and not redact:
        page = target.name.removesuffix(SUFFIX)
        wanted = replace(wanted, destinations=plan(None, format_name, page, force=force))
    with ending_with(code):
        _analysed(target, wanted)


def _require_place(target: Path, *, force: bool) -> None:
    """Raise UsageError or OutputError where the report cannot be kept there."""
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


def _analysed(target: Path, wanted: "Wanted") -> None:
    from nsysdiag.arrays.spill import share_one_heap
    from nsysdiag.cli.load import analyze_trace
    from nsysdiag.cli.verdicts import conclude

    share_one_heap()
    conclude(analyze_trace(target, wanted.settings, quiet=wanted.quiet), str(target), wanted)
