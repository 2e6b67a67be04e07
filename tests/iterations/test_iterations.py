"""Iterations: what comes round is found, what only looks like it is not, and each one's time adds up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.iterations.report import MOST_ROWS
from nsysdiag.messages import UsageError
from nsysdiag.pipeline import analyze
from tests.builder import TraceBuilder
from tests.causes.example import NEIGHBOUR, STRANGER
from tests.ledger.traces import devices, only_device
from tests.simulator.scenarios import SCENARIOS, scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from nsysdiag.iterations.facts import Iteration, IterationReport
    from nsysdiag.report import DeviceReport
    from tests.builder import ThreadId

MS = 1_000_000
TEN = (MS,) * 10
FIRST = 2 * MS
"""Where the first step begins on the thread; its work begins 20 µs later."""
BEHIND = 20_000
GEMM = "gemm(float *, int)"
"""Kernels go by their demangled names."""


def starts(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The span of each step on the thread."""
    at = FIRST
    for length in lengths:
        yield at, at + length
        at += length


def work(trace: TraceBuilder, at: int, *, thread: ThreadId | None = None) -> TraceBuilder:
    """Half a millisecond of work that is launched at once: a gemm of 400 µs, then three relus.

    ```
    thread  [launch gemm][relu][relu][relu]
    device      [=====gemm=====)[relu).[relu).[relu)
    ```
    """
    of = {} if thread is None else {"thread": thread}
    trace.kernel(at + BEHIND, at + 420_000, name="gemm", launch=(at + 5_000, at + 10_000), **of)
    for number in range(3):
        call, run = at + 11_000 + 2_000 * number, at + 420_000 + 30_000 * number
        trace.kernel(run, run + 20_000, name="relu", launch=(call, call + 1_000), **of)
    return trace


def training(lengths: Sequence[int] = TEN, *, name: str | None = "step {}") -> TraceBuilder:
    """Steps of these lengths, each of half a millisecond of work and a read until the next one.

    ```
    NVTX    [step 0                 ][step 1                 ]
    thread  [launches]    [read     ][launches]    [read     ]
    device     [=work==)...............[=work==).............
    ```
    """
    trace = TraceBuilder()
    for number, (start, end) in enumerate(starts(lengths)):
        work(trace, start).osrt("read", start + 450_000, end - 1_000)
        if name is not None:
            trace.nvtx(name.format(number), start, end)
    return trace


def found(trace: TraceBuilder, folder: Path, settings: Settings | None = None) -> IterationReport:
    iterations = only_device(trace, folder, settings).iterations
    assert iterations is not None
    return iterations


def length(row: Iteration) -> int:
    return row.end_ns - row.start_ns


def check_sums(device: DeviceReport) -> None:
    """Each row adds up, and all rows are the window from the first iteration on."""
    assert device.iterations is not None
    rows = device.iterations.rows
    for row in rows:
        assert row.compute_ns + row.exposed_comm_ns + row.exposed_copy_ns + sum(row.ledger.values()) == length(row)
        assert all(ns > 0 for ns in row.ledger.values())
    if len(rows) < device.iterations.count:
        return
    assert [row.index for row in rows] == list(range(device.iterations.count))
    assert [row.start_ns for row in rows[1:]] == [row.end_ns for row in rows[:-1]]
    assert rows[-1].end_ns == device.window.end_ns
    if rows[0].start_ns == device.window.start_ns:
        total: dict[str, int] = {}
        for cause, ns in (item for row in rows for item in row.ledger.items()):
            total[cause] = total.get(cause, 0) + ns
        assert total == device.ledger
        assert sum(row.compute_ns for row in rows) == device.compute_ns


