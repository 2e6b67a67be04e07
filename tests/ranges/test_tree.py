"""The tree of NVTX ranges: each nanosecond of the window in one path, held to a slow oracle."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.arrays.nesting import Nesting
from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze
from nsysdiag.ranges.tree import ALIKE, nodes_of
from tests.builder import MAIN, TraceBuilder
from tests.levels import examples

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.ranges.facts import RangePath, RangeTree
    from nsysdiag.report import DeviceReport

US = 1_000
OTHER = (MAIN[0], MAIN[0] + 1)
Launched = tuple[int, int, int, str]
"""Start of the launch, start and end on the device, and the kind of an operation."""


def four_kernels() -> TraceBuilder:
    """Kernels of 50 µs, each launched 10 µs before it starts, 100 µs apart.

    thread  ..|.........|.........|.........|.......   launches at 90, 190, 290, 390 µs
    device  ...|====|....|====|....|====|....|====|    from 100 to 450 µs
    """
    made = TraceBuilder(duration=1_000 * US)
    for at in range(100 * US, 500 * US, 100 * US):
        made.kernel(at, at + 50 * US, name=f"kernel_{at}", launch=(at - 10 * US, at - 5 * US))
    return made


def device_of(trace: TraceBuilder, folder: Path) -> DeviceReport:
    path = folder / "trace.sqlite"
    path.unlink(missing_ok=True)
    trace.write(path)
    return analyze(path, Settings(replay=False, timeline=False)).devices[0]


def tree_of(trace: TraceBuilder, folder: Path) -> RangeTree:
    tree = device_of(trace, folder).ranges
    assert tree is not None
    return tree


def by_path(tree: RangeTree) -> dict[str, RangePath]:
    return {"/".join(row.path): row for row in tree.rows}


def test_work_and_idle_time_of_ranges_inside_each_other(tmp_path: Path) -> None:
    """
    thread  [step              [forward        ]  ]
    device     |====|....|====|....|====|....|====|
    """
    trace = four_kernels().nvtx("step", 80 * US, 500 * US).nvtx("forward", 180 * US, 300 * US)
    found = by_path(tree_of(trace, tmp_path))
    assert list(found) == ["", "step", "step/forward"]
    assert [row.work_ns for row in found.values()] == [200 * US, 200 * US, 100 * US]
    assert [row.own_work_ns for row in found.values()] == [0, 100 * US, 100 * US]
    assert [row.operations for row in found.values()] == [4, 4, 2]
    assert [(row.instances, row.projected_ns) for row in found.values()] == [(0, 0), (1, 350 * US), (1, 150 * US)]
    # A gap is where the thread was in the middle of its host's part: at 170, 270 and 370 µs.
    assert [(row.idle_ns, row.own_idle_ns) for row in found.values()] == [
        (150 * US, 0),
        (150 * US, 100 * US),
        (50 * US, 50 * US),
    ]
    assert found["step/forward"].idle.keys() <= found["step"].idle.keys()


def test_a_range_that_launches_nothing_holds_idle_time(tmp_path: Path) -> None:
    trace = four_kernels().nvtx("load", 155 * US, 185 * US)
    load = by_path(tree_of(trace, tmp_path))["load"]
    assert (load.instances, load.projected_ns, load.work_ns, load.idle_ns) == (0, 0, 0, 50 * US)


def test_of_operations_at_once_one_counts(tmp_path: Path) -> None:
    """
    a     |======|
    b        |=========|     its last 50 µs
    copy        |=========|  its last 30 µs
    """
    trace = TraceBuilder(duration=1_000 * US)
    trace.kernel(100 * US, 200 * US, launch=(10 * US, 11 * US)).kernel(
        150 * US, 250 * US, stream=8, launch=(20 * US, 21 * US)
    )
    trace.memcpy(180 * US, 280 * US, stream=9, launch=(30 * US, 31 * US))
    for name, at in (("a", 9), ("b", 19), ("c", 29)):
        trace.nvtx(name, at * US, (at + 5) * US)
    found = by_path(tree_of(trace, tmp_path))
    assert {name: row.work_ns for name, row in found.items()} == {
        "": 180 * US,
        "a": 100 * US,
        "b": 50 * US,
        "c": 30 * US,
    }
    assert [found[name].projected_ns for name in "abc"] == [100 * US] * 3


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("thread", [MAIN, OTHER])
def test_with_counters_the_tree_is_the_same(tmp_path: Path, thread: tuple[int, int], *, empty: bool) -> None:
    """
    thread  [other][forward        ]
    device       |====|....|====|....|====|.||.|====|     a kernel may take no time
    """

    def made() -> TraceBuilder:
        trace = four_kernels().nvtx("other", 10 * US, 95 * US, thread=thread).nvtx("forward", 180 * US, 300 * US)
        if empty:
            trace.kernel(360 * US, 360 * US, launch=(296 * US, 298 * US))
        return trace

    counted = made().gpu_metric("SMs Active [Throughput %]", [(at * US, 50) for at in range(100, 700, 20)])
    assert device_of(counted, tmp_path).gpu_metrics is not None
    assert tree_of(counted, tmp_path) == tree_of(made(), tmp_path)


def test_a_trace_without_ranges_has_no_tree(tmp_path: Path) -> None:
    assert device_of(four_kernels(), tmp_path).ranges is None
    assert device_of(four_kernels().nvtx("elsewhere", 80 * US, 500 * US, thread=OTHER), tmp_path).ranges is None


@pytest.mark.parametrize(("count", "names"), [(ALIKE, ALIKE), (ALIKE + 1, 1)])
def test_many_siblings_that_differ_in_a_counter_are_one(count: int, names: int) -> None:
    start = np.arange(count, dtype=np.int64) * 10
    nodes = nodes_of(Nesting.of(Intervals(start, start + 5)), np.arange(count), [f"layer {at}" for at in range(count)])
    assert len(nodes.names) - 1 == names
    assert nodes.names[1] == ("layer 0" if names > 1 else "layer #")


def test_steps_are_one_and_layers_keep_their_names() -> None:
    """step 0 [layer 0][layer 1], step 1 [layer 0][layer 1]"""
    start = np.array([0, 1, 5, 10, 11, 15], dtype=np.int64)
    end = np.array([9, 4, 8, 19, 14, 18], dtype=np.int64)
    names = ["step 0", "step 1", "layer 0", "layer 1"]
    nodes = nodes_of(Nesting.of(Intervals(start, end)), np.array([0, 2, 3, 1, 2, 3]), names, "step #")
    assert nodes.names == ["", "step #", "layer 0", "layer 1"]
    assert nodes.of_range.tolist() == [1, 2, 3, 1, 2, 3, 0]
    assert nodes.added_up(np.array([1, 10, 100, 1_000])).tolist() == [1_111, 1_110, 100, 1_000]


def test_calls_of_an_operator_of_pytorch_are_one() -> None:
    names = [f"aten::mul, seq = {at}, op_id = {3 * at}" for at in range(3)]
    start = np.arange(3, dtype=np.int64) * 10
    assert nodes_of(Nesting.of(Intervals(start, start + 5)), np.arange(3), names).names == ["", "aten::mul"]


# The oracle: moment by moment, range by range.

RANK = {"kernel": 0, "nccl": 1, "copy": 2}
SPAN = st.tuples(st.integers(0, 60), st.integers(1, 30))


@example(ranges=[], work=[(0, (start, 1), "nccl") for start in (0, 0, 1, 2, 3, 6, 6)])  # repeats without an operation
@given(
    ranges=st.lists(st.tuples(SPAN, st.sampled_from("abc"), st.booleans()), max_size=8),
    work=st.lists(
        st.tuples(st.integers(0, 60), SPAN, st.sampled_from(("kernel", "nccl", "copy"))), min_size=1, max_size=8
    ),
)
@settings(max_examples=examples(150), deadline=None)
def test_against_a_slow_oracle(
    ranges: list[tuple[tuple[int, int], str, bool]],
    work: list[tuple[int, tuple[int, int], str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    trace = TraceBuilder(duration=1_000 * US)
    spans = [(start, start + length, name) for (start, length), name, _ in ranges]
    for (start, end, name), (_, _, start_end) in zip(spans, ranges, strict=True):
        trace.nvtx(name, start, end, event_type=60 if start_end else 59)
    launched: list[Launched] = []
    for at, (launch, (after, length), kind) in enumerate(work):
        begin = launch + 2 + after
        launched.append((launch, begin, begin + length, kind))
        if kind == "copy":
            trace.memcpy(begin, begin + length, stream=at, launch=(launch, launch + 1))
        else:
            name = "ncclDevKernel_AllReduce" if kind == "nccl" else "gemm"
            trace.kernel(begin, begin + length, name=name, stream=at, launch=(launch, launch + 1))
    device = device_of(trace, tmp_path_factory.mktemp("oracle"))
    if not spans:
        assert device.ranges is None
        return
    assert device.ranges is not None
    rows = {tuple(row.path): row for row in device.ranges.rows}
    assert {path: row.own_work_ns for path, row in rows.items() if row.own_work_ns} == work_of(spans, launched)
    assert {path: (row.instances, row.projected_ns) for path, row in rows.items() if row.instances} == projected(
        spans, launched
    )
    assert sum(row.own_work_ns for row in rows.values()) == device.busy_ns
    assert sum(row.own_idle_ns for row in rows.values()) == device.idle_ns


Span = tuple[int, int, str]
Path_ = tuple[str, ...]


def open_at(spans: list[Span], moment: int) -> list[Span]:
    return [span for span in spans if span[0] <= moment < span[1]]


def outer_first(spans: list[Span]) -> list[int]:
    return sorted(range(len(spans)), key=lambda at: (spans[at][0], -spans[at][1], at))


def path_of(spans: list[Span], at: int) -> Path_:
    """The ranges that were open when a range began, of those that come before it."""
    order = outer_first(spans)
    before = [each for each in order[: order.index(at)] if spans[each][1] > spans[at][0]]
    return (*(path_of(spans, before[-1]) if before else ()), spans[at][2])


def innermost(spans: list[Span], moment: int) -> Path_:
    held = [at for at in outer_first(spans) if spans[at][0] <= moment < spans[at][1]]
    return path_of(spans, held[-1]) if held else ()


def work_of(spans: list[Span], launched: list[Launched]) -> dict[Path_, int]:
    found: Counter[Path_] = Counter()
    for moment in range(max(end for *_, end, _ in launched)):
        running = [each for each in launched if each[1] <= moment < each[2]]
        if running:
            found[innermost(spans, min(running, key=lambda each: (RANK[each[3]], each[1], each[0]))[0])] += 1
    return dict(found)


def projected(spans: list[Span], launched: list[Launched]) -> dict[Path_, tuple[int, int]]:
    found: dict[Path_, tuple[int, int]] = {}
    for at, (start, end, _) in enumerate(spans):
        mine = [each for each in launched if start <= each[0] < end]
        if mine:
            count, ns = found.get(path_of(spans, at), (0, 0))
            length = max(each[2] for each in mine) - min(each[1] for each in mine)
            found[path_of(spans, at)] = (count + 1, ns + length)
    return found
