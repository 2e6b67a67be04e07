"""Reads records back from JSON, which may be damaged or hostile: checks its size, its numbers and what is packed in it.

What passes can be drawn, compared and summed: integers fit into 64 bits, what is counted is not negative, and packed
columns unpack to no more than a report of that size holds.
"""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import msgspec

from nsysdiag.arrays.codes import MOST_EXPANSION
from nsysdiag.limits import MOST_BUCKETS, SAVED_BYTES, SAVED_VALUES, UNPACKED_BYTES, UNPACKED_FOR_EACH
from nsysdiag.record import Packed, Record

AnyRecord = TypeVar("AnyRecord", bound=Record)

MOST = 2**63 - 1
LATEST_NS = 2**62
"""Times of a trace's clock lie this side of it (146 years), so that the time between two fits into 64 bits."""
LARGEST_FLOAT = 1e30
"""No share, rate, time or amount of money comes near it, and sums and products of some do not overflow."""
COUNTS = frozenset(
    {
        *("count", "buckets", "each", "periods", "period_ns", "step_ns", "steady", "depth"),
        *("gap_count", "drain_count", "holder_count", "thread_count", "threads_left_out"),
        *("large_count", "large_pageable", "long_count", "pageable_count", "pinned_count"),
        *("calls", "api_calls", "sync_calls", "launches", "launched_ops", "unlaunched_ops", "untraced"),
        *("allocations", "frees", "unknown_frees", "moves", "samples", "gap_samples", "windows", "bursts"),
        *("kernel", "memcpy", "memset", "graph", "zero_length", "malformed", "shapes", "chains", "of"),
        *("iterations", "index", "median_index", "representative_index", "collectives", "matched"),
        *("failed", "broken", "warned", "unjudged"),
    }
)
"""Fields that count or number something, or are the length of a period: from 0 up."""
TIMES = frozenset({"start_ns", "end_ns", "at_ns", "peak_at_ns", "parts", "exact_operations", "exact_host", "host_span"})
"""Fields that hold points in time, alone or in pairs."""
DIVISORS = frozenset({"each", "period_ns", "step_ns"})


def from_json(data: bytes, kind: type[AnyRecord]) -> AnyRecord:
    """The record that was saved as JSON. Raises one of UNREADABLE where `data` is no such record, or one that no
    program of ours wrote: too large, or with numbers or packed columns that cannot be."""
    check_size(data)
    record = msgspec.json.decode(data, type=kind)
    _check(record, UNPACKED_BYTES + UNPACKED_FOR_EACH * len(data))
    return record


def check_size(data: bytes) -> None:
    """Raise ValidationError where there is more than is read of a report."""
    if len(data) > SAVED_BYTES:
        raise msgspec.ValidationError(f"it has {len(data):,} bytes; at most {SAVED_BYTES:,} are read")
    if data.count(b",") > SAVED_VALUES:
        raise msgspec.ValidationError(f"it has more than {SAVED_VALUES:,} values")


def _check(record: Record, most_unpacked: int) -> None:
    """Raise ValidationError for the first value that cannot be."""
    if _unpacked_within("", record) > most_unpacked:
        raise msgspec.ValidationError(f"its packed columns hold more than {most_unpacked:,} bytes")


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
    if isinstance(value, int | float):
        _check_number(name, value)
    return 0


def _check_number(name: str, value: float) -> None:
    if isinstance(value, float):
        fits = abs(value) <= LARGEST_FLOAT
    else:
        least, most = _range(name)
        fits = least <= value <= most
    if not fits:
        raise msgspec.ValidationError(f"the number in `{name}` is out of range")


@cache
def _range(name: str) -> tuple[int, int]:
    """The least and the largest integer that a field may hold."""
    most = MOST_BUCKETS if name == "buckets" else LATEST_NS if name.endswith("_start_ns") or name in TIMES else MOST
    if name in DIVISORS:
        return 1, most
    return 0 if name in COUNTS else -most - 1, most


def _unpacked_bytes(record: Packed) -> int:
    """What the columns of a record may take. Raises ValidationError where one is too short for its count."""
    total = 0
    for column in record.columns():
        most = len(column.text) * MOST_EXPANSION
        if column.values > most:
            raise msgspec.ValidationError(f"{column.values:,} numbers are packed into {len(column.text):,} characters")
        total += min(column.values * column.width, most)
    return total
