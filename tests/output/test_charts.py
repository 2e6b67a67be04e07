"""Figures: bars as long as what they stand for, in the causes' colours, with nothing from a trace taken for markup."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import plotly.graph_objects as go
import plotly.io
import pytest

import nsysdiag
from nsysdiag.document.axis import EDGES, bound, unit_of
from nsysdiag.document.names import plain
from nsysdiag.document.view import UNKNOWN_COLOR
from nsysdiag.document.words import NO_GPU_WORK
from nsysdiag.formats.figures import NO_DEPTH, NO_GAPS, gap_chart, ledger_chart, queue_depth_chart
from nsysdiag.formats.plots import PART_COLORS
from nsysdiag.messages import InputError, UsageError
from nsysdiag.report import CauseInfo
from tests.levels import crossed
from tests.output.samples import SAMPLES, US, device, pack, report

CHARTS = (ledger_chart, gap_chart, queue_depth_chart)


def drawn(figure: go.Figure) -> dict[str, Any]:
    """The figure as a browser gets it."""
    made: dict[str, Any] = json.loads(figure.to_json())
    return made


def said(figure: go.Figure) -> list[str]:
    return [note["text"] for note in drawn(figure)["layout"].get("annotations", [])]


@pytest.mark.slow
@pytest.mark.parametrize(("chart", "sample"), crossed(CHARTS, list(SAMPLES), 3))
def test_same_report_same_figure(chart: Any, sample: str) -> None:
    first = chart(SAMPLES[sample]()).to_json()
    before = plotly.io.templates.default
    plotly.io.templates.default = "plotly_dark"
    try:
        assert chart(SAMPLES[sample]()).to_json() == first
    finally:
        plotly.io.templates.default = before


class TestLedgerChart:
    @staticmethod
    def held_to(made: nsysdiag.Report) -> None:
        traces = drawn(ledger_chart(made))["data"]
        scale, _unit = unit_of(max(each.window_ns for each in made.devices))
        for place, each in enumerate(made.devices):
            rows = [
                (length, row[0])
                for trace in traces
                for y, length, row in zip(trace["y"], trace["x"], trace["customdata"], strict=True)
                if y == place
            ]
            assert sum(ns for _length, ns in rows) == each.window_ns
            assert sum(length for length, _ns in rows) * scale == pytest.approx(each.window_ns)

    @pytest.mark.parametrize("sample", ["one_device", "several_devices", "never_idle", "hostile"])
    def test_bars_add_up_to_the_window(self, sample: str) -> None:
        self.held_to(SAMPLES[sample]())

    @pytest.mark.slow
    def test_bars_add_up_on_a_real_report(self, demo: nsysdiag.Report) -> None:
        self.held_to(demo)

    def test_order_and_colors(self) -> None:
        made = SAMPLES["several_devices"]()
        colors = {f"Idle: {cause.title}": cause.color for cause in made.causes}
        busy, idle = (drawn(ledger_chart(made))["data"][part] for part in (slice(3), slice(3, None)))
        assert [trace["name"] for trace in busy] == ["Compute", "Exposed communication", "Exposed copies"]
        assert [trace["marker"]["color"] for trace in busy] == [
            PART_COLORS[part] for part in ("compute", "communication", "copies")
        ]
        assert all(trace["marker"]["color"] == colors[trace["name"]] for trace in idle)

    def test_hover_is_exact(self) -> None:
        first = drawn(ledger_chart(SAMPLES["one_device"]()))["data"][0]
        assert [row[:3] for row in first["customdata"]] == [[45_000_000, "45,000,000 ns", "45.0%"]]

    @pytest.mark.parametrize("sample", ["no_device", "no_device_no_rows"])
    def test_no_device(self, sample: str) -> None:
        assert said(ledger_chart(SAMPLES[sample]())) == [NO_GPU_WORK]


class TestGapChart:
    @pytest.mark.slow
    @pytest.mark.parametrize("key", [None, "gpu0", "gpu1"])
    def test_bars_add_up_to_the_gaps(self, demo: nsysdiag.Report, key: str | None) -> None:
        chosen = [each for each in demo.devices if key in (None, each.key)]
        traces = drawn(gap_chart(demo, key))["data"]
        for axis, total in (
            ("y", sum(each.gap_count for each in chosen)),
            ("y2", sum(each.idle_ns for each in chosen)),
        ):
            rows = [row for trace in traces if trace["yaxis"] == axis for row in trace["customdata"]]
            assert sum(row[0] for row in rows) == total

    def test_bins_and_colors(self) -> None:
        gaps = [(0, US, 0), (9_000, 2 * US - 1, 0), (20_000, 2 * US, 1), (30_000, 4_999, 9)]
        causes = ["sync", "io_wait", *"abcdefg", "unheard of"]
        figure = gap_chart(report([device(gaps_packed=pack(gaps, causes))], []))
        counts = {trace["name"]: trace for trace in drawn(figure)["data"] if trace["yaxis"] == "y"}
        assert {name: (trace["x"], trace["y"]) for name, trace in counts.items()} == {
            "unheard of": ([1.5], [1]),
            "Waiting in a synchronisation": ([0.5], [2]),
            "Waiting for I/O": ([1.5], [1]),
        }
        assert {trace["marker"]["color"] for trace in counts.values()} == {UNKNOWN_COLOR, "#d1495b", "#457b9d"}
        assert list(figure.layout.xaxis.ticktext) == ["1 µs", "2 µs", "5 µs"]
        times = {trace["name"]: trace for trace in drawn(figure)["data"] if trace["yaxis"] == "y2"}
        assert times["unheard of"]["customdata"] == [[4_999, "4,999 ns", "2 µs to 5 µs", "6,999 ns"]]

    def test_axes_have_names_and_units(self, demo: nsysdiag.Report) -> None:
        layout = gap_chart(demo, "gpu1").layout
        assert layout.title.text == "Gaps by length, gpu1"
        assert layout.xaxis.title.text == "Length of the gap"
        assert layout.yaxis.title.text == "Number of gaps"
        assert layout.yaxis2.title.text == "Idle time in them (ms)"

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("length", [0, 1])
    def test_lengths_no_gap_has(self, length: int) -> None:
        made = report([device(gaps_packed=pack([(0, length, 0)], ["sync"]))], [])
        assert [sum(trace["y"]) for trace in drawn(gap_chart(made))["data"] if trace["yaxis"] == "y"] == [1]

    @pytest.mark.parametrize("length", [-5, 5 * 10**18, 2**63 - 1])
    def test_lengths_that_are_impossible_are_refused(self, length: int) -> None:
        made = report([device(gaps_packed=pack([(0, length, 0)], ["sync"]))], [])
        with pytest.raises(InputError, match="damaged"):
            gap_chart(made)

    def test_bounds_of_bins_read_well(self) -> None:
        assert [bound(at) for at in (0, 1, 2, 9, 20, 27, 54)] == [
            "1 ns",
            "2 ns",
            "5 ns",
            "1 µs",
            "5 ms",
            "1 s",
            "1,000,000,000 s",
        ]
        assert bound(len(EDGES)) == "more"

    def test_nothing_to_show(self) -> None:
        assert said(gap_chart(SAMPLES["never_idle"]())) == [NO_GAPS]
        assert said(gap_chart(SAMPLES["no_device"]())) == [NO_GPU_WORK]

    def test_unknown_device_names_the_known_ones(self) -> None:
        with pytest.raises(UsageError) as raised:
            gap_chart(SAMPLES["several_devices"](), "gpu9")
        assert "gpu0, gpu1, gpu2, gpu3" in str(raised.value.hint)


class TestQueueDepthChart:
    def test_a_mean_in_a_band(self) -> None:
        lowest, highest, mean = drawn(queue_depth_chart(SAMPLES["one_device"]()))["data"]
        assert [row[0] for row in lowest["customdata"][:3]] == [0, 1, 2]
        assert [row[1] for row in highest["customdata"][:3]] == ["0 to 4", "1 to 8", "2 to 12"]
        assert [row[0] for row in mean["customdata"][:3]] == [0, 1.5, 3]
        assert mean["x"][:2] == [90, 91]
        assert (mean["x"][-1], len(mean["x"]), len(mean["y"])) == (190, 101, 101)
        assert (highest["fill"], mean["name"]) == ("tonexty", "gpu0")

    @pytest.mark.slow
    def test_one_line_a_device(self, demo: nsysdiag.Report) -> None:
        names = [trace["name"] for trace in drawn(queue_depth_chart(demo))["data"] if "name" in trace]
        assert [name for name in names if ":" not in name] == ["gpu0", "gpu1"]
        layout = queue_depth_chart(demo, "gpu1").layout
        assert layout.title.text == "Operations launched and not finished, gpu1"
        assert (layout.xaxis.title.text, layout.yaxis.title.text) == ("Time in the trace (s)", "Operations")

    def test_nothing_to_show(self) -> None:
        assert said(queue_depth_chart(SAMPLES["never_idle"]())) == [NO_DEPTH]
        assert said(queue_depth_chart(SAMPLES["no_device"]())) == [NO_GPU_WORK]

    def test_unknown_device(self) -> None:
        with pytest.raises(UsageError):
            queue_depth_chart(SAMPLES["several_devices"](), "gpu9")


class TestHostileNames:
    @pytest.mark.parametrize("chart", [*CHARTS, lambda report: gap_chart(report, report.devices[0].key)])
    def test_no_name_is_markup(self, chart: Any) -> None:
        made = drawn(chart(SAMPLES["hostile"]()))
        for text in texts({**made, "layout": {**made["layout"], "template": None}}):
            words = text.replace("<br>", "").replace("<extra></extra>", "")
            assert "<" not in words
            assert "$" not in words
            assert text.isprintable()

    @pytest.mark.parametrize("name", ["$x$", "a$b", r"$\href{javascript:alert(1)}{x}$"])
    def test_dollars_make_no_formula(self, name: str) -> None:
        assert "$" not in plain(name)

    def test_colors_are_colors(self) -> None:
        causes = [CauseInfo(id="sync", title="x", meaning="", color='red" onload="x')]
        made = msgspec.structs.replace(SAMPLES["one_device"](), causes=causes)
        for chart in (ledger_chart, gap_chart):
            assert all(len(trace["marker"]["color"]) == 7 for trace in drawn(chart(made))["data"])


def texts(value: Any) -> list[str]:
    """Every text in a figure."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) else []
