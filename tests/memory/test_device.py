"""The memory of a device over time, from the rows of a trace: level, limits, churn, pools."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import MemoryThresholds, Settings
from nsysdiag.document.packed import unpack_level
from nsysdiag.memory.facts import DeviceMemory
from tests.builder import TraceBuilder, global_pid
from tests.ledger.traces import devices, only_device

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
MIB, GIB = 1 << 20, 1 << 30


def program(schema: str = "3.24.8") -> TraceBuilder:
    """
    thread  [cuInit]  [launch]
    device              [=== kernel: 10 ms .. 20 ms ===)
    """
    trace = TraceBuilder(schema=schema).gpu(0, memory=GIB).api("cuInit", 1_000, 500_000)
    return trace.kernel(10 * MS, 20 * MS, launch=(9 * MS, 9 * MS + 5_000))


def memory_of(trace: TraceBuilder, folder: Path, settings: Settings | None = None) -> DeviceMemory:
    memory = only_device(trace, folder, settings).memory
    assert memory is not None
    return memory


def test_not_captured_is_none(tmp_path: Path) -> None:
    assert only_device(program(), tmp_path).memory is None


def test_level_peak_and_limit(tmp_path: Path) -> None:
    """
            1 ms    12 ms   14 ms   16 ms   25 ms
    A       [64 MiB ...................................
    B               [128 MiB ......)
    C                       [256 MiB ...............)
    level     64      192     448     320     64
    """
    trace = program().allocate(1 * MS, 64 * MIB, 0xA0).allocate(12 * MS, 128 * MIB, 0xB0)
    trace.allocate(14 * MS, 256 * MIB, 0xC0).allocate(16 * MS, 128 * MIB, 0xB0, free=True)
    trace.allocate(25 * MS, 256 * MIB, 0xC0, free=True)
    memory = memory_of(trace, tmp_path)
    assert (memory.peak_bytes, memory.peak_at_ns) == (448 * MIB, 14 * MS)
    assert (memory.begin_bytes, memory.end_bytes) == (64 * MIB, 320 * MIB)
    assert (memory.limit_bytes, memory.headroom_bytes, memory.near_limit) == (GIB, 576 * MIB, False)
    assert (memory.at_least, memory.unknown_frees) == (False, 0)
    assert (memory.start_ns, memory.end_ns) == (1 * MS, 25 * MS + 1)
    level = unpack_level(memory)
    assert (int(level.highest.max()), int(level.lowest.max())) == (448 * MIB, 448 * MIB)
    assert (int(level.lowest[0]), int(level.lowest[-1])) == (64 * MIB, 64 * MIB)


@pytest.mark.slow
def test_a_short_peak_is_kept_exactly(tmp_path: Path) -> None:
    """10,000 allocations of a 1 KiB buffer; one of them is of 512 MiB for 1 ns."""
    trace = program()
    for at in range(10_000):
        size = 512 * MIB if at == 4_321 else 1_024
        trace.allocate(10 * MS + at * 900, size, 0xA0).allocate(10 * MS + at * 900 + 1, size, 0xA0, free=True)
    memory = memory_of(trace, tmp_path)
    assert (memory.peak_bytes, memory.peak_at_ns) == (512 * MIB, 10 * MS + 4_321 * 900)
    assert int(unpack_level(memory).highest.max()) == 512 * MIB
    assert memory.buckets == 500


@pytest.mark.slow
def test_near_the_limit_begins_at_its_share(tmp_path: Path) -> None:
    at_it = program().allocate(MS, 900, 0xA0)
    at_it._rows["TARGET_INFO_GPU"][0]["totalMemory"] = 1_000
    assert memory_of(at_it, tmp_path).near_limit
    assert not memory_of(at_it, tmp_path, Settings(memory=MemoryThresholds(near_limit=0.901))).near_limit


def test_without_a_limit_there_is_no_headroom(tmp_path: Path) -> None:
    trace = TraceBuilder().gpu(0, memory=None).api("cuInit", 1_000, 500_000).allocate(MS, 900, 0xA0)
    memory = memory_of(trace.kernel(10 * MS, 20 * MS, launch=(9 * MS, 9 * MS + 5_000)), tmp_path)
    assert (memory.limit_bytes, memory.headroom_bytes, memory.near_limit) == (None, None, False)


def test_where_the_beginning_of_the_process_is_not_seen_levels_are_lower_bounds(tmp_path: Path) -> None:
    trace = TraceBuilder().gpu(0, memory=GIB).kernel(10 * MS, 20 * MS, launch=(9 * MS, 9 * MS + 5_000))
    memory = memory_of(trace.allocate(9 * MS, 900, 0xA0), tmp_path)
    assert (memory.at_least, memory.unknown_frees, memory.headroom_bytes) == (True, 0, None)


def test_a_long_first_call_shows_the_beginning(tmp_path: Path) -> None:
    trace = TraceBuilder().gpu(0, memory=GIB).api("cudaMalloc", 1_000, 3 * MS).allocate(MS, GIB // 4, 0xA0)
    trace.kernel(10 * MS, 20 * MS, launch=(9 * MS, 9 * MS + 5_000))
    assert memory_of(trace, tmp_path).headroom_bytes == 3 * GIB // 4


def test_frees_of_unknown_memory_make_levels_lower_bounds(tmp_path: Path) -> None:
    trace = program().allocate(2 * MS, 64 * MIB, 0xB0, free=True).allocate(3 * MS, 16 * MIB, 0xA0)
    memory = memory_of(trace, tmp_path)
    assert (memory.peak_bytes, memory.at_least, memory.headroom_bytes) == (16 * MIB, True, None)
    assert (memory.unknown_frees, memory.unknown_freed_bytes) == (1, 64 * MIB)


def test_managed_and_pinned_memory_are_counted_apart(tmp_path: Path) -> None:
    trace = program().allocate(2 * MS, 10, 0xA0).allocate(3 * MS, 200, 0xB0, memory="managed")
    trace.allocate(4 * MS, 30, 0xC0, memory="pinned", device=7).allocate(5 * MS, 4, 0xD0, memory="array")
    trace.allocate(6 * MS, 999, 0xE0, memory="pageable")
    memory = memory_of(trace, tmp_path)
    assert (memory.peak_bytes, memory.managed_peak_bytes, memory.pinned_peak_bytes) == (14, 200, 30)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_two_processes_on_two_devices(tmp_path: Path, seed: int | None) -> None:
    """Both use the address 0xA0; each of the processes calls its device 0."""
    trace = TraceBuilder(schema="3.24.8").gpu(0, memory=GIB).gpu(1, memory=GIB)
    for gpu, pid in ((0, 4242), (1, 5000)):
        thread = (pid, pid)
        trace.cuda_device(gpu, 0, pid).api("cuInit", 1_000, 500_000, thread=thread)
        trace.kernel(10 * MS, 20 * MS, launch=(9 * MS, 9 * MS + 5_000), thread=thread)
        trace.allocate(MS, 100 + gpu, 0xA0, pid=pid).allocate(12 * MS, 100 + gpu, 0xA0, pid=pid, free=True)
        trace.allocate(13 * MS, 7, 0xA0, pid=pid)
    trace.write(tmp_path / "trace.sqlite", shuffle_seed=seed)
    found = {key: device.memory for key, device in devices(trace, tmp_path).items()}
    assert {key: memory and (memory.peak_bytes, memory.end_bytes) for key, memory in found.items()} == {
        "gpu0": (100, 7),
        "gpu1": (101, 7),
    }


def test_a_narrowed_window_has_its_own_peak(tmp_path: Path) -> None:
    trace = program().allocate(1 * MS, 500, 0xA0).allocate(11 * MS, 500, 0xA0, free=True)
    trace.allocate(16 * MS, 80, 0xB0)
    memory = memory_of(trace, tmp_path, Settings(start_ns=12 * MS, end_ns=18 * MS))
    assert (memory.peak_bytes, memory.peak_at_ns, memory.begin_bytes, memory.end_bytes) == (80, 16 * MS, 0, 80)
    assert (memory.start_ns, memory.end_ns) == (12 * MS, 18 * MS)


def test_rows_with_nothing_in_them_tell_nothing(tmp_path: Path) -> None:
    trace = program().allocate(2 * MS, 100, 0xA0)
    trace.duration = 30 * MS
    table = "CUDA_GPU_MEMORY_USAGE_EVENTS"
    trace.row(table, {"start": 3 * MS, "memKind": 2, "bytes": 1 << 62})  # no address
    trace.row(table, {"start": -7, "address": 0xB0, "memKind": 2, "bytes": 5})
    trace.row(table, {"start": 1 << 61, "address": 0xC0, "memKind": 2, "bytes": 5, "memoryOperationType": 1})
    trace.row(table, {"start": 4 * MS, "address": 0xF0, "memKind": 2, "bytes": 1 << 62, "globalPid": global_pid(4242)})
    trace.row(table, {"start": 4 * MS, "address": 0xD0, "memKind": 2, "bytes": -5, "deviceId": 0})
    trace.row(table, {"start": 5 * MS, "address": 0xE0, "memKind": 99, "bytes": 5, "memoryOperationType": 7})
    memory = memory_of(trace, tmp_path)
    assert (memory.peak_bytes, memory.churn.allocated_bytes, memory.unknown_frees) == (100, 0, 0)


def test_a_table_without_optional_columns(tmp_path: Path) -> None:
    """Only the time is there: every row lacks what it takes to be matched."""
    path = program().allocate(2 * MS, 100, 0xA0).write(tmp_path / "trace.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE CUDA_GPU_MEMORY_USAGE_EVENTS")
        connection.execute("CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER)")
        connection.execute("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (5)")
    assert only_device(program(), tmp_path).memory is None


# ---- pools -----------------------------------------------------------------------------------------------------


def test_what_a_pool_holds_is_no_headroom(tmp_path: Path) -> None:
    trace = program().allocate(2 * MS, 100 * MIB, 0xA0, pool=(256 * MIB, 100 * MIB))
    trace.allocate(3 * MS, 100 * MIB, 0xB0, pool=(256 * MIB, 200 * MIB))
    memory = memory_of(trace, tmp_path)
    (pool,) = memory.pools
    assert (pool.pid, pool.reserved_bytes, pool.used_bytes, pool.events) == (4242, 256 * MIB, 200 * MIB, 2)
    assert memory.peak_bytes == 200 * MIB
    assert memory.headroom_bytes == GIB - 200 * MIB - 156 * MIB


def test_old_exports_know_no_pools(tmp_path: Path) -> None:
    memory = memory_of(program("2.9.1").allocate(2 * MS, 100, 0xA0, pool=(256, 100)), tmp_path)
    assert (memory.pools, memory.peak_bytes) == ([], 100)


# ---- churn -----------------------------------------------------------------------------------------------------


def test_churn_inside_the_window(tmp_path: Path) -> None:
    """
    device           [10 ms == A == 20 ms)          [50 ms == B == 60 ms)
    thread  [malloc]         [malloc: 15 ms .. 45 ms]   [free: 55 .. 56 ms]   [free: 70 ms]
                              [inner    ]
    """
    trace = program().kernel(50 * MS, 60 * MS, launch=(46 * MS, 46 * MS + 5_000))
    trace.api("cudaMalloc", 2 * MS, 3 * MS).allocate(2 * MS, 64, 0xA0)
    trace.api("cudaMalloc", 15 * MS, 45 * MS).api("cuMemAlloc", 16 * MS, 30 * MS).allocate(44 * MS, 32, 0xB0)
    trace.api("cudaFree", 55 * MS, 56 * MS).allocate(55 * MS, 64, 0xA0, free=True)
    trace.api("cudaFree", 70 * MS, 71 * MS).allocate(70 * MS, 32, 0xB0, free=True)
    churn = memory_of(trace, tmp_path).churn
    assert (churn.allocations, churn.frees, churn.allocated_bytes, churn.freed_bytes) == (1, 1, 32, 64)
    assert (churn.calls, churn.call_ns) == (2, 31 * MS)
    assert churn.idle_ns == 25 * MS
    assert churn.per_iteration is None
