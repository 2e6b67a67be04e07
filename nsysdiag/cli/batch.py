"""`nsysdiag batch`: the reports of many traces."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nsysdiag.cli import options
from nsysdiag.cli.console import BROKEN_BUDGET, batch_bar, complain, emit
from nsysdiag.messages import TEXT, IncompleteError, OutputError, UsageError, note

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.batch.results import History
    from nsysdiag.batch.task import Shared
    from nsysdiag.ci.facts import BatchSummary

EPILOG = """\b
Examples:
  nsysdiag batch runs -o reports
  nsysdiag batch 'runs/*/report.sqlite' old/report.json -o reports --jobs 4 --memory-limit 8GB
  nsysdiag batch runs -o reports --resume
  nsysdiag batch runs -o reports --history trend.jsonl --run v1.2
  nsysdiag batch /shared/runs -o /shared/reports --scheduler tcp://head:8786"""
STATUSES = {"analysed": "analyzed", "resumed": "resumed", "failed": "failed"}
"""In words, in the order in which they are said."""


@options.spread
def batch(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Traces, saved report JSON files, folders (searched for both with all below), patterns.",
        ),
    ],
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="The folder of the reports.", show_default=False)
    ],
    jobs: Annotated[
        int | None, options.value("--jobs", "N", "How many to analyze at once; unless said, one for each CPU.", min=1)
    ] = None,
    memory_limit: Annotated[
        str | None,
        options.value(
            "--memory-limit",
            "SIZE",
            "Memory for all jobs together, as 8GB or 500MiB: fewer run at once if they may need more.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        options.value(
            "--scheduler", "ADDRESS", "Analyze on this Dask cluster, whose workers see the same paths: tcp://host:8786."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep what an earlier batch finished, if input and settings are the same.")
    ] = False,
    history: Annotated[str | None, options.value("--history", "FILE", "Add the results of this run to FILE.")] = None,
    run: Annotated[
        str | None,
        options.value(
            "--run", "NAME", "What the history calls this run; unless said, the commit in CI, else the time."
        ),
    ] = None,
    judging: options.CiBudgets,
    annotate_findings: Annotated[
        bool,
        typer.Option(
            "--annotate-findings", help="Findings are annotations too in github.txt, not only what fails or warns."
        ),
    ] = False,
    out: options.Writing,
) -> None:
    """Report on many traces: a page and a saved report for each, and a summary of all.

    Each is analyzed in a process of its own. The summary names inputs that cannot be analyzed, the others are
    done, and the exit code is 4.
    """
    from functools import partial

    from nsysdiag.batch.inputs import find_inputs
    from nsysdiag.batch.results import check_targets, entries_of, read_history
    from nsysdiag.batch.task import Shared, check_budgets
    from nsysdiag.ci.budgets import Judgement, refuse_changes, unused
    from nsysdiag.cli.output import say_what_mattered
    from nsysdiag.cli.settings import budgets_of_options, load_report, only_prices, settings_of_file
    from nsysdiag.document.one_line import command_of
    from nsysdiag.formats.batch.entries import summary_of
    from nsysdiag.saved import is_saved_report

    runner = _runner(scheduler, jobs, memory_limit)
    budgets = budgets_of_options(judging)
    refuse_changes(budgets)
    file = settings_of_file(judging, quiet=out.quiet)
    found = find_inputs(paths, Path(output))
    lines = Path(history) if history else None
    past = read_history(lines, Path(output)) if lines else None
    folder = _folder(output)
    check_targets(folder, found.inputs, lines, force=out.force)
    load = partial(load_report, named=judging.config is not None)
    budgets = [*budgets, *file.budgets]
    check = partial(check_budgets, budgets=budgets, unjudged_does=judging.unjudged)
    shared = Shared(folder, file.settings, load, command_of, check, force=out.force, resume=resume)
    with batch_bar(len(found.inputs), quiet=out.quiet) as watch:
        entries = entries_of(found.inputs, shared, partial(runner, watch=watch))
    saved = all(is_saved_report(each.path) for each in found.inputs)
    settings = only_prices(file.settings) if saved else file.settings
    summary = summary_of(entries, settings.changed())
    ways = {"comment": judging.comment, "report_url": judging.report_url, "annotate_findings": annotate_findings}
    _write(summary, shared, past, lines, run, ways)
    if not out.quiet:
        _show(summary)
        for line in [*found.notes, *(past.notes if past else ()), _written(summary, output)]:
            note(line)
        for budget in unused(budgets, summary.entries):
            note(f"{budget.source} is about no trace of this batch: nothing is like '{budget.trace}'")
    else:
        results = [each for entry in summary.entries for each in entry.budgets]
        unknown = [each for entry in summary.entries for each in entry.unjudged]
        say_what_mattered(file, settings, Judgement(results, unknown))
    _conclude(summary, quiet=out.quiet)


