"""What a saved report keeps in packed form, read back into arrays: all gaps, the host's lead, timelines, metrics and
the level of device memory."""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.model import GapsPacked, RunAhead
    from nsysdiag.model_gpu_metrics import GpuMetric, GpuMetrics
    from nsysdiag.model_memory import DeviceMemory
    from nsysdiag.model_timeline import TimelineLevels

LANES = ("compute", "communication", "copies", "idle")


@dataclass(frozen=True, slots=True)
class Series:
    """The depth in buckets: `edges` in ns has one element more than the others; the mean is a fraction."""

    edges: npt.NDArray[np.int64]
    lowest: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float64]
    highest: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Level:
    """Bytes given out, in buckets: `edges` in ns has one element more than the others."""

    edges: npt.NDArray[np.int64]
    lowest: npt.NDArray[np.int64]
    highest: npt.NDArray[np.int64]


def unpack_level(memory: DeviceMemory) -> Level:
    """The level of one device. Raises InputError where it cannot be decoded or is not as long as it says."""
    try:
        columns = [_array(text, "<i8") for text in (memory.lowest, memory.highest)]
    except (binascii.Error, zlib.error, ValueError) as error:
        raise InputError("the packed memory of this report cannot be read: the file is damaged") from error
    if memory.buckets < 1 or any(len(column) != memory.buckets for column in columns):
        raise InputError("the packed memory of this report contradicts itself: the file is damaged")
    span = memory.end_ns - memory.start_ns
    edges = np.array([memory.start_ns + span * at // memory.buckets for at in range(memory.buckets + 1)])
    return Level(edges, *columns)


def unpack_series(packed: RunAhead) -> Series:
    """The series of one device. Raises InputError where it cannot be decoded or is not as long as it says."""
    try:
        columns = [_array(text, "<i8") for text in (packed.lowest, packed.mean_thousandths, packed.highest)]
    except (binascii.Error, zlib.error, ValueError) as error:
        raise InputError("the packed run-ahead of this report cannot be read: the file is damaged") from error
    if packed.buckets < 1 or any(len(column) != packed.buckets for column in columns):
        raise InputError("the packed run-ahead of this report contradicts itself: the file is damaged")
    span = packed.end_ns - packed.start_ns
    edges = np.array([packed.start_ns + span * at // packed.buckets for at in range(packed.buckets + 1)])
    return Series(edges, columns[0], columns[1] / 1000, columns[2])


def unpack_metric(found: GpuMetrics, row: GpuMetric) -> npt.NDArray[np.float64]:
    """The mean of each bucket: shares from 0 to 1, or Hz; NaN where nothing was sampled. Raises InputError where it
    cannot be decoded or is not as long as it should be."""
    try:
        values = _array(row.series, "<i2")
    except (binascii.Error, zlib.error, ValueError) as error:
        raise InputError("the packed GPU metrics of this report cannot be read: the file is damaged") from error
    if found.buckets < 1 or len(values) != found.buckets:
        raise InputError("the packed GPU metrics of this report contradict themselves: the file is damaged")
    return np.where(values < 0, np.nan, values * 1e6 if row.unit == "Hz" else values / 1000)


def unpack(packed: GapsPacked) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Start and length in ns and the index into `cause_ids` of every gap, one element each.

    Raises InputError where the fields contradict each other or cannot be decoded.
    """
    try:
        starts = np.cumsum(_array(packed.starts, "<i8"), dtype=np.int64)
        lengths = _array(packed.lengths, "<i8")
        causes = _array(packed.causes, "u1")
    except (binascii.Error, zlib.error, ValueError) as error:
        raise InputError("the packed gaps of this report cannot be read: the file is damaged") from error
    known = len(packed.cause_ids)
    if not len(starts) == len(lengths) == len(causes) == packed.count or np.any(causes >= known):
        raise InputError("the packed gaps of this report contradict each other: the file is damaged")
    return starts, lengths, causes


def _array(text: str, kind: str) -> npt.NDArray[np.int64]:
    return np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), dtype=kind).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Lanes:
    """A timeline in buckets: `edges` in ns has one element more than each lane; a lane is 0 to 255 for none to all."""

    edges: list[int]
    lanes: dict[str, npt.NDArray[np.int64]]


def unpack_lanes(timeline: TimelineLevels, most: int) -> Lanes | None:
    """The finest level of at most so many buckets, None where there is none. Raises InputError where it is damaged."""
    level = max(
        (each for each in timeline.levels if 0 < each.buckets <= most), key=lambda each: each.buckets, default=None
    )
    if level is None:
        return None
    packed = {name: getattr(level, name) for name in LANES}
    try:
        lanes = {name: _array(text, "u1") for name, text in packed.items()}
    except (binascii.Error, zlib.error, ValueError) as error:
        raise InputError("the packed timeline of this report cannot be read: the file is damaged") from error
    if any(len(lane) != level.buckets for lane in lanes.values()):
        raise InputError("the packed timeline of this report contradicts itself: the file is damaged")
    span = timeline.end_ns - timeline.start_ns
    return Lanes([timeline.start_ns + span * at // level.buckets for at in range(level.buckets + 1)], lanes)
