"""What a thread does behind a synchronization: whether that made the idle time, or it is a cause of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.pipeline import analyze
from tests.simulator import EVERYTHING, Simulation
from tests.simulator.engine import MS, US

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


def loop(behind: Callable[[Thread], Body], *, kernels_ns: int = 3 * MS, read_back: bool = False) -> Simulation:
    """Steps of kernels, a wait for them, and what comes behind it."""
    simulation = Simulation()
    process = simulation.process()

    def main(t: Thread) -> Body:
        for _ in range(STEPS):
            for _ in range(3):
                yield from t.launch("ampere_sgemm_128x64_tn", kernels_ns // 3)
            if read_back:
                yield from t.blocking_copy("DtoH", 4, 2 * US)
            yield from t.synchronize(t.process.null)
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


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("name", OWN)
def test_what_a_thread_waits_for_keeps_its_own_cause(name: str, capture: Capture, tmp_path: Path) -> None:
    program, cause = OWN[name]
    report = report_of(program(), capture, tmp_path)
    found = next(each for each in report.findings if each.cause == cause)
    assert found.share > 0.05
    assert found.share > 0.95 * found.lost_share, "the rest counts to the synchronization"


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
