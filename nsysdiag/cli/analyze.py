"""`nsysdiag analyze`: one trace in, reports out; `nsysdiag demo`, the same of a trace that is bundled; and `nsysdiag
render`, a saved report in other formats."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsysdiag.cli import options
from nsysdiag.messages import UsageError, note
from nsysdiag.trace.formats import named, stem_of

if TYPE_CHECKING:
    from nsysdiag.cli.output import Answered


EPILOG = """\b
Examples:
  nsysdiag analyze train.sqlite
  nsysdiag analyze train.sqlite -o report.html -o report.json --quiet
  nsysdiag analyze train.sqlite --nvtx step --disable dispatch -o - --format md
  nsysdiag analyze train.sqlite --iterations 10:20
  nsysdiag analyze train.sqlite -q --fail-on 'idle_share > 20%' --warn-on 'findings.high > 0'
  nsysdiag analyze train.sqlite --reference-step 182ms
  nsysdiag analyze train.sqlite --json diagnosis,findings --limit 3
  nsysdiag analyze train.sqlite --flops-per-step 1.2e15:bf16
  nsysdiag analyze train.sqlite --redact -o for-the-ticket.html
  nsysdiag analyze train.sqlite --config nsysdiag.toml --gpu-hour-cost 2.5"""


MOST_NS = 10**15
"""Eleven days: no step takes as long."""


@options.spread
def analyze(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help=f"{options.A_TRACE} or a saved report JSON.")],
    *,
    part: options.AnalyzedPart,
    no_replay: Annotated[
        bool, typer.Option("--no-replay", help="No replay: findings have bounds instead of predicted savings. Faster.")
    ] = False,
    no_timeline: Annotated[
        bool, typer.Option("--no-timeline", help="Leave out the timeline, for a smaller report.")
    ] = False,
    full_hash: Annotated[bool, typer.Option("--full-hash", help="Add the file's SHA-256.")] = False,
    gaps: Annotated[
        int | None, options.value("--gaps", "N", "Number of gaps to list in full, 200 by default; 0 lists all.", min=0)
    ] = None,
    disable: Annotated[
        list[str] | None,
        options.value("--disable", "CAUSE", "Disable this cause; repeatable. See 'nsysdiag rules'.", words="causes"),
    ] = None,
    judging: options.ReportBudgets,
    reference_step: Annotated[
        str | None,
        options.value(
            "--reference-step",
            "T",
            "How long a step takes without the profiler, as 182ms: says how much the profiler distorts.",
        ),
    ] = None,
    flops_per_step: Annotated[
        str | None,
        options.value(
            "--flops-per-step",
            "N",
            "Floating-point operations of one GPU in a step, as 1.2e15, or with their precision, as 1.2e15:bf16: says "
            "the share of the published peak.",
        ),
    ] = None,
    gpu_hour_cost: options.GpuHourCostOption = None,
    json: Annotated[
        str | None,
        options.value(
            "--json",
            "SUBJECT[,...]",
            "Print a short answer for programs, JSON in one line: summary, diagnosis, findings, phases, time, trace or "
            "tables. Without -o no report is written.",
        ),
    ] = None,
    limit: Annotated[
        int | None, options.value("--limit", "N", "Items of each list of --json, 5 by default.", min=0)
    ] = None,
    memory_limit: options.MemoryLimitOption = None,
    out: options.Outputs,
) -> None:
    """Say what the GPU waited for.

    Prints a summary and, without -o, writes TRACE-stem.nsysdiag.html into the current folder, with --redact
    redacted.nsysdiag.html.
    """
    from msgspec import UNSET
    from msgspec.structs import replace

    from nsysdiag.arrays.spill import share_one_heap
    from nsysdiag.cli.output import Wanted, conclude, plan
    from nsysdiag.cli.settings import budgets_of_options, known_causes, report_of, settings_of_file, with_price
    from nsysdiag.saved import is_saved_report
    from nsysdiag.units import parse_bytes

    budgets = budgets_of_options(judging)
    if budgets:
        from nsysdiag.ci.budgets import refuse_changes

        refuse_changes(budgets)
    path = named(Path(trace))
    found = settings_of_file(judging, saved=is_saved_report(path), quiet=out.quiet)
    file = found.settings
    settings = replace(
        part.of(file),
        gaps=file.gaps if gaps is None else gaps,
        disabled=known_causes(disable) if disable else file.disabled,
        full_hash=full_hash,
        memory_limit=None if memory_limit is None else parse_bytes(memory_limit),
        timeline=not no_timeline,
        replay=not no_replay,
        reference_step_ns=None if reference_step is None else _reference(reference_step),
        flops_per_step=None if flops_per_step is None else _flops(flops_per_step),
        cost=with_price(file.cost, gpu_hour_cost),
    )
    # Without our own suffix, if the input is one of our outputs.
    stem = options.REDACTED_STEM if out.redact else stem_of(path).removesuffix(".nsysdiag") or "trace"
    answer = _answer(json, limit, out)
    destinations = plan(out, stem, inputs=[path]) if answer is None or out.output else []
    options.require_markdown(judging.comment, destinations)
    wanted = Wanted(settings, found, budgets, destinations, out, judging.unjudged, judging.comment, answer)
    share_one_heap()
    report = report_of(path, settings, file, quiet=out.quiet)
    conclude(replace(report, timeline=UNSET) if no_timeline else report, trace, wanted)


def _answer(json: str | None, limit: int | None, out: options.Outputs) -> "Answered | None":
    """What --json asks for. Raises UsageError."""
    if json is None:
        if limit is not None:
            raise UsageError("--limit is about lists of --json", hint="add --json findings")
        return None
    from nsysdiag.cli.output import STDOUT, Answered
    from nsysdiag.queries.answers import LIMIT, check_subjects

    if STDOUT in (out.output or ()) or (out.format_name is not None and not out.output):
        raise UsageError("--json takes stdout", hint="write other outputs to files: -o report.html")
    subjects = check_subjects(json.split(","))
    return Answered(subjects, LIMIT if limit is None else limit)


def _reference(text: str) -> int:
    """ns. Raises UsageError for a text that is not the length of a step."""
    from nsysdiag.units import parse_time

    ns = parse_time(text)
    if not 0 < ns < MOST_NS:
        raise UsageError(f"--reference-step {text} is not the length of a step", hint="write it as 182ms")
    return ns


def _flops(text: str) -> str:
    """The text, as it is kept. Raises UsageError if it is not a number of operations."""
    from nsysdiag.utilization.utilization import parse_flops

    parse_flops(text)
    return text


DEMO_EXAMPLES = """\b
Examples:
  nsysdiag demo
  nsysdiag demo -o demo.html --open
  nsysdiag demo --trace demo"""


OWN_TRACE = "for a program of yours: nsysdiag record -- python train.py, or nsysdiag analyze TRACE.sqlite"


@options.spread
def demo(
    *,
    trace: Annotated[
        str | None,
        options.value(
            "--trace", "DIR", "Keep the trace in this folder, and two of a simulated training: before and after a fix."
        ),
    ] = None,
    out: options.DemoOutputs,
) -> None:
    """Analyze a bundled trace, for a first look.

    Two ranks train, and their data loaders are too slow. The host is a real capture. There was no GPU: the program
    simulated what one would have run when, and that was put into the trace. Prints the summary and, without -o,
    writes demo.nsysdiag.html into the current folder.
    """
    from nsysdiag.cli.output import plan, write_all
    from nsysdiag.cli.settings import analyze_trace
    from nsysdiag.config.settings import Settings
    from nsysdiag.functions import DEMO, demo_trace, demo_traces
    from nsysdiag.process import private_folder

    destinations = plan(out, Path(DEMO).stem)
    kept = demo_traces(trace) if trace is not None else []
    with private_folder() as folder:
        report = analyze_trace(kept[0] if kept else demo_trace(folder / DEMO), Settings(), quiet=out.quiet)
    write_all(report, destinations, out)
    if not out.quiet:
        for path in kept:
            note(f"wrote {path}")
        note(OWN_TRACE)


RENDER_EXAMPLES = """\b
Examples:
  nsysdiag render report.json -o report.html
  nsysdiag render report.json -o - --format md
  nsysdiag render report.json --redact -o for-the-ticket.html"""


@options.spread
def render(
    report: Annotated[
        str,
        typer.Argument(metavar="REPORT.json", help="Saved by analyze, ranks, compare or whatif, with -o REPORT.json."),
    ],
    *,
    out: options.Outputs,
) -> None:
    """Write a saved report in other formats, without the trace."""
    from nsysdiag.cli.output import plan, write_all
    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.formats import kind_of
    from nsysdiag.saved import read_document

    if not out.output:
        raise UsageError("render needs an output", hint="add -o report.html, or '-o -' with --format")
    path = Path(report)
    document = read_document(path)
    kind = kind_of(document)
    destinations = plan(out, path.stem, kind, inputs=[path])
    if isinstance(document, Comparison):
        if out.redact:
            raise UsageError(
                "a saved comparison cannot be redacted",
                hint="compare again with --redact: nsysdiag compare BEFORE AFTER --redact",
            )
    else:
        document = options.redacted_for(document, redact=out.redact)
    write_all(document, destinations, out, summary=False)