def _runner(scheduler: str | None, jobs: int | None, memory_limit: str | None) -> "Callable[..., Any]":
    """What runs the tasks, given how to `watch` them. Raises UsageError for limits of this machine with a cluster."""
    from functools import partial

    from nsysdiag.batch.pool import run_locally, run_on_cluster
    from nsysdiag.batch.task import Limits, usable_cpus
    from nsysdiag.units import parse_bytes

    if scheduler is not None and (jobs or memory_limit):
        option = "--jobs" if jobs else "--memory-limit"
        raise UsageError(
            f"--scheduler and {option} exclude each other", hint="the workers of the cluster have limits of their own"
        )
    if scheduler is not None:
        return partial(run_on_cluster, address=scheduler)
    limits = Limits(jobs or usable_cpus(), None if memory_limit is None else parse_bytes(memory_limit))
    return partial(run_locally, limits=limits)


def _folder(output: str) -> Path:
    """The folder of the reports, made if there is none; absolute, for other processes."""
    folder = Path(output).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OutputError(f"{output} is not a folder", hint="name a folder with -o DIR") from error
    except OSError as error:
        raise OutputError(f"cannot make the folder {output}: {error.strerror}") from error
    return folder


def _write(
    summary: "BatchSummary",
    shared: "Shared",
    past: "History | None",
    history: Path | None,
    run: str | None,
    ways: dict[str, Any],
) -> None:
    from nsysdiag.batch.results import append, lines_of, name_of_run, write_results
    from nsysdiag.process import now

    at = now()
    new = lines_of(summary, run or name_of_run(at), at) if past else []
    write_results(shared.folder, summary, [*past.lines, *new] if past else [], force=shared.force, **ways)
    if history:
        append(history, new)


def _show(summary: "BatchSummary") -> None:
    """The table of all traces on stdout, if that is open."""
    from nsysdiag.cli.output import for_stdout
    from nsysdiag.formats.batch.entries import render

    if sys.stdout is not None:
        emit(render(summary, for_stdout()), TEXT)


def _written(summary: "BatchSummary", output: str) -> str:
    """`wrote reports: 60 analyzed, 2 resumed, 2 failed`."""
    from collections import Counter

    counts = Counter(entry.status for entry in summary.entries)
    return f"wrote {output}: " + ", ".join(f"{counts[each]} {STATUSES[each]}" for each in STATUSES if counts[each])


def _conclude(summary: "BatchSummary", *, quiet: bool) -> None:
    """Report what failed, and which budgets are broken or cannot be judged; end with 4 if an input failed, with 2
    if a budget that fails cannot be judged, with 1 if one is broken that fails."""
    from nsysdiag.cli.output import say_broken, say_unjudged

    for entry in summary.entries:
        for budget in [each for each in entry.budgets if each.broken]:
            say_broken(budget, of=f"{entry.input}: ", to_stdout=not quiet)
        for each in entry.unjudged:
            say_unjudged(each)
        if entry.exit_code:
            complain(f"failed: {entry.input}: {entry.error}", entry.hint)
    if summary.failed:
        raise IncompleteError(f"{summary.failed} of {len(summary.entries)} inputs could not be analyzed")
    if summary.unjudged_failing:
        raise typer.Exit(UsageError.exit_code)
    if summary.broken:
        raise typer.Exit(BROKEN_BUDGET)
