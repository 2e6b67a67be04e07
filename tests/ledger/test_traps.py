"""What caught others: each trap is a trace of a few rows. (Those of single causes are among the examples.)"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from nsysdiag.pipeline import analyze
from tests.builder import TraceBuilder, global_tid
from tests.causes.example import CALL, NEIGHBOUR, STRANGER, first, issued, late
from tests.ledger.traces import devices, only_device, report_of

if TYPE_CHECKING:
    from pathlib import Path


def test_a_long_queue_delay_is_healthy(tmp_path: Path) -> None:
    """
    device  [====A====)[====B====)[====C====)      busy all the time
    thread [A][B][C]                               C waited 290 µs in the queue: the host is ahead
    """
    trace = TraceBuilder().kernel(10_000, 110_000, launch=(1_000, 2_000))
    trace.kernel(110_000, 210_000, launch=(3_000, 4_000)).kernel(210_000, 310_000, launch=(5_000, 6_000))
    device = only_device(trace, tmp_path)
    assert (device.ledger, device.verdict.id) == ({}, "gpu-bound")
    assert device.launch.median_queue_delay_ns == 106_000


def test_correlation_ids_repeat_across_processes(tmp_path: Path) -> None:
    """
    device            [==A==)....170_000...[launch B][==B==)      A: id 7 of one process, B: id 7 of another
    another process                 [read  ]
    """
    trace = TraceBuilder(schema="3.17.2").cuda_device(0, 0).cuda_device(0, 0, pid=STRANGER[0])
    trace.kernel(10_000, 110_000, launch=(1_000, 5_000), correlation=7)
    trace.kernel(300_000, 400_000, launch=(280_000, 290_000), correlation=7, thread=STRANGER)
    trace.osrt("read", 150_000, 200_000, thread=STRANGER)
    device = only_device(trace, tmp_path)
    assert device.ledger == {"io_wait": 50_000, "uncovered": 120_000, **CALL}
    (gap,) = device.gaps
    assert gap.thread is not None
    assert gap.thread.pid == STRANGER[0]
    assert device.launch.unlaunched_ops == 0


def test_operations_that_overlap(tmp_path: Path) -> None:
    """
    stream 7  [1_000,   5_000)     [9_000, 12_000)
    stream 8     [2_000,    6_000)
    stream 9     [2_000, 3_000)                        one gap: [6_000, 9_000)
    """
    trace = TraceBuilder()
    for stream, (start, end) in enumerate([(1_000, 5_000), (2_000, 6_000), (2_000, 3_000)], start=7):
        trace.kernel(start, end, stream=stream, launch=(stream, stream + 1))
    trace.kernel(9_000, 12_000, launch=(20, 21))
    device = only_device(trace, tmp_path)
    assert [(gap.start_ns, gap.end_ns) for gap in device.gaps] == [(6_000, 9_000)]
    assert device.ledger == {"dispatch": 3_000}


def test_one_malformed_row_poisons_nothing(tmp_path: Path) -> None:
    """Rows of the host that cannot be: negative and reversed times, and nobody's thread."""
    trace = late().api("cudaMalloc", 200_000, 150_000).osrt("read", -500, 200_000).osrt("read", 250_000, 240_000)
    trace.row("OSRT_API", {"start": 120_000, "end": 130_000, "nameId": trace.string("read"), "globalTid": None})
    trace.row("SCHED_EVENTS", {"start": 150_000, "cpu": 0, "isSchedIn": 1, "globalTid": None})
    trace.row("NVTX_EVENTS", {"start": 200_000, "end": 100_000, "eventType": 59, "text": "odd"})
    assert only_device(trace, tmp_path).ledger == {"uncovered": 170_000, **CALL}


def test_a_device_row_without_ids(tmp_path: Path) -> None:
    """Neither process nor correlation id: an operation all the same, of an unknown launch."""
    trace = issued()
    values = {"start": 180_000, "end": 300_000, "deviceId": 0, "contextId": 1, "streamId": 8, "shortName": 0}
    trace.row("CUPTI_ACTIVITY_KIND_KERNEL", {**values, "globalPid": None, "correlationId": None, "demangledName": 0})
    found = devices(trace, tmp_path)
    assert {key: device.busy_ns for key, device in found.items()} == {"gpu0": 250_000}
    assert found["gpu0"].launch.unlaunched_ops == 1


def test_an_export_without_names(tmp_path: Path) -> None:
    trace = late().drop_table("StringIds")
    device = only_device(trace, tmp_path)
    assert sum(device.ledger.values()) == device.idle_ns == 190_000


def test_an_export_of_2020(tmp_path: Path) -> None:
    """No version table; a process is known by its API calls."""
    trace = TraceBuilder(schema="2020")
    for start, call in ((10_000, (1_000, 5_000)), (300_000, (280_000, 290_000))):
        trace.kernel(start, start + 100_000, launch=call)
    trace.osrt("read", 150_000, 200_000)
    path = trace.write(tmp_path / "old.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid")
    report = analyze(path)
    assert [device.ledger for device in report.devices] == [{"io_wait": 50_000, "uncovered": 120_000, **CALL}]
    assert report.trace.export_schema_version is None


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("schema", ["2.9.1", "3.13.2", "3.17.2", "3.24.8"])
def test_all_tables_empty_but_one(schema: str, tmp_path: Path) -> None:
    """`--lazy=false` writes every table, most of them empty."""
    trace = TraceBuilder(schema=schema, lazy=False).kernel(10_000, 110_000, launch=(1_000, 5_000))
    trace.kernel(300_000, 400_000, launch=(280_000, 290_000))
    assert only_device(trace, tmp_path).ledger == {"uncovered": 170_000, **CALL}


