"""The tables about copies and memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from nsysdiag.document.columns import columns, of_devices
from nsysdiag.document.packed import unpack_level
from nsysdiag.memory.facts import CopyRate, DeviceMemory, ExposedCopies, MigrationRow, PinningClass
from nsysdiag.report import CopyRow

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport


class _Bucket(NamedTuple):
    """The level of a device's memory in one bucket of time."""

    start_ns: int
    end_ns: int
    lowest_bytes: int
    highest_bytes: int


def _levels(device: DeviceReport) -> Iterator[_Bucket]:
    if device.memory is not None:
        level = unpack_level(device.memory)
        series = (level.edges[:-1], level.edges[1:], level.lowest, level.highest)
        yield from map(_Bucket._make, zip(*(each.tolist() for each in series), strict=True))


_COPIES = "operation source_memory=src destination_memory=dst count total_ns bytes bytes_per_second"
_COPY_RATES = """
    direction count total_ns bytes large_count large_pageable best_bytes_per_second limit_bytes_per_second slow_ns
    exceeds_pcie_generation=exceeds_pcie
"""
_DEVICE_MEMORY = """
    limit_bytes peak_bytes peak_at_ns begin_bytes end_bytes managed_peak_bytes pinned_peak_bytes at_least unknown_frees
    headroom_bytes near_limit growth=growth.shape growth_bytes_per_iteration=growth.slope_bytes
    allocations=churn.allocations frees=churn.frees allocated_bytes=churn.allocated_bytes freed_bytes=churn.freed_bytes
    calls=churn.calls call_ns=churn.call_ns idle_ns=churn.idle_ns
"""
TABLES = (
    of_devices("copies", columns(CopyRow, _COPIES), lambda device: device.copies.rows),
    of_devices("copy_rates", columns(CopyRate, _COPY_RATES), lambda device: device.copies.rates),
    of_devices(
        "pinning",
        columns(PinningClass),
        lambda device: device.copies.pinning.rows if device.copies.pinning else (),
    ),
    of_devices("exposed_copies", columns(ExposedCopies), lambda device: device.copies.exposed),
    of_devices(
        "migrations",
        columns(MigrationRow),
        lambda device: device.unified_memory.rows if device.unified_memory else (),
    ),
    of_devices(
        "device_memory",
        columns(DeviceMemory, _DEVICE_MEMORY),
        lambda device: [device.memory] if device.memory else [],
    ),
    of_devices("memory_level", columns(_Bucket), _levels),
)