class TestByRanges:
    def test_steps_inside_one_enclosing_range(self, tmp_path: Path) -> None:
        """
        NVTX    [train                          ]      once: no iteration
                [step 0][step 1][step 2] ...
        """
        lengths = [MS + 10_000 * (number % 3) for number in range(10)]
        trace = training(lengths).nvtx("train", FIRST - 1_000, FIRST + sum(lengths) + 1_000)
        iterations = found(trace, tmp_path)
        assert (iterations.source, iterations.name, iterations.count) == ("nvtx", "step #", 10)
        assert [row.start_ns for row in iterations.rows] == [start + BEHIND for start, _ in starts(lengths)]
        assert [length(row) for row in iterations.rows][:9] == lengths[:9]

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("name", ["step {}", "Epoch 3 batch {}/100", "step", "iter={} loss=0.{}2"])
    def test_counters_make_no_difference(self, name: str, tmp_path: Path) -> None:
        assert found(training(name=name.replace("0.{}", "0.5")), tmp_path).count == 10

    @pytest.mark.slow
    def test_operators_inside_a_step_are_none(self, tmp_path: Path) -> None:
        """
        NVTX    [step 0                                  ]
                [aten::mm, seq = 0][aten::relu, seq = 1]...
        """
        trace = training()
        for number, (start, end) in enumerate(starts(TEN)):
            trace.nvtx(f"aten::mm, seq = {2 * number}", start + 1_000, start + 10_500)
            trace.nvtx(f"aten::relu, seq = {2 * number + 1}", start + 10_600, end - 1_000)
        assert found(trace, tmp_path).name == "step #"

    def test_work_that_begins_all_at_once_has_no_beginnings_of_steps(self, tmp_path: Path) -> None:
        """
        NVTX     [step 0][step 1][step 2] ...      launched one after the other
        stream 1                            |====)
        stream 2                            |====)      and held back by an event until all of them are
        """
        trace = TraceBuilder()
        for number, (start, end) in enumerate(starts(TEN)):
            trace.nvtx(f"step {number}", start, end - 1_000)
            trace.kernel(20 * MS, 21 * MS + number, stream=number + 1, launch=(start + 5_000, start + 10_000))
        assert only_device(trace, tmp_path).iterations is None

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("name", ["aten::linear, seq = {}", "aten::linear", "LinearBackward0, op_id = {}"])
    def test_operators_alone_are_none(self, name: str, tmp_path: Path) -> None:
        """
        NVTX    [train                                  ]
                [aten::linear, seq = 0][aten::linear, seq = 1]      as long as a step, but an operator
        """
        trace = training(name=name).nvtx("train", FIRST - 1_000, FIRST + sum(TEN))
        iterations = found(trace, tmp_path)
        assert (iterations.source, iterations.name) == ("anchor", GEMM)

    def test_phases_of_a_step_without_a_range_of_its_own(self, tmp_path: Path) -> None:
        """
        NVTX    [forward      ][backward][forward      ][backward]      from forward to forward
        """
        trace = training(name=None)
        for start, end in starts(TEN):
            trace.nvtx("forward", start, start + 700_000).nvtx("backward", start + 700_000, end)
        iterations = found(trace, tmp_path)
        assert (iterations.name, iterations.count) == ("forward", 10)

    def test_ranges_that_launch_nothing_are_none(self, tmp_path: Path) -> None:
        """
        T       [step 0][step 1][step 2]...
        neighbour  [load 0 ][load 1 ][load 2 ]...      no operation comes of them
        """
        trace = training()
        for number, (start, end) in enumerate(starts(TEN)):
            trace.nvtx(f"load {number}", start - 100_000, end - 100_000, thread=NEIGHBOUR)
        assert found(trace, tmp_path).name == "step #"

    def test_two_threads_launch(self, tmp_path: Path) -> None:
        """
        T          [step 0            ][step 1            ]
        neighbour         [backward  ]        [backward  ]      its work is part of the step
        """
        trace = training()
        for start, _end in starts(TEN):
            trace.nvtx("autograd", start + 600_000, start + 700_000, thread=NEIGHBOUR)
            call = (start + 610_000, start + 615_000)
            trace.kernel(start + 620_000, start + 700_000, name="grad", launch=call, thread=NEIGHBOUR)
        device = only_device(trace, tmp_path)
        assert device.iterations is not None
        assert (device.iterations.name, device.iterations.count) == ("step #", 10)
        assert device.iterations.rows[3].compute_ns == 400_000 + 60_000 + 80_000
        check_sums(device)

    def test_both_threads_have_steps(self, tmp_path: Path) -> None:
        """
        T          [step 0][step 1][step 2]                        the first half
        neighbour                          [step 0] ... [step 7]   the longer part: it covers more
        """
        trace = TraceBuilder()
        for number, (start, end) in enumerate(starts((MS,) * 20)):
            late = number >= 6
            work(trace, start, thread=NEIGHBOUR if late else None)
            trace.nvtx(f"step {number}", start, end, **({"thread": NEIGHBOUR} if late else {}))
        iterations = found(trace, tmp_path)
        assert (iterations.name, iterations.count) == ("step #", 14)

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(("mine", "name"), [(20, "step #"), (14, "batch #")])
    def test_of_two_threads_at_once_the_one_that_covers_more(self, mine: int, name: str, tmp_path: Path) -> None:
        """
        T          [step 0    ][step 1    ][step 2    ] ...      the first `mine` of 20
        neighbour     [batch 0    ][batch 1    ] ...             the first 17
        """
        trace = TraceBuilder()
        for number, (start, end) in enumerate(starts((MS,) * 20)):
            work(trace, start)
            call = (start + 610_000, start + 615_000)
            trace.kernel(start + 620_000, start + 700_000, name="grad", launch=call, thread=NEIGHBOUR)
            if number < mine:
                trace.nvtx(f"step {number}", start, end)
            if number < 17:
                trace.nvtx(f"batch {number}", start + 600_000, end + 600_000, thread=NEIGHBOUR)
        assert found(trace, tmp_path).name == name

    def test_ranges_of_communication_are_none(self, tmp_path: Path) -> None:
        """NCCL's own ranges come round as regularly as steps."""
        trace = training(name=None).nvtx("NCCL", 0, None, domain=5, event_type=75)
        for start, end in starts(TEN):
            trace.nvtx("ncclAllReduce", start, end, domain=5)
        assert found(trace, tmp_path).source == "anchor"

    def test_a_range_that_was_never_closed(self, tmp_path: Path) -> None:
        assert found(training().nvtx("main", FIRST - 5_000, None), tmp_path).name == "step #"


