"""Reads saved JSON files, which are untrusted and checked before use, and all gaps of a saved report as arrays.

Records that pass can be drawn, compared and summed. Integers fit into 64 bits and are within their declared range
(`NOT_NEGATIVE` and others in fields); packed columns unpack to no more than a report of that size holds."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import msgspec
import numpy as np

from nsysdiag.arrays.groups import MOST_EXPANSION, numbers_from, running_sums
from nsysdiag.comparison.facts import COMPARISON_SCHEMA_VERSION, Comparison
from nsysdiag.comparison.facts import KIND as COMPARISON
from nsysdiag.config.settings import Settings
from nsysdiag.limits import SAVED_BYTES, SAVED_VALUES, UNPACKED_BYTES, UNPACKED_FOR_EACH
from nsysdiag.messages import InputError, printable
from nsysdiag.ranks.report import KIND as RANKS
from nsysdiag.ranks.report import RANKS_SCHEMA_VERSION, RanksReport
from nsysdiag.record import UNREADABLE, Packed, Record
from nsysdiag.replay.facts import KIND as WHATIF
from nsysdiag.replay.facts import WHATIF_SCHEMA_VERSION, WhatIf
from nsysdiag.report import SCHEMA_VERSION, Report
from nsysdiag.shortage import Attempt
from nsysdiag.trace.formats import HEAD_BYTES, begun
from nsysdiag.units import format_bytes

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.report import GapsPacked

    Unpacked = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]


WHOLE = "a saved report is read whole: give the program more memory"
Saved = TypeVar("Saved", bound=Record)
FORMER = "1"


class _Kind(NamedTuple):
    """The record of a saved document, and the schema versions that are read, today's last."""

    record: type[Record]
    versions: tuple[str, ...]


_KINDS = {
    "": _Kind(Report, (FORMER, SCHEMA_VERSION)),
    RANKS: _Kind(RanksReport, (FORMER, RANKS_SCHEMA_VERSION)),
    COMPARISON: _Kind(Comparison, (FORMER, COMPARISON_SCHEMA_VERSION)),
    WHATIF: _Kind(WhatIf, (WHATIF_SCHEMA_VERSION,)),
}
"""By subject, which is empty for one trace."""


def is_saved_report(path: Path) -> bool:
    """Whether the file starts like JSON, and is not a trace."""
    if not path.is_file():  # reading the start of a pipe would eat it
        return False
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        return head.lstrip().startswith(b"{") and begun(path, head) is None
    except OSError:
        return False  # the analysis opens it again and says what is wrong


def read_document(path: Path) -> Report | RanksReport | Comparison | WhatIf:
    """The saved document: a report of one trace or of ranks, a comparison, or a prediction. Raises InputError if it
    is none of them, or of another schema version."""
    return cast("Report | RanksReport | Comparison | WhatIf", _read(path, *_KINDS))


def read_report(path: Path) -> Report:
    """A report of one trace, saved as JSON. Raises InputError if it is none, or of another schema version."""
    return cast("Report", _read(path))


def read_side(path: Path) -> Report | WhatIf:
    """One side of a comparison: a report of one trace, or a prediction, saved as JSON. Raises InputError if it is
    neither, or of another schema version."""
    return cast("Report | WhatIf", _read(path, WHATIF))


def _read(path: Path, *subjects: str) -> Record:
    """A report of one trace, or of one of these subjects."""
    with Attempt(f"read '{printable(path)}'", WHOLE):
        data = _read_bytes(path)
        subject = _subject(data)
        if subject and subject not in subjects:
            what = "a prediction, not a report" if subject == WHATIF else f"a report of {subject}, not"
            raise InputError(f"{path} is {what} of one trace", hint="use 'nsysdiag render' to show it")
        kind, versions = _KINDS[subject]
        version = _version_of(path, data, versions)
        try:
            return from_json(as_version_2(data) if version != versions[-1] else data, kind)
        except UNREADABLE as error:
            raise InputError(
                f"{path} is a damaged nsysdiag report: {error}",
                hint="save it again with 'nsysdiag analyze TRACE -o report.json'",
            ) from error


