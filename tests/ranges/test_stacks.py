"""The stacks of flame graphs: exact sums by cause, and the place of each nanosecond."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysdiag.arrays.claim import Owned
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.config.settings import Settings
from nsysdiag.events.samples import Samples
from nsysdiag.pipeline import analyze
from nsysdiag.ranges.facts import FlameStack
from nsysdiag.stacks.samples import MOST_STACKS, folded, sampled_time
from tests.builder import MAIN, TraceBuilder
from tests.causes.example import NEIGHBOUR, late
from tests.ledger.traces import only_device, report_of
from tests.levels import examples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsysdiag.ranges.facts import FlameGraph

US, MS = 1_000, 1_000_000


def flames_of(trace: TraceBuilder, folder: Path) -> FlameGraph:
    found = only_device(trace, folder).flames
    assert found is not None
    return found


def by_frames(stacks: Sequence[FlameStack]) -> dict[str, int]:
    return {";".join(each.frames): each.ns for each in stacks}


def test_a_call_with_its_chain_inside_a_range(tmp_path: Path) -> None:
    """
    range    [step                                              ]
    thread   [cudaStreamSynchronize: wait_all <- main]  [launch B]
    """
    chain = [("0x7f", "/usr/lib/libcuda.so.1"), "cudaStreamSynchronize", "wait_all", "main"]
    trace = late().api("cudaStreamSynchronize", 120_000, 270_000, chain=chain).nvtx("step", 100_000, 290_000)
    found = by_frames(flames_of(trace, tmp_path).idle)
    waited = {name: ns for name, ns in found.items() if "cudaStreamSynchronize" in name}
    assert waited == {
        "Synchronization;step;cudaStreamSynchronize;main;wait_all;libcuda.so.1": 150_000,
    }
    assert sum(found.values()) == 190_000
    assert all(name.split(";")[1] == "step" for name in found)


def test_samples_stand_for_a_period_each_and_the_rest_has_no_functions(tmp_path: Path) -> None:
    """A gap of 10 ms in host code with three samples, at a period of 1 ms."""
    trace = late(10 * MS)
    for at, name in ((2 * MS, "pack"), (3 * MS, "pack"), (4 * MS, "load")):
        trace.sample(at, symbols=(name, "main"))
    found = by_frames(flames_of(trace, tmp_path).idle)
    assert found["Host code;main;pack"] == 2 * MS
    assert found["Host code;main;load"] == 1 * MS


def test_functions_are_those_of_the_thread_at_the_root(tmp_path: Path) -> None:
    """
    T         [sem_wait ----------------------------)
    neighbour       [on a CPU: inflate <- load )
    """
    trace = late(10 * MS, schema="3.24.8").osrt("sem_wait", 200 * US, 9 * MS).process()
    trace.sched(205 * US, False).sched(9 * MS - 5 * US, True)
    trace.sched(2 * MS, True, thread=NEIGHBOUR, cpu=3).sched(8_990 * US, False, thread=NEIGHBOUR, cpu=3)
    for at in range(3, 8):
        trace.sample(at * MS, symbols=("inflate", "load"), thread=NEIGHBOUR, cpu=3)
    device = only_device(trace, tmp_path)
    assert device.flames is not None
    mine = [each for each in device.flames.idle if each.frames[1:] and "by thread 4300" in each.frames[1]]
    assert sum(each.ns for each in mine) == 6_990 * US
    assert {(*each.frames[-2:], each.ns) for each in mine if "inflate" in each.frames} == {("load", "inflate", 5 * MS)}
    assert {each.cause for each in mine} == {"host_compute"}


def test_python_stacks_go_before_native_ones(tmp_path: Path) -> None:
    trace = late(10 * MS, schema="3.17.2").sched(500, True).python_domain()
    trace.python_stack(
        3 * MS, [("load", "/home/me/data.py", 17), ("train", "/home/me/train.py", 80)], thread=(MAIN[0], 4299)
    )
    trace.sample(4 * MS, symbols=("_PyEval_EvalFrameDefault",), module="/usr/lib/libpython3.11.so.1.0")
    found = by_frames(flames_of(trace, tmp_path).idle)
    assert any(name.endswith("train (train.py);load (data.py)") for name in found)
    assert not any("_PyEval" in name for name in found)


def waits(seed: int) -> tuple[TraceBuilder, list[tuple[int, int]], list[tuple[int, int, str]]]:
    """Kernels on three streams, some at once, and synchronizations one after another."""
    rng, trace = random.Random(seed), TraceBuilder(duration=2 * MS)
    kernels: list[tuple[int, int, str]] = []
    for stream in (7, 8, 9):
        at = 20 * US
        for number in range(6):
            start = at + rng.randrange(1, 20) * 3 * US
            start += (stream - 7) * US - start % (3 * US)  # no two begin at once
            at = start + rng.randrange(1, 90) * US
            kernels.append((start, at, f"k{stream}_{'abc'[number % 3]}"))
            launch = 500 * len(kernels)
            trace.kernel(start, at, stream=stream, name=kernels[-1][2], launch=(launch, launch + 100))
    calls, at = [], 15 * US
    while at < 500 * US:
        end = at + rng.randrange(1, 80) * US
        trace.api("cudaDeviceSynchronize", at, end)
        calls.append((at, end))
        at = end + rng.randrange(1, 30) * US
    return trace, calls, kernels


@pytest.mark.parametrize("seed", range(examples(6)))
def test_waits_by_the_work_that_ran_against_a_slow_count(seed: int, tmp_path: Path) -> None:
    """Of several kernels at once the one that started first counts."""
    trace, calls, kernels = waits(seed)
    low, high = min(each[0] for each in kernels), max(each[1] for each in kernels)
    expected: dict[str, int] = {}
    for at in range(low, high, 500):
        running = sorted(each for each in kernels if each[0] <= at < each[1])
        if running and any(start <= at < end for start, end in calls):
            name = running[0][2]
            expected[name] = expected.get(name, 0) + 500
    found: dict[str, int] = {}
    for each in flames_of(trace, tmp_path).waits:
        assert each.frames[-1] == "cudaDeviceSynchronize"
        found[each.frames[0]] = found.get(each.frames[0], 0) + each.ns
    assert found == expected


def test_groups_beyond_the_most_are_added_to_their_first_frame() -> None:
    stacks = [FlameStack(["Host code", f"f{at}"], 1_000 - at, "host_compute") for at in range(MOST_STACKS + 40)]
    made = folded([*stacks, FlameStack(["Host code"], 0, "host_compute")])
    assert len(made) == MOST_STACKS + 1
    assert sum(each.ns for each in made) == sum(each.ns for each in stacks)
    assert made[0].frames == ["Host code"]


def test_many_samples_stand_for_whole_nanoseconds() -> None:
    """Samples that are not read are stood for by those that are."""
    count, groups = 25_000, 2
    owned = Owned.of(Intervals(np.array([0, 10_000_000]), np.array([9_999_999, 30_000_000])), np.array([0, 1]))
    position = np.sort(np.random.default_rng(1).integers(0, 30_000_000, count))
    samples = Samples(position, np.arange(count), Intervals.empty(), period_ns=1_001)
    group, chain, ns = sampled_time(owned, groups, samples)
    first, second = np.searchsorted(position, (9_999_999, 10_000_000)).tolist()
    assert np.bincount(group, ns).astype(int).tolist() == [
        min(first * 1_001, 9_999_999),
        min((count - second) * 1_001, 20_000_000),
    ]
    assert len(chain) <= 10_000


def test_without_a_gpu_it_is_the_host_s_samples(tmp_path: Path) -> None:
    trace = TraceBuilder(duration=20 * MS).nvtx("step", 0, 20 * MS)
    for at in range(1, 11):
        trace.sample(at * MS, symbols=("pack" if at % 2 else "load", "main"))
    report = report_of(trace, tmp_path)
    assert report.devices == []
    assert {each.frames[-1]: each.ns for each in report.host_stacks} == {"pack": 5 * MS, "load": 5 * MS}
    assert all(each.frames[0].startswith("main thread") for each in report.host_stacks)


def test_with_a_gpu_there_are_none_of_the_host(tmp_path: Path) -> None:
    path = late(10 * MS).sample(2 * MS).write(tmp_path / "trace.sqlite")
    assert analyze(path, Settings(replay=False)).host_stacks == []
