"""The results of a batch as a whole: the summary, and the files that are made of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nsysdiag.batch.entry import FAILED
from nsysdiag.batch.journal import Journal
from nsysdiag.batch.task import Outcome, Task
from nsysdiag.model import Tool
from nsysdiag.model_ci import BATCH_SCHEMA_VERSION, KIND, BatchEntry, BatchSummary, HistoryLine, batch_to_json
from nsysdiag.output.write import write
from nsysdiag.version import __version__

SUMMARY = "summary.json"
TEMPORARY = ".nsysdiag-*.tmp"
Run = Callable[[list[Task]], Iterator[Outcome]]


def run_all(tasks: list[Task], run: Run, journal: Journal) -> list[BatchEntry]:
    """The entries by their names. What is finished is in the journal at once, so an interruption loses only what is in
    hand; of that nothing is left behind."""
    entries: list[BatchEntry] = []
    try:
        with contextlib.closing(run(tasks)) as outcomes:  # type: ignore[type-var]
            for outcome in outcomes:
                entries.append(outcome.entry)
                if outcome.done:
                    journal.add(outcome.done)
    finally:
        _remove_halves(tasks)
    return sorted(entries, key=lambda entry: entry.name)


def _remove_halves(tasks: Iterable[Task]) -> None:
    """Files that a killed worker had begun."""
    folders = {(task.shared.folder / task.input.name).parent for task in tasks}
    for path in [each for folder in folders for each in folder.glob(TEMPORARY)]:
        path.unlink(missing_ok=True)


def summary_of(entries: list[BatchEntry]) -> BatchSummary:
    """The summary of a batch."""
    broken = [budget.level for entry in entries for budget in entry.budgets if budget.broken]
    return BatchSummary(
        schema_version=BATCH_SCHEMA_VERSION,
        kind=KIND,
        tool=Tool(name="nsysdiag", version=__version__),
        entries=entries,
        failed=sum(entry.status == FAILED for entry in entries),
        broken=broken.count("fail"),
        warned=broken.count("warn"),
    )


def write_results(folder: Path, summary: BatchSummary, history: list[HistoryLine], *, force: bool) -> list[Path]:
    """Write the summary and all that is made of it; the paths. Raises OutputError."""
    contents = {SUMMARY: batch_to_json(summary), **further_files(summary, history)}
    for name, data in contents.items():
        write(folder / name, data, force=force, is_ours=is_ours)
    return [folder / name for name in contents]


def further_files(summary: BatchSummary, history: list[HistoryLine]) -> dict[str, bytes]:
    """The pages and the files for CI, by their names within the folder."""
    return {}


def is_ours(data: bytes) -> bool:
    """Whether a file of the batch may be overwritten: all of them name the program."""
    return b"nsysdiag" in data
