"""The tables about copies and memory as rows of plain values: see `nsysdiag.formats.rows` for their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nsysdiag.document.packed import unpack_level

if TYPE_CHECKING:
    from nsysdiag.report import Report

Row = tuple[str | int | float | bool | None, ...]


def copy_rate_rows(report: Report) -> Iterator[Row]:
    """A row for each direction of copies."""
    for device in report.devices:
        for row in device.copies.rates:
            yield (
                device.key,
                row.direction,
                row.count,
                row.total_ns,
                row.bytes,
                row.large_count,
                row.large_pageable,
                row.best_bytes_per_second,
                row.limit_bytes_per_second,
                row.slow_ns,
                row.exceeds_pcie,
            )


def pinning_rows(report: Report) -> Iterator[Row]:
    """A row for each direction and class of sizes."""
    for device in report.devices:
        for row in device.copies.pinning.rows if device.copies.pinning else ():
            pageable = (row.pageable_count, row.pageable_ns, row.pageable_bytes)
            pinned = (row.pinned_count, row.pinned_ns, row.pinned_bytes)
            yield (device.key, row.direction, row.from_bytes, *pageable, *pinned, row.saving_ns)


def exposed_rows(report: Report) -> Iterator[Row]:
    """A row for each kind of exposed copies."""
    for device in report.devices:
        for row in device.copies.exposed:
            facts = (row.operation, row.host_memory, row.ordered, row.call)
            yield (device.key, *facts, row.count, row.total_ns, row.exposed_ns)


def migration_rows(report: Report) -> Iterator[Row]:
    """A row for each direction and cause of migrations."""
    for device in report.devices:
        for row in device.unified_memory.rows if device.unified_memory else ():
            yield (device.key, row.direction, row.cause, row.count, row.bytes, row.total_ns, row.bytes_per_second)


def memory_rows(report: Report) -> Iterator[Row]:
    """A row for each device whose memory was captured."""
    for device in report.devices:
        memory = device.memory
        if memory is None:
            continue
        growth, churn = memory.growth, memory.churn
        yield (
            device.key,
            memory.limit_bytes,
            memory.peak_bytes,
            memory.peak_at_ns,
            memory.begin_bytes,
            memory.end_bytes,
            memory.managed_peak_bytes,
            memory.pinned_peak_bytes,
            memory.at_least,
            memory.unknown_frees,
            memory.headroom_bytes,
            memory.near_limit,
            growth.shape if growth else None,
            growth.slope_bytes if growth else None,
            churn.allocations,
            churn.frees,
            churn.allocated_bytes,
            churn.freed_bytes,
            churn.calls,
            churn.call_ns,
            churn.idle_ns,
        )


def memory_level_rows(report: Report) -> Iterator[Row]:
    """A row for each bucket of time."""
    for device in report.devices:
        if device.memory is not None:
            level = unpack_level(device.memory)
            columns = (level.edges[:-1], level.edges[1:], level.lowest, level.highest)
            for row in zip(*(column.tolist() for column in columns), strict=True):
                yield (device.key, *row)
