"""What the report says beside a slice: the calls, symbols and ranges behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.config.settings import Settings
from tests.causes.example import first, late
from tests.ledger.traces import only_device, report_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builder import TraceBuilder


def evidence(trace: TraceBuilder, tmp_path: Path, cause: str) -> str:
    (gap,) = only_device(trace, tmp_path).gaps
    (text,) = [part.evidence for part in gap.slices if part.cause == cause]
    return text


def test_one_call_by_its_name(tmp_path: Path) -> None:
    assert evidence(late().osrt("read", 150_000, 200_000), tmp_path, "io_wait") == "read"


def test_many_calls_by_their_time(tmp_path: Path) -> None:
    trace = late()
    for start in (120_000, 130_000, 140_000):
        trace.osrt("poll", start, start + 5_000)
    trace.osrt("read", 200_000, 240_000).osrt("open", 250_000, 251_000)
    assert evidence(trace, tmp_path, "io_wait") == "read (40.0 µs), poll × 3 (15.0 µs) and 1 more"


def test_a_library_call_lends_its_name_to_what_it_encloses(tmp_path: Path) -> None:
    """
    thread  [cublasSgemm_v2      ]
               [cudaMalloc]
    """
    trace = late().library("cublasSgemm_v2", 120_000, 200_000).api("cudaMalloc", 130_000, 160_000)
    assert "cublasSgemm_v2" in evidence(trace, tmp_path, "memory_allocation")


def test_a_graph_launch_with_its_node_count(tmp_path: Path) -> None:
    """
    device  [==A==)..............................[node)[node)[node)
    thread               [cudaGraphLaunch]
    """
    trace = first().api("cudaGraphLaunch", 280_000, 290_000, correlation=500)
    for number in range(3):
        start = 300_000 + 1_000 * number
        trace.kernel(start, start + 1_000, correlation=500, graph_node=number + 1)
    text = evidence(trace, tmp_path, "launch_call")
    assert "cudaGraphLaunch" in text
    assert "3" in text


def test_host_code_by_its_leaf_samples(tmp_path: Path) -> None:
    trace = late().sched(500, True)
    for time in (150_000, 200_000, 250_000):
        trace.sample(time, symbols=("_PyEval_EvalFrameDefault", "main"), module="/usr/bin/python3.11")
    text = evidence(trace, tmp_path, "host_compute").lower()
    assert "python" in text or "interpreter" in text or "_pyeval" in text


def test_unknown_time_by_its_nvtx_range(tmp_path: Path) -> None:
    trace = late().nvtx("step", 500, 500_000).nvtx("loader", 120_000, 260_000)
    assert evidence(trace, tmp_path, "uncovered") == "inside NVTX loader"


def test_a_gap_has_its_nvtx_path_and_its_thread(tmp_path: Path) -> None:
    trace = late().nvtx("loader", 120_000, 260_000).nvtx("step", 500, 500_000).thread_name("trainer")
    (gap,) = only_device(trace, tmp_path).gaps
    assert gap.nvtx == ["step", "loader"]
    assert gap.thread is not None
    assert (gap.thread.pid, gap.thread.tid, gap.thread.name) == (4242, 4242, "trainer")


def test_what_would_tell_the_rest_is_printed(tmp_path: Path) -> None:
    command = report_of(late(), tmp_path).recapture
    assert command is not None
    assert command.startswith("nsys profile")
    assert "osrt" in command
    assert "--sample" in command or "--cpuctxsw" in command


def test_nothing_to_capture_again_where_nothing_is_missing(tmp_path: Path) -> None:
    trace = late().osrt("read", 110_000, 280_000)
    assert report_of(trace, tmp_path, Settings()).recapture is None
