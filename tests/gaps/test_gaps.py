"""Gaps: where they are, which operations stand beside them, and how all of them fit into a few bytes."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysdiag.config.settings import Settings
from tests.builder import TraceBuilder
from tests.causes.example import first, issued, late
from tests.ledger.traces import only_device

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import DeviceReport, GapsPacked

EARLY = (1, 2)


def neighbours(device: DeviceReport) -> list[tuple[str, str]]:
    """Names of the previous and the next operation of each gap, by time."""
    found = []
    for gap in sorted(device.gaps, key=lambda gap: gap.start_ns):
        assert gap.previous_op is not None
        assert gap.next_op is not None
        assert (gap.previous_op.end_ns, gap.next_op.start_ns) == (gap.start_ns, gap.end_ns)
        found.append((gap.previous_op.name, gap.next_op.name))
    return found


def test_the_previous_operation_has_the_largest_end_so_far(tmp_path: Path) -> None:
    """
    stream 7  [======long======)
    stream 8     [short)              the row before, but not the operation before
    stream 7                    ....[next)
    """
    trace = TraceBuilder().kernel(1_000, 9_000, name="long", launch=EARLY)
    trace.kernel(2_000, 3_000, name="short", stream=8, launch=EARLY)
    trace.kernel(20_000, 21_000, name="next", launch=EARLY)
    assert neighbours(only_device(trace, tmp_path)) == [("long", "next")]


def test_of_those_that_end_together_the_one_that_started_first(tmp_path: Path) -> None:
    """
    stream 7     [==late==)
    stream 8  [===early===)....[next)
    """
    trace = TraceBuilder().kernel(2_000, 9_000, name="late", launch=EARLY)
    trace.kernel(1_000, 9_000, name="early", stream=8, launch=EARLY)
    trace.kernel(20_000, 21_000, name="next", launch=EARLY)
    assert neighbours(only_device(trace, tmp_path)) == [("early", "next")]


class TestNextOperation:
    """
    device  [==A==)....[one)
                       [two)      both start at 150_000
    """

    @staticmethod
    def winner(trace: TraceBuilder, tmp_path: Path) -> str:
        return neighbours(only_device(trace, tmp_path))[0][1]

    def test_one_with_a_launch_row_first(self, tmp_path: Path) -> None:
        trace = first().kernel(150_000, 160_000, name="unknown", stream=1, correlation=9_000)
        trace.kernel(150_000, 160_000, name="launched", stream=8, launch=(9_000, 9_500), correlation=9_999)
        assert self.winner(trace, tmp_path) == "launched"

    def test_then_the_earliest_call(self, tmp_path: Path) -> None:
        trace = first().kernel(150_000, 160_000, name="second", stream=1, launch=(9_100, 9_500), correlation=300)
        trace.kernel(150_000, 160_000, name="first", stream=8, launch=(9_000, 9_600), correlation=400)
        assert self.winner(trace, tmp_path) == "first"

    def test_then_the_lower_correlation_id(self, tmp_path: Path) -> None:
        trace = first().kernel(150_000, 160_000, name="higher", stream=1, launch=(9_000, 9_500), correlation=400)
        trace.kernel(150_000, 160_000, name="lower", stream=8, launch=(9_000, 9_500), correlation=300)
        assert self.winner(trace, tmp_path) == "lower"

    def test_then_the_lower_stream(self, tmp_path: Path) -> None:
        """Two nodes of one graph launch."""
        trace = first().api("cudaGraphLaunch", 9_000, 9_500, correlation=300)
        trace.kernel(150_000, 160_000, name="stream 9", stream=9, correlation=300, graph_node=1)
        trace.kernel(150_000, 160_000, name="stream 8", stream=8, correlation=300, graph_node=2)
        assert self.winner(trace, tmp_path) == "stream 8"


def unpacked(packed: GapsPacked) -> list[tuple[int, int, str]]:
    """(start, length, dominant cause) of every gap."""

    def values(text: str, kind: str) -> list[int]:
        return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=kind).tolist()

    starts = np.cumsum(values(packed.starts, "<i8"), dtype=np.int64).tolist()
    causes = [packed.cause_ids[code] for code in values(packed.causes, "u1")]
    return list(zip(starts, values(packed.lengths, "<i8"), causes, strict=True))


def three_gaps() -> TraceBuilder:
    """
    device  [==A==)..sync 60_000 of 190_000..[==B==)....5_000....[==C==)....40_000....[==D==)
    """
    trace = late().api("cudaStreamSynchronize", 110_000, 250_000)
    trace.kernel(405_000, 410_000, launch=(6_000, 6_100)).kernel(450_000, 460_000, launch=(6_200, 6_300))
    return trace


def test_every_gap_is_packed(tmp_path: Path) -> None:
    device = only_device(three_gaps(), tmp_path)
    expected = [(110_000, 190_000, "sync"), (400_000, 5_000, "dispatch"), (410_000, 40_000, "device_stall")]
    assert unpacked(device.gaps_packed) == expected
    assert (device.gaps_packed.count, device.gap_count) == (3, 3)


def test_no_gap_at_all(tmp_path: Path) -> None:
    device = only_device(first(), tmp_path)
    assert (unpacked(device.gaps_packed), device.gaps, device.signatures, device.ledger) == ([], [], [], {})


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("limit", "lengths"),
    [(0, [190_000, 40_000, 5_000]), (2, [190_000, 40_000]), (9, [190_000, 40_000, 5_000])],
)
def test_the_largest_are_described(limit: int, lengths: list[int], tmp_path: Path) -> None:
    device = only_device(three_gaps(), tmp_path, Settings(gaps=limit))
    assert [gap.end_ns - gap.start_ns for gap in device.gaps] == lengths
    assert device.gaps_packed.count == device.gap_count == 3


def test_of_equal_ones_the_earliest_is_described(tmp_path: Path) -> None:
    trace = issued().kernel(290_000, 300_000, launch=(9_100, 9_200)).kernel(340_000, 350_000, launch=(9_300, 9_400))
    device = only_device(trace, tmp_path, Settings(gaps=2))
    assert [gap.start_ns for gap in device.gaps] == [110_000, 250_000]


class TestSignatures:
    @staticmethod
    def steps() -> TraceBuilder:
        """
        device  [A)..reads..[B)....[A)..reads more..[B)....[A)..syncs..[B)
        NVTX    [  step 1      ]   [  step 2           ]   [  step 3     ]
        """
        trace = TraceBuilder()
        for number, work in enumerate((10_000, 30_000, 20_000)):
            base = 1_000_000 * (number + 1)
            trace.kernel(base, base + 1_000, name="A", launch=(base - 900, base - 800))
            (trace.api if number == 2 else trace.osrt)(
                "cudaDeviceSynchronize" if number == 2 else "read", base + 1_000, base + 1_000 + work
            )
            start = base + 1_000 + work + 2_000
            trace.kernel(start, start + 1_000, name="B", launch=(start - 2_000, start - 1_000))
            trace.nvtx(f"step {number + 1}", base - 1_000, start + 1_000)
        return trace

    def test_gaps_that_look_alike_are_one(self, tmp_path: Path) -> None:
        device = only_device(self.steps(), tmp_path)
        rows = {(row.previous_op, row.next_op, row.cause): row for row in device.signatures}
        reads = rows["A", "B", "io_wait"]
        assert (reads.count, reads.total_ns, reads.max_ns, reads.median_ns) == (2, 12_000 + 32_000, 32_000, 12_000)
        assert reads.nvtx == ["step #"]
        assert reads.representative_start_ns == 2_001_000
        assert rows["A", "B", "sync"].count == 1
        between = rows["B", "A", "uncovered"]
        assert (between.count, between.nvtx) == (2, [])

    def test_they_hold_every_gap_and_come_by_total(self, tmp_path: Path) -> None:
        device = only_device(self.steps(), tmp_path)
        assert sum(row.count for row in device.signatures) == device.gap_count
        assert sum(row.total_ns for row in device.signatures) == device.idle_ns
        totals = [row.total_ns for row in device.signatures]
        assert totals == sorted(totals, reverse=True)

    @pytest.mark.slow
    def test_the_same_gap_has_the_same_id_in_every_trace(self, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        one = only_device(self.steps(), tmp_path)
        other = only_device(self.steps().kernel(9_000_000, 9_001_000, launch=EARLY), tmp_path / "other")
        ids = {row.id for row in one.signatures}
        assert len(ids) == len(one.signatures)
        assert ids < {row.id for row in other.signatures}
