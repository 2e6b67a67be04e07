"""A phase that is not judged says what took most of it, with its own length."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, analyze, typed
from nsysdiag.account.outside import activity_of
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.phases.facts import Did
from nsysdiag.record import to_json
from nsysdiag.report import Report
from nsysdiag.saved import from_json
from tests.builder import MAIN, TraceBuilder
from tests.simulator import Simulation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

MS = 1_000_000
LOOP = 900 * MS


def steps(trace: TraceBuilder, begin: int = LOOP) -> TraceBuilder:
    """100 steps of 10 ms, each with a kernel of 9 ms."""
    for at in range(100):
        start = begin + at * 10 * MS
        trace.kernel(start, start + 9 * MS, launch=(start - 200_000, start - 100_000))
    return trace


def traced() -> TraceBuilder:
    return TraceBuilder().process().gpu()


def allocating() -> TraceBuilder:
    """Two kinds of calls, neither of them more than half of the start."""
    trace = traced().api("cudaHostAlloc_v3020", 200 * MS, 508 * MS)
    return steps(trace.api("cuModuleLoadData", 520 * MS, 760 * MS).api("cudaMalloc_v3020", 800 * MS, 830 * MS))


def reading() -> TraceBuilder:
    trace = traced().api("cudaMalloc_v3020", 10 * MS, 20 * MS)
    return steps(trace.osrt("read", 100 * MS, 780 * MS))


def computing() -> TraceBuilder:
    trace = traced().api("cudaMalloc_v3020", 10 * MS, 20 * MS)
    for at in range(100, 800):
        trace.sample(at * MS, symbols=("generate" if at % 4 else "parse", "main"))
    return steps(trace)


def calling_a_library() -> TraceBuilder:
    trace = traced().api("cudaMalloc_v3020", 10 * MS, 20 * MS)
    for at in range(100, 800):
        trace.sample(at * MS, symbols=(("__random", "/usr/lib/libc.so.6"), "fill", "main"))
    return steps(trace)


def in_the_kernel() -> TraceBuilder:
    trace = traced().api("cudaMalloc_v3020", 10 * MS, 20 * MS)
    for at in range(100, 800):
        trace.sample(at * MS, symbols=(("[kernel.kallsyms]", "[kernel.kallsyms]"),))
    return steps(trace)


def of_many_functions() -> TraceBuilder:
    trace = traced().api("cudaMalloc_v3020", 10 * MS, 20 * MS)
    for at in range(100, 800):
        trace.sample(at * MS, symbols=(f"part_{'abcd'[at % 4]}", "main"))
    return steps(trace)


def copying() -> TraceBuilder:
    trace = traced().api("cudaMalloc_v3020", 10 * MS, 20 * MS)
    for at in range(60):
        trace.memcpy((300 + 10 * at) * MS, (309 + 10 * at) * MS, launch=(298 * MS, 299 * MS))
    return steps(trace)


PROGRAMS = {
    "two calls": (allocating, "cudaHostAlloc 308 ms, cuModuleLoadData 240 ms"),
    "a read": (reading, "read 680 ms"),
    "a function": (computing, "host code in generate 700 ms"),
    "a library": (calling_a_library, "host code in fill 700 ms"),
    "the kernel": (in_the_kernel, "host code 700 ms"),
    "many functions": (of_many_functions, "host code 700 ms"),
    "copies": (copying, "memcpy HtoD 540 ms"),
}


def text_of(report: Report) -> str:
    return " ".join(FORMATS["txt"].render(report, RenderOptions()).decode().split())


@pytest.mark.sampled(quick=5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_start_says_what_it_did(name: str, tmp_path: Path) -> None:
    program, did = PROGRAMS[name]
    report = analyze(program().write(tmp_path / "trace.sqlite"), Settings(timeline=False))
    start, steady = report.phases
    assert (start.name, steady.name, steady.judged) == ("start-up", "steady", True)
    assert start.sentence.endswith(f"; {did}.")
    assert f"start-up ({start.sentence.split(', ')[1].partition(':')[0]}: {did})" in text_of(report)
    assert steady.devices[0].did == [], "of what is judged, the headline and the findings tell"
    (device,) = start.devices
    assert sum(each.ns for each in device.did) <= sum(device.account.values())


def test_the_end_of_a_loop_and_a_pause_say_it_too(tmp_path: Path) -> None:
    """
    calls                        [cudaFree 600 ms]                   [malloc 90]
    device    ===== 100 steps =====              == 100 steps ==                 [other_kernel 5 ms]
    """
    trace = steps(traced(), 10 * MS).api("cudaFree_v3020", 1010 * MS, 1610 * MS)
    steps(trace, 1620 * MS).api("cudaMalloc_v3020", 2622 * MS, 2712 * MS)
    trace.kernel(2715 * MS, 2720 * MS, name="other_kernel", launch=(2713 * MS, 2714 * MS))
    report = analyze(trace.write(tmp_path / "trace.sqlite"), Settings(timeline=False))
    said = {phase.name: phase.sentence.partition("; ")[2] for phase in report.phases if not phase.judged}
    assert said["pause"] == "cudaFree 600 ms."
    assert said["teardown"] == "cudaMalloc 90.0 ms."


@pytest.mark.parametrize(("call", "named"), [("write", "output"), ("read", "pause")])
def test_a_pause_that_mostly_writes_is_called_output(call: str, named: str, tmp_path: Path) -> None:
    """600 ms between 100 steps and 100 others, as for a checkpoint."""
    trace = steps(steps(traced(), 10 * MS).osrt(call, 1010 * MS, 1610 * MS), 1620 * MS)
    report = analyze(trace.write(tmp_path / "trace.sqlite"), Settings(timeline=False))
    (pause,) = (phase for phase in report.phases if phase.name == "pause")
    assert [each.writes for each in pause.devices[0].did] == [named == "output"]
    assert re.search(rf"{named} \(6\d\d ms: {call} 600 ms\)", text_of(report))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "thread", "said"),
    [
        ("getc", None, "time after the last GPU work (2.00 s: getc 1.95 s)"),
        ("getc", (4711, 4799), "time after the last GPU work (2.00 s)"),
    ],
    ids=["the thread that launches", "another thread"],
)
def test_the_tail_of_a_run_says_what_it_did(
    call: str, thread: tuple[int, int] | None, said: str, tmp_path: Path
) -> None:
    """A second of steps, and two seconds at a prompt."""
    trace = steps(traced(), 10 * MS)
    last = 10 * MS + 999 * MS
    on = {} if thread is None else {"thread": thread}
    trace.osrt(call, last + 40 * MS, last + 1990 * MS, **on).osrt("poll", last, last + 2000 * MS, thread=(4711, 4798))
    report = analyze(trace.write(tmp_path / "trace.sqlite"), Settings(timeline=False))
    assert said in text_of(report)


def test_the_time_before_cuda_says_what_it_did(tmp_path: Path) -> None:
    """Files are read before the first CUDA call."""
    trace = steps(traced().osrt("read", 5 * MS, 700 * MS), 900 * MS)
    report = analyze(trace.write(tmp_path / "trace.sqlite"), Settings(timeline=False))
    assert "(900 ms: read 695 ms)" in text_of(report)


@pytest.mark.parametrize(
    ("begun", "said"), [(20, "blocked in an untraced call 680 ms)"), (700, "(900 ms: host code 200 ms).")]
)
def test_a_thread_did_nothing_before_it_began(begun: int, said: str, tmp_path: Path) -> None:
    """Another process runs from the beginning."""
    main, other = MAIN, (4700, 4700)
    trace = steps(traced(), 900 * MS).sched(0, True, thread=other).sched(1900 * MS, False, thread=other)
    trace.sched(begun * MS, False, thread=main).sched(700 * MS, True, thread=main).sched(1900 * MS, False, thread=main)
    report = analyze(trace.write(tmp_path / "trace.sqlite"), Settings(timeline=False))
    assert said in text_of(report)


def test_what_is_less_than_a_tenth_is_not_named(tmp_path: Path) -> None:
    trace = traced()
    for at, call in enumerate(("cudaMalloc_v3020", "cudaMallocHost_v3020", "cudaFree_v3020", "cudaMallocPitch_v3020")):
        trace.api(call, (10 + 100 * at) * MS, (60 + 100 * at) * MS)
    for at in range(9):
        trace.osrt(f"call_{at}", (412 + 50 * at) * MS, (460 + 50 * at) * MS)
    report = analyze(steps(trace).write(tmp_path / "trace.sqlite"), Settings(timeline=False))
    (device,) = report.phases[0].devices
    assert all(10 * each.ns >= sum(device.account.values()) for each in device.did)
    assert "cudaFree" not in report.phases[0].sentence


def test_names_in_it_are_replaced_like_others(tmp_path: Path) -> None:
    report = analyze(computing().write(tmp_path / "trace.sqlite"), Settings(timeline=False))
    assert report.phases[0].devices[0].did == [Did(text="host code in generate", ns=700 * MS)]
    assert report.phrases is not None
    assert "generate" in report.phrases.names["symbol"]
    assert from_json(to_json(report), Report).phases == report.phases


def test_an_activity_is_the_call_or_the_cause() -> None:
    assert activity_of("host_compute", "") == "host code"
    assert activity_of("io_wait", typed.api("read")) == typed.api("read")
    assert activity_of("off_cpu", "") == "waiting for a CPU"


@pytest.mark.slow
def test_the_start_of_mpi_is_no_host_code(tmp_path: Path) -> None:
    simulation = Simulation()

    def main(t: Thread) -> Body:
        yield from t.mpi("MPI_Init", 600 * MS)
        for _ in range(40):
            yield from t.launch("flux", 5 * MS)
            yield from t.synchronize()
        yield from t.mpi("MPI_Finalize", 300 * MS)

    simulation.thread(simulation.process(), main)
    report = analyze(simulation.run().write(tmp_path / "a.sqlite"))
    assert report.diagnosis is not None
    assert "time before the first GPU work (600 ms: MPI_Init 600 ms)" in report.diagnosis.headline
