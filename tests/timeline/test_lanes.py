"""The lanes of whole traces against the rows of the files themselves."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from nsysdiag import analyze
from nsysdiag.config.settings import Settings
from nsysdiag.iterations.report import steady_steps
from nsysdiag.report import Report
from nsysdiag.timeline.facts import TimelineLevels
from tests.builder import TraceBuilder, global_tid
from tests.ledger.traces import DRAWN, report_of
from tests.shared import Shared
from tests.simulator.large import write_large
from tests.timeline.decode import lanes, launches, numbers, rows, unpack

US = 1_000


def host_span(levels: TimelineLevels) -> tuple[int, int]:
    """From when to when lanes of threads are: from the begin of a start-up."""
    return levels.host_span or (levels.start_ns, levels.end_ns)


def timeline_of(report: Report, key: str = "gpu0") -> TimelineLevels:
    assert isinstance(report.timeline, dict)
    return report.timeline[key]


@pytest.fixture(scope="module")
def trace(shared: Shared) -> Path:
    return shared.fixture("sim_starved_training.sqlite")


@pytest.fixture(scope="module")
def report(shared: Shared, trace: Path) -> Report:
    return shared.report(trace)


def operations(trace: Path, device: int) -> dict[int, set[tuple[int, int]]]:
    """Start and end of every operation of a device by stream, as the file has them."""
    found: dict[int, set[tuple[int, int]]] = defaultdict(set)
    with closing(sqlite3.connect(trace)) as file:
        for table in ("KERNEL", "MEMCPY"):
            query = f"SELECT streamId, start, end FROM CUPTI_ACTIVITY_KIND_{table} WHERE deviceId = ? AND end > start"
            for stream, start, end in file.execute(query, (device,)):
                found[stream].add((start, end))
    return found


class TestAgainstTheFile:
    @pytest.mark.slow
    def test_streams_hold_every_operation(self, trace: Path, report: Report) -> None:
        levels = timeline_of(report)
        assert levels.exact_operations == [(levels.start_ns, levels.end_ns)]
        held = {
            int(lane.label.removeprefix("stream ")): {row[:2] for row in rows(levels, lane)}
            for lane in lanes(levels, "stream")
        }
        # Both GPUs of the fixture are device 0 of a process of their own.
        kernels = report.devices[0].ops.kernel + report.devices[0].ops.memcpy + report.devices[0].ops.memset
        every = operations(trace, 0)
        assert sum(map(len, held.values())) == kernels
        assert all(held[stream] <= every[stream] for stream in held)

    def test_calls_of_the_launching_thread(self, trace: Path, report: Report) -> None:
        levels = timeline_of(report)
        thread = levels.threads[0]
        with closing(sqlite3.connect(trace)) as file:
            query = """SELECT a.start, min(a.end, ?), s.value FROM {} a JOIN StringIds s ON s.id = a.nameId
                       WHERE (a.globalTid & 0xFFFFFF) = ? AND a.end > ? AND a.start < ?"""
            for kind, table in (("api", "CUPTI_ACTIVITY_KIND_RUNTIME"), ("os", "OSRT_API")):
                low, high = host_span(levels)
                bounds = (high, thread.tid, low, high)
                wanted = {(max(start, low), end) for start, end, _ in file.execute(query.format(table), bounds)}
                (lane,) = lanes(levels, kind, thread=0)
                assert {row[:2] for row in rows(levels, lane)} == wanted

    @pytest.mark.slow
    def test_launches_lead_to_the_calls_with_the_same_correlation(self, trace: Path, report: Report) -> None:
        levels = timeline_of(report)
        calls = [
            (thread.tid, row[0])
            for at, thread in enumerate(levels.threads)
            for lane in lanes(levels, "api", thread=at)
            for row in rows(levels, lane)
        ]
        with closing(sqlite3.connect(trace)) as file:
            pid = levels.threads[0].pid
            query = """SELECT o.streamId, o.start, c.globalTid & 0xFFFFFF, c.start, c.end
                       FROM CUPTI_ACTIVITY_KIND_{} o JOIN CUPTI_ACTIVITY_KIND_RUNTIME c USING (correlationId)
                       WHERE o.globalPid >> 24 = c.globalTid >> 24 AND (o.globalPid >> 24) & 0xFFFFFF = ?"""
            call_of = {
                (stream, start): call
                for table in ("KERNEL", "MEMCPY")
                for stream, start, *call in file.execute(query.format(table), (pid,))
            }
        checked = 0
        for lane in lanes(levels, "stream"):
            stream = int(lane.label.removeprefix("stream "))
            for row, place in zip(rows(levels, lane), launches(lane), strict=True):
                tid, start, end = call_of[stream, row[0]]
                if place is None:
                    assert end <= host_span(levels)[0]  # before the time of the lanes
                else:
                    assert calls[place] == (tid, max(start, host_span(levels)[0]))
                    checked += 1
        assert checked > 0.9 * sum(lane.count for lane in lanes(levels, "stream"))

    def test_steady_steps_have_a_lane(self, report: Report) -> None:
        levels, found = timeline_of(report), report.devices[0].iterations
        assert found is not None
        steps = steady_steps(found)
        assert steps is not None
        (lane,) = lanes(levels, "steps")
        wanted = zip(steps.number.tolist(), steps.spans.end.tolist(), strict=True)
        assert [(row[2], row[1]) for row in rows(levels, lane)] == [(f"step {number}", end) for number, end in wanted]

    @pytest.mark.slow
    def test_amounts_are_bytes_and_blocks(self, trace: Path, report: Report) -> None:
        levels = timeline_of(report)
        held = {
            (row[0], amount, of)
            for lane in lanes(levels, "stream")
            for row, amount, of in zip(
                rows(levels, lane), numbers(lane.amounts, lane.count), numbers(lane.blocks_of, lane.count), strict=True
            )
        }
        with closing(sqlite3.connect(trace)) as file:
            kernels = "SELECT start, gridX * gridY * gridZ, blockX * blockY * blockZ FROM CUPTI_ACTIVITY_KIND_KERNEL"
            copies = "SELECT start, bytes, 0 FROM CUPTI_ACTIVITY_KIND_MEMCPY"
            every = {tuple(row) for query in (kernels, copies) for row in file.execute(query)}
        assert held <= every
        assert {of for _, _, of in held} > {0}

    def test_ranges_nest(self, report: Report) -> None:
        levels = timeline_of(report)
        outer, inner = lanes(levels, "nvtx", thread=0)
        assert [outer.depth, inner.depth] == [0, 1]
        steps = rows(levels, outer)
        assert [row[2] for row in steps[:3]] == ["step 0", "step 1", "step 2"]
        for start, end, _, _ in rows(levels, inner):
            assert any(begin <= start and end <= finish for begin, finish, _, _ in steps)

    def test_slices_of_causes_fill_the_gaps_that_are_described(self, report: Report) -> None:
        levels, device = timeline_of(report), report.devices[0]
        (lane,) = lanes(levels, "causes")
        slices = rows(levels, lane)
        for gap in device.gaps[:20]:
            inside: dict[str, int] = defaultdict(int)
            for start, end, _, kind in slices:
                if gap.start_ns <= start and end <= gap.end_ns:
                    inside[levels.cause_ids[kind]] += end - start
            assert inside == {part.cause: part.ns for part in gap.slices if part.ns}

    def test_who_ended_a_wait_has_lanes_too(self, report: Report) -> None:
        levels = timeline_of(report)
        assert [(thread.tid, thread.launches) for thread in levels.threads] == [
            (4242, True),
            (4245, True),
            (4259, False),
        ]
        (hop,) = {(hop.thread.tid) for gap in report.devices[0].gaps[:5] if gap.root for hop in gap.root.hops}
        assert hop == 4259

    def test_a_hop_ends_its_wait_inside_the_gap(self, report: Report) -> None:
        for device in report.devices:
            for gap in device.gaps:
                if gap.root and gap.root.hops:
                    at = gap.root.hops[0].at_ns
                    assert at is not None
                    assert gap.start_ns <= at <= gap.end_ns

    def test_shares_of_a_lane_are_those_of_its_rows(self, report: Report) -> None:
        """Share of a bucket in 255ths, rounded up, by the slow sum over all rows of the lane."""
        levels = timeline_of(report)
        (lane,) = lanes(levels, "os", thread=0)
        calls = rows(levels, lane)
        shares = unpack(lane.levels[-1])
        first, last = host_span(levels)
        for at in range(0, len(shares), 7):
            low, high = (first + (last - first) * step // len(shares) for step in (at, at + 1))
            covered = sum(max(min(end, high) - max(start, low), 0) for start, end, _, _ in calls)
            assert shares[at] == -(-covered * 255 // (high - low))


def nested(streams: int = 2) -> TraceBuilder:
    """
    ```
    stream 7   [k 100..200)                  [k 400..500) us, launched at 390
    stream 8        [k 150..250)
    thread     NVTX [outer [inner) ) over the second launch, read 260..380 µs
    ```
    """
    trace = TraceBuilder().kernel(100 * US, 200 * US, stream=7, launch=(90 * US, 95 * US))
    for number in range(streams - 1):
        trace.kernel(
            150 * US, 250 * US + number, stream=8 + number, launch=((91 + number) * US, (91 + number) * US + 500)
        )
    trace.kernel(400 * US, 500 * US, stream=7, launch=(390 * US, 395 * US))
    trace.osrt("read", 260 * US, 380 * US)
    return trace.nvtx("outer", 255 * US, 600 * US).nvtx("inner", 300 * US, 396 * US)


class TestSmall:
    def test_what_outlasts_the_timeline_ends_with_it(self, tmp_path: Path) -> None:
        levels = timeline_of(report_of(nested(), tmp_path, DRAWN))
        outer, inner = (rows(levels, lane) for lane in lanes(levels, "nvtx"))
        assert outer == [(255 * US, 500 * US, "outer", 0)]
        assert inner == [(300 * US, 396 * US, "inner", 0)]

    def test_calls_of_mpi_have_a_lane(self, tmp_path: Path) -> None:
        trace = nested()
        call = {"start": 200 * US, "end": 300 * US, "globalTid": global_tid((4242, 4242))}
        trace.row("MPI_OTHER_EVENTS", {**call, "textId": trace.string("MPI_Allreduce")})
        trace.row("MPI_OTHER_EVENTS", {**call, "start": 220 * US, "end": 230 * US, "textId": trace.string("MPI_Wait")})
        levels = timeline_of(report_of(trace, tmp_path, DRAWN))
        (lane,) = lanes(levels, "mpi")
        assert rows(levels, lane) == [(200 * US, 300 * US, "MPI_Allreduce", 0)]  # the outermost

    def test_ranges_of_mpi_are_calls_of_mpi(self, tmp_path: Path) -> None:
        trace = nested().nvtx("MPI_Barrier", 300 * US, 350 * US)
        levels = timeline_of(report_of(trace, tmp_path, DRAWN))
        assert [row[2] for lane in lanes(levels, "nvtx") for row in rows(levels, lane)] == ["outer", "inner"]
        assert [row[2] for lane in lanes(levels, "mpi") for row in rows(levels, lane)] == ["MPI_Barrier"]

    def test_of_many_streams_the_busiest_have_lanes(self, tmp_path: Path) -> None:
        levels = timeline_of(report_of(nested(streams=10), tmp_path, DRAWN))
        labels = [lane.label for lane in lanes(levels, "stream")]
        assert labels == ["stream 7", *(f"stream {number}" for number in range(11, 17)), "3 other streams"]
        assert [lane.count for lane in lanes(levels, "stream")] == [2, 1, 1, 1, 1, 1, 1, 3]

    @pytest.mark.slow
    def test_a_narrowed_window_has_a_timeline_of_its_own(self, tmp_path: Path) -> None:
        narrowed = Settings(start_ns=150 * US, end_ns=450 * US)
        levels = timeline_of(report_of(nested(), tmp_path, narrowed))
        assert (levels.start_ns, levels.end_ns) == (150 * US, 450 * US)
        # Operations that reach beyond it keep their own ends, but begin with it at the earliest.
        assert [row[:2] for row in rows(levels, lanes(levels, "stream")[0])] == [
            (150 * US, 200 * US),
            (400 * US, 500 * US),
        ]

    def test_ranges_nest_by_their_own_ends(self, tmp_path: Path) -> None:
        """
        ```
        outer   [-----------------------------)
        inner   [---------------------------)
        window       [---------)                 both reach beyond it
        ```
        """
        trace = nested().nvtx("a", 120 * US, 480 * US).nvtx("b", 120 * US, 490 * US)
        narrowed = Settings(start_ns=150 * US, end_ns=450 * US)
        levels = timeline_of(report_of(trace, tmp_path, narrowed))
        assert [rows(levels, lane)[0][2] for lane in lanes(levels, "nvtx")] == ["b", "a", "outer", "inner"]

    def test_names_are_kept_once(self, tmp_path: Path) -> None:
        trace = TraceBuilder()
        for number in range(50):
            trace.kernel(
                (100 + 10 * number) * US,
                (105 + 10 * number) * US,
                name="gemm",
                launch=(number * US + 1, number * US + 9),
            )
        levels = timeline_of(report_of(trace, tmp_path, DRAWN))
        assert unpack(levels.names).count(b"gemm") == 1
        (lane,) = lanes(levels, "stream")
        assert len(set(numbers(lane.names, lane.count))) == 1


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return analyze(write_large(tmp_path_factory.mktemp("large") / "large.sqlite", 200_000))


@pytest.mark.thorough
class TestLarge:
    """A trace with far more rows than there is room for."""

    def test_stays_small(self, large: Report) -> None:
        levels = timeline_of(large)
        assert sum(lane.count for lane in lanes(levels, "stream")) <= 60_000
        assert len(msgspec.json.encode(levels)) < 1 << 20

    def test_windows_hold_every_operation_and_gap(self, large: Report) -> None:
        """Where operations are exact, the time between them is what the gaps say."""
        levels, device = timeline_of(large), large.devices[0]
        assert 1 < len(levels.exact_operations) < 300
        held = sorted(row[:2] for lane in lanes(levels, "stream") for row in rows(levels, lane))
        starts = {start for start, _ in held}
        for gap in device.gaps:
            if any(low <= gap.start_ns and gap.end_ns < high for low, high in levels.exact_operations):
                assert gap.end_ns in starts

    def test_the_longest_gap_has_a_window(self, large: Report) -> None:
        levels, gap = timeline_of(large), large.devices[0].gaps[0]
        assert any(low <= gap.start_ns and gap.end_ns <= high for low, high in levels.exact_operations)