class TestByAnchor:
    def test_the_kernel_that_comes_once_a_step(self, tmp_path: Path) -> None:
        """
        device  [=gemm=)[relu)[relu)[relu).....[=gemm=)[relu)[relu)[relu)
        """
        iterations = found(training(name=None), tmp_path)
        assert (iterations.source, iterations.name, iterations.count) == ("anchor", GEMM, 10)
        assert iterations.p50_ns == MS

    def test_even_if_the_other_comes_as_regularly(self, tmp_path: Path) -> None:
        """
        device  [A)[B)...[B)...[B)...[A)[B)...[B)...[B)...      B every third of a step
        """
        trace = TraceBuilder()
        for number in range(30):
            at = FIRST + number * 300_000
            trace.kernel(at, at + 100_000, name="often", launch=(at - 9_000, at - 5_000))
            if number % 3 == 0:
                trace.kernel(at + 110_000, at + 200_000, name="once", launch=(at - 4_000, at - 2_000))
        iterations = found(trace, tmp_path)
        assert (iterations.name, iterations.count) == ("once(float *, int)", 10)

    def test_a_graph_launch(self, tmp_path: Path) -> None:
        trace = TraceBuilder()
        for start, _end in starts(TEN):
            trace.graph_trace(start, start + 600_000, launch=(start - 9_000, start - 5_000))
        iterations = found(trace, tmp_path)
        assert (iterations.source, iterations.name, iterations.count) == ("anchor", "graph launch", 10)


