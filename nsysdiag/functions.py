"""What the commands `info`, `bundle`, `batch`, `baseline` and `demo` do, and budgets, as functions."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from nsysdiag.baselines import add, folder_of, held_in
from nsysdiag.batch.inputs import find_inputs
from nsysdiag.batch.pool import run_locally
from nsysdiag.batch.results import check_targets, entries_of, write_results
from nsysdiag.batch.task import Limits, Shared, check_budgets, usable_cpus
from nsysdiag.ci.budgets import check, parse_budgets, refuse_changes
from nsysdiag.ci.facts import FAIL, BatchSummary, BudgetResult
from nsysdiag.config.settings import BaselineSettings, Settings
from nsysdiag.document.one_line import command_of
from nsysdiag.formats import write
from nsysdiag.formats.batch.entries import summary_of
from nsysdiag.messages import OutputError
from nsysdiag.pipeline.loading import analyze
from nsysdiag.process import make_folder
from nsysdiag.share.bundle import bundle_of
from nsysdiag.share.bundle import is_ours as is_bundle
from nsysdiag.trace.capabilities import TraceFacts, gather
from nsysdiag.trace.trace import open_trace

if TYPE_CHECKING:
    from nsysdiag.report import Report

AnyPath = str | os.PathLike[str]
BASELINES = Path(".nsysdiag", "baselines")
DEMO, BEFORE_AND_AFTER = "demo.sqlite", ("train.sqlite", "fixed.sqlite")


def info(trace: AnyPath) -> TraceFacts:
    """What a trace holds, and what it lacks, without an analysis. Raises InputError."""
    with open_trace(trace) as opened:
        return gather(opened)


def check_report(report: Report, *budgets: str) -> list[BudgetResult]:
    """What becomes of budgets, as `idle_share > 20%`: a result for each device that it is about; `broken` if it is
    true. Raises UsageError for what is not a budget, and for one on something that the trace cannot tell."""
    parsed = parse_budgets(budgets, FAIL, "check_report")
    return check(report, parsed, report.trace.file)


def bundle(
    trace: AnyPath, output: AnyPath, settings: Settings | None = None, *, redact: bool = False, force: bool = False
) -> Path:
    """Write a zip for a ticket: the report, a summary, findings, and a slice of the trace. With `redact` it holds no
    names. Raises OutputError for a file that nsysdiag did not write and that needs `force`."""
    target = Path(os.fsdecode(output))
    made = bundle_of(trace, settings or Settings(), redact=redact)
    write(target, made.data, force=force, is_ours=is_bundle)
    return target


def analyze_batch(
    paths: Sequence[AnyPath],
    output: AnyPath,
    settings: Settings | None = None,
    *,
    budgets: Sequence[str] = (),
    jobs: int | None = None,
    force: bool = False,
) -> BatchSummary:
    """Write a page and a saved report for each trace below `paths`, and a summary of all, into the folder `output`.

    Each is analyzed in a process of its own, `jobs` at a time: as many as there are CPUs, unless said. Traces that
    cannot be analyzed are in the summary with their error. Raises UsageError if no trace is found, OutputError for
    files that nsysdiag did not write and that need `force`.
    """
    folder, chosen = Path(os.fsdecode(output)).absolute(), settings or Settings()
    parsed = parse_budgets(budgets, FAIL, "analyze_batch")
    refuse_changes(parsed)
    found = find_inputs([os.fsdecode(each) for each in paths], folder)
    make_folder(folder)
    check_targets(folder, found.inputs, None, force=force)
    judging = partial(check_budgets, budgets=parsed)
    shared = Shared(folder, chosen, _loaded, command_of, judging, force=force)
    limits = Limits(jobs or usable_cpus(), None)
    run = partial(run_locally, limits=limits, watch=lambda _left, _running: None)
    summary = summary_of(entries_of(found.inputs, shared, run), chosen.changed())
    write_results(folder, summary, [], force=force)
    return summary


def _loaded(path: Path, settings: Settings) -> Report:
    """For other processes, which find this function by its name."""
    return analyze(path, settings)


def add_to_baseline(
    name: str, *reports: Report, folder: AnyPath = BASELINES, keep: int = BaselineSettings().runs
) -> list[Path]:
    """Save reports as runs of a baseline, which keeps the last ones. A trace that is a run already is not added again.
    Returns the new files."""
    return add(folder_of(Path(os.fsdecode(folder)), name), reports, keep)[0]


def baseline(name: str, folder: AnyPath = BASELINES) -> list[Report]:
    """The reports of the runs of a baseline, the oldest first: a side for `compare`."""
    return [report for _, report in held_in(folder_of(Path(os.fsdecode(folder)), name)).runs]


def demo_trace(output: AnyPath = DEMO) -> Path:
    """Write the trace of `nsysdiag demo` to a file, unless it is there, and return its path. Raises OutputError for
    another file of this name."""
    return _unpacked(DEMO, Path(os.fsdecode(output)))


def demo_traces(folder: AnyPath) -> list[Path]:
    """Write the traces of the demo, and those of a simulated training before and after its fix, into a folder."""
    target = Path(os.fsdecode(folder))
    make_folder(target)
    return [_unpacked(name, target / name) for name in (DEMO, *BEFORE_AND_AFTER)]


def _unpacked(name: str, target: Path) -> Path:
    data = gzip.decompress(bundled_trace(name))
    if target.exists() and target.read_bytes() != data:
        raise OutputError(f"'{target}' is another file", hint="choose another name")
    target.write_bytes(data)
    return target


def bundled_trace(name: str = DEMO) -> bytes:
    """A gzipped trace that ships inside the package."""
    return files("nsysdiag").joinpath("data", f"{name}.gz").read_bytes()
