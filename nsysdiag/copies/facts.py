"""Copies by kind as plain data."""

from __future__ import annotations

from typing import Annotated

from nsysdiag.fields import ZERO_IF_NONE, Bytes, BytesPerSecond, OwnText, Share, TotalBytes, TotalCount, TotalNs
from nsysdiag.memory.facts import CopyRate, ExposedCopies, Pinning, TinyCopies
from nsysdiag.record import Record


class TopCopy(Record, frozen=True):
    """Copies or sets of one kind: the operation and the memory on both sides, None where there is none or the trace
    does not say. `share` is of the time of all copies and sets that were looked at, summed over streams;
    `bytes_per_second` is None where they took no time."""

    operation: OwnText
    src: OwnText | None
    dst: OwnText | None
    share: Share
    count: TotalCount
    total_ns: TotalNs
    bytes: TotalBytes
    mean_bytes: Bytes
    bytes_per_second: BytesPerSecond | None


class CopyRow(Record, frozen=True):
    """All copies or sets of one kind. `src` and `dst` are memory kinds (pageable, pinned, device, ...) or None."""

    operation: OwnText
    src: OwnText | None
    dst: OwnText | None
    count: TotalCount
    total_ns: TotalNs
    bytes: TotalBytes
    bytes_per_second: BytesPerSecond | None


class Copies(Record, frozen=True):
    """Copies and sets: `total_ns` is a sum over streams, `exposed_ns` the time in which nothing else ran, divided by
    `exposed`. `rates` and `pinning` are of copies alone, `tiny` too; None where there are none of the kind."""

    rows: list[CopyRow]
    total_ns: TotalNs
    bytes: TotalBytes
    exposed_ns: TotalNs
    rates: list[CopyRate] = []
    pinning: Annotated[Pinning | None, ZERO_IF_NONE] = None
    exposed: list[ExposedCopies] = []
    tiny: Annotated[TinyCopies | None, ZERO_IF_NONE] = None
