"""Which rows belong to a span of time: those inside, what touches it, and what explains it from afar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.share.cut import SliceCut
from tests.builder import MAIN, TraceBuilder, global_tid
from tests.share.slice.cutting import column, cut_file, cut_of, rows
from tests.trace.files import execute

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
NEIGHBOUR = (4242, 4300)
SPAN = SliceCut(100 * MS, 200 * MS)

KERNELS, CALLS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"


def kernels(*times: tuple[int, int], launched: int = MS // 2) -> TraceBuilder:
    """Kernels at these ms, each launched half a ms earlier."""
    trace = TraceBuilder()
    for start, end in times:
        trace.kernel(start * MS, end * MS, launch=(start * MS - launched, start * MS - launched + 1000))
    return trace


class TestOperations:
    def test_what_touches_the_span_is_kept_whole(self, tmp_path: Path) -> None:
        """
        span             [100 .................. 200)
        device   [80) [90 ---110)  [150 160)  [190 --- 210)  [200 ..
        """
        path = cut_of(kernels((70, 80), (90, 110), (150, 160), (190, 210), (200, 220)), tmp_path, SPAN)
        assert rows(path, f"SELECT start, end FROM {KERNELS}") == [
            (90 * MS, 110 * MS),
            (150 * MS, 160 * MS),
            (190 * MS, 210 * MS),
        ]

    def test_what_ends_where_the_span_begins_is_not_in_it_and_a_moment_is(self, tmp_path: Path) -> None:
        path = cut_of(kernels((90, 100), (100, 100), (200, 200)), tmp_path, SPAN)
        assert column(path, KERNELS, "start") == [100 * MS]

    def test_all_kinds(self, tmp_path: Path) -> None:
        trace = TraceBuilder(schema="3.24.8")
        for start in (50 * MS, 150 * MS):
            trace.memcpy(start, start + 10).memset(start + 20, start + 30).graph_trace(start + 40, start + 50)
        path = cut_of(trace, tmp_path, SPAN)
        for table in ("MEMCPY", "MEMSET", "GRAPH_TRACE"):
            assert len(column(path, f"CUPTI_ACTIVITY_KIND_{table}", "start")) == 1


class TestCalls:
    def test_a_launch_long_before_comes_with_its_operation(self, tmp_path: Path) -> None:
        """
        span                                [100 .......... 200)
        device   [first)  [other)               [B)
        thread  [0.5]    [20]  [launch B: 30] [35: wait]            what lies behind the launch of B comes too
        """
        trace = kernels((1, 2), (20, 21)).kernel(150 * MS, 151 * MS, launch=(30 * MS, 30 * MS + 1000))
        trace.api("cudaStreamWaitEvent", 35 * MS, 35 * MS + 500)
        path = cut_of(trace, tmp_path, SPAN)
        assert column(path, CALLS, "start") == [MS // 2, 30 * MS, 35 * MS]

    def test_an_operation_that_reaches_into_the_span_brings_its_launch_alone(self, tmp_path: Path) -> None:
        """
        span                  [100 .... 200)
        device      [10 ---------- 120)
        thread  [9] [15]  [50]               nothing between says anything about the span
        """
        trace = TraceBuilder().kernel(10 * MS, 120 * MS, launch=(9 * MS, 9 * MS + 10))
        trace.api("cudaMalloc", 15 * MS, 16 * MS).api("cudaMalloc", 50 * MS, 51 * MS)
        assert column(cut_of(trace, tmp_path, SPAN), CALLS, "start") == [9 * MS]

    def test_ids_of_another_process_launch_nothing(self, tmp_path: Path) -> None:
        trace = TraceBuilder().kernel(150 * MS, 160 * MS, launch=(10 * MS, 11 * MS), correlation=7)
        trace.api("cudaLaunchKernel", 5 * MS, 6 * MS, thread=(5000, 5000), correlation=7)
        assert column(cut_of(trace, tmp_path, SPAN), CALLS, "start") == [10 * MS]

    def test_exports_without_processes_go_by_the_id_alone(self, tmp_path: Path) -> None:
        trace = TraceBuilder(schema="2020").kernel(150 * MS, 160 * MS, launch=(10 * MS, 11 * MS), correlation=7)
        trace.row(KERNELS, {"start": 160 * MS, "end": 161 * MS, "correlationId": 9, "globalPid": None})
        trace.api("cudaLaunchKernel", 50 * MS, 51 * MS, correlation=9)
        assert column(cut_of(trace, tmp_path, SPAN), CALLS, "start") == [10 * MS, 50 * MS]

    def test_a_call_around_the_span_and_one_just_before_it(self, tmp_path: Path) -> None:
        trace = kernels((150, 160))
        trace.api("cudaDeviceSynchronize", 50 * MS, 250 * MS).api("cudaMalloc", 99 * MS + 1, 99 * MS + 2)
        trace.api("cudaMalloc", 98 * MS, 98 * MS + 1)
        path = cut_of(trace, tmp_path, SPAN)
        assert column(path, CALLS, "start") == [50 * MS, 99 * MS + 1, 149 * MS + MS // 2]

    def test_what_cupti_says_of_a_call_comes_with_it(self, tmp_path: Path) -> None:
        """A wait issued long before its operation: its row of SYNCHRONIZATION and the record that it waits for."""
        trace = TraceBuilder().kernel(150 * MS, 160 * MS, launch=(30 * MS, 30 * MS + 1000)).api("cuInit", 1, 2)
        trace.api("cudaEventRecord", 31 * MS, 31 * MS + 10, correlation=900).event_row(correlation=900, event=5)
        trace.api("cudaStreamWaitEvent", 32 * MS, 32 * MS + 10, correlation=901)
        trace.sync_row(32 * MS, 32 * MS + 10, correlation=901, kind="wait", event=5)
        trace.api("cudaEventRecord", 5 * MS, 5 * MS + 10, correlation=902).event_row(correlation=902, event=6)
        path = cut_of(trace, tmp_path, SPAN)
        assert column(path, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "correlationId") == [901]
        assert column(path, "CUPTI_ACTIVITY_KIND_CUDA_EVENT", "eventId") == [5]


class TestGraphs:
    """A graph launch with no operation passes for one that nsys did not trace: it must not be made by cutting."""

    @pytest.mark.parametrize(("traced", "kept"), [(True, [150 * MS]), (False, [150 * MS, 195 * MS])])
    def test_a_launch_whose_nodes_lie_behind_the_span(self, traced: bool, kept: list[int], tmp_path: Path) -> None:
        """
        span        [100 .............. 200)
        device               [150 160)        [210 220)      the second graph's nodes, where they were traced
        thread         [150]         [195]
        """
        trace = TraceBuilder().kernel(155 * MS, 160 * MS, launch=(150 * MS, 151 * MS), api="cudaGraphLaunch")
        trace.api("cudaGraphLaunch", 195 * MS, 196 * MS, correlation=777)
        if traced:
            trace.kernel(210 * MS, 220 * MS, correlation=777, graph_node=3)
        assert column(cut_of(trace, tmp_path, SPAN), CALLS, "start") == kept


class TestNeighbours:
    def test_scheduling_before_and_behind_the_span(self, tmp_path: Path) -> None:
        """
        span                [99 ................... 201) with its margin
        main      in 10  out 50      in 120  out 130       in 220  out 230
        neighbour in 20                                              out 240
        """
        trace = kernels((150, 160))
        for time, scheduled_in in ((10, True), (50, False), (120, True), (130, False), (220, True), (230, False)):
            trace.sched(time * MS, scheduled_in, cpu=1)
        trace.sched(20 * MS, True, cpu=2, thread=NEIGHBOUR).sched(240 * MS, False, cpu=2, thread=NEIGHBOUR)
        path = cut_of(trace, tmp_path, SPAN)
        assert rows(path, f"SELECT start / {MS}, globalTid & 0xffffff FROM SCHED_EVENTS ORDER BY 1") == [
            (20, NEIGHBOUR[1]),
            (50, MAIN[1]),
            (120, MAIN[1]),
            (130, MAIN[1]),
            (220, MAIN[1]),
            (240, NEIGHBOUR[1]),
        ]

    def test_the_next_event_of_the_same_cpu(self, tmp_path: Path) -> None:
        """T leaves the CPU in the span; who held it is told by an event behind it, of a thread seen before."""
        trace = kernels((150, 160)).sched(120 * MS, False, cpu=3)
        trace.sched(205 * MS, False, cpu=1, thread=NEIGHBOUR).sched(230 * MS, False, cpu=3, thread=NEIGHBOUR)
        assert column(cut_of(trace, tmp_path, SPAN), "SCHED_EVENTS", "start") == [120 * MS, 205 * MS, 230 * MS]

    def test_contexts_of_a_gpu(self, tmp_path: Path) -> None:
        trace = kernels((150, 160))
        for time in (10, 50, 150, 250, 260):
            trace.context_switch(time * MS)
        path = cut_of(trace, tmp_path, SPAN)
        assert column(path, "GPU_CONTEXT_SWITCH_EVENTS", "timestamp") == [50 * MS, 150 * MS, 250 * MS]


class TestHost:
    def test_os_calls_samples_and_their_chains(self, tmp_path: Path) -> None:
        trace = kernels((150, 160))
        for start, end, function in ((50, 60, "early"), (80, 120, "around"), (150, 155, "inside"), (210, 220, "late")):
            trace.osrt("read", start * MS, end * MS, chain=(function,)).sample(start * MS, symbols=(f"s_{function}",))
        path = cut_of(trace, tmp_path, SPAN)
        assert column(path, "OSRT_API", "start") == [80 * MS, 150 * MS]
        assert column(path, "COMPOSITE_EVENTS", "start") == [150 * MS]
        strings = "(SELECT value FROM StringIds WHERE id = symbol)"
        assert rows(path, f"SELECT {strings} FROM OSRT_CALLCHAINS ORDER BY id") == [("around",), ("inside",)]
        assert rows(path, f"SELECT {strings} FROM SAMPLING_CALLCHAINS") == [("s_inside",)]

    def test_a_lean_cut_has_no_chains_and_samples_of_launching_threads_only(self, tmp_path: Path) -> None:
        trace = kernels((150, 160)).sample(150 * MS).sample(151 * MS, thread=NEIGHBOUR)
        trace.osrt("read", 152 * MS, 153 * MS, thread=NEIGHBOUR, chain=("main",))
        path = cut_of(trace, tmp_path, SliceCut(100 * MS, 200 * MS, lean=True))
        assert column(path, "COMPOSITE_EVENTS", "globalTid") == [global_tid(MAIN)]
        assert column(path, "SAMPLING_CALLCHAINS", "id") == column(path, "OSRT_CALLCHAINS", "id") == []

    def test_ranges_that_touch_the_span_or_never_end(self, tmp_path: Path) -> None:
        trace = kernels((150, 160)).nvtx("open", 10 * MS, None).nvtx("over", 20 * MS, 30 * MS)
        trace.nvtx("around", 40 * MS, 300 * MS).nvtx("inside", 150 * MS, 160 * MS).nvtx("later", 300 * MS, 310 * MS)
        trace.nvtx("mark", 150 * MS, None, event_type=34).nvtx("early mark", 10 * MS, None, event_type=34)
        path = cut_of(trace, tmp_path, SPAN)
        assert column(path, "NVTX_EVENTS", "text") == ["around", "inside", "mark", "open"]

    def test_names_of_the_domains_in_use(self, tmp_path: Path) -> None:
        trace = kernels((150, 160)).nvtx("ncclAllReduce", 150 * MS, 151 * MS, domain=3)
        trace.nvtx("NCCL", -5 * MS, None, domain=3, event_type=75)
        trace.nvtx("unused", 0, None, domain=4, event_type=75)
        trace.nvtx("NCCL", 0, None, domain=3, event_type=75, thread=(5000, 5000))
        assert column(cut_of(trace, tmp_path, SPAN), "NVTX_EVENTS", "text") == ["NCCL", "ncclAllReduce"]

    def test_memory_that_was_allocated_before_is_still_there(self, tmp_path: Path) -> None:
        source = kernels((150, 160)).write(tmp_path / "trace.sqlite")
        table = "CUDA_GPU_MEMORY_USAGE_EVENTS"
        execute(source, f"CREATE TABLE {table} (start INTEGER NOT NULL, bytes INTEGER)")
        execute(source, f"INSERT INTO {table} VALUES (10000000, 1), (150000000, 2), (250000000, 3)")
        assert column(cut_file(source, tmp_path / "cut.sqlite", SPAN), table, "bytes") == [1, 2]


class TestPeople:
    """Names and samples are the captured program's own; who else was on a CPU remains a number."""

    STRANGER, CHILD = (9000, 9000), (4300, 4300)

    def trace(self, *others: tuple[int, int]) -> TraceBuilder:
        trace = kernels((150, 160)).process(name="/usr/bin/python3").thread_name("trainer").sched(150 * MS, True)
        trace.thread_name("idle thread", thread=(4242, 4999)).sched(152 * MS, True, thread=(0, 0))
        for thread in others:
            trace.sched(150 * MS, True, thread=thread).sample(151 * MS, thread=thread, symbols=(f"f{thread[0]}",))
        trace.thread_name("secret thread", thread=self.STRANGER).thread_name("pt_data_worker", thread=self.CHILD)
        return trace.process(9000, "/usr/sbin/secretd").process(4300, "/opt/python/bin/python3")

    def names(self, path: Path) -> set[str]:
        threads = rows(path, "SELECT value FROM ThreadNames JOIN StringIds ON id = nameId")
        return {name for (name,) in threads} | set(column(path, "PROCESSES", "name"))

    def test_a_forked_child_without_calls_is_the_program_s(self, tmp_path: Path) -> None:
        path = cut_of(self.trace(self.CHILD), tmp_path, SPAN)
        assert self.names(path) == {"python3", "trainer", "pt_data_worker"}
        assert len(column(path, "PROCESSES", "pid")) == 2
        assert column(path, "COMPOSITE_EVENTS", "globalTid") == [global_tid(self.CHILD)]

    def test_where_other_programs_run_one_of_the_same_name_is_anybody_s(self, tmp_path: Path) -> None:
        path = cut_of(self.trace(self.CHILD, self.STRANGER), tmp_path, SPAN)
        assert self.names(path) == {"python3", "trainer"}
        assert column(path, "COMPOSITE_EVENTS", "globalTid") == []
        scheduled = {global_tid(MAIN), global_tid(self.CHILD), global_tid(self.STRANGER), 0}
        assert set(column(path, "SCHED_EVENTS", "globalTid")) == scheduled
