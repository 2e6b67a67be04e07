"""Copies by kind as plain data."""

from __future__ import annotations

from nsysdiag.fields import Bytes, BytesPerSecond, OwnText, Share, TotalBytes, TotalCount, TotalNs
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
