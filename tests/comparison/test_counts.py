"""How often work ran: what two sides are brought to one unit by, and where they have none but parts of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.units import PARTS_OF_STEPS, RunOf, _counts
from nsysdiag.pipeline import analyze
from tests.builder import TraceBuilder
from tests.comparison.samples import WITHOUT_TIMELINE, only
from tests.iterations.test_iterations import BEHIND, starts, work
from tests.output.samples import LAUNCH, MS, device, graphs, kernel

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.phases.facts import PhaseDevice
    from nsysdiag.report import Report


def test_graphs_recorded_as_wholes_count_by_their_launches() -> None:
    """Of a graph whose nodes were recorded the kernels count themselves."""
    gemm = kernel("gemm", 30 * MS)
    made = device(kernels=[gemm], launch=replace(LAUNCH, graphs=graphs("whole", "by node")))
    assert _counts(made) == {RunOf(gemm.name): (gemm.count, 30 * MS), RunOf("whole", is_graph=True): (10, 4 * MS)}


def test_graphs_of_one_name_count_together_and_those_never_launched_not() -> None:
    (row, *_others) = graphs("twice").rows
    rows = [row, replace(row, work_ns=MS), replace(row, name="never", launches=0)]
    made = device(kernels=[], launch=replace(LAUNCH, graphs=replace(graphs("twice"), rows=rows)))
    assert _counts(made) == {RunOf("twice", is_graph=True): (20, 5 * MS)}


def layers(length: int = MS) -> TraceBuilder:
    """One forward pass of 17 layers, and neither of its ends."""
    trace = TraceBuilder()
    for number, (start, end) in enumerate(starts((length,) * 17)):
        work(trace, start).nvtx(f"blocks.{number + 3}", start, end - 1_000)
    return trace


def steps(name: str, times: int) -> TraceBuilder:
    """Ten steps of a millisecond for each of so many `times` that the same work is done in them."""
    trace = TraceBuilder()
    for number, (start, end) in enumerate(starts((times * MS,) * 10)):
        for at in range(times):
            work(trace, start + at * MS)
        trace.nvtx(name.format(number), start, end - 1_000)
    return trace


def in_graphs(name: str) -> TraceBuilder:
    """Ten steps that are one graph launch each, recorded as a whole."""
    trace = TraceBuilder()
    for number, (start, end) in enumerate(starts((MS,) * 10)):
        trace.graph_trace(start + BEHIND, start + MS // 2, launch=(start + 5_000, start + 15_000))
        trace.osrt("read", start + 450_000, end - 1_000).nvtx(name.format(number), start, end - 1_000)
    return trace


def report(trace: TraceBuilder, folder: Path, name: str) -> Report:
    return analyze(trace.write(folder / f"{name}.sqlite"), WITHOUT_TIMELINE)


class TestPartsOfSteps:
    """Traces that hold no whole step: what differs may lie in which parts they show."""

    @pytest.mark.slow
    def test_layers_of_one_pass(self, tmp_path: Path) -> None:
        one, two = report(layers(), tmp_path, "one"), report(layers(2 * MS), tmp_path, "two")
        made = compare_reports([one], [two])
        found = only(made)
        assert (found.unit.kind, found.unit.part_of_step) == ("kernels", True)
        assert made.verdict == found.verdict == "unknown"
        assert found.notes[:2] == ["No steps were found on both sides: whole windows are compared.", PARTS_OF_STEPS]
        assert found.sentence.endswith(" The change may not be the reason: no whole steps are compared.")
        assert made.headline.startswith("Parts of steps, for the same work: 16.5 → 32.5 ms (1.97× longer; ")

    @pytest.mark.slow
    def test_layers_on_one_side_alone(self, tmp_path: Path) -> None:
        """Ten steps of the other side, and 17 layers that each do the work of one."""
        whole, part = report(steps("step {}", 1), tmp_path, "steps"), report(layers(), tmp_path, "layers")
        there, back = only(compare_reports([whole], [part])), only(compare_reports([part], [whole]))
        assert (there.unit.part_of_step, back.unit.part_of_step) == (True, True)
        assert there.unit.scale == pytest.approx(10 / 17)
        assert back.unit.scale == pytest.approx(1.7)
        assert PARTS_OF_STEPS in there.notes

    def test_slices_without_steps(self, tmp_path: Path) -> None:
        """One side that is a slice is enough, unless its steps are compared."""
        whole = report(steps("step {}", 1), tmp_path, "whole")
        cut = on_device(whole, sliced=True)
        assert not only(compare_reports([whole], [cut])).unit.part_of_step
        one, two = (on_device(each, iterations=None) for each in (whole, cut))
        for before, after, expected in ((one, one, False), (one, two, True), (two, one, True)):
            found = only(compare_reports([before], [after]))
            assert found.unit.part_of_step == expected
            assert (PARTS_OF_STEPS in found.notes) == expected


@pytest.mark.slow
def test_steps_that_are_no_whole_number_of_others(tmp_path: Path) -> None:
    """Two units of work in a step before, three in one after: those are not the same step."""
    reports = [report(steps(name, times), tmp_path, name[:5]) for name, times in (("step {}", 2), ("batch {}", 3))]
    found = only(compare_reports(reports[:1], reports[1:]))
    assert found.unit.kind == "phases"
    assert found.unit.scale == pytest.approx(2 / 3)
    why = "Iterations begin with different operations on each side, so they are not the same step"
    assert found.notes[0] == f"{why}: the steady phases are compared."
    assert "The window after holds 1.5 times the work of the one before, by the kernels that both ran." in found.notes


@pytest.mark.slow
def test_steps_that_are_a_whole_number_of_others(tmp_path: Path) -> None:
    reports = [report(steps(name, times), tmp_path, name[:5]) for name, times in (("step {}", 1), ("batch {}", 3))]
    for sides, scale, told in (
        (
            (reports[:1], reports[1:]),
            1 / 3,
            "with step # before and with batch # after; one third of an iteration after does",
        ),
        ((reports[1:], reports[:1]), 3.0, "with batch # before and with step # after; 3 iterations after do"),
    ):
        found = only(compare_reports(*sides))
        assert found.unit.kind == "iterations"
        assert found.unit.scale == pytest.approx(scale)
        assert found.notes[0] == f"Iterations begin {told} the work of one before."


@pytest.mark.slow
def test_steps_in_graphs_have_no_kernel_to_count_by(tmp_path: Path) -> None:
    """What runs in graphs that a trace holds as wholes is not known: an iteration stands for one by another name."""
    before, after = report(steps("step {}", 1), tmp_path, "kernels"), report(in_graphs("batch {}"), tmp_path, "graphs")
    compared = only(compare_reports([before], [after]))
    unit = compared.unit
    assert (unit.kind, unit.name_before, unit.name_after, unit.scale) == ("iterations", "step #", "batch #", 1.0)
    assert any(note.endswith("; the work in each is unknown.") for note in compared.notes)


@pytest.mark.slow
def test_launches_that_no_trace_shows_are_no_work(tmp_path: Path) -> None:
    """Without calls of CUDA there is nothing to count; of one side alone there is."""
    with_calls = report(steps("step {}", 1), tmp_path, "calls")
    launch = replace(with_calls.devices[0].launch, calls=0)
    without = on_device(with_calls, launch=launch)
    assert [row.id for row in only(compare_reports([without], [without])).work] == ["kernels"]
    assert [(row.id, row.before, row.after) for row in only(compare_reports([without], [with_calls])).work] == [
        ("kernels", 4.0, 4.0),
        ("launches", 0.0, 4.0),
    ]


def test_a_device_that_did_nothing_in_the_judged_phases(tmp_path: Path) -> None:
    """Its window is compared: there is nothing else of it."""
    whole = on_device(report(steps("step {}", 1), tmp_path, "whole"), iterations=None)
    assert only(compare_reports([whole], [whole])).unit.kind == "phases"
    phases = [replace(each, devices=[_nothing(found) for found in each.devices]) for each in whole.phases]
    found = only(compare_reports([whole], [replace(whole, phases=phases)]))
    assert found.unit.kind == "kernels"
    assert "Not every report judges a steady phase: start-up counts in the windows." in found.notes


def _nothing(found: PhaseDevice) -> PhaseDevice:
    parts = dict.fromkeys(("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns"), 0)
    return replace(found, **parts, ledger={}, account={})


def on_device(report: Report, **changes: object) -> Report:
    """The same with another device."""
    return replace(report, devices=[replace(report.devices[0], **changes)])