class TestNone:
    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("name", ["step {}", None])
    def test_fewer_than_five(self, name: str | None, tmp_path: Path) -> None:
        assert only_device(training((MS,) * 4, name=name), tmp_path).iterations is None

    def test_ranges_that_leave_most_of_their_time_to_others(self, tmp_path: Path) -> None:
        """
        NVTX    [log]        [log]        [log]            inside steps of which nothing else is named
        """
        trace = training(name=None)
        for start, _end in starts(TEN):
            trace.nvtx("log", start + 3_000, start + 300_000)
        assert found(trace, tmp_path).source == "anchor"

    def test_nothing_regular(self, tmp_path: Path) -> None:
        trace = TraceBuilder()
        at = FIRST
        for number in range(12):
            at += 100_000 * 2 ** (number * 5 % 7)
            trace.kernel(at, at + 50_000, name="k", launch=(at - 9_000, at - 5_000))
        assert only_device(trace, tmp_path).iterations is None

    def test_a_narrowed_window(self, tmp_path: Path) -> None:
        assert only_device(training(), tmp_path, Settings(start_ns=FIRST + MS)).iterations is None

    def test_a_device_without_launches(self, tmp_path: Path) -> None:
        trace = TraceBuilder().memcpy(2_000, 3_000, kind="UM HtoD").memcpy(90_000, 91_000, kind="UM DtoH")
        assert only_device(trace, tmp_path).iterations is None


class TestSteady:
    def test_warm_up_is_left_out(self, tmp_path: Path) -> None:
        iterations = found(training((9 * MS, 3 * MS, *((MS,) * 18))), tmp_path)
        assert iterations.left_out == [0, 1, 19]
        assert (iterations.steady, iterations.count) == (17, 20)
        assert iterations.worst_ns == iterations.p50_ns == iterations.p95_ns == MS
        assert [row.steady for row in iterations.rows] == [False, False, *(True,) * 17, False]

    def test_a_slow_one_in_the_middle_is_no_warm_up(self, tmp_path: Path) -> None:
        iterations = found(training((*TEN, 5 * MS, *TEN)), tmp_path)
        assert iterations.left_out == [20]
        assert iterations.worst_ns == 5 * MS

    def test_graph_capture_is_left_out(self, tmp_path: Path) -> None:
        """
        thread  [launches] [BeginCapture ... EndCapture] [launches]      in the fifth step
        """
        trace = training()
        at = FIRST + 4 * MS
        trace.api("cudaStreamBeginCapture", at + 600_000, at + 605_000)
        trace.api("cudaStreamEndCapture", at + 800_000, at + 805_000)
        assert found(trace, tmp_path).left_out == [4, 9]

    def test_the_last_one_is_left_out_where_it_is_cut_short(self, tmp_path: Path) -> None:
        """
        device  [=work==).......[=work==).......[=work==)      the window ends with the last operation
        """
        iterations = found(training(), tmp_path)
        assert length(iterations.rows[-1]) == 480_000
        assert iterations.left_out == [9]

    def test_the_last_one_is_left_out_where_more_follows(self, tmp_path: Path) -> None:
        """
        device  [=work==).......[=work==).......[=work==)...[==== something else ====)
        """
        end = FIRST + 10 * MS
        trace = training().kernel(end + BEHIND, end + 3 * MS, name="evaluate", launch=(end + 5_000, end + 10_000))
        iterations = found(trace, tmp_path)
        assert iterations.left_out == [9]
        assert (iterations.worst_ns, iterations.slow) == (MS, [])

    def test_the_last_one_counts_where_it_is_whole(self, tmp_path: Path) -> None:
        trace = training()
        end = FIRST + 10 * MS
        trace.kernel(end - 30_000, end + BEHIND, name="last", launch=(end - 60_000, end - 50_000))
        assert found(trace, tmp_path).left_out == []