def _subject(data: bytes) -> str:
    """What a saved report is about; empty for one trace."""

    class Kind(msgspec.Struct):
        kind: str | None = None

    try:
        return msgspec.json.decode(data, type=Kind).kind or ""
    except UNREADABLE:
        return ""


def _read_bytes(path: Path) -> bytes:
    """The whole file, which may be a pipe. Raises InputError where it is larger than any saved report, before most of
    it was read."""
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
    """The schema version of a report of ours. Raises InputError if it is none, or not one of `versions`."""

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
            hint=f"nsysdiag {head.tool.get('version', '?')} wrote it: read it with that, or analyze again",
        )
    return head.schema_version


# All gaps of a saved report, read back into arrays.


def unpack(packed: GapsPacked) -> Unpacked:
    """Start and length in ns and the index into `cause_ids` of every gap, one element each; not to be written to.

    Raises InputError if the fields contradict each other or cannot be decoded.
    """
    if packed.unpacked is not None:
        return cast("Unpacked", packed.unpacked)
    try:
        starts, lengths, causes = _unpacked(packed.count, packed.starts, packed.lengths, packed.causes)
    except ValueError as error:
        raise InputError("the packed gaps of this report cannot be read: the file is damaged") from error
    known = len(packed.cause_ids)
    if not len(starts) == len(lengths) == len(causes) == packed.count or np.any(causes >= known):
        raise InputError("the packed gaps of this report contradict each other: the file is damaged")
    return starts, lengths, causes


@lru_cache(maxsize=64)
def _unpacked(count: int, *columns: str) -> Unpacked:
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


# Reads records from JSON, which may be damaged or hostile: checks its size, numbers and packed columns.

LARGEST_FLOAT = 1e30
"""No share, rate, time or amount of money comes near it, and sums and products of some do not overflow."""


def from_json(data: bytes, kind: type[Saved]) -> Saved:
    """The record saved as JSON. Raises one of UNREADABLE if `data` is not such a record, is too large, or has
    impossible numbers or packed columns."""
    check_size(data)
    record = msgspec.json.decode(data, type=kind)
    most = UNPACKED_BYTES + UNPACKED_FOR_EACH * len(data)
    if _unpacked_within("", record) > most:
        raise msgspec.ValidationError(f"its packed columns hold more than {most:,} bytes")
    return record


def check_size(data: bytes) -> None:
    """Raise ValidationError if there is more than is read of a report."""
    if len(data) > SAVED_BYTES:
        raise msgspec.ValidationError(f"it has {len(data):,} bytes; at most {SAVED_BYTES:,} are read")
    if data.count(b",") > SAVED_VALUES:
        raise msgspec.ValidationError(f"it has more than {SAVED_VALUES:,} values")


def _unpacked_within(name: str, value: object) -> int:
    """What all packed columns in a value of the field `name` may take, in bytes; checks its numbers. The types of the
    records bound how deep it goes."""
    if isinstance(value, Record):
        own = _unpacked_bytes(value) if isinstance(value, Packed) else 0
        return own + sum(_unpacked_within(each, getattr(value, each)) for each in value.__struct_fields__)
    if isinstance(value, dict):
        return sum(_unpacked_within(name, each) for each in value.values())
    if isinstance(value, list | tuple):
        return sum(_unpacked_within(name, each) for each in value)
    if (isinstance(value, int) and not -(2**63) <= value < 2**63) or (
        isinstance(value, float) and abs(value) > LARGEST_FLOAT
    ):
        raise msgspec.ValidationError(f"the number in `{name}` is out of range")
    return 0


def _unpacked_bytes(record: Packed) -> int:
    """What the columns of a record may take. Raises ValidationError if one is too short for its count."""
    total = 0
    for column in record.columns():
        most = len(column.text) * MOST_EXPANSION
        if column.values > most:
            raise msgspec.ValidationError(f"{column.values:,} numbers are packed into {len(column.text):,} characters")
        total += min(column.values * column.width, most)
    return total


