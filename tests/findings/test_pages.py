"""Pages of unified memory that move are one problem: alone, in kernels, and with the idle time between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.diagnosis.savings import saved_share
from nsysdiag.findings.findings import PREFETCHED
from nsysdiag.pipeline import analyze
from tests.builder import TraceBuilder
from tests.diagnosis.programs.registry import Marks
from tests.replay.pairs.pair import loop
from tests.simulator import Simulation
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.findings.facts import Finding
    from nsysdiag.report import Report
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

KERNEL = 2 * MS


def prefetching(folder: Path, *, chunks: int, each: int, gap: int, beside: bool = False) -> Report:
    """A prefetch before the kernel of each step; on a stream of its own it runs beside the kernel before.

    gpu    [page]..[page]..[page]..[==kernel==)
    """
    simulation = Simulation()
    process = simulation.process()
    stream = process.stream() if beside else process.null

    def step(t: Thread, _number: int) -> Body:
        yield from t.prefetch(chunks, each, gap, stream)
        if beside:
            event = t.event()
            yield from t.record(event, stream)
            yield from t.wait_event(process.null, event)
        yield from t.launch("solve", KERNEL)

    loop(simulation, Marks(), step, process=process)
    return analyze(simulation.run().write(folder / "trace.sqlite"))


def of_memory(report: Report) -> list[Finding]:
    return [each for each in report.findings if each.cause in ("paging", "unified_memory", "exposed_copy")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chunks", "each", "gap"), [(16, 100 * US, 60 * US), (4, 400 * US, 20 * US), (40, 30 * US, 60 * US)]
)
def test_a_prefetch_is_one_finding_with_all_its_time(chunks: int, each: int, gap: int, tmp_path: Path) -> None:
    report = prefetching(tmp_path, chunks=chunks, each=each, gap=gap)
    (one,) = of_memory(report)
    moves = chunks * each + (chunks - 1) * gap
    assert (one.title, one.bottleneck) == (PREFETCHED, "memory")
    assert one.share == pytest.approx(moves / (moves + KERNEL), abs=0.01)
    assert saved_share(one) == pytest.approx(one.share, abs=0.01)
    assert one.advice[0].startswith("Prefetch earlier")
    assert report.diagnosis is not None
    assert report.diagnosis.bottleneck == ("memory" if moves > KERNEL else "kernels")


@pytest.mark.slow
def test_pages_beside_kernels_hold_up_none(tmp_path: Path) -> None:
    """The prefetch of the next step runs beside the kernel: only its part beyond is a finding."""
    (one,) = of_memory(prefetching(tmp_path, chunks=16, each=100 * US, gap=60 * US, beside=True))
    assert one.share == pytest.approx(1 - KERNEL / (16 * 160 * US), abs=0.05)


@pytest.mark.parametrize("again", [True, False])
def test_a_prefetch_before_the_last_use_on_the_host_is_told(again: bool, tmp_path: Path) -> None:
    """Pages go to the GPU, back to the host, and to the GPU again inside the kernel."""
    trace = TraceBuilder().process(4242).memcpy(1 * MS, 2 * MS, kind="UM HtoD", size=8 << 20, cause="prefetch")
    if again:
        trace.memcpy(3 * MS, 4 * MS, kind="UM DtoH", size=8 << 20, cause="fault")
    trace.memcpy(6 * MS, 8 * MS, kind="UM HtoD", size=8 << 20, cause="fault")
    trace.kernel(500_000, 900_000, launch=(400_000, 450_000)).kernel(5 * MS, 10 * MS, launch=(4_900_000, 4_950_000))
    report = analyze(trace.write(tmp_path / "trace.sqlite"), Settings(replay=False))
    paging = next(each for each in report.findings if each.cause == "paging")
    told = "Pages are prefetched to the GPU (8.00 MiB), but the host uses them again before the kernels do"
    assert paging.advice[0].startswith(told) == again
