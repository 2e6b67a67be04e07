"""Traces without GPU activity: what samples, calls and ranges show of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze
from tests.builder import TraceBuilder
from tests.findings.test_fit import with_metadata

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.diagnosis.facts import Diagnosis

MS = 1_000_000
PID = 4711
MAIN, WORKER, POOL = (PID, PID), (PID, PID + 1), (PID, PID + 2)
APP = "/opt/bin/simulate"


def found(tmp_path: Path, trace: TraceBuilder, *told: tuple[str, str]) -> Diagnosis:
    """The diagnosis of a trace; `told` is what nsys was told at capture."""
    path = trace.write(tmp_path / "t.sqlite")
    diagnosis = analyze(with_metadata(path, "META_DATA_CAPTURE", list(told)) if told else path).diagnosis
    assert diagnosis is not None
    return diagnosis


def computing() -> TraceBuilder:
    """A second of samples of one thread, 90 of 100 of them in the C library, and 50 ms of reading."""
    trace = TraceBuilder().process(PID, APP)
    for at in range(1000):
        leaf = [("__random", "/usr/lib/libc.so.6"), ("fill", APP)] if at % 10 else [("main", APP)]
        trace.sample(at * MS, symbols=leaf, thread=MAIN)
    return trace.osrt("read", 100 * MS, 150 * MS, thread=MAIN)


def test_samples_and_calls_of_the_thread_that_computes(tmp_path: Path) -> None:
    said = found(tmp_path, computing())
    assert "main thread 4711 of 'simulate' was on a CPU about 100.0% of the time" in said.headline
    assert "in OS calls 5.0% (read 5.0%)" in said.headline
    assert "Its 1,000 CPU samples: __random 90.0% (called by fill), main 10.0%." in said.headline
    assert said.headline.startswith("No GPU activity was recorded, so what the GPU did is unknown. In the 999 ms")


@pytest.mark.parametrize(("each", "said"), [(40, "(compute 80.0%, load 19.8%)"), (8, "(main_loop 100.0%)")])
def test_what_is_in_a_range_around_all(tmp_path: Path, each: int, said: str) -> None:
    trace = TraceBuilder().process(PID, APP).nvtx("main_loop", 0, 1000 * MS, thread=MAIN)
    for at in range(0, 1000, 50):
        trace.nvtx("compute", at * MS, (at + each) * MS, thread=MAIN)
        trace.nvtx("load", (at + each) * MS, (at + each) * MS + each * MS * 99 // 400, thread=MAIN)
    assert f"in NVTX ranges {'99.8' if each == 40 else '100.0'}% {said}" in found(tmp_path, trace).headline


def test_a_worker_computes_while_the_main_thread_waits_for_it(tmp_path: Path) -> None:
    trace = TraceBuilder().process(PID, APP).thread_name("solver", thread=WORKER)
    trace.sched(0, True, thread=WORKER).sched(900 * MS, False, thread=WORKER).sched(1000 * MS, True, thread=WORKER)
    trace.sched(0, True, thread=MAIN, cpu=1).sched(10 * MS, False, thread=MAIN, cpu=1)
    trace.sched(990 * MS, True, thread=MAIN, cpu=1).sched(1000 * MS, False, thread=MAIN, cpu=1)
    trace.osrt("pthread_join", 10 * MS, 990 * MS, thread=MAIN).osrt("poll", 0, 1000 * MS, thread=POOL)
    said = found(tmp_path, trace)
    assert "thread 4712 'solver' of 'simulate' (4711) was on a CPU 90.0% of the time." in said.headline
    assert [line.split(":")[0] for line in said.host] == [
        "Thread 4712 'solver' of 'simulate' (4711)",
        "Main thread 4711 of 'simulate'",
        "Thread 4713 of 'simulate' (4711)",
    ]
    assert said.host[1].endswith(": on a CPU 2.0% of the time, in OS calls 98.0% (pthread_join 98.0%).")
    assert said.host[2].endswith("(poll 100.0%).")


def test_other_processes_on_the_machine_are_not_the_program(tmp_path: Path) -> None:
    trace, other = computing(), (77, 77)
    trace.process(77, "/usr/bin/cc").sched(0, True, thread=other, cpu=3).sched(999 * MS, False, thread=other, cpu=3)
    assert not any("77" in line for line in found(tmp_path, trace).host)


def test_ranges_that_do_not_repeat(tmp_path: Path) -> None:
    trace = TraceBuilder().nvtx("load", 0, 700 * MS, thread=MAIN).nvtx("parse", 100 * MS, 200 * MS, thread=MAIN)
    trace.nvtx("write", 700 * MS, 1000 * MS, thread=MAIN)
    assert "was in NVTX ranges 100.0% (load 70.0%, write 30.0%)." in found(tmp_path, trace).headline


def test_ranges_that_repeat_are_said_once(tmp_path: Path) -> None:
    trace = TraceBuilder().process(PID, APP)
    for at in range(0, 1000, 50):
        trace.nvtx("step", at * MS, (at + 40) * MS, thread=MAIN)
    said = found(tmp_path, trace)
    assert said.headline.count("step") == 1
    assert "step" in said.host[0]


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("name", "value"), [("CAPTURE_EVENT_TYPE", "CUDA"), ("COLLECT_CUDA_TRACE", "true"), ("other", "CUDA")]
)
def test_cuda_tracing_was_on_and_there_was_no_call(name: str, value: str, tmp_path: Path) -> None:
    said = found(tmp_path, computing(), (name, value))
    no_call = "recorded with CUDA tracing; the program made no CUDA call" in said.headline
    assert no_call == (name != "other")
    assert ("unknown" in said.headline) != no_call


def test_calls_without_kernels(tmp_path: Path) -> None:
    trace = computing()
    for at in range(20):
        trace.api("cudaLaunchKernel", at * MS, at * MS + MS // 2, thread=MAIN)
    trace.api("cudaDeviceSynchronize", 30 * MS, 230 * MS, thread=MAIN)
    trace.api("cuStreamSynchronize", 31 * MS, 229 * MS, thread=MAIN)  # inside the other
    trace.api("cudaEventQuery", 240 * MS, 241 * MS, thread=MAIN, returned=600)
    said = found(tmp_path, trace, ("CAPTURE_EVENT_TYPE", "CUDA"))
    assert "although the program made 22 CUDA calls (cudaLaunchKernel × 20, " in said.headline
    assert "error" not in said.headline
    assert "made no CUDA call" not in said.headline
    assert "in CUDA calls 21.1% (cudaDeviceSynchronize 20.0%" in said.headline


def test_the_first_call_that_fails(tmp_path: Path) -> None:
    trace = computing().api("cudaGetDeviceCount", 9 * MS, 10 * MS, thread=MAIN, returned=100)
    trace.api("cuInit", 5 * MS, 8 * MS, thread=MAIN, returned=100)
    said = found(tmp_path, trace)
    assert "made 2 CUDA calls" in said.headline
    assert "cuInit returned error 100 (no CUDA device)." in said.headline


def test_lines_stand_for_the_tables(tmp_path: Path) -> None:
    report = analyze(computing().write(tmp_path / "t.sqlite"))
    for name in ("t.txt", "t.md", "t.html"):
        report.save(tmp_path / name)
        shown = (tmp_path / name).read_text(encoding="utf-8")
        assert "Main thread 4711" in shown
        assert "The trace holds" not in shown


def test_no_events_of_the_host_at_all(tmp_path: Path) -> None:
    said = found(tmp_path, TraceBuilder().gpu())
    assert said.host == []
    assert said.headline == "No GPU activity was recorded, so what the GPU did is unknown."
