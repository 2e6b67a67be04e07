"""Unknown time with a known reason has its name, and no reason is guessed where the evidence is another's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag import analyze
from nsysdiag.document.view import host_unseen
from nsysdiag.formats import FORMATS, RenderOptions
from tests.builder import TraceBuilder
from tests.simulator import EVERYTHING, Capture, Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.capture import CUDA_ONLY
from tests.simulator.engine import MS, US
from tests.trace.kineto_traces import document, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsysdiag.report import Report
    from tests.simulator.host import Body

STEPS = 40


def report_of(main: Callable[[Thread], Body], tmp_path: Path, capture: Capture = EVERYTHING) -> Report:
    """That of one thread which does this."""
    simulation = Simulation()
    simulation.thread(simulation.process(), main)
    return analyze(simulation.run().write(tmp_path / "a.sqlite", capture))


def account_of(report: Report) -> dict[str, float]:
    """The shares of the judged time by bottleneck."""
    account = next(phase for phase in report.phases if phase.judged).devices[0].account
    return {name: ns / sum(account.values()) for name, ns in account.items()}


def screen(report: Report) -> str:
    """The first screen, as one line."""
    return " ".join(FORMATS["txt"].render(report, RenderOptions()).decode().split())


@pytest.mark.slow
def test_a_wait_in_no_traced_call_is_not_charged_to_the_synchronization_before_it(tmp_path: Path) -> None:
    """A worker decodes for 10 ms, the thread waits for it and computes for 3 ms: OS calls are not recorded."""
    simulation = Simulation()
    process, ready = simulation.process(), simulation.channel()

    def decode(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.compute(10 * MS, "decode_jpeg")
            yield from t.put(ready, "pthread_cond_signal")

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.get(ready, "pthread_cond_wait")
            yield from t.launch("train", 3 * MS)
            yield from t.synchronize()

    simulation.thread(process, main)
    simulation.thread(process, decode, name="worker")
    report = analyze(simulation.run().write(tmp_path / "a.sqlite", EVERYTHING.but(osrt=False)))
    assert account_of(report)["unknown"] == pytest.approx(0.7, abs=0.02)
    assert account_of(report).get("sync", 0) < 0.01
    assert "Waiting in calls that were not traced takes 69." in screen(report)
    assert "Look at first: Blocked in an untraced call" in screen(report)
    assert not any(each.bottleneck == "sync" for each in report.findings)


@pytest.mark.parametrize("capture", [EVERYTHING, CUDA_ONLY])
def test_work_that_the_device_does_not_start_is_no_host_code(capture: Capture, tmp_path: Path) -> None:
    def main(t: Thread) -> Body:
        for _ in range(2 * STEPS):
            yield from t.launch("advance", 1 * MS, stall=1 * MS)
        yield from t.synchronize()

    report = report_of(main, tmp_path, capture)
    assert host_unseen(report) == (capture is CUDA_ONLY)
    assert "Queued work not started 4" in screen(report)
    assert "host code outside" not in screen(report).lower()


@pytest.mark.slow
def test_what_is_between_the_recorded_nodes_of_a_graph_is_not_called_idle(tmp_path: Path) -> None:
    """Every second replay has lost all nodes but the first and the last one."""
    nodes = [Node("a", 400 * US), *[Node("lost_b", 400 * US)] * 20, Node("c", 400 * US)]
    whole = [Node(each.name.removeprefix("lost_"), each.duration) for each in nodes]

    def main(t: Thread) -> Body:
        yield from t.build_graph(len(nodes))
        for step in range(STEPS):
            yield from t.launch_graph(whole if step % 2 else nodes)
            yield from t.synchronize()

    said = screen(report_of(main, tmp_path, EVERYTHING.but(lost="lost")))
    assert "CUDA graphs whose kernels are not in the trace 4" in said
    assert "nexplained idle time" not in said


def without_ids(content: dict[str, Any]) -> dict[str, Any]:
    """A trace of the PyTorch profiler whose operations have no correlation id."""
    for event in content["traceEvents"]:
        if event["cat"] == "kernel":
            del event["args"]["correlation"]
    return content


def test_kernels_without_an_id_are_there(tmp_path: Path) -> None:
    simulation = Simulation()

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.launch("gemm", 2 * MS)
            yield from t.synchronize()
            yield from t.compute(2 * MS)

    simulation.thread(simulation.process(), main)
    content = document(simulation.run().write(tmp_path / "a.sqlite", CUDA_ONLY))
    report = analyze(write(without_ids(content), tmp_path / "a.json"))
    assert report.diagnosis is not None
    assert report.diagnosis.headline.startswith("Kernels take 50.")
    assert "Idle, launch not in the trace 49." in screen(report)


@pytest.mark.slow
def test_a_thread_that_launches_all_the_time_is_to_launch_less(tmp_path: Path) -> None:
    """Calls follow one another and take longer than the kernels: no launch can be earlier."""

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            for _ in range(100):
                yield from t.launch("tiny", 3 * US, call=7 * US)
            yield from t.synchronize()

    report = report_of(main, tmp_path)
    first = next(each for each in report.findings if report.diagnosis and each.id == report.diagnosis.fix_first)
    assert first.cause == "launch_call"
    assert "CUDA graph" in first.advice[0]


@pytest.mark.slow
def test_the_time_of_the_profiler_is_in_the_headline(tmp_path: Path) -> None:
    """It is none of the program's, and does not lead; but the kernels' share is not understood without it."""

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.launch("advance", 1 * MS, overhead=[("flush", 2 * MS)])
            yield from t.synchronize()

    report = report_of(main, tmp_path)
    assert report.diagnosis is not None
    assert re.search(r"Kernels take 33\.\d% .* The profiler itself takes 6\d\.\d%\.", report.diagnosis.headline)


@pytest.mark.slow
def test_a_function_of_a_library_has_its_caller(tmp_path: Path) -> None:
    libc = "/lib/x86_64-linux-gnu/libc.so.6"
    trace = TraceBuilder()
    for step in range(STEPS):
        at = (10 + 50 * step) * MS
        trace.kernel(at, at + 5 * MS, name="sort", launch=(at - 20 * US, at - 10 * US))
        trace.api("cudaDeviceSynchronize", at - 5 * US, at + 5 * MS)
        for number in range(40):
            trace.sample(at + (6 + number) * MS, symbols=(("__random", libc), ("rand", libc), "fill_indexes", "main"))
    report = analyze(trace.write(tmp_path / "a.sqlite"))
    assert report.diagnosis is not None
    assert "mostly __random (called by fill_indexes)" in report.diagnosis.headline
