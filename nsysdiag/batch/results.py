"""The results of a batch as a whole: the summary, the files that are made of it, and the history of batches.

The history is a file of JSON lines, one for each device of each input of each run, that only ever grows."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from nsysdiag.batch.inputs import Input
from nsysdiag.batch.task import JOURNAL, BatchJournal, Outcome, Shared, Task, is_journal, targets
from nsysdiag.batch.task import MARKS as REPORT_MARKS
from nsysdiag.ci.facts import BatchEntry, BatchSummary, HistoryLine
from nsysdiag.findings.rules import cause_infos
from nsysdiag.formats import IsOurs, check, is_json, prose, write
from nsysdiag.formats.batch import ci
from nsysdiag.formats.batch.summary import render_comment, render_markdown, render_page, render_trend
from nsysdiag.formats.html import page
from nsysdiag.limits import SAVED_BYTES
from nsysdiag.messages import OutputError, printable
from nsysdiag.record import UNREADABLE, to_json
from nsysdiag.report import CauseInfo
from nsysdiag.saved import from_json
from nsysdiag.units import format_bytes

SUMMARY, COMMENT = "summary.json", "comment.md"
OURS: dict[str, IsOurs] = {
    "index.html": page.is_ours,
    "trend.html": page.is_ours,
    "summary.md": prose.is_markdown,
    "junit.xml": ci.is_junit,
    "nsysdiag.sarif": ci.is_sarif,
    "github.txt": prose.is_text,
}
"""Every file that a batch may have, with what tells whether the content of an existing one was written by us."""
MARKS: dict[str, IsOurs] = {SUMMARY: is_json, COMMENT: prose.is_markdown, JOURNAL: is_journal, **OURS}
"""Every file of a batch as a whole, with what tells whether one that exists is ours."""
TEMPORARY = ".nsysdiag-*.tmp"
Run = Callable[[list[Task]], Generator[Outcome, None, None]]


def entries_of(inputs: Sequence[Input], shared: Shared, run: Run) -> list[BatchEntry]:
    """The entries of all inputs by their names; what an earlier batch finished is kept if the batch resumes."""
    journal = BatchJournal(shared.folder)
    before = journal.read() if shared.resume else {}
    journal.begin(before.values(), force=shared.force)
    return run_all([Task(each, shared, before.get(each.name)) for each in inputs], run, journal)


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
    contents = {
        SUMMARY: to_json(summary),
        **write_all(summary, history, cause_infos(), annotate_findings=annotate_findings),
    }
    if comment:
        contents[COMMENT] = render_comment(summary, comment, report_url)
    for name, data in contents.items():
        write(folder / name, data, force=force, is_ours=MARKS[name])


def write_all(
    summary: BatchSummary,
    history: Sequence[HistoryLine],
    causes: Sequence[CauseInfo] = (),
    *,
    annotate_findings: bool = False,
) -> dict[str, bytes]:
    """The content of every file by its name. `history` are the runs of all devices, this one among them; without it
    there is no trend. `causes` gives causes their titles and colours; missing ones are shown by id."""
    return {
        "index.html": render_page(summary, history),
        **({"trend.html": render_trend(summary, history, causes)} if history else {}),
        "summary.md": render_markdown(summary),
        "junit.xml": ci.render_junit(summary),
        "nsysdiag.sarif": ci.render_sarif(summary, causes),
        "github.txt": ci.render_github(summary, findings=annotate_findings),
    }


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


# A history of batches: a file of JSON lines, one for each device of each input of each run, that only ever grows.

COMMIT_VARIABLES = ("GITHUB_SHA", "CI_COMMIT_SHA")


class History(msgspec.Struct, frozen=True):
    """The lines that can be read, and what is wrong with the others."""

    lines: list[HistoryLine]
    notes: list[str]


def name_of_run(at: int, environment: Mapping[str, str] = os.environ) -> str:
    """The commit that CI is at, else the UTC time."""
    commit = next((environment[each] for each in COMMIT_VARIABLES if environment.get(each)), None)
    return commit or datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_history(path: Path, folder: Path) -> History:
    """The lines of the file; none if it does not exist.

    `folder` is that of the reports, which need not exist yet. Raises OutputError if the file cannot be read or written,
    or if it has lines but none of nsysdiag: then it is another file.
    """
    try:
        if path.stat().st_size > SAVED_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {format_bytes(SAVED_BYTES)}")
        data = path.read_bytes()
    except FileNotFoundError as error:
        known = path.parent.is_dir()
        if not known and path.parent.absolute() != folder.absolute():
            raise OutputError(f"cannot write {printable(path)}: there is no folder {printable(path.parent)}") from error
        _require_writable(path, path.parent if known else None)
        return History([], [])
    except OSError as error:
        raise OutputError(f"cannot read the history {printable(path)}: {error.strerror}") from error
    _require_writable(path, path)
    texts = data.split(b"\n")
    parsed = [(number, text, _line(text)) for number, text in enumerate(texts, 1) if text.strip()]
    lines = [line for _, _, line in parsed if line]
    if parsed and not lines:
        raise OutputError(f"{printable(path)} is not a history of nsysdiag", hint="name another file with --history")
    damaged = [number for number, _, line in parsed if line is None]
    notes = [
        f"line {number} of {printable(path)} {'was not written to its end' if number == len(texts) else 'is damaged'}; "
        "it is left as it is"
        for number in damaged
    ]
    return History(lines, notes)


def _require_writable(path: Path, place: Path | None) -> None:
    """Raise OutputError now rather than after hours of work. None is a folder that is still to be made."""
    if place is not None and not os.access(place, os.W_OK):
        raise OutputError(f"cannot write the history {printable(path)}: permission denied")


def _line(text: bytes) -> HistoryLine | None:
    try:
        return from_json(text, HistoryLine)
    except UNREADABLE:
        return None


def lines_of(summary: BatchSummary, run: str, at: int) -> list[HistoryLine]:
    """The lines of a batch, for what has a report."""
    return [
        HistoryLine(
            at=at,
            run=run,
            input=entry.input,
            device=device.key,
            window_ns=device.window_ns,
            busy_ns=device.busy_ns,
            idle_ns=device.idle_ns,
            compute_ns=device.compute_ns,
            exposed_comm_ns=device.exposed_comm_ns,
            exposed_copy_ns=device.exposed_copy_ns,
            iteration_ns=device.iteration_ns,
            causes=dict(device.causes),
            broken=sum(each.level == "fail" and each.broken_on(device.key) for each in entry.budgets),
            state=device.state,
        )
        for entry in summary.entries
        for device in entry.devices
    ]


def append(path: Path, lines: list[HistoryLine]) -> None:
    """Add lines, all of them or none; a last line without an end gets one first, and stays. Raises OutputError."""
    if not lines:
        return
    data = b"".join(msgspec.json.encode(line, order="sorted") + b"\n" for line in lines)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _append(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OutputError(f"cannot write the history {printable(path)}: {error.strerror}") from error


def _append(descriptor: int, data: bytes) -> None:
    """Jobs that end together write after each other: the lock goes with the file's descriptor."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except ImportError:  # on Windows whole lines are all that is promised
        pass
    size = os.fstat(descriptor).st_size
    os.lseek(descriptor, max(size - 1, 0), os.SEEK_SET)
    unfinished = size > 0 and os.read(descriptor, 1) != b"\n"
    whole = b"\n" + data if unfinished else data
    try:
        if os.write(descriptor, whole) != len(whole):  # the disk is full
            raise OSError(errno.ENOSPC, "no space left on the device")
        os.fsync(descriptor)
    except BaseException:
        os.ftruncate(descriptor, size)
        raise
