"""A chosen device or range shows a part of the same diagnosis."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from nsysdiag import Settings, analyze
from nsysdiag.record import to_json
from tests.builder import TraceBuilder
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


@pytest.mark.slow
@pytest.mark.parametrize(("load_ms", "log_ms"), [(20, 0), (9, 8), (0, 20), (1, 0)])
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


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("settings", "left_ms"), [(Settings(nvtx="step 7"), 700), (Settings(start_ns=400 * MS), 400)])
def test_a_view_says_what_it_leaves_out(settings: Settings, left_ms: int, tmp_path: Path) -> None:
    found = analyze(looped(tmp_path / "trace.sqlite", 20, 0), settings).diagnosis
    assert found is not None
    said = re.search(r"the chosen time, which leaves out (\d+) ms", found.headline)
    assert said is not None, found.headline
    assert int(said[1]) == pytest.approx(left_ms, abs=80)


def started(path: Path) -> Path:
    """That trace as a file."""
    return started_trace().write(path)


def started_trace() -> TraceBuilder:
    """
    calls    100 [cudaMalloc 200 ms]  [read 300 .. 750]   [launch 899 .. 1899, every 10 ms]
    device                                                 900 [==) [==) ... 1900
    """
    trace = TraceBuilder().process().gpu().osrt("usleep", 0, 5 * MS)
    trace.api("cudaMalloc_v3020", 100 * MS, 300 * MS).osrt("read", 300 * MS, 750 * MS)
    for at in range(100):
        start = (900 + 10 * at) * MS
        trace.kernel(start, start + 9 * MS, launch=(start - 200 * US, start - 100 * US))
    return trace


@pytest.mark.sampled(quick=5)
@pytest.mark.parametrize(
    ("since_ms", "account", "leads"),
    [
        (50, {"startup": 200, "input": 450}, "kernels"),
        (100, {"startup": 200, "input": 450}, "kernels"),
        (200, {"startup": 100, "input": 450}, "kernels"),
        (500, {"input": 250}, "kernels"),
    ],
)
@pytest.mark.parametrize("until_ms", [None, 1000])
def test_chosen_time_before_the_first_operation_is_judged(
    since_ms: int, account: dict[str, int], leads: str, until_ms: int | None, tmp_path: Path
) -> None:
    """It begins where the user says; what the host did then has the same causes as in the report on all."""
    until = None if until_ms is None else until_ms * MS
    settings = Settings(start_ns=since_ms * MS, end_ns=until, timeline=False)
    view = analyze(started(tmp_path / "trace.sqlite"), settings)
    (phase,), end = view.phases, until_ms or 1899
    (device,) = phase.devices
    assert (phase.start_ns, device.account_base) == (since_ms * MS, "start")
    assert sum(device.account.values()) == (end - since_ms) * MS
    for name, ms in account.items():
        assert device.account[name] == pytest.approx(ms * MS, abs=2 * MS), name
    assert view.diagnosis is not None
    assert view.diagnosis.bottleneck == (leads if until is None else max(account, key=lambda name: account[name]))
    found = next(each for each in view.findings if each.id == "f-before_work-input")
    assert found.share == pytest.approx(account["input"] / (end - since_ms), abs=0.01)
    assert broken(json.loads(to_json(view))) == []


@pytest.mark.slow
def test_a_range_begins_before_the_first_operation(tmp_path: Path) -> None:
    """The first of two ranges holds 250 ms of the read, and the loop's first half."""
    trace = started_trace().nvtx("work 0", 500 * MS, 1399 * MS).nvtx("work 1", 1399 * MS, 1899 * MS)
    path = trace.write(tmp_path / "trace.sqlite")
    for name, since_ms, end_ms in (("work*", 500, 1899), ("work 0", 500, 1399)):
        view = analyze(path, Settings(nvtx=name, timeline=False))
        (device,) = view.phases[0].devices
        assert sum(device.account.values()) == pytest.approx((end_ms - since_ms) * MS, abs=12 * MS)
        assert device.account["input"] == pytest.approx(250 * MS, abs=2 * MS)
        assert broken(json.loads(to_json(view))) == []
    (device,) = analyze(path, Settings(nvtx="work 1", timeline=False)).phases[0].devices
    assert device.account_base == "window"


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("since_ms", "base"), [(900, "window"), (905, "window"), (1300, "window"), (-50, "start")])
def test_no_time_is_judged_that_is_not_in_the_trace(since_ms: int, base: str, tmp_path: Path) -> None:
    """From the first operation on nothing is added; a time before the first event begins with that event."""
    view = analyze(started(tmp_path / "trace.sqlite"), Settings(start_ns=since_ms * MS, timeline=False))
    (device,) = view.phases[0].devices
    assert device.account_base == base
    assert sum(device.account.values()) == (1899 - max(since_ms, 0)) * MS
    assert broken(json.loads(to_json(view))) == []