def test_a_table_of_the_user_s_and_a_column_more(tmp_path: Path) -> None:
    trace = late().add_column("CUPTI_ACTIVITY_KIND_KERNEL", "mine")
    assert only_device(trace, tmp_path).ledger == {"uncovered": 170_000, **CALL}


def test_no_api_rows_at_all(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(10_000, 110_000).kernel(113_000, 200_000).kernel(300_000, 400_000)
    device = only_device(trace, tmp_path)
    assert device.ledger == {"dispatch": 3_000, "launch_unknown": 100_000}
    assert device.verdict.id == "gpu-bound"
    assert device.verdict.sentence.endswith("second: host code outside CUDA calls, 25.6%.")


def test_threads_of_the_profiler_itself(tmp_path: Path) -> None:
    """
    device    [==A==)....................[launch B][==B==)
    neighbour    [read: all the time, CUPTI's thread]        whatever it does is not the launching thread's
    """
    trace = late().osrt("poll", 1_000, 399_000, thread=NEIGHBOUR).thread_name("[NS]", thread=NEIGHBOUR)
    trace.sched(500, True, thread=NEIGHBOUR).sched(390_000, False, thread=NEIGHBOUR).sample(200_000, thread=NEIGHBOUR)
    assert only_device(trace, tmp_path).ledger == {"uncovered": 170_000, **CALL}


def test_an_os_call_below_the_threshold_is_absent_and_proves_nothing(tmp_path: Path) -> None:
    """On a CPU all the time by the scheduler: absence of OS calls makes no wait of it, nor of the rest a call."""
    trace = late().sched(500, True).osrt("read", 1_500, 3_000)
    assert only_device(trace, tmp_path).ledger == {"host_compute": 170_000, **CALL}


def test_an_api_row_without_an_id_launches_nothing(tmp_path: Path) -> None:
    trace = first().kernel(200_000, 300_000, correlation=0).api("cudaLaunchKernel", 150_000, 160_000, correlation=0)
    assert only_device(trace, tmp_path).ledger == {"launch_unknown": 90_000}


def test_times_far_from_zero(tmp_path: Path) -> None:
    """Three weeks into a session: the sums are of the same nanoseconds."""
    base = 3 * 7 * 86_400 * 10**9
    trace = TraceBuilder().kernel(base + 10_000, base + 110_000, launch=(base + 1_000, base + 5_000))
    trace.kernel(base + 300_000, base + 400_000, launch=(base + 280_000, base + 290_000))
    trace.osrt("read", base + 150_000, base + 200_000)
    assert only_device(trace, tmp_path).ledger == {"io_wait": 50_000, "uncovered": 120_000, **CALL}


def test_a_call_that_never_ended_within_the_capture(tmp_path: Path) -> None:
    """
    device  [==A==)....................[launch B][==B==)
    thread      [read, begun before, lasts to far beyond the last operation ...]
    """
    trace = late().osrt("read", 50, 900_000_000)
    assert only_device(trace, tmp_path).ledger == {"io_wait": 170_000, **CALL}


def test_a_trace_of_the_host_alone_is_not_healthy(tmp_path: Path) -> None:
    trace = TraceBuilder().osrt("read", 1_000, 900_000).sched(500, True).api("cudaSetDevice", 100, 200)
    report = report_of(trace, tmp_path)
    assert (report.devices, report.findings) == ([], [])
    assert report.recapture is not None


def test_the_launching_thread_is_found_anew_for_every_operation(tmp_path: Path) -> None:
    """
    device     [==A==)....[==B==)....[==C==)
    thread    [A]                  [launch C]
    backward          [launch B]                 the backward pass launches from a thread of its own
    """
    trace = first().kernel(200_000, 250_000, launch=(180_000, 190_000), thread=NEIGHBOUR)
    trace.kernel(350_000, 400_000, launch=(330_000, 340_000))
    trace.osrt("sem_wait", 110_000, 180_000).osrt("read", 110_000, 180_000, thread=NEIGHBOUR)
    trace.osrt("sem_wait", 250_000, 330_000).osrt("read", 250_000, 330_000, thread=NEIGHBOUR)
    device = only_device(trace, tmp_path)
    expected = {"io_wait": 70_000, "lock_wait": 80_000, "launch_call": 20_000, "launch_latency": 20_000}
    assert device.ledger == expected
    assert [gap.thread.tid for gap in sorted(device.gaps, key=lambda gap: gap.start_ns) if gap.thread] == [4300, 4242]
    assert global_tid(NEIGHBOUR) & 0xFFFFFF == 4300


def test_every_summary_counts_streams_side_by_side(tmp_path: Path) -> None:
    """Kernel totals are sums over streams and may exceed the window; busy time never does."""
    trace = TraceBuilder()
    for stream in range(7, 12):
        trace.kernel(1_000, 5_000, stream=stream, launch=(stream, stream + 1))
    device = only_device(trace, tmp_path)
    assert (device.busy_ns, device.window_ns) == (4_000, 4_000)
    assert [row.total_ns for row in device.kernels] == [20_000]
