"""The first screen: short enough to be read at once, and the same in every format."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec.structs import replace

from nsysdiag.bottlenecks import noun_of
from nsysdiag.diagnosis.entries import (
    FOR_PEERS,
    INSIDE_MPI,
    NAMED,
    account_stack,
    joined,
    phase_label,
    phase_names,
    phase_strip,
    phase_verdict,
    shown_phases,
)
from nsysdiag.diagnosis.facts import Saves
from nsysdiag.diagnosis.focus import Scope
from nsysdiag.diagnosis.sentences import BottleneckDetail, Said, headline
from nsysdiag.document.blocks import Chart, Column, Lines, Table, written_out
from nsysdiag.document.columns import SHARE
from nsysdiag.document.drawings import StackedBar
from nsysdiag.document.svg import segments
from nsysdiag.findings.facts import LATE_RANK, OTHER_GPU, TOLD_TWICE, brief_of
from nsysdiag.findings.rules import FINDING_RULES
from nsysdiag.findings.show import TICKET_REST, left_out, where
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.phases.facts import Did, Phase, PhaseDevice, PhaseSteps
from nsysdiag.report import Report
from nsysdiag.units import format_share
from tests.diagnosis.programs import PROGRAMS
from tests.output.page import unexplained
from tests.output.samples import MS, SAMPLES, device, finding, report

if TYPE_CHECKING:
    from tests.shared import Shared

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
REAL = sorted(FOLDER.glob("*.sqlite"))
ONE_GPU, MANY_GPUS, TICKET = 25, 40, 60
SAVES = Saves(ns=600_000, low_ns=0, high_ns=600_000, per="step", of_ns=5 * MS, method="bound")


def of_devices(count: int, findings: int = 12) -> Report:
    """A job on so many GPUs."""
    found = [
        finding(f"f-{at}", title=f"Finding {at} " + "with a long title " * 3, devices=[f"gpu{at % count}"])
        for at in range(findings)
    ]
    return report([device(index) for index in range(count)], found)


def text_of(made: Report) -> str:
    return FORMATS["txt"].render(made, RenderOptions(width=100, command="nsysdiag analyze train.sqlite")).decode()


def markdown_of(made: Report) -> str:
    return FORMATS["md"].render(made, RenderOptions(command="nsysdiag analyze train.sqlite")).decode()


@pytest.mark.parametrize(("devices", "most"), [(1, ONE_GPU), (2, ONE_GPU + 6), (8, MANY_GPUS)])
def test_text_fits_a_screen(devices: int, most: int) -> None:
    assert 10 < len(text_of(of_devices(devices)).splitlines()) <= most


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_markdown_fits_a_ticket(devices: int) -> None:
    assert 20 < len(markdown_of(of_devices(devices)).splitlines()) <= TICKET


@cache
def of_trace(path: Path) -> Report:
    from nsysdiag.cli.settings import analyze_trace
    from nsysdiag.config.settings import Settings

    return analyze_trace(path, Settings(), quiet=True)


@pytest.mark.sampled(normal=6)
@pytest.mark.real
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_real_traces_fit(path: Path) -> None:
    made = of_trace(path)
    most = ONE_GPU if len(made.devices) < 2 else MANY_GPUS
    assert len(text_of(made).splitlines()) <= most
    assert len(markdown_of(made).splitlines()) <= TICKET


@pytest.mark.parametrize("name", ["txt", "md"])
def test_details_hold_more(name: str) -> None:
    made = SAMPLES["one_device"]()
    short, long = (FORMATS[name].render(made, RenderOptions(details=details)).decode() for details in (False, True))
    assert "Trace health" in long
    assert "Trace health" not in short
    assert len(long) > 2 * len(short)


class TestSaves:
    def test_a_bound(self) -> None:
        saves = Saves(ns=3 * MS, low_ns=0, high_ns=3 * MS, per="step", of_ns=10 * MS, method="bound")
        assert saves.words == "up to 30.0% of a step (3.00 ms)"

    def test_a_replay_says_of_which_step(self) -> None:
        saves = Saves(ns=3 * MS, low_ns=2 * MS, high_ns=4 * MS, per="step", of_ns=10 * MS, method="replay")
        assert saves.words == "20 to 40% of a step (3.00 of 10.0 ms)"
        assert replace(saves, per="window").words == "20 to 40% of the judged time (about 3.00 ms)"

    @pytest.mark.parametrize(
        ("low", "said"),
        [
            (1, "anywhere between 10 and 50% of a step (1.00 to 5.00 ms): the trace cannot tell how much"),
            (0, "up to 50.0% of a step (5.00 ms): the trace cannot tell how much"),
        ],
    )
    def test_bounds_far_apart_are_no_figure(self, low: int, said: str) -> None:
        saves = Saves(ns=3 * MS, low_ns=low * MS, high_ns=5 * MS, per="step", of_ns=10 * MS, method="replay")
        assert replace(saves, cannot_tell=True).words == said

    @pytest.mark.parametrize(
        ("low", "high", "said"),
        [
            (31.2, 36.0, "31 to 36%"),
            (0.04, 4.5, "<0.1 to 4.5%"),
            (4.46, 11.0, "4.5 to 11%"),
            (9.97, 99.6, "10 to 99.6%"),
            (31.2, 31.3, "31%"),
            (0, 4.5, "up to 4.5%"),
        ],
    )
    def test_of_a_prediction(self, low: float, high: float, said: str) -> None:
        saves = self.predicted(low, high)
        assert saves.figure == said
        assert saves.words.endswith(" of the judged time (about 2.00 ms)" if low else " (450 µs)")

    def test_in_the_findings(self) -> None:
        found = [finding("f-1", saves=self.predicted(31, 36), share=0.4), finding("f-2", saves=self.predicted(0, 4.5))]
        shown = text_of(report([device()], found))
        assert "savings overlap" in shown
        assert "bound" not in shown
        assert re.search(r" +Saves +Share +Finding\n.* 31 to 36% \(2.00 ms\) .*\n.* up to 4.5% \(450 µs\) ", shown)

    def test_one_that_is_larger_than_its_share_says_why(self) -> None:
        for share, said in ((0.3, True), (0.32, False)):
            shown = text_of(report([device()], [finding(saves=self.predicted(31, 36), share=share)]))
            assert ("other work waits for it" in " ".join(shown.split())) == said

    def predicted(self, low: float, high: float) -> Saves:
        """Of 10 ms so many per cent, 2 ms in between."""
        low_ns, high_ns = round(low * MS / 10), round(high * MS / 10)
        return Saves(ns=2 * MS, low_ns=low_ns, high_ns=high_ns, per="window", of_ns=10 * MS, method="replay")


class TestRows:
    """Of several GPUs a saving and a share are of different times: no row has both."""

    LATE = finding(devices=["gpu0"], share=0.06, note="saving of gpu0, share of all GPUs")
    WITHOUT = finding("f-2", title="Kernel time", devices=["gpu0", "gpu1"], share=0.76, saves=None)

    def test_of_several(self) -> None:
        shown = text_of(report([device(0), device(1)], [self.LATE, self.WITHOUT]))
        assert re.search(r" Saves +Finding\n", shown)
        assert re.search(r" unsure, up to 12.0% +The step ends in a stream synchronisation, on gpu0\n", shown)
        assert re.search(r" – +Kernel time, on both GPUs, 76.0% of the time\n", shown)

    def test_of_a_single_one(self) -> None:
        shown = text_of(report([device()], [self.LATE, self.WITHOUT]))
        assert re.search(r" unsure, up to 12.0% +6.0%  The step ends in a stream synchronisation\n", shown)
        assert re.search(r" – +76.0%  Kernel time\n", shown)

    def test_why_it_saves_more_than_its_share_stands_with_the_whole_finding(self) -> None:
        made = report([device(0), device(1)], [self.LATE])
        for name, details in (("txt", True), ("md", False), ("html", False)):
            assert self.LATE.note in " ".join(
                FORMATS[name].render(made, RenderOptions(details=details)).decode().split()
            )

    def test_why_it_saves_less_stands_in_the_row(self) -> None:
        part = finding(share=0.3, saves=None, note="part of: Waits")
        assert "synchronisation; part of: Waits" in text_of(report([device()], [part]))


class TestWhatTheRowsLeaveOut:
    """The rows and the line below them add up to the share in the headline."""

    SHARES = (0.2, 0.1, 0.05, 0.08, 0.04, 0.03)

    def said(self, share: float, shares: tuple[float, ...] = SHARES, **changes: object) -> str:
        found = [finding(f"f-{at}", title=f"Wait {at}", share=each, **changes) for at, each in enumerate(shares)]
        diagnosis = report([device()], found).diagnosis
        assert diagnosis is not None
        return left_out(replace(diagnosis, bottleneck="sync", share=share), found)

    def test_it_names_the_largest_findings_left(self) -> None:
        left = "Of the 50.0% synchronization, 15.0% is in findings not shown here"
        assert self.said(0.5) == f"{left}: mostly “Wait 3” (8.0%) and “Wait 4” (4.0%)."

    def test_without_a_finding_it_says_how_much(self) -> None:
        assert self.said(0.5, (0.2, 0.1)) == "Of the 50.0% synchronization, 20.0% is in findings not shown here."

    def test_little_is_not_worth_a_line(self) -> None:
        assert self.said(0.39) == ""

    def test_what_counts_to_other_findings_adds_nothing(self) -> None:
        said = "None of these rows is about synchronization (30.0%)."
        assert self.said(0.3, (0.3,), cause="slow_iterations") == said

    def test_on_the_screen(self) -> None:
        made = report([device()], [finding(share=0.18)])
        assert made.diagnosis is not None
        shown = text_of(replace(made, diagnosis=replace(made.diagnosis, bottleneck="sync", share=0.3)))
        assert "Of the 30.0% synchronization, 12.0% is in findings not shown here." in shown


class TestKernelsFirst:
    """Kernels take almost all of the time, and nothing else saves a tenth of it: they are what to look at first."""

    KERNEL = finding(
        "f-kernels",
        title="Kernel time: stencil",
        cause="kernels",
        bottleneck="kernels",
        share=0.87,
        saves=None,
        advice=["Allow TF32.", "Nsight Compute shows what limits the kernel: ncu --set full PROGRAM"],
        shown_by="ncu",
    )
    """It promises nothing, so it stands behind all that do."""

    def made(self, saved: float, share: float = 0.87) -> Report:
        small = [
            finding(f"f-{at}", title=f"Wait {at}", saves=replace(SAVES, ns=ns, high_ns=ns))
            for at, ns in enumerate(round(saved * 5 * MS / (at + 1)) for at in range(4))
        ]
        made = report([device()], [*small, self.KERNEL])
        assert made.diagnosis is not None
        found = replace(made.diagnosis, bottleneck="kernels", share=share, saves=small[0].saves, action="Wait 0: saves")
        return replace(made, diagnosis=found)

    @pytest.mark.parametrize("name", ["txt", "md", "html"])
    def test_what_to_look_at_comes_first(self, name: str) -> None:
        shown = FORMATS[name].render(self.made(0.045), RenderOptions()).decode()
        assert "Look at first" in shown
        assert "Fix first" not in shown
        assert "Allow TF32. Nsight Compute shows what limits the kernel: ncu" in " ".join(shown.split())
        assert "Also: Wait 0: saves up to 4.5% of a step (225 µs)." in shown

    @pytest.mark.parametrize(("saved", "share"), [(0.12, 0.87), (0.045, 0.7)])
    def test_a_notable_saving_is_fixed_first(self, saved: float, share: float) -> None:
        shown = text_of(self.made(saved, share))
        assert "Fix first: Wait 0" in shown
        assert "Look at first" not in shown

    def test_what_it_saves_ncu_tells(self) -> None:
        assert re.search(r"high +see ncu +87.0%  Kernel time: stencil\n", text_of(self.made(0.045)))

    def test_its_row_is_among_the_few(self) -> None:
        titles = [each.title for each in brief_of(self.made(0.045).diagnosis, self.made(0.045).findings)]
        assert titles == ["Kernel time: stencil", "Wait 0", "Wait 1"]
        made = self.made(0.3)
        assert [each.title for each in brief_of(made.diagnosis, made.findings)] == [
            "Wait 0",
            "Wait 1",
            self.KERNEL.title,
        ]

    def test_the_headline_agrees(self) -> None:
        small, large = (finding(saves=replace(SAVES, high_ns=ns)) for ns in (MS // 10, MS))
        told = Said(Scope("window"), MS, {})
        assert "Synchronization (18.0%) can be fixed as well." in headline(told, "kernels", 0.87, None, small)
        assert "Synchronization (18.0%) can be fixed first." in headline(told, "kernels", 0.87, None, large)
        for low, said in ((0.1, "can be fixed first."), (0.5, "can be fixed first, and saves 50 to 99%.")):
            saves = replace(SAVES, high_ns=990, low_ns=round(low * 1_000), of_ns=1_000, method="replay")
            assert said in headline(told, "kernels", 0.87, None, finding(saves=saves))

    def test_what_surely_saves_more_than_the_bottleneck_is_in_its_sentence(self) -> None:
        saves = replace(SAVES, high_ns=640, low_ns=600, of_ns=1_000, method="replay")
        told = Said(Scope("window"), MS, {"kernels": BottleneckDetail("solve 38.0%")})
        said = headline(told, "kernels", 0.38, None, finding(saves=saves, title="Wait"))
        assert said == "Kernels take 38.0% of the 1.00 ms judged: solve 38.0%; “Wait” saves more: 60 to 64%."

    def test_causes_are_those_of_the_rules(self) -> None:
        assert {*TOLD_TWICE, OTHER_GPU, LATE_RANK} <= FINDING_RULES.keys()


@pytest.mark.parametrize(
    ("devices", "keys", "said"),
    [
        (1, ["gpu0"], ""),
        (2, ["gpu1"], "on gpu1"),
        (2, ["gpu0", "gpu1"], "on both GPUs"),
        (8, [f"gpu{at}" for at in range(7)], "on 7 of 8 GPUs"),
        (8, [f"gpu{at}" for at in range(8)], "on all 8 GPUs"),
    ],
)
def test_devices_of_a_finding(devices: int, keys: list[str], said: str) -> None:
    made = report([device(index) for index in range(devices)], [])
    assert where(finding(devices=keys), len(made.devices)) == said


def test_a_ticket_says_how_many_findings_are_left() -> None:
    shown = markdown_of(of_devices(1, findings=12))
    assert f"{12 - 3 - TICKET_REST} more findings" in shown
    assert len(re.findall(r"^\d+\. ", shown, re.MULTILINE)) == 3 + TICKET_REST


def phases(*of: tuple[str, int, int, bool]) -> list[Phase]:
    return [
        Phase(
            name=name,  # type: ignore[arg-type]
            start_ns=start,
            end_ns=end,
            judged=judged,
            bottleneck="sync",
            share=0.5,
            sentence=f"{name.capitalize()}: half.",
            steps=None,
            devices=[],
        )
        for name, start, end, judged in of
    ]


class TestPhases:
    FOUND = phases(
        ("start-up", 0, 400 * MS, False),
        ("steady", 400 * MS, 900 * MS, True),
        ("pause", 900 * MS, 905 * MS, False),
        ("steady", 905 * MS, 1000 * MS, True),
    )

    def test_names_are_distinct(self) -> None:
        assert phase_names(self.FOUND) == ["start-up", "steady 1", "pause", "steady 2"]

    @pytest.mark.parametrize("basis", ["steady", "phase", "cold"])
    def test_few_steps_are_no_steady_state_whatever_is_judged(self, basis: str) -> None:
        few, many = (PhaseSteps(count=count, median_ns=MS, source="anchor") for count in (4, 5))
        found = [self.FOUND[0], replace(self.FOUND[1], steps=few), replace(self.FOUND[3], steps=many)]
        assert phase_names(found, basis) == ["start-up", "repeats", "steady"]

    @pytest.mark.parametrize(("writes", "ns", "named"), [(True, 3, "output"), (True, 2, "pause"), (False, 4, "pause")])
    def test_a_pause_that_mostly_writes_is_output(self, writes: bool, ns: int, named: str) -> None:
        """Of 5 ms."""
        work = {"compute_ns": 0, "exposed_comm_ns": 0, "exposed_copy_ns": 0, "idle_ns": 5 * MS, "outside_ns": 0}
        did = [Did(text="fwrite", ns=ns * MS, writes=writes)]
        found = PhaseDevice(key="gpu0", **work, ledger={}, account={"host": 5 * MS}, did=did)
        pause = replace(self.FOUND[2], devices=[found])
        assert phase_names([*self.FOUND[:2], pause]) == ["start-up", "steady", named]

    @pytest.mark.parametrize(("compute", "named"), [(3, "other work"), (2, "pause")])
    def test_a_pause_in_which_a_device_works_is_other_work(self, compute: int, named: str) -> None:
        """Of 5 ms."""
        work = {"compute_ns": compute * MS, "exposed_comm_ns": 0, "exposed_copy_ns": 0, "outside_ns": 0}
        found = PhaseDevice(key="gpu0", **work, idle_ns=(5 - compute) * MS, ledger={}, account={"kernels": 5 * MS})
        pause = replace(self.FOUND[2], devices=[found])
        assert phase_names([*self.FOUND[:2], pause]) == ["start-up", "steady", named]

    def test_one_that_is_all_there_is_is_not_called_steady(self) -> None:
        assert phase_names(self.FOUND[1:2], "window") == ["window"]
        assert phase_names(self.FOUND[1:2], "steady") == ["steady"]

    def test_judged_ones_stand_out(self) -> None:
        chart, captions = phase_strip(self.FOUND)
        assert isinstance(chart, Chart)
        assert isinstance(chart.drawing, StackedBar)
        assert [segment.faded for segment in chart.drawing.segments] == [True, False, True, False]
        assert isinstance(captions, Lines)
        assert [written_out(line) for line in captions.lines] == [
            "0.00 s to 0.40 s: Start-up: half.",
            "0.40 s to 0.90 s, judged: Steady 1: half.",
            "0.90 s to 0.91 s: Pause: half.",
            "0.91 s to 1.00 s, judged: Steady 2: half.",
        ]

    def test_of_several_judged_ones_that_of_the_headline_is_named(self) -> None:
        _chart, captions = phase_strip(self.FOUND, about=3)
        assert isinstance(captions, Lines)
        assert [written_out(line) for line in captions.lines][1::2] == [
            "0.40 s to 0.90 s, judged: Steady 1: half.",
            "0.91 s to 1.00 s, judged, see headline: Steady 2: half.",
        ]

    def test_judged_ones_are_shown_before_others(self) -> None:
        late = [*phases(*((f"part {at}", at, at + 1, False) for at in range(5))), *self.FOUND]
        assert shown_phases(late) == [0, 1, 6, 8]

    def test_what_repeats_and_is_not_judged_says_why(self) -> None:
        short = replace(self.FOUND[3], judged=False)
        assert phase_label(short, "steady 2", judged=True) == "steady 2 (95.0 ms, too short to judge)"
        assert phase_label(self.FOUND[1], "steady 1", judged=True) == "steady 1 (500 ms, judged)"
        assert phase_label(self.FOUND[0], "start-up", judged=True) == "start-up (400 ms)"

    def test_what_is_not_judged_and_longer_says_what_it_is(self) -> None:
        start = self.FOUND[0]
        assert phase_label(start, "start-up", judged_ns=400 * MS) == "start-up (400 ms)"
        longer = phase_label(start, "start-up", judged_ns=399 * MS)
        assert longer == f"start-up (400 ms: {noun_of(start.bottleneck)} {format_share(start.share, 1)})"

    def test_unknown_time_of_an_unseen_host_is_named_as_in_the_headline(self) -> None:
        unknown = replace(self.FOUND[1], bottleneck="unknown", share=0.8)
        assert phase_verdict(unknown, "steady 1", host_unseen=True).endswith(": host code outside CUDA calls 80.0%")
        assert phase_verdict(unknown, "steady 1").endswith(f": {noun_of('unknown')} 80.0%")

    def test_times_below_do_not_touch(self) -> None:
        chart, _captions = phase_strip(self.FOUND)
        assert isinstance(chart, Chart)
        assert isinstance(chart.drawing, StackedBar)
        places = [float(x.rstrip("%")) for x, _label in chart.drawing.ticks]
        assert places == [0, 40, 90, 100]
        assert len({label for _x, label in chart.drawing.ticks}) == len(places)


class TestVerdictsOfPhases:
    """Two judged phases: each has a line with its length, its steps and what takes most of it."""

    def shown(self, shared: Shared, name: str) -> str:
        simulation, _ = PROGRAMS[name].run()
        return text_of(shared.report(shared.file(f"{name}-screen.sqlite", simulation.write)))

    @pytest.mark.slow
    def test_each_judged_phase_has_a_line(self, shared: Shared) -> None:
        lines = self.shown(shared, "reference_then_loop").splitlines()
        (before,) = (place for place, line in enumerate(lines) if "Phases, each by itself" in line)
        at = next(place for place, line in enumerate(lines) if place >= before and line.endswith(":"))
        doubt = r"(?: \(or several of them are one: see --step\))?"
        phases = " ".join(line.strip() for line in lines[at + 1 :])
        assert re.match(rf"steady 1 \([\d.]+ ms, \d+ steps{doubt}, median [\d.]+ ms\): kernels [\d.]+% ", phases)
        assert re.search(
            rf"steady 2 \([^()]* steps{doubt}, median 1.81 ms\): waiting for the host 55.2%; the headline is about it",
            phases,
        )
        assert "of each step (steady 2, median 1.81 ms)" in " ".join(lines)

    @pytest.mark.slow
    def test_one_judged_phase_stays_in_the_line_of_all(self, shared: Shared) -> None:
        shown = self.shown(shared, "reads_each_step")
        assert "Phases, each by itself" not in shown


class TestGpus:
    """Columns say what the devices did, notes what of it counts elsewhere."""

    def shown(self, shared: Shared, name: str, form: str) -> str:
        simulation, _ = PROGRAMS[name].run()
        made = shared.report(shared.file(f"{name}-screen.sqlite", simulation.write))
        return unexplained(FORMATS[form].render(made, RenderOptions(command="nsysdiag")).decode())

    @pytest.mark.slow
    def test_waiting_for_a_late_one_is_apart(self, shared: Shared) -> None:
        shown = self.shown(shared, "late_rank_reads_files", "txt")
        assert re.search(r"Comm. kernels +For late peers", shown)
        assert re.search(r"gpu0[\d, –]* +38\.8% +61\.1% +58\.2% .*Waiting for input +58", shown)
        assert FOR_PEERS in shown

    @pytest.mark.slow
    def test_equal_ones_are_one_row_of_text(self) -> None:
        made = of_devices(8)
        assert "  gpu0–7 " in text_of(made)
        assert "gpu0–7" in markdown_of(made)
        page = FORMATS["html"].render(made, RenderOptions()).decode()
        assert "gpu0–7" not in page

    def test_one_that_differs_has_a_row_of_its_own(self) -> None:
        made = of_devices(8)
        found = [
            replace(each, account={"sync": each.compute_ns + each.idle_ns}) if each.key == "gpu5" else each
            for each in made.phases[1].devices
        ]
        shown = text_of(replace(made, phases=[made.phases[0], replace(made.phases[1], devices=found)]))
        assert re.search(r"\n  gpu0–4, 6, 7 .*\n  gpu5 .*Synchronization", shown)

    def test_other_names_are_not_joined(self) -> None:
        rows = [("gpu0", 0.5), ("gpu1", 0.5), ("gpu0-pid7", 0.5), ("gpu0-pid8", 0.5), ("gpu3", 0.5), ("gpu2", 0.25)]
        table = Table("", (NAMED, Column("Idle", SHARE)), rows)
        (found,) = joined([table])
        assert isinstance(found, Table)
        assert [row[0] for row in found.rows] == ["gpu0, 1, 3", "gpu0-pid7", "gpu0-pid8", "gpu2"]

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["slow_exchange_of_equal_ranks", "second_stage_waits_for_the_first"])
    def test_without_a_late_gpu_no_column_for_one(self, shared: Shared, name: str) -> None:
        shown = self.shown(shared, name, "txt")
        assert "Comm. kernels" in shown
        assert "late peers" not in shown

    @pytest.mark.slow
    def test_idle_time_inside_mpi_is_communication(self, shared: Shared) -> None:
        assert INSIDE_MPI in self.shown(shared, "waits_in_mpi", "html")
        assert INSIDE_MPI not in self.shown(shared, "reads_each_step", "html")


def test_a_split_bar_in_text() -> None:
    """Copies have less than a hundredth: they share the last sign."""
    made = SAMPLES["one_device"]()
    found = msgspec.structs.replace(made.phases[1].devices[0], account={"sync": 600, "kernels": 398, "copies": 2})
    judged = msgspec.structs.replace(made.phases[1], devices=[found])
    lines = text_of(msgspec.structs.replace(made, phases=[made.phases[0], judged])).splitlines()
    bar = next(line.strip() for line in lines if "██" in line)
    assert (bar.count("█"), bar.count("▓")) == (48, 32)
    assert "  █ Synchronization 60.0%  ▓ Kernels 39.8%  · other 0.2%" in lines


def test_segments_of_an_account_add_up() -> None:
    drawn = account_stack({"sync": 60, "kernels": 40}, "said")
    assert [(each.segment.label, each.width) for each in segments(drawn)] == [
        ("Synchronization", "60.000%"),
        ("Kernels", "40.000%"),
    ]
    assert drawn.whole == 100
