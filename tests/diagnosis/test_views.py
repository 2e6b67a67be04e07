"""A chosen device or range shows a part of the same diagnosis."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.record import to_json
from tests.diagnosis.invariants import broken
from tests.simulator import Simulation
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from pathlib import Path

    from tests.shared import Shared
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body


def looped(path: Path, load_ms: int, log_ms: int) -> Path:
    """A loop of ranges: a read, kernels of 6 ms, a synchronization, and a write of a log."""
    sim = Simulation(1)

    def main(t: Thread) -> Body:
        yield from t.launch("warm_up", 10 * US)
        yield from t.synchronize()
        for step in range(30):
            t.push(f"step {step}")
            yield from t.os_call("read", load_ms * MS, "io_wait", blocked=True)
            for _ in range(12):
                yield from t.launch("advance", 500 * US)
            yield from t.synchronize()
            yield from t.os_call("write", log_ms * MS, "io_wait", blocked=True)
            t.pop()

    sim.thread(sim.process(), main, name="python")
    sim.run()
    return sim.write(path)


@pytest.mark.parametrize(("load_ms", "log_ms"), [(20, 0), (9, 9), (0, 20), (1, 0)])
def test_ranges_hold_what_the_loop_holds(load_ms: int, log_ms: int, tmp_path: Path) -> None:
    """The time before the first operation of a range, and after its last one, is time of the range."""
    trace = looped(tmp_path / "trace.sqlite", load_ms, log_ms)
    whole = analyze(trace, Settings(timeline=False)).diagnosis
    view = analyze(trace, Settings(nvtx="step*", timeline=False))
    assert whole is not None
    assert view.diagnosis is not None
    assert view.diagnosis.bottleneck == whole.bottleneck
    assert view.diagnosis.share == pytest.approx(whole.share, abs=0.02)
    assert broken(json.loads(to_json(view))) == []


@pytest.mark.parametrize(("settings", "left_ms"), [(Settings(nvtx="step 7"), 700), (Settings(start_ns=400 * MS), 400)])
def test_a_view_says_what_it_leaves_out(settings: Settings, left_ms: int, tmp_path: Path) -> None:
    found = analyze(looped(tmp_path / "trace.sqlite", 20, 0), settings).diagnosis
    assert found is not None
    said = re.search(r"the chosen time, which leaves out (\d+) ms", found.headline)
    assert said is not None, found.headline
    assert int(said[1]) == pytest.approx(left_ms, abs=80)


def test_a_chosen_device_keeps_why_another_one_is_late(shared: Shared) -> None:
    """Of the devices that wait for a late one, the finding on that is the same as in the report on all."""
    trace = shared.trace("slow_rank")
    every = analyze(trace, Settings(timeline=False))
    late = next(each for each in every.findings if each.cause == "late_rank")
    waiting = late.device
    view = analyze(trace, Settings(device=waiting, timeline=False))
    assert [each.key for each in view.devices] == [waiting]
    same = next(each for each in view.findings if each.cause == "late_rank")
    assert late.title.startswith(same.title)
    assert (same.summary, same.bottleneck, same.advice) == (late.summary, late.bottleneck, late.advice)
    mine = next(each for each in every.devices if each.key == waiting)
    assert view.devices[0].ledger == mine.ledger