@pytest.mark.slow
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


def evaluated(path: Path) -> Path:
    """Train steps, then an evaluation with much host code, three times over."""
    sim = Simulation(1)

    def main(t: Thread) -> Body:
        for _ in range(3):
            for _ in range(20):
                yield from t.launch("train", 6 * MS)
                yield from t.synchronize()
            t.push("eval")
            for _ in range(10):
                yield from t.launch("evaluate", 2 * MS)
                yield from t.blocking_copy("DtoH", 8, 2 * US)
                yield from t.compute(4 * MS, "metric")
            t.pop()

    sim.thread(sim.process(), main, name="python")
    return sim.run().write(path)


def test_savings_of_ranges_far_apart_are_of_these_alone(tmp_path: Path) -> None:
    """Host code takes 4 of 6 ms in the ranges, which are a third of the time from the first to the last of them."""
    report = analyze(evaluated(tmp_path / "a.sqlite"), Settings(nvtx="eval", timeline=False))
    judged_ns = report.devices[0].window_ns
    host = next(each for each in report.findings if each.bottleneck == "host")
    assert host.saves is not None
    assert host.saves.of_ns == judged_ns
    assert host.saves.high_ns == pytest.approx(3 * 10 * 4 * MS, rel=0.05)


@pytest.mark.slow
def test_what_comes_before_the_first_work_is_saved_once(tmp_path: Path) -> None:
    sim = Simulation(1)

    def main(t: Thread) -> Body:
        for step in range(30):
            t.push(f"step {step}")
            yield from t.read_file(9 * MS)
            yield from t.launch("advance", 9 * MS)
            yield from t.synchronize()
            t.pop()

    sim.thread(sim.process(), main, name="python")
    report = analyze(sim.run().write(tmp_path / "a.sqlite"), Settings(nvtx="step*", timeline=False))
    before = next(each for each in report.findings if each.title.startswith("Time before the first GPU work"))
    assert before.saves is not None
    assert before.saves.high_ns == pytest.approx(9 * MS, rel=0.01)


@pytest.mark.slow
def test_a_view_of_a_gpu_without_work_says_so(tmp_path: Path) -> None:
    sim = Simulation(2)

    def main(t: Thread) -> Body:
        first, second = t.process.stream(0), t.process.stream(1)
        yield from t.launch("touch", 3 * US, second)
        for _ in range(30):
            yield from t.launch("advance", 4 * MS, first)
            yield from t.synchronize(first)
        yield from t.launch("touch", 3 * US, second)

    sim.thread(sim.process(), main)
    trace = sim.run().write(tmp_path / "a.sqlite")
    views = {device: analyze(trace, Settings(device=device)) for device in ("gpu0", "gpu1")}
    said = {device: view.diagnosis.headline for device, view in views.items() if view.diagnosis}
    assert "gpu1 has next to no work: 6.00 µs, where gpu0 has 120 ms." in said["gpu1"]
    assert "next to no work" not in said["gpu0"]
    assert views["gpu1"].findings
    assert [each.saves for each in views["gpu1"].findings if each.saves] == [], "it has nothing to do sooner"


@pytest.mark.slow
def test_a_view_of_a_gpu_that_waits_says_for_how_long(tmp_path: Path) -> None:
    """One of two ranks computes longer; the other one waits for it in each exchange."""
    sim, steps = Simulation(2), 30
    exchanges = [sim.collective(2) for _ in range(steps)]

    def rank(t: Thread, number: int) -> Body:
        for step in range(steps):
            yield from t.launch("gemm", (6 + 2 * number) * MS)
            yield from t.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 300 * US, collective=exchanges[step])
            yield from t.synchronize(t.process.null)

    for number in range(2):
        sim.thread(sim.process([number]), lambda t, number=number: rank(t, number))  # type: ignore[misc]
    trace = sim.run().write(tmp_path / "a.sqlite")
    view = analyze(trace, Settings(device="gpu0")).diagnosis
    assert view is not None
    assert re.search(r"This includes 2\d\.\d% in which GPUs wait for kernels of late ones", view.headline)
