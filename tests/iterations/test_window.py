"""The time under analysis: from the first to the last launched operation, or what the settings narrow it to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.messages import UsageError
from tests.builder import TraceBuilder
from tests.causes.example import CALL, NEIGHBOUR, issued, late
from tests.ledger.traces import devices, only_device, report_of

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import DeviceReport


def borders(device: DeviceReport) -> tuple[int, int]:
    return device.window.start_ns, device.window.end_ns


class TestWhole:
    def test_from_the_first_start_to_the_last_end(self, tmp_path: Path) -> None:
        """
        stream 7  [====A====)        [B)
        stream 8          [C..............)      C begins before B and ends after it
        """
        trace = TraceBuilder().kernel(10_000, 20_000, launch=(1, 2)).kernel(40_000, 41_000, launch=(3, 4))
        trace.kernel(15_000, 60_000, launch=(5, 6), stream=8)
        device = only_device(trace, tmp_path)
        assert borders(device) == (10_000, 60_000)
        assert (device.window_ns, device.busy_ns, device.idle_ns) == (50_000, 50_000, 0)
        assert device.window.parts == [(10_000, 60_000)]
        assert device.window.outside_ns == 0

    def test_a_migration_neither_opens_nor_closes_it(self, tmp_path: Path) -> None:
        """
        device  [m)   [==A==) ... [==B==)              [m)      pages that the CPU reads after the last kernel
        """
        trace = issued().memcpy(2_000, 3_000, kind="UM HtoD").memcpy(9_000_000, 9_100_000, kind="UM DtoH")
        device = only_device(trace, tmp_path)
        assert borders(device) == (10_000, 250_000)
        assert device.ledger == {"device_stall": 40_000}

    def test_of_migrations_alone(self, tmp_path: Path) -> None:
        """
        device  [m)........[m)      nothing was launched
        """
        trace = TraceBuilder().memcpy(2_000, 3_000, kind="UM HtoD").memcpy(90_000, 91_000, kind="UM DtoH")
        device = only_device(trace, tmp_path)
        assert borders(device) == (2_000, 91_000)
        assert sum(device.ledger.values()) == device.idle_ns == 87_000

    def test_a_zero_length_operation_neither_opens_nor_closes_it(self, tmp_path: Path) -> None:
        """
        device  |      [==A==)....40_000....[==B==)      |
        """
        trace = issued().kernel(9_000, 9_000, launch=(8_000, 8_500)).kernel(900_000, 900_000, launch=(3, 4))
        device = only_device(trace, tmp_path)
        assert borders(device) == (10_000, 250_000)
        assert (device.ops.kernel, device.ops.zero_length) == (4, 2)

    def test_a_zero_length_operation_splits_no_gap(self, tmp_path: Path) -> None:
        """
        device  [==A==)....|....[==B==)
        """
        device = only_device(issued().memset(130_000, 130_000, launch=(120_000, 121_000)), tmp_path)
        (gap,) = device.gaps
        assert (gap.start_ns, gap.end_ns) == (110_000, 150_000)
        assert gap.previous_op is not None
        assert gap.next_op is not None
        assert (gap.previous_op.start_ns, gap.next_op.start_ns) == (10_000, 150_000)
        assert (device.ops.memset, device.ops.zero_length) == (1, 1)

    def test_a_zero_length_operation_is_no_neighbour(self, tmp_path: Path) -> None:
        """
        device  [==A==)|........|[==B==)      zero-length rows at both ends of the gap
        """
        trace = issued().memset(110_000, 110_000, launch=(1, 2)).memset(150_000, 150_000, launch=(3, 4))
        (gap,) = only_device(trace, tmp_path).gaps
        assert gap.previous_op is not None
        assert gap.next_op is not None
        assert (gap.previous_op.category, gap.next_op.category) == ("kernel", "kernel")


MALFORMED = {
    "starts at 0": (0, 50_000),
    "has a negative start": (-100, 50_000),
    "ends before it starts": (120_000, 115_000),
    "ends after the session": (120_000, 1_000_001),
}


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("times", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_row_is_dropped_counted_and_told(times: tuple[int, int], tmp_path: Path) -> None:
    """
    device  [==A==)....40_000....[==B==)      and one row that cannot be
    """
    trace = issued()
    trace.duration = 1_000_000
    trace.kernel(*times, launch=(1, 2), stream=8)
    device = only_device(trace, tmp_path)
    assert device.ledger == {"device_stall": 40_000}
    assert borders(device) == (10_000, 250_000)
    assert (device.ops.kernel, device.ops.malformed) == (2, 1)
    assert any("1 malformed" in note for note in device.notes)


def test_an_end_at_the_session_s_end_is_well_formed(tmp_path: Path) -> None:
    trace = issued()
    trace.duration = 250_000
    assert only_device(trace, tmp_path).ops.malformed == 0


class TestNarrowed:
    def test_a_gap_is_cut_at_the_border(self, tmp_path: Path) -> None:
        """
        device  [==A==)..40_000|.. 170_000 of host, 10_000, 10_000 ..[==B==)
        window                 |150_000 ------------------------------------| 350_000
        """
        device = only_device(late(), tmp_path, Settings(start_ns=150_000, end_ns=350_000))
        assert device.window.parts == [(150_000, 350_000)]
        assert device.ledger == {"uncovered": 130_000, **CALL}
        assert [(gap.start_ns, gap.end_ns) for gap in device.gaps] == [(150_000, 300_000)]
        assert (device.busy_ns, device.idle_ns, device.window.outside_ns) == (50_000, 150_000, 390_000 - 200_000)

    def test_the_case_is_that_of_the_whole_gap(self, tmp_path: Path) -> None:
        """
        device  [==A==)......|3_000|[==B==)      3 µs of a long gap are no dispatch
        """
        device = only_device(issued(), tmp_path, Settings(start_ns=147_000))
        assert device.ledger == {"device_stall": 3_000}

    def test_a_border_inside_a_gap_on_both_sides(self, tmp_path: Path) -> None:
        """
        device  [==A==)....|  10_000  |.....[launch B][==B==)
        """
        device = only_device(late(), tmp_path, Settings(start_ns=200_000, end_ns=210_000))
        assert device.ledger == {"uncovered": 10_000}
        assert (device.window_ns, device.idle_ns, device.gap_count) == (10_000, 10_000, 1)

    def test_time_outside_the_work_is_edge_not_idle(self, tmp_path: Path) -> None:
        device = only_device(late(), tmp_path, Settings(start_ns=0, end_ns=900_000))
        assert borders(device) == (10_000, 400_000)
        assert device.idle_ns == 190_000

    @pytest.mark.parametrize(
        "settings",
        [
            Settings(start_ns=500_000),
            Settings(end_ns=10_000),
            Settings(start_ns=200_000, end_ns=200_000),
            Settings(start_ns=300_000, end_ns=200_000),
        ],
    )
    def test_an_empty_window_is_a_mistake(self, settings: Settings, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no GPU work"):
            report_of(late(), tmp_path, settings)


class TestNvtx:
    """
    device  [==A==)....[==B==)  .  [==C==)....[==D==)
    NVTX   [step: A, B]          [step: C, D]
    """

    @staticmethod
    def steps() -> TraceBuilder:
        trace = TraceBuilder()
        for number, start in enumerate((100_000, 150_000, 500_000, 560_000)):
            call = (start - 90_000, start - 85_000)
            trace.kernel(start, start + 10_000, launch=call, name=f"k{number}")
        return trace.nvtx("step", 9_000, 66_000).nvtx("step", 409_000, 480_000)

    def test_each_instance_is_projected_to_the_device(self, tmp_path: Path) -> None:
        device = only_device(self.steps(), tmp_path, Settings(nvtx="step"))
        assert device.window.parts == [(100_000, 160_000), (409_000, 570_000)]
        assert device.window_ns == 60_000 + 161_000
        assert device.idle_ns == 40_000 + 141_000
        assert [(gap.start_ns, gap.end_ns) for gap in sorted(device.gaps, key=lambda gap: gap.start_ns)] == [
            (110_000, 150_000),
            (409_000, 500_000),
            (510_000, 560_000),
        ]
        assert device.window.outside_ns == 470_000 - 221_000

    def test_it_holds_its_own_idle_time_and_no_other_work(self, tmp_path: Path) -> None:
        """
        device  [==A==)....[==B==)    [==N==)  ...   [==C==)....[==D==)  ..
        NVTX   [step: A, B]       [step: load, C, D ...........          log]
        """
        trace = self.steps().kernel(380_000, 420_000, launch=(1_000, 2_000), thread=NEIGHBOUR)
        trace.nvtx("step", 600_000, 640_000).kernel(630_000, 650_000, launch=(605_000, 606_000))
        trace.nvtx("step", 655_000, 690_000).kernel(660_000, 670_000, launch=(656_000, 657_000))
        trace.kernel(680_000, 700_000, launch=(671_000, 672_000), thread=NEIGHBOUR)
        device = only_device(trace, tmp_path, Settings(nvtx="step"))
        assert device.window.parts == [(100_000, 160_000), (420_000, 570_000), (600_000, 650_000), (655_000, 680_000)]

    def test_it_is_cut_by_times_as_well(self, tmp_path: Path) -> None:
        device = only_device(self.steps(), tmp_path, Settings(nvtx="step", start_ns=155_000, end_ns=505_000))
        assert device.window.parts == [(155_000, 160_000), (409_000, 505_000)]

    def test_only_what_its_thread_launched_counts(self, tmp_path: Path) -> None:
        """
        device  [==A==)....[==B==)....[==N==)
        NVTX   [step: A, B]                       N was launched at the same time by another thread
        """
        trace = self.steps().kernel(300_000, 310_000, launch=(20_000, 21_000), thread=NEIGHBOUR)
        device = only_device(trace, tmp_path, Settings(nvtx="step"))
        assert device.window.parts == [(100_000, 160_000), (409_000, 570_000)]

    def test_nested_instances_unite(self, tmp_path: Path) -> None:
        device = only_device(self.steps().nvtx("step", 9_500, 12_000), tmp_path, Settings(nvtx="step"))
        assert device.window.parts == [(100_000, 160_000), (409_000, 570_000)]

    def test_an_instance_that_launched_nothing_adds_nothing(self, tmp_path: Path) -> None:
        device = only_device(self.steps().nvtx("step", 200_000, 300_000), tmp_path, Settings(nvtx="step"))
        assert device.window.parts == [(100_000, 160_000), (409_000, 570_000)]

    def test_an_open_range_lasts_to_the_end(self, tmp_path: Path) -> None:
        device = only_device(self.steps().nvtx("run", 60_000, None), tmp_path, Settings(nvtx="run"))
        assert device.window.parts == [(110_000, 570_000)]

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("wanted", ["st*", "s?ep"])
    def test_a_pattern_will_do(self, wanted: str, tmp_path: Path) -> None:
        assert only_device(self.steps(), tmp_path, Settings(nvtx=wanted)).window_ns == 221_000

    def test_an_interned_name_will_do(self, tmp_path: Path) -> None:
        trace = self.steps().nvtx("other", 9_000, 66_000, interned=True)
        assert only_device(trace, tmp_path, Settings(nvtx="other")).window.parts == [(100_000, 160_000)]

    def test_a_mark_is_no_range(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="checkpoint"):
            report_of(
                self.steps().nvtx("checkpoint", 9_000, None, event_type=34), tmp_path, Settings(nvtx="checkpoint")
            )

    def test_an_unknown_name_is_a_mistake_with_a_suggestion(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="steep") as caught:
            report_of(self.steps(), tmp_path, Settings(nvtx="steep"))
        assert "step" in (caught.value.hint or "")

    def test_a_range_that_launched_nothing_at_all_is_a_mistake(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no GPU work"):
            report_of(self.steps().nvtx("idle", 200_000, 300_000), tmp_path, Settings(nvtx="idle"))

    def test_a_device_without_any_of_it_says_so(self, tmp_path: Path) -> None:
        """
        device 0  work inside the range
        device 1  work outside it only
        """
        trace = self.steps().kernel(300_000, 310_000, device=1, stream=14, launch=(250_000, 251_000))
        found = devices(trace, tmp_path, Settings(nvtx="step"))
        assert found["gpu0"].window_ns == 221_000
        assert (found["gpu1"].window_ns, found["gpu1"].verdict.id) == (0, "no-gpu-work")
        assert found["gpu1"].notes == ["No GPU work of this device is in the chosen time."]


def test_a_trace_without_gpu_work(tmp_path: Path) -> None:
    assert report_of(TraceBuilder().osrt("read", 1_000, 2_000), tmp_path).devices == []
