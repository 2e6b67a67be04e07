"""Reads saved JSON files, which are untrusted and checked before use, and all gaps of a saved report as arrays."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from nsysdiag.arrays.groups import numbers_from, running_sums
from nsysdiag.messages import InputError, printable
from nsysdiag.shortage import Attempt
from nsysdiag.trace.formats import HEAD_BYTES, begun

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.ranks.report import RanksReport
    from nsysdiag.record import Record
    from nsysdiag.replay.facts import WhatIf
    from nsysdiag.report import GapsPacked, Report


WHOLE = "a saved report is read whole: give the program more memory"
Saved = TypeVar("Saved", bound="Record")


def is_saved_report(path: Path) -> bool:
    """Whether the file starts like JSON, and is no trace."""
    if not path.is_file():  # reading the start of a pipe would eat it
        return False
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        return head.lstrip().startswith(b"{") and begun(path, head) is None
    except OSError:
        return False  # the analysis opens it again and says what is wrong


def read_document(path: Path) -> Report | RanksReport | Comparison | WhatIf:
    """The saved document: a report of one trace or of ranks, a comparison, or a prediction. Raises InputError where it
    is none of them, or of another schema version."""
    from nsysdiag.comparison import facts as comparison
    from nsysdiag.ranks import report as ranks
    from nsysdiag.replay import facts as replay
    from nsysdiag.saved.older import FORMER

    with Attempt(f"read '{printable(path)}'", WHOLE):
        data = _read_bytes(path)
        kind = _kind(data)
        if kind == ranks.KIND:
            return _decoded(path, data, (FORMER, ranks.RANKS_SCHEMA_VERSION), ranks.RanksReport)
        if kind == comparison.KIND:
            return _decoded(path, data, (FORMER, comparison.COMPARISON_SCHEMA_VERSION), comparison.Comparison)
        if kind == replay.KIND:
            return _decoded(path, data, (replay.WHATIF_SCHEMA_VERSION,), replay.WhatIf)
        return _report(path, data)


def read_report(path: Path) -> Report:
    """A report of one trace, saved as JSON. Raises InputError where it is none, or of another schema version."""
    with Attempt(f"read '{printable(path)}'", WHOLE):
        return _report(path, _read_bytes(path))


def read_side(path: Path) -> Report | WhatIf:
    """One side of a comparison: a report of one trace, or a prediction, saved as JSON. Raises InputError where it is
    neither, or of another schema version."""
    from nsysdiag.replay import facts as replay

    with Attempt(f"read '{printable(path)}'", WHOLE):
        data = _read_bytes(path)
        if _kind(data) == replay.KIND:
            return _decoded(path, data, (replay.WHATIF_SCHEMA_VERSION,), replay.WhatIf)
        return _report(path, data)


def _report(path: Path, data: bytes) -> Report:
    from nsysdiag.report import SCHEMA_VERSION, Report
    from nsysdiag.saved.older import FORMER

    if kind := _kind(data):
        what = "a prediction, not a report" if kind == "whatif" else f"a report of {kind}, not"
        raise InputError(f"{path} is {what} of one trace", hint="use 'nsysdiag render' to show it")
    return _decoded(path, data, (FORMER, SCHEMA_VERSION), Report)


def _kind(data: bytes) -> str | None:
    """Subjects of saved reports that are not of one trace."""
    import msgspec

    from nsysdiag.record import UNREADABLE

    class Kind(msgspec.Struct):
        kind: str | None = None

    try:
        return msgspec.json.decode(data, type=Kind).kind
    except UNREADABLE:
        return None


def _decoded(path: Path, data: bytes, versions: tuple[str, ...], kind: type[Saved]) -> Saved:
    """The record. Raises InputError where it is not ours, of no schema version that is read, or damaged."""
    from nsysdiag.record import UNREADABLE
    from nsysdiag.saved import from_json
    from nsysdiag.saved.older import as_version_2

    version = _version_of(path, data, versions)
    try:
        return from_json(as_version_2(data) if version != versions[-1] else data, kind)
    except UNREADABLE as error:
        raise InputError(
            f"{path} is a damaged nsysdiag report: {error}",
            hint="save it again with 'nsysdiag analyze TRACE -o report.json'",
        ) from error


def _read_bytes(path: Path) -> bytes:
    """The whole file, which may be a pipe. Raises InputError where it is larger than any saved report, before most of
    it was read."""
    from nsysdiag.limits import SAVED_BYTES
    from nsysdiag.units import format_bytes

    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size or SAVED_BYTES  # that of a pipe is 0
            data = file.read(min(size, SAVED_BYTES) + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", hint="check the path and the disk") from error
    if len(data) > SAVED_BYTES:
        raise InputError(
            f"{path} is larger than {format_bytes(SAVED_BYTES)}, the largest saved report that is read",
            hint="save it again with fewer --gaps: 'nsysdiag analyze TRACE -o report.json'",
        )
    return data


def _version_of(path: Path, data: bytes, versions: tuple[str, ...]) -> str:
    """The schema version of a report of ours. Raises InputError where it is none, or not one of `versions`."""
    import msgspec

    from nsysdiag.record import UNREADABLE

    class Head(msgspec.Struct):
        schema_version: str
        tool: dict[str, str]

    hint = "save one with 'nsysdiag analyze TRACE -o report.json'"
    try:
        head = msgspec.json.decode(data, type=Head)
    except UNREADABLE as error:
        raise InputError(f"{path} is not a nsysdiag report: {error}", hint=hint) from error
    if head.tool.get("name") != "nsysdiag":
        raise InputError(f"{path} is JSON, but not a nsysdiag report", hint=hint)
    if head.schema_version not in versions:
        raise InputError(
            f"{path} has schema version {head.schema_version}; this nsysdiag reads {' and '.join(versions)}",
            hint=f"nsysdiag {head.tool.get('version', '?')} wrote it: read it with that, or analyse again",
        )
    return head.schema_version


# All gaps of a saved report, read back into arrays.


def unpack(packed: GapsPacked) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Start and length in ns and the index into `cause_ids` of every gap, one element each; not to be written to.

    Raises InputError where the fields contradict each other or cannot be decoded.
    """
    try:
        starts, lengths, causes = _unpacked(packed.count, packed.starts, packed.lengths, packed.causes)
    except ValueError as error:
        raise InputError("the packed gaps of this report cannot be read: the file is damaged") from error
    known = len(packed.cause_ids)
    if not len(starts) == len(lengths) == len(causes) == packed.count or np.any(causes >= known):
        raise InputError("the packed gaps of this report contradict each other: the file is damaged")
    return starts, lengths, causes


@lru_cache(maxsize=4)
def _unpacked(count: int, *columns: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Kept for the next section of a page that draws the same gaps."""
    starts, lengths, causes = (
        numbers_from(text, kind, count) for text, kind in zip(columns, ("<i8", "<i8", "u1"), strict=True)
    )
    starts = running_sums(starts)
    if len(lengths) and int(lengths.min()) < 0:
        raise ValueError("a gap of negative length")
    running_sums(lengths)
    for each in (starts, lengths, causes):
        each.flags.writeable = False
    return starts, lengths, causes
