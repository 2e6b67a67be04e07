"""What a saved report keeps in packed form, read back into arrays: all gaps, how far the host ran ahead,
and the level of device memory."""

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
    from nsysdiag.model_memory import DeviceMemory


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
