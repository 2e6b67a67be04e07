"""What a saved report keeps in packed form, read back into arrays: the places of gaps, the host's lead, timelines,
metrics and the level of device memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.groups import from_planes, from_text, numbers_from
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
    from nsysdiag.timeline.facts import TimelineLevels

    Codes = npt.NDArray[np.int64]


LANES = ("compute", "communication", "copies", "idle")
FULL = 255
"""What a lane holds for all of a bucket."""


class QueueBuckets(Struct, frozen=True):
    """The depth in buckets: `edges` in ns has one element more than the others; the mean is a fraction."""

    edges: npt.NDArray[np.int64]
    lowest: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float64]
    highest: npt.NDArray[np.int64]


class MemoryBuckets(Struct, frozen=True):
    """Bytes given out, in buckets: `edges` in ns has one element more than the others."""

    edges: npt.NDArray[np.int64]
    lowest: npt.NDArray[np.int64]
    highest: npt.NDArray[np.int64]


def unpack_level(memory: DeviceMemory) -> MemoryBuckets:
    """The level of one device. Raises InputError where it cannot be decoded or is not as long as it says."""
    edges, (lowest, highest) = _buckets("memory", memory, (memory.lowest, memory.highest))
    return MemoryBuckets(edges, lowest, highest)


def unpack_series(packed: QueueDepth) -> QueueBuckets:
    """The series of one device. Raises InputError where it cannot be decoded or is not as long as it says."""
    texts = (packed.lowest, packed.mean_thousandths, packed.highest)
    edges, (lowest, mean, highest) = _buckets("run-ahead", packed, texts)
    return QueueBuckets(edges, lowest, mean / 1000, highest)


def _buckets(
    what: str, packed: DeviceMemory | QueueDepth, texts: tuple[str, ...]
) -> tuple[npt.NDArray[np.int64], list[npt.NDArray[np.int64]]]:
    """The edges of the buckets, and a column for each of `texts`."""
    try:
        columns = [numbers_from(text, "<i8", packed.buckets) for text in texts]
    except ValueError as error:
        raise InputError(f"the packed {what} of this report cannot be read: the file is damaged") from error
    if packed.buckets < 1 or any(len(column) != packed.buckets for column in columns):
        raise InputError(f"the packed {what} of this report contradicts itself: the file is damaged")
    span = packed.end_ns - packed.start_ns
    edges = np.array([packed.start_ns + span * at // packed.buckets for at in range(packed.buckets + 1)])
    return edges, columns


def unpack_metric(found: GpuMetrics, row: GpuMetric) -> npt.NDArray[np.float64]:
    """The mean of each bucket: shares from 0 to 1, or Hz; NaN where nothing was sampled. Raises InputError where it
    cannot be decoded or is not as long as it should be."""
    try:
        values = numbers_from(row.series, "<i2", found.buckets)
    except ValueError as error:
        raise InputError("the packed GPU metrics of this report cannot be read: the file is damaged") from error
    if found.buckets < 1 or len(values) != found.buckets:
        raise InputError("the packed GPU metrics of this report contradict themselves: the file is damaged")
    return np.where(values < 0, np.nan, values * 1e6 if row.unit == "Hz" else values / 1000)


class TimelineBuckets(Struct, frozen=True):
    """A timeline in buckets: `edges` in ns has one element more than each lane; a lane is 0 to FULL for none to all."""

    edges: list[int]
    lanes: dict[str, npt.NDArray[np.int64]]


def unpack_lanes(timeline: TimelineLevels, most: int) -> TimelineBuckets | None:
    """The finest level of at most so many buckets, None where there is none. Raises InputError where it is damaged."""
    level = max(
        (each for each in timeline.levels if 0 < each.buckets <= most), key=lambda each: each.buckets, default=None
    )
    if level is None:
        return None
    packed = {name: getattr(level, name) for name in LANES}
    try:
        lanes = {name: numbers_from(text, "u1", level.buckets) for name, text in packed.items()}
    except ValueError as error:
        raise InputError("the packed timeline of this report cannot be read: the file is damaged") from error
    if any(len(lane) != level.buckets for lane in lanes.values()):
        raise InputError("the packed timeline of this report contradicts itself: the file is damaged")
    span = timeline.end_ns - timeline.start_ns
    return TimelineBuckets([timeline.start_ns + span * at // level.buckets for at in range(level.buckets + 1)], lanes)


# Reads the packed places of all gaps of a saved report: the operations on both sides and the NVTX path.


class UnpackedPlaces(Struct, frozen=True):
    """Of every gap of a device the operation before it, the one that ends it, and the label of its NVTX path."""

    previous_op: NameColumn
    next_op: NameColumn
    nvtx: NameColumn


def unknown(count: int) -> NameColumn:
    """The names of so many gaps where none is known."""
    return NameColumn(np.full(count, -1, dtype=np.int64), [])


def unpack_places(packed: GapsPacked) -> UnpackedPlaces:
    """The places of all gaps, unknown where the report holds none. Raises InputError where the fields contradict each
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


def _codes(text: str, count: int, numbers: int) -> Codes:
    """So many numbers, each below `numbers`. Raises ValueError where they are not."""
    data = from_text(text, count * width_of(numbers)) if text else b""
    codes = from_planes(data, count)
    if len(codes) and int(codes.max()) >= numbers:
        raise ValueError("a number of nothing")
    return codes


def _labels(lengths: Codes, elements: Codes, ranges: list[str]) -> list[str]:
    """A label for each path. Raises ValueError where the lengths do not fit, or all are longer than any we write."""
    ends = np.cumsum(lengths)
    if int(lengths.sum()) != len(elements):
        raise ValueError("paths of other lengths")
    characters = np.array([len(name) for name in ranges], dtype=np.int64)
    if int(characters[elements].sum()) > PLACES_CHARACTERS:
        raise ValueError("paths without end")
    names = [ranges[at] for at in elements.tolist()]
    return [path_label(names[end - length : end]) for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)]
