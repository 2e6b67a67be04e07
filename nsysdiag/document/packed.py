"""What a saved report keeps in packed form, read back into arrays: the places of gaps, the host's lead, timelines,
metrics and the level of device memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.groups import from_planes, from_text, numbers_from
from nsysdiag.arrays.intervals import IntArray, equal_edges
from nsysdiag.document.words import path_label
from nsysdiag.limits import PLACES_CHARACTERS
from nsysdiag.messages import InputError
from nsysdiag.time.facts import NameColumn, width_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.counters.facts import GpuMetric, GpuMetrics
    from nsysdiag.launches.facts import QueueDepth
    from nsysdiag.memory.facts import DeviceMemory
    from nsysdiag.report import GapsPacked
    from nsysdiag.timeline.facts import TimelineLevel


LANES = ("compute", "communication", "copies", "idle")


class MemoryBuckets(Struct, frozen=True):
    """Bytes given out, in buckets: `edges` in ns has one element more than the others."""

    edges: IntArray
    lowest: IntArray
    highest: IntArray


class QueueBuckets(MemoryBuckets, frozen=True):
    """The same of the number of outstanding operations, whose mean is a fraction."""

    mean: npt.NDArray[np.float64]


def unpack_level(memory: DeviceMemory) -> MemoryBuckets:
    """The level of one device. Raises InputError if it cannot be decoded or is not as long as it says."""
    lowest, highest = _columns("memory", "<i8", memory.buckets, memory.lowest, memory.highest)
    return MemoryBuckets(equal_edges(memory.start_ns, memory.end_ns, memory.buckets), lowest, highest)


def unpack_series(packed: QueueDepth) -> QueueBuckets:
    """The series of one device. Raises InputError if it cannot be decoded or is not as long as it says."""
    texts = (packed.lowest, packed.mean_thousandths, packed.highest)
    lowest, mean, highest = _columns("run-ahead", "<i8", packed.buckets, *texts)
    return QueueBuckets(equal_edges(packed.start_ns, packed.end_ns, packed.buckets), lowest, highest, mean / 1000)


def unpack_metric(found: GpuMetrics, row: GpuMetric) -> npt.NDArray[np.float64]:
    """The mean of each bucket: shares from 0 to 1, or Hz; NaN if nothing was sampled. Raises InputError if it cannot be
    decoded or is not as long as it should be."""
    (values,) = _columns("GPU metrics", "<i2", found.buckets, row.series)
    return np.where(values < 0, np.nan, values * 1e6 if row.unit == "Hz" else values / 1000)


def unpack_lanes(level: TimelineLevel, names: Sequence[str] = (*LANES, "cause")) -> dict[str, IntArray]:
    """The shares of each bucket by lane, 0 to FULL for none to all, and the place of its `cause`; of these `names`
    alone. Raises InputError if one is damaged."""
    texts = (getattr(level, name) for name in names)
    return dict(zip(names, _columns("timeline", "u1", level.buckets, *texts), strict=True))


def _columns(what: str, kind: str, count: int, *texts: str) -> list[IntArray]:
    """The `count` numbers of each text, which are stored as `kind`."""
    try:
        columns = [numbers_from(text, kind, count) for text in texts]
    except ValueError as error:
        raise InputError(f"the packed {what} of this report cannot be read: the file is damaged") from error
    if count < 1 or any(len(column) != count for column in columns):
        contradicts = "contradict themselves" if what.endswith("s") else "contradicts itself"
        raise InputError(f"the packed {what} of this report {contradicts}: the file is damaged")
    return columns


# Reads the packed places of all gaps of a saved report: the operations on both sides and the NVTX path.


class UnpackedPlaces(Struct, frozen=True):
    """Of every gap of a device the operation before it, the one that ends it, and the label of its NVTX path."""

    previous_op: NameColumn
    next_op: NameColumn
    nvtx: NameColumn


def unknown(count: int) -> NameColumn:
    """The names of so many gaps if none is known."""
    return NameColumn(np.full(count, -1, dtype=np.int64), [])


def unpack_places(packed: GapsPacked) -> UnpackedPlaces:
    """The places of all gaps, unknown if the report holds none. Raises InputError if the fields contradict each
    other or cannot be decoded."""
    places, count = packed.places, packed.count
    if places is None:
        return UnpackedPlaces(*[unknown(count)] * 3)
    try:
        if places.count != count:
            raise ValueError("places of other gaps")
        labels = _labels(
            _codes(places.path_lengths, places.paths, 256),
            _codes(places.path_ranges, places.elements, len(places.ranges)),
            places.ranges,
        )
        previous, following = (
            NameColumn(_codes(text, count, len(places.operations)), places.operations) if text else unknown(count)
            for text in (places.previous_op, places.next_op)
        )
        path = _codes(places.nvtx, count, places.paths + 1) if places.nvtx else np.zeros(count, dtype=np.int64)
    except ValueError as error:
        raise InputError("the packed places of gaps of this report cannot be read: the file is damaged") from error
    return UnpackedPlaces(previous, following, NameColumn(path - 1, labels))


def _codes(text: str, count: int, numbers: int) -> IntArray:
    """So many numbers, each below `numbers`. Raises ValueError if they are not."""
    data = from_text(text, count * width_of(numbers)) if text else b""
    codes = from_planes(data, count)
    if len(codes) and int(codes.max()) >= numbers:
        raise ValueError("a number of nothing")
    return codes


def _labels(lengths: IntArray, elements: IntArray, ranges: list[str]) -> list[str]:
    """A label for each path. Raises ValueError if the lengths do not fit, or all are longer than any we write."""
    ends = np.cumsum(lengths)
    if int(lengths.sum()) != len(elements):
        raise ValueError("paths of other lengths")
    characters = np.array([len(name) for name in ranges], dtype=np.int64)
    if int(characters[elements].sum()) > PLACES_CHARACTERS:
        raise ValueError("paths without end")
    names = [ranges[at] for at in elements.tolist()]
    return [path_label(names[end - length : end]) for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]