class TestSlow:
    def test_explained_by_what_it_has_more_of(self, tmp_path: Path) -> None:
        iterations = found(training((*TEN, 3 * MS, *TEN)), tmp_path)
        (slow,) = iterations.slow
        assert (slow.index, slow.extra_ns) == (10, 2 * MS)
        assert slow.more == {"io_wait": 2 * MS}

    def test_by_work(self, tmp_path: Path) -> None:
        """
        device  in the fourth step a copy of 800 µs after the work, and nothing beside it
        """
        lengths = (MS, MS, MS, 1_800_000, *(MS,) * 8)
        trace = training(lengths)
        at = FIRST + 3 * MS
        trace.memcpy(at + 900_000, at + 1_700_000, launch=(at + 18_000, at + 19_000))
        (slow,) = found(trace, tmp_path).slow
        assert slow.index == 3
        assert next(iter(slow.more)) == "exposed_copy"
        assert slow.more["exposed_copy"] == 800_000

    def test_the_slowest_comes_first_and_warm_up_is_none(self, tmp_path: Path) -> None:
        lengths = (9 * MS, *TEN, 2 * MS, *TEN, 4 * MS, *TEN)
        assert [slow.index for slow in found(training(lengths), tmp_path).slow] == [22, 11]

    def test_none_where_all_are_alike(self, tmp_path: Path) -> None:
        assert found(training([MS + 1_000 * (number % 5) for number in range(20)]), tmp_path).slow == []


