"""What a thread does behind a synchronization: whether that made the idle time, or it is a cause of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from nsysdiag.diagnosis.savings import saved_share
from nsysdiag.pipeline import analyze
from tests.simulator import CUDA_ONLY, EVERYTHING, Simulation
from tests.simulator.engine import MS, US
from tests.simulator.recorder import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsysdiag.report import Report
    from tests.simulator import Capture
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

pytestmark = pytest.mark.slow

STEPS = 30
CAPTURES = [EVERYTHING, EVERYTHING.but(samples=False), EVERYTHING.but(sync_rows=False)]


def loop(
    behind: Callable[[Thread], Body], *, kernels_ns: int = 3 * MS, read_back: bool = False, free: bool = False
) -> Simulation:
    """Steps of kernels, a wait for them, and what comes behind it; before that a cudaFree, which would wait itself."""
    simulation = Simulation()
    process = simulation.process()

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            for _ in range(3):
                yield from t.launch("ampere_sgemm_128x64_tn", kernels_ns // 3)
            if read_back:
                yield from t.blocking_copy("DtoH", 4, 2 * US)
            yield from t.synchronize(t.process.null)
            if free:
                yield from t.free(10 * US)
            yield from behind(t)

    simulation.thread(process, main)
    return simulation.run()


def locked() -> Simulation:
    """A thread holds the lock in its own time, whenever T comes for it."""
    simulation = Simulation()
    process, mutex = simulation.process(), simulation.mutex()

    def other(t: Thread) -> Body:
        for _ in range(STEPS * 2):
            yield from t.lock(mutex)
            yield from t.compute(4 * MS, "flush_statistics")
            yield from t.unlock(mutex)
            yield from t.sleep(200 * US)

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.launch("ampere_sgemm_128x64_tn", 3 * MS)
            yield from t.synchronize(t.process.null)
            yield from t.lock(mutex)
            yield from t.unlock(mutex)

    simulation.thread(process, main)
    simulation.thread(process, other, name="statistics")
    return simulation.run()


def preempted() -> Simulation:
    """Another process takes the core of T in turns."""
    simulation = Simulation()
    process, other = simulation.process(), simulation.process(gpus=[])

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.launch("ampere_sgemm_128x64_tn", 3 * MS)
            yield from t.synchronize(t.process.null)
            yield from t.compute(500 * US, "prepare")

    first = simulation.thread(process, main)
    simulation.thread(other, lambda t: t.compute(STEPS * 9 * MS, "spin"), name="greedy", share=first)
    return simulation.run()


OWN: dict[str, tuple[Callable[[], Simulation], str]] = {
    "write": (lambda: loop(lambda t: t.os_call("write", 2 * MS, "io_wait", blocked=True)), "io_wait"),
    "fsync": (lambda: loop(lambda t: t.os_call("fsync", 2_500 * US, "io_wait", blocked=True)), "io_wait"),
    "sleep": (lambda: loop(lambda t: t.sleep(2 * MS)), "sleep"),
    "lock": (locked, "host_compute"),
    "preempted": (preempted, "off_cpu"),
}


def report_of(simulation: Simulation, capture: Capture, path: Path) -> Report:
    return analyze(simulation.write(path / "trace.sqlite", capture))


@pytest.mark.sampled(normal=5)
@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("name", OWN)
def test_what_a_thread_waits_for_keeps_its_own_cause(name: str, capture: Capture, tmp_path: Path) -> None:
    program, cause = OWN[name]
    report = report_of(program(), capture, tmp_path)
    found = next(each for each in report.findings if each.cause == cause)
    assert found.share > 0.05
    assert found.share > 0.95 * found.lost_share, "the rest is charged to the synchronization"


@pytest.mark.parametrize("capture", CAPTURES)
def test_host_code_that_could_have_run_meanwhile_counts_to_the_synchronization(
    capture: Capture, tmp_path: Path
) -> None:
    report = report_of(loop(lambda t: t.compute(2 * MS, "prepare")), capture, tmp_path)
    shares = {each.bottleneck: each.share for each in report.findings}
    assert shares.get("sync", 0) > 0.3
    assert shares.get("host", 0) < 0.05


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_synchronization_behind_a_read_back_leaves_it_what_it_made(capture: Capture, tmp_path: Path) -> None:
    """As in `.item()`: the copy waits for the kernels, and the synchronization returns at once."""
    report = report_of(loop(lambda t: t.compute(2 * MS, "prepare"), read_back=True), capture, tmp_path)
    shares = {each.bottleneck: each.share for each in report.findings}
    assert shares.get("sync", 0) > 0.3
    assert shares.get("host", 0) < 0.05


def prepare(t: Thread) -> Body:
    """Host code that needs nothing of the kernels."""
    yield from t.compute(2 * MS, "prepare")


@pytest.mark.parametrize("read_back", [False, True])
def test_host_code_behind_a_wait_has_a_finding_of_its_own(read_back: bool, tmp_path: Path) -> None:
    """Either fix saves the same time: each is a finding, the wait first."""
    report = report_of(loop(prepare, read_back=read_back), EVERYTHING, tmp_path)
    wait, host = (each for each in report.findings if each.bottleneck in ("sync", "host"))
    assert (wait.bottleneck, host.cause, wait.saves and wait.saves.method) == ("sync", "host_compute", "replay")
    assert 0.35 < saved_share(host) < 0.42
    assert 0.35 < saved_share(wait) < 0.42
    assert host.share < 0.05
    assert re.fullmatch(r"saving includes \d+\.\d% counted as synchronization before it.*", host.note)


@pytest.mark.parametrize(
    ("capture", "cause"),
    [
        (EVERYTHING, "host_compute"),
        (EVERYTHING.but(samples=False), "host_compute"),
        (CUDA_ONLY, "uncovered"),
    ],
    ids=["samples", "scheduling", "CUDA alone"],
)
def test_python_stacks_name_the_code_behind_a_wait(capture: Capture, cause: str, tmp_path: Path) -> None:
    simulation = loop(prepare)
    process = simulation.processes[0]
    (thread,) = process.threads
    where = (process.pid, thread.tid)
    trace = record(simulation, capture).python_domain(pid=process.pid)
    for span in thread.spans:
        for time in range(span.start + 100 * US, span.end if span.symbol == "prepare" else 0, 400 * US):
            trace.python_stack(
                time, [("collate", "/home/a/train.py", 8), ("step", "/home/a/train.py", 4)], thread=where
            )
    report = analyze(trace.write(tmp_path / "trace.sqlite"))
    found = next(each for each in report.findings if each.cause == cause)
    assert found.call == "collate"
    assert any("Python samples: collate" in each for each in found.evidence)
    assert "not captured" not in found.title


def test_a_read_back_says_what_waits_next_to_it(tmp_path: Path) -> None:
    report = report_of(loop(prepare, read_back=True), EVERYTHING, tmp_path)
    found = next(each for each in report.findings if each.cause == "blocking_copy")
    assert found.advice[0].endswith("cudaStreamSynchronize next to it waits for the same work: avoid both.")
    (tmp_path / "alone").mkdir()
    alone = report_of(loop(prepare), EVERYTHING, tmp_path / "alone")
    assert not any("next to it" in text for each in alone.findings for text in each.advice)


@pytest.mark.parametrize("kernels_ns", [3 * MS, 600 * US])
def test_time_that_a_wait_does_not_cost_counts_to_what_comes_behind_it(kernels_ns: int, tmp_path: Path) -> None:
    """Without the synchronization the thread would wait in cudaFree."""
    report = report_of(loop(prepare, kernels_ns=kernels_ns, free=True), EVERYTHING, tmp_path)
    whole = kernels_ns + 2 * MS
    found = {each.bottleneck: each for each in report.findings}
    assert "sync" not in found
    assert found["host"].share == pytest.approx(2 * MS / whole, abs=0.03)
    assert saved_share(found["host"]) == pytest.approx(2 * MS / whole, abs=0.03)
    assert report.diagnosis is not None
    parts = {report.diagnosis.bottleneck} | ({report.diagnosis.second.bottleneck} if report.diagnosis.second else set())
    assert parts == {"host", "kernels"}
    judged = next(phase for phase in report.phases if phase.judged)
    account = judged.devices[0].account
    assert account["host"] == pytest.approx(found["host"].share * sum(account.values()), rel=0.01)
    assert sum(account.values()) == sum(judged.devices[0].ledger.values()) + judged.devices[0].compute_ns


def test_a_headline_names_what_saves_more_than_the_kernels_take(tmp_path: Path) -> None:
    """Kernels take 36%; the host is busy behind each wait for the rest of the step."""
    report = report_of(loop(lambda t: t.compute(3_200 * US, "prepare"), kernels_ns=1_800 * US), EVERYTHING, tmp_path)
    assert report.diagnosis is not None
    said = r"Kernels take 3\d\.\d% of each step .*; “Host code” saves more: 6\d(?: to 6\d)?%\. .*"
    assert re.fullmatch(said, report.diagnosis.headline)


def test_time_that_nothing_explains_has_a_finding_where_the_wait_does_not_cost_it(tmp_path: Path) -> None:
    """Only CUDA is recorded: what the thread did behind the wait is not known, and takes the time."""
    report = report_of(loop(prepare, free=True), CUDA_ONLY, tmp_path)
    found = {each.bottleneck: each for each in report.findings}
    assert found["unknown"].share == pytest.approx(0.4, abs=0.03)
    assert "sync" not in found
    (tmp_path / "kept").mkdir()
    kept = report_of(loop(prepare), CUDA_ONLY, tmp_path / "kept")
    found = {each.bottleneck: each for each in kept.findings}
    assert found["unknown"].share == pytest.approx(0.4, abs=0.03)
    assert found["sync"].share < 0.01
    assert found["sync"].saves is not None
    assert found["sync"].saves.most == pytest.approx(0.4, abs=0.03), "it may have cost all of it"


@pytest.mark.parametrize(
    ("behind", "waited_ns"),
    [
        (lambda t: t.os_call("write", 2 * MS, "io_wait", blocked=True), 2 * MS),
        (lambda t: t.os_call("fsync", 300 * US, "io_wait", blocked=True), 300 * US),
        (lambda t: t.sleep(2 * MS), 2 * MS),
    ],
)
def test_what_may_be_another_wait_is_not_charged_to_the_synchronization(
    behind: Callable[[Thread], Body], waited_ns: int, tmp_path: Path
) -> None:
    """Only CUDA is recorded. What the thread waits for then takes as long without the synchronization."""
    report = report_of(loop(behind), CUDA_ONLY, tmp_path)
    account = next(phase for phase in report.phases if phase.judged).devices[0].account
    whole = sum(account.values())
    assert account["unknown"] / whole == pytest.approx(waited_ns / (3 * MS + waited_ns), abs=0.02)
    assert account.get("sync", 0) < 0.01 * whole


def test_short_host_code_between_launches_is_charged_to_the_synchronization(tmp_path: Path) -> None:
    """Only CUDA is recorded. Python launches a kernel every 20 µs, and waits for all after each step."""
    simulation = Simulation()
    process = simulation.process()

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            for _ in range(100):
                yield from t.compute(15 * US, "forward")
                yield from t.launch("elementwise_kernel", 12 * US)
            yield from t.synchronize(t.process.null)

    simulation.thread(process, main)
    account = next(phase for phase in report_of(simulation.run(), CUDA_ONLY, tmp_path).phases if phase.judged)
    unknown, sync = (account.devices[0].account.get(each, 0) for each in ("unknown", "sync"))
    assert sync > 0
    assert unknown < 100 * sync
