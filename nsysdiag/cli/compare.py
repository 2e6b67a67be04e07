"""`nsysdiag compare`: what a fix, or a fault, changed."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from nsysdiag.cli import options
from nsysdiag.cli.console import progress_bar
from nsysdiag.messages import UsageError, printable

EPILOG = """\b
Examples:
  nsysdiag compare before.sqlite after.sqlite
  nsysdiag compare before.json after.sqlite -o - --format md
  nsysdiag compare main.json branch.sqlite --fail-on 'length:+5%' --fail-on 'ledger.sync > 1ms/iter'
  nsysdiag compare --before run1.sqlite --before run2.sqlite --after run3.sqlite --after run4.sqlite
  nsysdiag compare before.sqlite after.sqlite --phase 'steady 2'
  nsysdiag compare one.sqlite one.sqlite --device gpu0 --device gpu1
  nsysdiag compare predicted.json after.sqlite
  nsysdiag compare --baseline main branch.sqlite --fail-on 'length:+5%'
  nsysdiag compare a100.json h100.json --across-gpus -o compare.html -o compare.json"""


@options.spread
def compare(
    before: Annotated[
        str | None,
        typer.Argument(metavar="BEFORE", help=f"{options.A_TRACE}, or a report or prediction saved as JSON."),
    ] = None,
    after: Annotated[str | None, typer.Argument(metavar="AFTER", help="The same program after the change.")] = None,
    *,
    more_before: Annotated[
        list[str] | None, options.value("--before", "X", "A further capture of before; repeats.")
    ] = None,
    more_after: Annotated[
        list[str] | None, options.value("--after", "Y", "A further capture of after; repeats.")
    ] = None,
    baseline: Annotated[
        str | None,
        options.value(
            "--baseline",
            "NAME",
            "The runs of this baseline are before, and the only capture named is after; see 'nsysdiag baseline'.",
        ),
    ] = None,
    baselines: options.BaselinesOption = None,
    if_no_baseline: Annotated[
        Literal["fail", "pass"],
        options.value(
            "--if-no-baseline",
            "WHAT",
            "If the baseline has no run yet: 'fail' (exit code 2), or 'pass', which says so and compares nothing.",
        ),
    ] = "fail",
    across_gpus: Annotated[bool, typer.Option("--across-gpus", help="Compare GPUs of different models.")] = False,
    same_gpu: options.SameGpuOfEachOption = False,
    step: options.StepOption = None,
    part: options.PartOfEach,
    judging: options.CiBudgets,
    out: options.ComparisonOutputs,
) -> None:
    """Say what changed between two captures, and whether it is more than chance.

    Compares iterations if there are some, else whole windows for the same work, with a 95% interval over the
    iterations. Prints a summary and, without -o, writes compare.nsysdiag.html into the current folder.
    """
    from msgspec.structs import replace

    from nsysdiag.ci.acceptances import check_comparison
    from nsysdiag.ci.budgets import Judgement, judge
    from nsysdiag.cli import against
    from nsysdiag.cli.output import concluding, plan, write_all
    from nsysdiag.cli.settings import budgets_of_options, settings_of_file
    from nsysdiag.comparison.show.registry import RENDERERS
    from nsysdiag.comparison.sides import are_redacted, require_names
    from nsysdiag.formats import DocumentKind
    from nsysdiag.saved import is_saved_report
    from nsysdiag.share.names import Names
    from nsysdiag.share.redaction import redacted_by

    budgets = budgets_of_options(judging)
    left, right = _sides(before, after, more_before or [], more_after or [], baseline)
    paths = [*left, *right]
    kind = DocumentKind("a comparison", [*RENDERERS], tables=())
    destinations = plan(out, "compare", kind, inputs=paths)
    options.require_markdown(judging.comment, destinations)
    saved = all(is_saved_report(path) for path in paths)
    found = settings_of_file(judging, saved=saved, quiet=out.quiet)
    file = found.settings
    base = None if baseline is None else against.base_of(baseline, baselines, found, if_new=if_no_baseline)
    settings = replace(file, same_gpu=same_gpu or file.same_gpu, step=options.checked_step(step, file.step))
    parts = against.part_of_each(part)
    cut = against.reports_of(left, right, settings, file, parts, whole=base is None, quiet=out.quiet)
    left, earlier = (left, []) if base is None else against.runs_of(base)
    reports = [*earlier, *cut.reports]
    require_names(reports)
    if out.redact and are_redacted(reports):
        raise UsageError("a report is redacted already", hint="leave --redact out, or use the traces themselves")
    # The same pseudonyms for both sides: what has one name before and after still has.
    names = Names() if out.redact else None
    shown = [redacted_by(report, names) for report in reports] if names else reports
    sides = shown[: len(left)], shown[len(left) :]
    made = against.compared(base, *sides, names, across_gpus=across_gpus, same_work=cut.same_work)
    made = replace(made, notes=[*cut.notes, *made.notes])
    if out.redact or not are_redacted(reports):  # else what a file is called may be a name
        made = against.with_files(made, ([] if base else left, right), names)
        made = made if saved else against.with_settings(made, file, settings, names)
    latest = {str(path): report for path, report in zip(right, reports[len(left) :], strict=True)}
    judged = judge(
        [*budgets, *found.budgets], lambda budget: check_comparison(made, latest, [budget]), judging.unjudged
    )
    judged, made = against.with_accepted(base, judged, made, redact=out.redact)
    free = not out.quiet and all(each.path for each in destinations)
    commands = against.accepting(base, judged)
    with concluding(judged, found, settings, quiet=out.quiet, to_stdout=free, against=against.against(made, commands)):
        write_all(
            made,
            destinations,
            out,
            judged=Judgement() if out.redact else judged,
            comment=judging.comment,
            report_url=judging.report_url,
            accept={} if out.redact else commands,
        )


def _sides(
    before: str | None, after: str | None, more_before: list[str], more_after: list[str], baseline: str | None
) -> tuple[list[Path], list[Path]]:
    """The captures of each side; of a baseline, whose runs are before, those after alone. Raises UsageError if a
    side has none, a file is named twice on it, or there are captures before in addition to a baseline."""
    if baseline is not None:
        if after or more_before:
            raise UsageError(
                "with --baseline its runs are before, and no other capture",
                hint=f"nsysdiag compare --baseline {printable(baseline)} after.sqlite",
            )
        before, after = None, before
    left = [Path(each) for each in ([before] if before else []) + more_before]
    right = [Path(each) for each in ([after] if after else []) + more_after]
    if not right or not (left or baseline):
        missing = "AFTER" if left or baseline else "BEFORE and AFTER"
        raise UsageError(f"{missing} is missing", hint="nsysdiag compare before.sqlite after.sqlite")
    for side in (left, right):
        if twice := options.first_repeated(side):
            raise UsageError(f"{twice} is named twice on one side", hint="name each capture once")
    return left, right


RANKS_EXAMPLES = """\b
Examples:
  nsysdiag ranks rank0.sqlite rank1.sqlite rank2.sqlite rank3.sqlite
  nsysdiag ranks eight-gpus.sqlite -o ranks.html -o ranks.json
  nsysdiag ranks rank0.sqlite rank1.sqlite -o - --format md
  nsysdiag ranks rank0.sqlite rank1.sqlite --redact -o for-the-ticket.html"""


@options.spread
def ranks(
    traces: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE...",
            help="Exported traces (.sqlite, or folders of Parquet files), of one rank or several each.",
        ),
    ],
    *,
    same_gpu: options.SameGpuOfEachOption = False,
    out: options.RanksOutputs,
) -> None:
    """Say which rank the others wait for, and why it is late.

    Matches the collectives of all ranks in one or several traces, brings their clocks together, and prints a summary.
    Without -o, writes ranks.nsysdiag.html into the current folder.
    """
    from nsysdiag.cli.output import plan, write_all
    from nsysdiag.config.settings import Settings
    from nsysdiag.formats import DocumentKind
    from nsysdiag.ranks import pipeline
    from nsysdiag.ranks.show.registry import RENDERERS, TABLES

    paths = [Path(trace) for trace in traces]
    if twice := options.first_repeated(paths):
        raise UsageError(f"{twice} is named twice", hint="name each trace once")
    kind = DocumentKind("a comparison of ranks", [*RENDERERS], TABLES)
    destinations = plan(out, "ranks", kind, inputs=paths)
    with progress_bar(quiet=out.quiet) as progress:
        report = pipeline.analyze_ranks(paths, Settings(same_gpu=same_gpu, timeline=False), progress)
    report = options.redacted_for(report, redact=out.redact)
    write_all(report, destinations, out)