# Saved reports of older versions as today's: fields that were renamed get their new names, settings that were texts
# their values.

_NUMBERS = ("start_ns", "end_ns", "gaps", "memory_limit")
_THRESHOLDS = {
    "bubble_gap_ns": "launch_bound_gap_ns",
    "bubble_run": "launch_bound_run",
    "bubble_launches": "launch_bound_launches",
    "collapse_depth": "drain_depth",
}
_RENAMED_SINCE_1: tuple[tuple[str, dict[str, str]], ...] = (
    ("", {"untold": "not_recorded"}),
    ("not_recorded.*", {"told_by": "tool"}),
    ("host", {"beginnings": "change_points"}),
    ("devices.*.launch", {"run_ahead": "queue_depth", "bubbles": "launch_bound"}),
    (
        "devices.*.launch.queue_depth",
        {"collapse_count": "drain_count", "collapse_idle_ns": "drain_idle_ns", "collapses": "drains"},
    ),
)
"""The path of a record in a report, and its renamed fields."""
_GONE_SINCE_1: tuple[tuple[str, str], ...] = (("devices.*", "trouble"), ("settings", "trouble"))
"""The path of a record, and its removed field: the diagnosis of a device, and its settings."""


def as_version_2(data: bytes) -> bytes:
    """The JSON of a report of version 1 with the names of version 2. Raises one of UNREADABLE for what is not JSON, or
    too large."""
    check_size(data)
    report = msgspec.json.decode(data)
    for path, names in _RENAMED_SINCE_1:
        for record in _records(report, path.split(".") if path else []):
            for old, new in names.items():
                if old in record:
                    record[new] = record.pop(old)
    for path, name in _GONE_SINCE_1:
        for record in _records(report, path.split(".")):
            record.pop(name, None)
    for record in _records(report, ["devices", "*", "iterations"]):
        # How many slow iterations there are, and what they take more: of those that are listed, ten at most.
        extra = [each.get("extra_ns") for each in _records(record, ["slow", "*"])]
        if known := [each for each in extra if isinstance(each, int)]:
            record.update(slow_count=len(known), slow_extra_ns=sum(known))
    for record in _records(report, ["settings"]):
        record.update({name: _setting(name, text) for name, text in record.items() if isinstance(text, str)})
    return msgspec.json.encode(report | {"schema_version": "2"} if isinstance(report, dict) else report)


def _records(value: Any, path: list[str]) -> list[dict[str, Any]]:
    """The objects at a path, `*` for all of a list; none for values of other types."""
    if not path:
        return [value] if isinstance(value, dict) else []
    name, *rest = path
    if name == "*":
        return [found for each in value for found in _records(each, rest)] if isinstance(value, list) else []
    return _records(value.get(name), rest) if isinstance(value, dict) else []


def _setting(name: str, text: str) -> Any:
    """The value of a setting that was written as text; the text itself if it is not such a value."""
    default = getattr(Settings(), name, None)
    try:
        if isinstance(default, msgspec.Struct):
            return _struct(text)
        if isinstance(default, bool):
            return text == "True"
        if isinstance(default, tuple):
            return text.split(", ")
        if name == "iterations":
            return [int(part) if part else None for part in text.split(":")]
        return int(text) if name in _NUMBERS else text
    except ValueError:
        return text


def _struct(text: str) -> dict[str, Any]:
    """`poll_ns 20000000, hollow_activity 0.5`; prices by GPU are `gpus.H100 2.5`. Raises ValueError for other texts."""
    found: dict[str, Any] = {}
    for part in text.split(", "):
        name, _, value = part.rpartition(" ")
        name = _THRESHOLDS.get(name, name)
        inner, gpu = (found.setdefault("gpus", {}), name[5:]) if name.startswith("gpus.") else (found, name)
        inner[gpu] = value if gpu == "currency" else msgspec.json.decode(value, type=int | float)
    return found
