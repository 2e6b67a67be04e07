"""Copies that run all the time are the limit: that is said, and no more overlap is advised."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.diagnosis.facts import FULL_LINK
from nsysdiag.diagnosis.savings import saved_share
from nsysdiag.pipeline import analyze
from tests.diagnosis.programs.registry import Marks
from tests.replay.pairs.pair import loop, varied
from tests.simulator import Simulation
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.findings.facts import Finding
    from nsysdiag.report import Report
    from tests.simulator.actions import Thread
    from tests.simulator.device import CudaEvent
    from tests.simulator.host import Body

STEPS, SIZE = 40, 50 << 20


def double_buffered(
    folder: Path, *, copy: int = 2 * MS, kernel: int = 1 * MS, chunks: int = 1, ahead: int = 2, direction: str = "HtoD"
) -> Report:
    """Copies and kernels, each in a stream of its own; with so many buffers copies run `ahead` of kernels.

    copies   [= 1 =][= 2 =][= 3 =]
    kernels         [1]    [2]
    """
    simulation = Simulation()
    process = simulation.process()
    link, work = process.stream(), process.stream()
    done: list[CudaEvent] = []

    def step(t: Thread, number: int) -> Body:
        if number >= ahead:
            yield from t.wait_event(link, done[number - ahead])
        for part in range(chunks):
            yield from t.copy(direction, SIZE // chunks, varied(copy // chunks, number, part, spread=0.02), link)
        copied = t.event()
        yield from t.record(copied, link)
        yield from t.wait_event(work, copied)
        yield from t.launch("solve", varied(kernel, "solve", number, spread=0.02), work)
        computed = t.event()
        yield from t.record(computed, work)
        done.append(computed)
        if number >= ahead:
            yield from t.synchronize(done[number - ahead])

    loop(simulation, Marks(), step, process=process)
    return analyze(simulation.run().write(folder / "trace.sqlite"))


def copies_of(report: Report) -> Finding:
    return next(each for each in report.findings if each.cause == "exposed_copy")


@pytest.mark.sampled(quick=6)
@pytest.mark.parametrize(("direction", "who"), [("HtoD", "Copies to the GPU"), ("DtoH", "Copies to the host")])
@pytest.mark.parametrize("chunks", [1, 16, 100])
def test_a_link_that_is_always_busy_is_the_limit(direction: str, who: str, chunks: int, tmp_path: Path) -> None:
    report = double_buffered(tmp_path, direction=direction, chunks=chunks)
    found = copies_of(report)
    assert (found.variant, found.saves and found.saves.method) == (FULL_LINK, "bound")
    assert found.advice[0].startswith(f"{who} run for 9")
    assert "GB/s (16 lanes of PCIe 4 carry up to 31.5 GB/s): more overlap saves nothing. Copy less: " in found.advice[0]
    assert ("Join small copies" in found.advice[0]) == (chunks == 100)
    assert not any("Overlap" in text for text in found.advice)
    assert report.diagnosis is not None
    assert f"The copy engine is the limit: c{who[1:]} run for 9" in report.diagnosis.headline
    assert (report.diagnosis.action or "").startswith(found.title)


@pytest.mark.slow
def test_fewer_bytes_save_what_kernels_do_not_take(tmp_path: Path) -> None:
    """With half of the bytes the step is half as long: what the bound says."""
    folders = [tmp_path / name for name in ("before", "after")]
    for each in folders:
        each.mkdir()
    before, after = double_buffered(folders[0]), double_buffered(folders[1], copy=1 * MS)
    one, two = (next(each.steps for each in report.phases if each.judged) for report in (before, after))
    assert one is not None
    assert two is not None
    assert saved_share(copies_of(before)) == pytest.approx(1 - two.median_ns / one.median_ns, abs=0.01)


@pytest.mark.slow
def test_copies_that_wait_for_kernels_can_be_overlapped(tmp_path: Path) -> None:
    report = double_buffered(tmp_path, ahead=1)
    found = copies_of(report)
    assert (found.variant, found.saves and found.saves.method) == ("", "replay")
    assert found.advice[0].startswith("Overlap copies")
    assert report.diagnosis is not None
    assert "limit" not in report.diagnosis.headline


@pytest.mark.slow
def test_kernels_that_take_longer_are_the_limit(tmp_path: Path) -> None:
    report = double_buffered(tmp_path, kernel=3 * MS)
    assert not any(each.cause == "exposed_copy" for each in report.findings)
    assert report.diagnosis is not None
    assert "limit" not in report.diagnosis.headline


@pytest.mark.slow
def test_short_copies_beside_long_kernels_are_no_limit(tmp_path: Path) -> None:
    report = double_buffered(tmp_path, copy=300 * US, ahead=1)
    assert copies_of(report).variant == ""
