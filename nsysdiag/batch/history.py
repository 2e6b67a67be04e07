"""A history of batches: a file of JSON lines, one for each device of each input of each run, that only ever grows."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from nsysdiag.ci.facts import BatchSummary, HistoryLine
from nsysdiag.limits import SAVED_BYTES
from nsysdiag.messages import OutputError, printable
from nsysdiag.record import UNREADABLE
from nsysdiag.saved import from_json
from nsysdiag.units import format_bytes

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
        raise OutputError(f"{printable(path)} is no history of nsysdiag", hint="name another file with --history")
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
    except ImportError:  # Windows, where whole lines are all that is promised
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
