"""The results of a batch as a whole: the summary, and the files that are made of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator
from pathlib import Path

from nsysdiag.batch.inputs import Input
from nsysdiag.batch.journal import FILE, BatchJournal
from nsysdiag.batch.journal import is_ours as is_journal
from nsysdiag.batch.task import MARKS as REPORT_MARKS
from nsysdiag.batch.task import Outcome, Task, targets
from nsysdiag.ci.facts import BatchEntry, BatchSummary, HistoryLine
from nsysdiag.findings.rules import cause_infos
from nsysdiag.formats import json_, markdown
from nsysdiag.formats.batch.registry import OURS, write_all
from nsysdiag.formats.batch.summary import render_comment
from nsysdiag.formats.write import IsOurs, check, write
from nsysdiag.messages import OutputError, printable
from nsysdiag.record import to_json

SUMMARY, COMMENT = "summary.json", "comment.md"
MARKS: dict[str, IsOurs] = {SUMMARY: json_.is_ours, COMMENT: markdown.is_ours, FILE: is_journal, **OURS}
"""Every file of a batch as a whole, with what tells whether one that exists is ours."""
TEMPORARY = ".nsysdiag-*.tmp"
Run = Callable[[list[Task]], Generator[Outcome, None, None]]


def run_all(tasks: list[Task], run: Run, journal: BatchJournal) -> list[BatchEntry]:
    """The entries by their names. What is finished is in the journal at once, so an interruption loses only what is in
    hand; of that nothing is left behind."""
    entries: list[BatchEntry] = []
    try:
        with contextlib.closing(run(tasks)) as outcomes:
            for outcome in outcomes:
                entries.append(outcome.entry)
                if outcome.done:
                    journal.add(outcome.done)
    finally:  # files that a killed worker had begun
        folders = {(task.shared.folder / task.input.name).parent for task in tasks}
        for path in [each for folder in folders for each in folder.glob(TEMPORARY)]:
            path.unlink(missing_ok=True)
    journal.finish()
    return sorted(entries, key=lambda entry: entry.name)


def write_results(
    folder: Path,
    summary: BatchSummary,
    history: list[HistoryLine],
    *,
    force: bool,
    comment: str | None = None,
    report_url: str | None = None,
    annotate_findings: bool = False,
) -> None:
    """Write the summary and all that is made of it, with a comment of this key that links to `report_url`. Raises
    OutputError."""
    contents = {SUMMARY: to_json(summary), **further_files(summary, history, annotate_findings=annotate_findings)}
    if comment:
        contents[COMMENT] = render_comment(summary, comment, report_url)
    for name, data in contents.items():
        write(folder / name, data, force=force, is_ours=MARKS[name])


def further_files(
    summary: BatchSummary, history: list[HistoryLine], *, annotate_findings: bool = False
) -> dict[str, bytes]:
    """The pages and the files for CI, by their names within the folder."""
    return write_all(summary, history, cause_infos(), annotate_findings=annotate_findings)


def check_targets(folder: Path, inputs: list[Input], history: Path | None, *, force: bool) -> None:
    """Raise OutputError for the first file that may not be written, before any work is done: a file of another program,
    an input, or the history."""
    files = [*(folder / name for name in MARKS), *(path for each in inputs for path in targets(folder, each.name))]
    if history and os.path.realpath(history) in {os.path.realpath(path) for path in files}:
        raise OutputError(f"{printable(history)} is another file of this batch", hint="name another one with --history")
    sources = {os.path.realpath(each.path) for each in inputs}
    for name, mark in MARKS.items():
        _check_target(folder / name, sources, force=force, is_ours=mark)
    for each in inputs:
        for path, mark in zip(targets(folder, each.name), REPORT_MARKS, strict=True):
            _check_inside(path, folder)
            _check_target(path, sources, force=force, is_ours=mark)


def _check_inside(path: Path, folder: Path) -> None:
    """The reports go into the folder that was named: a link in it would lead them elsewhere."""
    for parent in path.relative_to(folder).parents:
        if parent.name and (folder / parent).is_symlink():
            raise OutputError(
                f"{printable(folder / parent)} is a symbolic link, which is never followed",
                hint="remove it, or name another folder with -o DIR",
            )


def _check_target(path: Path, sources: set[str], *, force: bool, is_ours: IsOurs) -> None:
    if os.path.realpath(path) in sources:
        raise OutputError(f"{printable(path)} is an input itself", hint="name another folder with -o DIR")
    if path.parent.is_dir():
        check(path, force=force, is_ours=is_ours)
