"""Ranks of one run: who is late, for how long, and why; and when nothing may be said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.events.nvtx import FIELD
from nsysdiag.messages import UsageError
from nsysdiag.pipeline import analyze
from nsysdiag.ranks.pipeline import analyze_ranks
from tests.builder import TraceBuilder, global_tid
from tests.events.test_collectives import NCCL, SCHEMA, payload
from tests.ranks.run import (
    ALL_REDUCE,
    COMPUTE,
    MS,
    PERIOD,
    TRANSFER,
    US,
    add_rank,
    compared,
    compared_files,
    files,
    one_file,
)

if TYPE_CHECKING:
    from pathlib import Path

EVEN = [[4 * MS] * 4] * 5
RANK_3_LATE = [[4 * MS, 4 * MS, 4 * MS, 7 * MS]] * 5
# 3 ms of each step: the call takes 5 µs of it and the way to the device 5 µs.
WHY = {"host_compute": 5 * (3 * MS - 10 * US), "launch_call": 25 * US, "launch_latency": 25 * US}


@pytest.mark.slow
def test_a_late_rank_is_found_with_what_it_costs_and_why(tmp_path: Path) -> None:
    """
    rank 0, 1, 2   [compute)[AllReduce: waits 3 ms |transfer 1 ms)      five times
    rank 3         [compute)......host code........[transfer 1 ms)
    """
    found = compared(tmp_path, one_file(RANK_3_LATE))
    (late,) = found.stragglers
    assert (late.rank, late.late, late.of, late.late_ns, late.caused_ns) == ("gpu3", 5, 5, 15 * MS, 45 * MS)
    assert late.more == WHY
    assert late.meanwhile == WHY
    assert (late.confidence, late.worst_ns, late.worst_start_ns) == (1.0, 3 * MS, PERIOD + 7 * MS)
    assert [(row.wait_ns, row.transfer_ns, row.late) for row in found.ranks] == [(15 * MS, 5 * MS, 0)] * 3 + [
        (0, 5 * MS, 5)
    ]
    assert found.sentence.startswith(
        "gpu3 is late for 5 of 5 collectives, by 15.0 ms in all, and the others wait 45.0 ms for it."
    )


@pytest.mark.slow
def test_what_each_rank_waited_is_traced_to_the_reason_of_the_late_one(tmp_path: Path) -> None:
    found = compared(tmp_path, one_file(RANK_3_LATE))
    assert [(wait.rank, wait.late_rank, wait.wait_ns) for wait in found.waits] == [
        (rank, "gpu3", 15 * MS) for rank in ("gpu0", "gpu1", "gpu2")
    ]
    assert all(wait.causes == WHY for wait in found.waits)


@pytest.mark.slow
def test_work_is_compared_between_the_first_and_the_last_meeting(tmp_path: Path) -> None:
    """
    rank 0   [AllReduce)      [compute 4)[AllReduce 4)    four steps of 10 ms: 16 compute, 16 communication, 8 idle
    rank 3   [AllReduce)      [compute 4)...[AllRed 1)                         16 compute, 4 communication, 20 idle
    """
    found = compared(tmp_path, one_file(RANK_3_LATE))
    times = [(row.span_ns, row.compute_ns, row.exposed_comm_ns, row.idle_ns) for row in found.ranks]
    assert times == [(40 * MS, 16 * MS, 16 * MS, 8 * MS)] * 3 + [(40 * MS, 16 * MS, 4 * MS, 20 * MS)]
    assert (found.basis, found.slowest) == ("collectives", "gpu3")
    assert found.imbalance["compute_ns"] == 0
    assert found.imbalance["exposed_comm_ns"] == pytest.approx(12 / 13, abs=1e-6)
    assert found.imbalance["idle_ns"] == pytest.approx(12 / 11, abs=1e-6)


@pytest.mark.slow
def test_ranks_that_come_together_have_no_straggler(tmp_path: Path) -> None:
    found = compared(tmp_path, one_file(EVEN))
    assert (found.stragglers, found.waits) == ([], [])
    assert [group.count for group in found.groups] == [5]
    assert found.sentence.startswith("No rank is late by more than 20.0 µs")


@pytest.mark.slow
def test_one_early_rank_makes_no_other_one_late(tmp_path: Path) -> None:
    """
    rank 0         [AllReduce ............)      waits 3 ms, and nobody is to blame
    rank 1, 2, 3            [AllReduce ...)
    """
    found = compared(tmp_path, one_file([[4 * MS, 7 * MS, 7 * MS, 7 * MS]] * 5))
    assert found.stragglers == []
    assert [(wait.rank, wait.late_rank, wait.wait_ns) for wait in found.waits] == [("gpu0", None, 15 * MS)]


def two_buckets(late_ns: int, extra_ns: int = 0) -> TraceBuilder:
    """Twelve steps of two ranks that reduce two buckets beside the backward pass. Rank 1 has host code of `late_ns`
    before each step, and computes `extra_ns` longer.

    ```
    rank 0   [forward)[backward)                             [forward)
                      [======= 1 =======)[===== 2 =====)
    rank 1   host code ....[forward)[backward)
                                    [= 1 )     [= 2 )
    ```
    """
    trace = TraceBuilder()
    for rank in range(2):
        thread = (100 + rank, 100 + rank)
        trace.sched(1, True, thread=thread, cpu=rank)
        for base in range(20 * MS, 260 * MS, 20 * MS):
            begin = base + rank * late_ns
            forward, backward = begin + 3 * MS, begin + 6 * MS + rank * extra_ns
            met = base + late_ns + 3 * MS + TRANSFER
            end = base + late_ns + 6 * MS + extra_ns + TRANSFER
            spans = [(begin, forward, 7, "forward"), (forward, backward, 7, "backward")]
            spans += [(forward, met, 9, ALL_REDUCE), (max(backward, met), end, 9, ALL_REDUCE)]
            launch = (begin - 20 * US, begin - 15 * US)
            for start, end, stream, name in spans:
                trace.kernel(start, end, name=name, stream=stream, launch=launch, device=rank, thread=thread)
    return trace


@pytest.mark.slow
def test_what_others_computed_ahead_makes_no_rank_late(tmp_path: Path) -> None:
    """Rank 0 runs its backward pass while it waits for the first bucket. Rank 1 does so after it, as long: it is late
    for the second bucket because of its host code."""
    (late,) = compared(tmp_path, two_buckets(5 * MS)).stragglers
    assert (late.rank, late.late) == ("gpu1", 24)
    assert set(late.more) == {"host_compute"}


@pytest.mark.slow
def test_what_a_rank_computes_longer_stays_a_reason(tmp_path: Path) -> None:
    (late,) = compared(tmp_path, two_buckets(5 * MS, 2 * MS)).stragglers
    assert late.more["compute"] > MS


def test_a_delay_that_compute_brings_over_is_not_blamed_on_compute(tmp_path: Path) -> None:
    """
    rank 0   [A: together)        [compute 4)[B: waits 3 ms ....)
    rank 1   [A: together)..host..[compute 4)       [B .........)      meanwhile it computes, but both did that
    """
    trace = TraceBuilder()
    for rank, late in ((0, 0), (1, 3 * MS)):
        where = {"device": rank, "thread": (100 + rank, 100 + rank)}
        trace.sched(1, True, thread=where["thread"], cpu=rank)
        launch, compute, meet = 9 * MS, 12 * MS + late, 16 * MS + late
        trace.kernel(10 * MS, 11 * MS, name=ALL_REDUCE, stream=9, launch=(launch, launch + 5 * US), **where)
        trace.kernel(compute, compute + COMPUTE, launch=(compute - 10 * US, compute - 5 * US), **where)
        early = (compute - 4 * US, compute - 2 * US)
        trace.kernel(meet, 20 * MS, name=ALL_REDUCE, stream=9, launch=early, **where)
    (late_one,) = compared(tmp_path, trace).stragglers
    assert (late_one.rank, late_one.late_ns) == ("gpu1", 3 * MS)
    assert late_one.meanwhile == {"compute": 3 * MS}
    assert late_one.more == {"host_compute": 3 * MS}


class TestClocks:
    @pytest.mark.slow
    def test_several_files_come_to_one_clock_by_the_ends(self, tmp_path: Path) -> None:
        """The clock of rank 1 is 40 ms ahead of that of rank 0, that of rank 2 2 s behind; the files say so to 2 ms."""
        arrivals = [[4 * MS, 4 * MS, 7 * MS]] * 5
        clocks = [2_000 * MS, 2_040 * MS, 0]
        paths = files(tmp_path, arrivals, clocks, utc=[0, -38 * MS, 2_001 * MS])
        found = compared_files(*paths)
        assert [(row.rank, row.offset_ns, row.offset_error_ns) for row in found.ranks] == [
            ("rank0", 0, 0),
            ("rank1", -40 * MS, 0),
            ("rank2", 2_000 * MS, 0),
        ]
        (late,) = found.stragglers
        assert (late.rank, late.late, late.late_ns, late.caused_ns) == ("rank2", 5, 15 * MS, 30 * MS)
        assert late.more == WHY
        assert found.clock == "aligned by the ends of collectives, up to 2.00 ms from the starts of the sessions"

    @pytest.mark.slow
    def test_files_without_a_session_start_are_brought_together_all_the_same(self, tmp_path: Path) -> None:
        paths = files(tmp_path, [[4 * MS, 7 * MS]] * 5, [0, 500 * MS])
        found = compared_files(*paths)
        assert [row.offset_ns for row in found.ranks] == [0, -500 * MS]
        assert [late.rank for late in found.stragglers] == ["rank1"]

    @pytest.mark.slow
    def test_a_clock_less_sure_than_the_delay_allows_no_claim(self, tmp_path: Path) -> None:
        """The clock of rank 1 jumps by 4 ms from step to step; it is late by 3 ms."""
        jumps = [0, 4 * MS, -4 * MS, 4 * MS, -4 * MS]
        found = compared_files(*files(tmp_path, [[4 * MS, 7 * MS]] * 5, [0, jumps], utc=[0, 0]))
        assert found.stragglers == []
        assert found.clock_error_ns == 4 * MS
        assert found.sentence.startswith("No rank is late by more than")
        assert [(wait.late_rank, wait.wait_ns) for wait in found.waits] == [(None, 15 * MS)]

    @pytest.mark.slow
    def test_the_same_jumps_hide_no_delay_that_is_longer(self, tmp_path: Path) -> None:
        """Near miss: the clock jumps by 100 µs only."""
        jumps = [0, 100 * US, -100 * US, 100 * US, -100 * US]
        found = compared_files(*files(tmp_path, [[4 * MS, 7 * MS]] * 5, [0, jumps], utc=[0, 0]))
        assert [(late.rank, late.late) for late in found.stragglers] == [("rank1", 5)]
        assert found.clock_error_ns == 100 * US

    @pytest.mark.slow
    def test_clocks_that_drift_are_followed(self, tmp_path: Path) -> None:
        """60 steps, 0.6 s, in which the clock of rank 1 gains 200 millionths: 118 µs; it is late by 80 µs each time."""
        drift = [2 * US * step for step in range(60)]
        found = compared_files(*files(tmp_path, [[4 * MS, 4 * MS + 80 * US]] * 60, [0, drift], utc=[0, 0]))
        (late,) = found.stragglers
        assert (late.rank, late.late) == ("rank1", 60)
        assert late.late_ns == pytest.approx(60 * 80 * US, rel=0.02)
        assert found.ranks[1].drift_ppm == pytest.approx(-200, rel=0.01)
        assert found.clock_error_ns is not None
        assert found.clock_error_ns <= US
        assert found.clock.endswith("they drift by up to 200 ppm")

    @pytest.mark.slow
    def test_what_is_no_clock_is_no_drift(self, tmp_path: Path) -> None:
        """Near miss: 2,000 millionths are more than any clock is off, and no delay below the error is believed."""
        jumps = [20 * US * step for step in range(60)]
        found = compared_files(*files(tmp_path, [[4 * MS, 4 * MS + 80 * US]] * 60, [0, jumps], utc=[0, 0]))
        assert (found.stragglers, found.ranks[1].drift_ppm) == ([], 0)

    @pytest.mark.slow
    def test_two_collectives_do_not_tell_the_clock(self, tmp_path: Path) -> None:
        found = compared_files(*files(tmp_path, [[4 * MS, 7 * MS]] * 2, [0, 0], utc=[0, 0]))
        assert (found.clock_error_ns, found.stragglers) == (None, [])
        assert "the clock offset is unknown" in found.sentence

    @pytest.mark.slow
    def test_ranks_of_one_file_need_no_other_one(self, tmp_path: Path) -> None:
        """Nothing links the second file, whose steps are of another number: its own ranks still share a clock."""
        first = one_file([[4 * MS, 7 * MS]] * 5).write(tmp_path / "a.sqlite")
        second = one_file([[6 * MS, 4 * MS]] * 4).write(tmp_path / "b.sqlite")
        found = compared_files(first, second)
        assert [(late.rank, late.late_ns) for late in found.stragglers] == [("a gpu1", 15 * MS), ("b gpu0", 8 * MS)]
        assert found.clock_error_ns is None
        assert [row.offset_error_ns for row in found.ranks] == [0, 0, None, None]

    @pytest.mark.slow
    def test_ranks_that_never_meet_are_linked_by_one_between_them(self, tmp_path: Path) -> None:
        """
        rank 0   [Gather]            rank 0 and 1 gather, rank 1 and 2 reduce
        rank 1   [Gather]  [Reduce]
        rank 2             [Reduce]
        """
        pairs = [[4 * MS, 4 * MS]] * 5
        first = add_rank(TraceBuilder(), pairs, 0, name="ncclDevKernel_AllGather_RING_LL")
        second = add_rank(TraceBuilder(), pairs, 1, name="ncclDevKernel_AllGather_RING_LL", shift=MS)
        add_rank(second, pairs, 0, shift=MS, start=100 * MS)
        third = add_rank(TraceBuilder(), pairs, 1, shift=3 * MS, start=100 * MS)
        paths = [each.write(tmp_path / f"{at}.sqlite") for at, each in enumerate((first, second, third))]
        found = compared_files(*paths)
        assert [row.offset_ns for row in found.ranks] == [0, -MS, -3 * MS]
        assert [group.ranks for group in found.groups] == [["1", "2"], ["0", "1"]]


class TestMatching:
    def test_other_numbers_of_collectives_are_refused(self, tmp_path: Path) -> None:
        trace = add_rank(TraceBuilder(), [[4 * MS]] * 5, 0)
        add_rank(trace, [[4 * MS]] * 6, 0, device=1, thread=(101, 101))
        with pytest.raises(UsageError, match="no collective of one rank matches") as raised:
            compared(tmp_path, trace)
        assert raised.value.hint == (
            "AllReduce: gpu0 ran 5, gpu1 ran 6: their counts differ from the other ranks', so they cannot be matched "
            "by order"
        )

    @pytest.mark.slow
    def test_a_capture_that_began_earlier_is_cut_to_the_other_one(self, tmp_path: Path) -> None:
        """
        rank 0             [1)    [2) [3)      [4) ...     ten steps of uneven length
        rank 1   [0)       [1)    [2) [3)      [4) ...     one more, before the capture of rank 0 began
        """
        uneven = [[at * MS] * 2 for at in (4, 5, 9, 4, 7, 6, 8, 5, 9, 4)]
        trace = add_rank(TraceBuilder(), uneven, 0, start=2 * PERIOD)
        add_rank(trace, [[4 * MS] * 2, *uneven], 1, device=1, thread=(101, 101))
        found = compared(tmp_path, trace)
        assert [(group.count, group.late, group.spread_ns) for group in found.groups] == [(10, 0, 0)]
        assert found.unmatched == ["AllReduce: 1 of 11 of gpu1 are outside what another rank recorded"]

    @pytest.mark.slow
    def test_what_has_the_same_number_matches_beside_it(self, tmp_path: Path) -> None:
        trace = one_file(EVEN)
        trace.kernel(90 * MS, 91 * MS, name="ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", thread=(100, 100))
        found = compared(tmp_path, trace)
        assert [(group.kind, group.count) for group in found.groups] == [("AllReduce", 5)]
        assert found.unmatched == ["ReduceScatter: gpu0 ran 1: no other rank ran any"]

    @pytest.mark.slow
    def test_a_rank_that_never_meets_the_others_is_left_out(self, tmp_path: Path) -> None:
        """
        rank 0   [AllReduce)           [AllReduce)
        rank 1   [AllReduce)           [AllReduce)
        rank 2              [AllReduce)           [AllReduce)      as many, but never at the same time
        """
        trace = one_file([[4 * MS, 4 * MS]] * 5)
        add_rank(trace, [[4 * MS]] * 5, 0, device=2, thread=(102, 102), start=PERIOD + 5 * MS)
        found = compared(tmp_path, trace)
        assert [group.ranks for group in found.groups] == [["gpu0", "gpu1"]]
        assert found.unmatched == [
            "AllReduce: those of gpu2 do not run at the same time as those of another rank",
        ]
        assert [(row.collectives, row.matched) for row in found.ranks] == [(5, 5), (5, 5), (5, 0)]
        assert found.basis == "iterations"

    @pytest.mark.slow
    def test_pairs_of_ranks_are_told_apart_by_when_they_meet(self, tmp_path: Path) -> None:
        trace = one_file([[4 * MS, 4 * MS]] * 5)
        for rank in (0, 1):
            add_rank(
                trace,
                [[4 * MS, 6 * MS]] * 5,
                rank,
                device=2 + rank,
                thread=(102 + rank, 102 + rank),
                start=PERIOD + 5 * MS,
            )
        found = compared(tmp_path, trace)
        assert [group.ranks for group in found.groups] == [["gpu0", "gpu1"], ["gpu2", "gpu3"]]
        assert [(late.rank, late.late_ns) for late in found.stragglers] == [("gpu3", 10 * MS)]

    def test_streams_tell_two_communicators_apart(self, tmp_path: Path) -> None:
        """
        rank 0   stream 9 [A ....)                     stream 8         [B)      A, B: the first of all is A
        rank 1   stream 7 [A ....)      stream 8 [B ......................)      B, A: the first of all is B
        """
        trace = TraceBuilder()
        rows = (
            (0, 9, ((4, 6), (24, 27), (44, 46))),
            (0, 8, ((10, 12), (30, 31), (50, 52))),
            (1, 7, ((4, 6), (24, 27), (44, 46))),
            (1, 8, ((3, 12), (23, 31), (43, 52))),
        )
        for rank, stream, times in rows:
            for start, end in times:
                launch = (start * MS - 10 * US, start * MS - 5 * US)
                where = {"stream": stream, "device": rank, "thread": (100 + rank, 100 + rank)}
                trace.kernel(start * MS, end * MS, name=ALL_REDUCE, launch=launch, **where)
        found = compared(tmp_path, trace)
        assert [(group.count, group.late, group.spread_ns) for group in found.groups] == [(3, 0, 0), (3, 3, 0)]
        assert [(late.rank, late.late_ns) for late in found.stragglers] == [("gpu0", 21 * MS)]

    @pytest.mark.slow
    def test_communicators_by_payload_come_before_the_order(self, tmp_path: Path) -> None:
        """
        rank 0   [A)      [B ..)      of A are ranks 0 and 1, of B ranks 0 and 2: on one stream each, all AllReduce
        rank 1   [A)                  five times, so that by their numbers nothing fits
        rank 2            [B)
        """
        trace = TraceBuilder(schema="3.24.8")
        entry = {"domainId": NCCL, "schemaId": SCHEMA, "idx": 0, "name": FIELD, "offset": 0}
        trace.row("NVTX_PAYLOAD_SCHEMA_ENTRIES", dict(entry))
        rows = ((0, 0xA, 4, 6), (1, 0xA, 4, 6), (0, 0xB, 7, 10), (2, 0xB, 9, 10))
        for pid in (100, 101, 102):
            trace.nvtx("NCCL", 1, None, thread=(pid, pid), domain=NCCL, event_type=75)
        for step in range(5):
            for rank, communicator, start, end in rows:
                thread, base = (100 + rank, 100 + rank), (10 + 20 * step) * MS
                launch = (base + start * MS - 10 * US, base + start * MS - 5 * US)
                trace.kernel(
                    base + start * MS, base + end * MS, name=ALL_REDUCE, launch=launch, thread=thread, device=rank
                )
                call = {"start": launch[0] - 10, "end": launch[1] + 10, "eventType": 59, "domainId": NCCL}
                named = {"globalTid": global_tid(thread), "text": "ncclAllReduce", "binaryData": payload(communicator)}
                trace.row("NVTX_EVENTS", {**call, **named})
        found = compared(tmp_path, trace)
        assert [(group.communicator, group.ranks, group.count, group.late) for group in found.groups] == [
            ("0xa", ["gpu0", "gpu1"], 5, 0),
            ("0xb", ["gpu0", "gpu2"], 5, 5),
        ]
        assert [(late.rank, late.late_ns) for late in found.stragglers] == [("gpu2", 10 * MS)]
        assert found.unmatched == []

    def test_one_rank_alone_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="gpu0 is the only GPU with work"):
            compared(tmp_path, one_file([[4 * MS]] * 5))

    def test_ranks_without_collectives_are_refused(self, tmp_path: Path) -> None:
        trace = TraceBuilder().kernel(10_000, 20_000, launch=(1, 2), thread=(1, 1))
        trace.kernel(10_000, 20_000, launch=(1, 2), thread=(2, 2), device=1)
        with pytest.raises(UsageError) as raised:
            compared(tmp_path, trace)
        assert raised.value.hint == "none of the ranks ran a communication kernel or called a blocking MPI collective"

    @pytest.mark.slow
    def test_files_of_one_name_are_told_apart(self, tmp_path: Path) -> None:
        paths = []
        for at in (0, 1):
            (tmp_path / str(at)).mkdir()
            trace = add_rank(TraceBuilder(), [[4 * MS, 4 * MS]] * 5, at)
            paths.append(trace.write(tmp_path / str(at) / "rank.sqlite"))
        assert [row.rank for row in compared_files(*paths).ranks] == ["rank#0", "rank#1"]


class TestMpi:
    """
    rank 0   [kernel)            [kernel)
    T        [MPI_Allreduce ....]              arrives at 4 ms, waits for rank 1
    rank 1   [kernel)            [kernel)
    T        .. host code ..[MPI]              arrives at 7 ms
    """

    @staticmethod
    def run(calls: dict[str, int]) -> TraceBuilder:
        """Two ranks in one trace; `calls` are the MPI calls of each step, with how long they last once all came."""
        trace = TraceBuilder()
        for rank, arrive in ((0, 4 * MS), (1, 7 * MS)):
            thread = (100 + rank, 100 + rank)
            trace.sched(1, True, thread=thread, cpu=rank)
            for step in range(1, 7):
                base = step * PERIOD
                trace.kernel(base, base + 2 * MS, launch=(base - 20 * US, base - 15 * US), thread=thread, device=rank)
                begin, end = base + arrive, base + 7 * MS
                for name, ns in calls.items():
                    end += ns
                    row = {"start": begin, "end": end, "globalTid": global_tid(thread), "textId": trace.string(name)}
                    trace.row("MPI_OTHER_EVENTS", dict(row))
                    begin = end
        return trace

    def test_a_late_rank_is_found_by_mpi_calls(self, tmp_path: Path) -> None:
        found = compared(tmp_path, self.run({"MPI_Allreduce": MS}))
        # The device's work ends with its last kernel: the call of the last step lies behind it.
        assert [(group.kind, group.count, group.spread_ns) for group in found.groups] == [("AllReduce", 5, 0)]
        (late,) = found.stragglers
        assert (late.rank, late.late, late.late_ns, late.caused_ns) == ("gpu1", 5, 15 * MS, 15 * MS)
        assert late.more["host_compute"] == 15 * MS
        assert [(row.wait_ns, row.transfer_ns) for row in found.ranks] == [(15 * MS, 5 * MS), (0, 5 * MS)]

    def test_calls_that_may_leave_early_are_no_meeting(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no collective"):
            compared(tmp_path, self.run({"MPI_Iallreduce": MS, "MPI_Sendrecv": MS, "MPI_Wait": MS}))

    def test_kernels_come_before_calls(self, tmp_path: Path) -> None:
        trace = self.run({"MPI_Barrier": MS})
        for rank in (0, 1):
            where = {"device": rank, "thread": (100 + rank, 100 + rank)}
            trace.kernel(2 * MS, 3 * MS, name=ALL_REDUCE, stream=9, launch=(MS, MS + 5 * US), **where)
        assert [group.kind for group in compared(tmp_path, trace).groups] == ["AllReduce"]


class TestMpiRanksInFiles:
    """
    rank 6   [kernel)[Sendrecv)[Allreduce .......)     arrives at 3 ms
    rank 7   [kernel)[Sendrecv ...........)[Allr.)     arrives at 7 ms, all of it in MPI
    """

    @staticmethod
    def files(folder: Path, *numbers: int, named: str = "MPI Rank {}", host: int = 0) -> list[Path]:
        """A file a rank; the last one is late by 4 ms, of which `host` are host code."""
        paths = []
        for rank in numbers:
            thread = (100 + rank, 100 + rank)
            trace = (
                TraceBuilder().thread_name(named.format(rank), thread=thread).sched(1, True, thread=thread, cpu=rank)
            )
            trace.row("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs": 1_700_000_000_000_000_000})
            for step in range(1, 13):
                base = step * PERIOD
                trace.kernel(base, base + 2 * MS, launch=(base - 20 * US, base - 15 * US), thread=thread)
                begin, arrive = base + 2 * MS, base + (7 * MS if rank == numbers[-1] else 3 * MS)
                sent = arrive - (host if rank == numbers[-1] else 0)
                for name, start, end in (("MPI_Sendrecv", begin, sent), ("MPI_Allreduce", arrive, base + 8 * MS)):
                    row = {"start": start, "end": end, "globalTid": global_tid(thread), "textId": trace.string(name)}
                    trace.row("MPI_OTHER_EVENTS", row)
            paths.append(trace.write(folder / f"report{rank}.sqlite"))
        return paths

    @pytest.mark.slow
    def test_time_in_mpi_is_communication(self, tmp_path: Path) -> None:
        (late,) = analyze_ranks(self.files(tmp_path, 6, 7)).comparison.stragglers
        assert (late.rank, set(late.more), set(late.meanwhile)) == ("MPI rank 7", {"exposed_comm"}, {"exposed_comm"})

    @pytest.mark.slow
    def test_host_code_between_calls_stays_host_code(self, tmp_path: Path) -> None:
        (late,) = analyze_ranks(self.files(tmp_path, 6, 7, host=3 * MS)).comparison.stragglers
        assert late.more["host_compute"] > 2 * late.more["exposed_comm"] > 0

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("numbers", "said"),
        [
            ((6, 7), "MPI ranks 0 to 5 are not among the files."),
            ((0, 2), "MPI rank 1 is not among the files."),
            ((1, 4, 5), "MPI ranks 0 and 2 to 3 are not among the files."),
            ((0, 1), ""),
        ],
    )
    def test_ranks_keep_their_numbers_and_missing_ones_are_told(
        self, numbers: tuple[int, ...], said: str, tmp_path: Path
    ) -> None:
        report = analyze_ranks(self.files(tmp_path, *numbers))
        assert [row.rank for row in report.comparison.ranks] == [f"MPI rank {each}" for each in numbers]
        assert report.diagnosis is not None
        assert said in report.diagnosis.headline
        assert bool(said) == ("not among the files" in report.diagnosis.headline)

    @pytest.mark.slow
    def test_without_numbers_files_name_the_ranks(self, tmp_path: Path) -> None:
        report = analyze_ranks(self.files(tmp_path, 6, 7, named="worker {}"))
        assert [row.rank for row in report.comparison.ranks] == ["report6", "report7"]
        assert report.diagnosis is not None
        assert "not among" not in report.diagnosis.headline


class TestDevicesOfOneTrace:
    @pytest.mark.slow
    def test_a_report_compares_them(self, tmp_path: Path) -> None:
        path = one_file(RANK_3_LATE).write(tmp_path / "run.sqlite")
        found = analyze(path).ranks
        assert found is not None
        assert found == analyze_ranks([path]).comparison

    @pytest.mark.slow
    def test_waiting_for_a_late_device_is_a_finding_of_those_that_wait(self, tmp_path: Path) -> None:
        """Three wait 3 ms in each of five steps: what is left of communication is transfer, 1 ms a step on each."""
        report = analyze(one_file(RANK_3_LATE).write(tmp_path / "run.sqlite"))
        found = {each.id: each for each in report.findings}
        late, communication = found["f-late_rank-host"], found["f-exposed_comm"]
        assert (late.devices, late.lost_ns, late.bottleneck) == (["gpu0", "gpu1", "gpu2"], 3 * 15 * MS, "host")
        assert late.title == "gpu3 is late, and others wait for it"
        assert late.evidence[:2] == [
            "15.0 ms of waiting in collectives or MPI calls until gpu3 comes",
            "late because of host code: 99.7%",
        ]
        assert (len(communication.devices), communication.lost_ns) == (4, 4 * 5 * MS)
        assert [each.account["communication"] for phase in report.phases for each in phase.devices] == [5 * MS] * 4

    @pytest.mark.slow
    def test_nobody_waits_for_ranks_in_step(self, tmp_path: Path) -> None:
        findings = analyze(one_file(EVEN).write(tmp_path / "run.sqlite")).findings
        assert [(each.devices, each.evidence) for each in findings if each.bottleneck == "communication"] == [
            (["gpu0", "gpu1", "gpu2", "gpu3"], [f"{ALL_REDUCE}: 5 kernels, 5.00 ms in all"])
        ]
        assert "late_rank" not in {each.cause for each in findings}

    def test_one_device_is_compared_with_nothing(self, tmp_path: Path) -> None:
        assert analyze(one_file([[4 * MS]] * 5).write(tmp_path / "run.sqlite")).ranks is None

    @pytest.mark.slow
    def test_devices_with_nothing_in_common_are_not_compared(self, tmp_path: Path) -> None:
        trace = TraceBuilder().kernel(10_000, 20_000, launch=(1, 2), thread=(1, 1))
        trace.kernel(10_000, 20_000, launch=(1, 2), thread=(2, 2), device=1)
        assert analyze(trace.write(tmp_path / "run.sqlite")).ranks is None

    @pytest.mark.slow
    def test_a_narrowed_window_counts_what_begins_in_it(self, tmp_path: Path) -> None:
        from nsysdiag.config.settings import Settings

        path = one_file(RANK_3_LATE).write(tmp_path / "run.sqlite")
        found = analyze(path, Settings(start_ns=2 * PERIOD, end_ns=4 * PERIOD)).ranks
        assert found is not None
        assert [(late.late, late.late_ns) for late in found.stragglers] == [(2, 6 * MS)]

    def test_without_collectives_iterations_are_a_measure(self, tmp_path: Path) -> None:
        """
        gpu 0   [step 0: 4 ms)....[step 1: 4 ms)....      ten steps of 10 ms each
        gpu 1   [step 0: 6 ms)..[step 1: 6 ms)..
        """
        trace = TraceBuilder()
        for rank, length in ((0, 4 * MS), (1, 6 * MS)):
            for step in range(10):
                base = PERIOD * (step + 1)
                thread = (100 + rank, 100 + rank)
                trace.kernel(base, base + length, launch=(base - 20_000, base - 15_000), thread=thread, device=rank)
        found = analyze(trace.write(tmp_path / "run.sqlite")).ranks
        assert found is not None
        assert (found.basis, found.groups, found.stragglers) == ("iterations", [], [])
        assert [row.compute_ns for row in found.ranks] == [40 * MS, 60 * MS]
        assert found.imbalance["compute_ns"] == pytest.approx(0.4)