class TestSums:
    def test_rows_are_the_window_from_the_first_iteration_on(self, tmp_path: Path) -> None:
        """
        device  [setup) ... [step 0 ...)[step 1 ...)
        """
        trace = training([MS + 7 * number for number in range(12)])
        trace.kernel(1_000_000, 1_500_000, name="setup", launch=(900_000, 950_000))
        device = only_device(trace, tmp_path)
        check_sums(device)
        assert device.iterations is not None
        rows = device.iterations.rows
        assert sum(length(row) for row in rows) == device.window.end_ns - (FIRST + BEHIND)
        before = FIRST + BEHIND - device.window.start_ns
        assert sum(length(row) for row in rows) + before == device.window_ns

    def test_all_of_it_where_the_first_operation_is_that_of_an_iteration(self, tmp_path: Path) -> None:
        check_sums(only_device(training(), tmp_path))

    @pytest.mark.sampled(normal=2)
    @pytest.mark.parametrize("name", ["starved_training", "starved_data_parallel"])
    def test_on_a_simulated_training(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / "trace.sqlite"
        scenario(name).write(path, SCENARIOS[name].capture)
        for device in analyze(path).devices:
            check_sums(device)

    @pytest.mark.slow
    def test_only_the_longest_of_many_are_listed(self, tmp_path: Path) -> None:
        many = MOST_ROWS + 50
        trace = training([MS - 100 * number for number in range(many)])
        iterations = found(trace, tmp_path)
        assert iterations.count == many
        assert [row.index for row in iterations.rows] == list(range(MOST_ROWS))


def test_each_device_has_its_own(tmp_path: Path) -> None:
    """
    gpu0  [step 0)......[step 1)......
    gpu1      [k)                             one kernel: nothing comes round
    """
    trace = training().kernel(FIRST, FIRST + 9_000, device=1, stream=14, launch=(FIRST - 9_000, FIRST - 5_000))
    both = devices(trace, tmp_path)
    assert both["gpu0"].iterations is not None
    assert both["gpu1"].iterations is None


class TestWindow:
    @pytest.mark.sampled(quick=3)
    @pytest.mark.parametrize(
        ("wanted", "borders", "reason"),
        [
            ((2, 5), (2, 5), "iterations 2 to 4 of 10"),
            ((7, 8), (7, 8), "iteration 7 of 10"),
            ((None, 3), (0, 3), "iterations 0 to 2 of 10"),
            ((-3, -1), (7, 9), "iterations 7 to 8 of 10"),
            ((2, 99), (2, None), "iterations 2 to 9 of 10"),
            ((-99, None), (0, None), "iterations 0 to 9 of 10"),
        ],
    )
    def test_from_the_start_of_one_to_the_start_of_another(
        self,
        wanted: tuple[int | None, int | None],
        borders: tuple[int, int | None],
        reason: str,
        tmp_path: Path,
    ) -> None:
        device = only_device(training(), tmp_path, Settings(iterations=wanted))
        first, behind = borders
        end = FIRST + 9 * MS + 500_000 if behind is None else FIRST + behind * MS + BEHIND
        assert device.window.parts == [(FIRST + first * MS + BEHIND, end)]
        assert device.window.reason.startswith(reason)
        assert device.iterations is None
        assert sum(device.ledger.values()) == device.idle_ns

    @pytest.mark.slow
    def test_its_ledger_is_that_of_the_iteration(self, tmp_path: Path) -> None:
        trace = training((*TEN, 3 * MS, *TEN))
        row = found(trace, tmp_path).rows[10]
        device = only_device(trace, tmp_path, Settings(iterations=(10, 11)))
        assert (device.window.start_ns, device.window.end_ns) == (row.start_ns, row.end_ns)
        assert (device.compute_ns, device.ledger) == (row.compute_ns, row.ledger)

    @pytest.mark.parametrize("wanted", [(10, None), (5, 5), (-1, -3)])
    def test_none_of_them_is_a_mistake(self, wanted: tuple[int | None, int | None], tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="there are 10 iterations, and none of them is chosen"):
            only_device(training(), tmp_path, Settings(iterations=wanted))

    def test_a_trace_without_iterations(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no iterations were found"):
            only_device(training((MS,) * 3), tmp_path, Settings(iterations=(0, 2)))


def test_processes_that_share_a_device(tmp_path: Path) -> None:
    """
    process 1  [step 0][step 1]...      the work of both counts, the steps are those of the one that covers more
    process 2    [k)      [k)
    """
    trace = training()
    for start, _end in starts(TEN):
        call = (start + 590_000, start + 595_000)
        trace.kernel(start + 600_000, start + 700_000, name="other", launch=call, thread=STRANGER, context=2)
    device = only_device(trace, tmp_path, Settings(same_gpu=True))
    assert device.iterations is not None
    assert (device.iterations.name, device.iterations.rows[2].compute_ns) == ("step #", 560_000)
    check_sums(device)


def test_copies_that_run_ahead_begin_no_iteration(tmp_path: Path) -> None:
    """The host is far ahead, and copies wait for nothing: an iteration lasts as long as its kernels, not as its copies
    are apart."""
    trace = TraceBuilder()
    for step in range(10):
        at = FIRST + step * 100_000
        trace.nvtx(f"step {step}", at, at + 90_000)
        trace.memcpy(at + 20_000, at + 40_000, launch=(at + 1_000, at + 5_000), stream=9)
        for number in range(2):
            run = FIRST + 50_000 + step * MS + number * 500_000
            trace.kernel(
                run, run + 490_000, name="gemm", launch=(at + 10_000 + number * 5_000, at + 13_000 + number * 5_000)
            )
    found = only_device(trace, tmp_path).iterations
    assert found is not None
    assert found.source == "nvtx"
    assert [row.end_ns - row.start_ns for row in found.rows[:-1]] == [MS] * 9


def test_steps_that_take_streams_in_turn_are_all_found(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for step in range(10):
        at = FIRST + step * MS
        trace.nvtx(f"step {step}", at, at + 900_000)
        trace.kernel(at + 20_000, at + 800_000, name="gemm", launch=(at + 1_000, at + 5_000), stream=7 + step % 2)
    found = only_device(trace, tmp_path).iterations
    assert found is not None
    assert found.count == 10


def test_a_trace_of_two_nanoseconds(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for start in (1, 1, 1, 1, 2):
        trace.kernel(start, start + 1, launch=(0, 1))
    (device,) = analyze(trace.write(tmp_path / "trace.sqlite")).devices
    assert device.window_ns == 2
