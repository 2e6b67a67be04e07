"""The figures of a result: one for each chart of its page, with the same values, and with nothing of a trace taken for
markup."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any, get_args

import msgspec
import plotly.io
import pytest

import nsysdiag
from nsysdiag.comparison.facts import Comparison
from nsysdiag.document.blocks import Chart
from nsysdiag.document.drawings import (
    FULL,
    BarChart,
    Curve,
    CurveStrips,
    Drawing,
    DrawnLanes,
    Histogram,
    Icicle,
    StackedBar,
    Stacks,
    Waterfall,
    shown_levels,
)
from nsysdiag.document.names import visible
from nsysdiag.document.svg import HEIGHT, SLOT, bar_plot, curve_plot, lane_paths, strip_plots
from nsysdiag.formats import plots
from nsysdiag.formats.figures import FIGURES, NamedFigure, charts, drawn
from nsysdiag.formats.html.assets import asset
from nsysdiag.messages import InputError
from nsysdiag.units import format_exact_ns, format_ns
from tests.output.browser import Browser, Chromium
from tests.output.compare_samples import COMPARISONS
from tests.output.page import Element, parse
from tests.output.rank_samples import ranks_report
from tests.output.samples import MS, SAMPLES
from tests.output.whatif_samples import WHATIFS
from tests.shared import Shared
from tests.simulator.scenarios import SCENARIOS

RESULTS: dict[str, Callable[[], Any]] = {
    **{f"report {name}": make for name, make in SAMPLES.items()},
    **{f"comparison {name}": make for name, make in COMPARISONS.items()},
    **{f"prediction {name}": make for name, make in WHATIFS.items()},
    "ranks": ranks_report,
}
UNDRAWN = {"axis", "axis edges", "levels", "levels grid", "meter", "swatch", "part", ""}
"""Classes of SVG elements that stand beside a drawing or carry it, and are none."""
NUMBERS = re.compile(r"-?\d+")


def page(result: Any) -> Element:
    return parse(result.to_html().encode())


def labels(chart: Chart) -> list[str]:
    """What the page calls a chart for readers of the screen: several where it is several drawings."""
    match chart.drawing:
        case Histogram(panels=panels):
            return [chart.label, *list(panels)[1:]]
        case CurveStrips(strips=strips):
            return [strip.label for strip in strips]
        case Stacks(rows=rows):
            return [bar.label for _name, bar in rows]
        case DrawnLanes(groups=groups, aligned=aligned):
            return [
                f"{lane.label} over time" + (f", {group.label.lower()}" if aligned else "")
                for group in groups
                for lane in group.lanes
            ]
        case Waterfall():
            return []  # a table with a drawing in each row
    return [chart.label]


def drawings(root: Element) -> list[Element]:
    """What the page draws."""
    return [each for each in root.all("svg") if each.attributes.get("role") == "img"]


def data(named: NamedFigure) -> list[dict[str, Any]]:
    """The traces as a browser gets them."""
    found: list[dict[str, Any]] = json.loads(drawn(named).to_json())["data"]
    return found


def rows(named: NamedFigure) -> list[tuple[str, list[Any]]]:
    """The name of the trace and the custom data of everything drawn."""
    return [(each.get("name", ""), row) for each in data(named) for row in each.get("customdata", []) if row]


def test_every_kind_of_drawing_has_a_figure() -> None:
    assert set(FIGURES) == set(get_args(Drawing))


class TestEveryChartOfThePage:
    """A chart without a figure is an SVG element on the page whose label no figure's chart has."""

    @staticmethod
    def held_to(result: Any) -> None:
        root = page(result)
        expected = [visible(label) for named in charts(result).values() for label in labels(named.chart)]
        assert Counter(each.attributes["aria-label"] for each in drawings(root)) == Counter(expected)
        falls = [each for each in root.all("table") if "waterfall" in each.attributes.get("class", "").split()]
        assert len(falls) == sum(isinstance(named.chart.drawing, Waterfall) for named in charts(result).values())

    @pytest.mark.sampled(quick=17, normal=5)
    @pytest.mark.parametrize("name", RESULTS)
    def test_of_samples(self, name: str) -> None:
        self.held_to(RESULTS[name]())

    @pytest.mark.slow
    def test_of_the_demo(self, demo: nsysdiag.Report) -> None:
        self.held_to(demo)

    @pytest.mark.sampled(normal=7)
    @pytest.mark.parametrize("name", list(SCENARIOS)[::12])
    def test_of_scenarios(self, name: str, shared: Shared) -> None:
        self.held_to(shared.report(shared.trace(name)))

    @pytest.mark.slow
    def test_of_a_comparison_of_reports(self, demo: nsysdiag.Report) -> None:
        self.held_to(nsysdiag.compare(demo, demo))

    @pytest.mark.slow
    def test_no_drawing_is_hidden_from_readers(self, demo: nsysdiag.Report) -> None:
        """So that the tests above see it."""
        beside = [each for each in page(demo).all("svg") if each.attributes.get("role") != "img"]
        assert {each.attributes.get("class", "") for each in beside} <= UNDRAWN


class TestNames:
    def test_are_those_of_sections_below_devices(self, demo: nsysdiag.Report) -> None:
        names = list(nsysdiag.figures(demo))
        assert names[:2] == ["diagnosis/phases", "diagnosis/judged-time"]
        assert {"timeline", "gpu0/ledger", "gpu1/iterations", "gpu0/gap-lengths/causes", "host"} <= set(names)

    def test_stay_apart_where_devices_have_one_key(self) -> None:
        made = SAMPLES["one_device"]()
        twice = msgspec.structs.replace(made, devices=made.devices * 2)
        names = list(nsysdiag.figures(twice))
        assert {"gpu0/ledger", "gpu0/ledger-2"} <= set(names)
        assert len(names) == len(nsysdiag.figures(twice)) == len(set(names))

    def test_are_listed_and_asked_for(self, demo: nsysdiag.Report) -> None:
        found = nsysdiag.figures(demo)
        assert repr(found).splitlines() == [f"<{len(found)} figures>", *found]
        assert found["gpu1/ledger"].layout.title.text == "gpu1: What the GPU waited for"
        with pytest.raises(KeyError):
            found["gpu9/ledger"]

    def test_without_gpu_work_there_are_none(self) -> None:
        assert dict(nsysdiag.figures(SAMPLES["no_device_no_rows"]())) == {}

    def test_a_damaged_report_is_refused(self) -> None:
        made = SAMPLES["one_device"]()
        device = msgspec.structs.replace(
            made.devices[0], gaps_packed=msgspec.structs.replace(made.devices[0].gaps_packed, lengths="!")
        )
        with pytest.raises(InputError, match="damaged"):
            nsysdiag.figures(msgspec.structs.replace(made, devices=[device]))


def every(kind: type, demo: nsysdiag.Report) -> Iterator[NamedFigure]:
    """The charts of one kind, of the demo and of a sample that has all kinds."""
    for result in (demo, SAMPLES["one_device"](), COMPARISONS["one"](), WHATIFS["one"](), ranks_report()):
        yield from (named for named in charts(result).values() if isinstance(named.chart.drawing, kind))


class TestValues:
    """Held to the drawing on the page: its texts where it has them, else its paths."""

    @pytest.mark.thorough
    def test_stacked_bars(self, demo: nsysdiag.Report) -> None:
        for result in (demo, SAMPLES["one_device"](), COMPARISONS["one"](), WHATIFS["one"](), ranks_report()):
            found = [each for each in charts(result).values() if isinstance(each.chart.drawing, StackedBar | Stacks)]
            told = Counter(
                unescape(f"{name}: {format_ns(row[0])}, {row[2]}") for each in found for name, row in rows(each)
            )
            on_page = [
                title.text
                for svg in drawings(page(result))
                if "stack" in svg.attributes.get("class", "").split()
                for title in svg.all("title")
            ]
            assert len(on_page) > 3
            assert told == Counter(on_page)

    def test_icicles(self) -> None:
        found = charts(SAMPLES["one_device"]())
        named = [name for name, each in found.items() if isinstance(each.chart.drawing, Icicle)]
        assert named == ["gpu0/nvtx", "gpu0/flames/idle", "gpu0/flames/waits"]
        (made,) = data(found["gpu0/nvtx"])
        assert made["labels"] == ["Window", "train", "forward", "load"]
        place = {id: at for at, id in enumerate(made["ids"])}
        assert [place.get(above) for above in made["parents"]] == [None, 0, 1, 0]
        assert made["values"] == [row[0] for row in made["customdata"]] == [100 * MS, 70 * MS, 54 * MS, 12 * MS]
        assert made["customdata"][3][3] == "Idle 12,000,000 ns"

    def test_cells_of_a_flame_graph_are_inside_those_above(self) -> None:
        (made,) = data(charts(SAMPLES["one_device"]())["gpu0/flames/idle"])
        place = {id: at for at, id in enumerate(made["ids"])}
        above = [place.get(each) for each in made["parents"]]
        assert list(zip(made["labels"], above, strict=True))[:4] == [
            ("Idle time", None),
            ("Waiting in a synchronisation", 0),
            ("train", 1),
            ("cudaStreamSynchronize", 2),
        ]
        inside = Counter({at: 0 for at in above if at is not None})
        for ns, at in zip(made["values"], above, strict=True):
            inside[-1 if at is None else at] += ns
        assert all(made["values"][at] >= ns for at, ns in inside.items() if at >= 0)

    def test_segments_are_where_they_begin(self) -> None:
        named = charts(COMPARISONS["one"]())["gpu0/length"]
        for at in (0, 1):
            placed = [
                (base, length, row[0])
                for trace in data(named)
                for base, length, y, row in zip(trace["base"], trace["x"], trace["y"], trace["customdata"], strict=True)
                if y == at
            ]
            before = 0
            for base, length, ns in sorted(placed):
                assert (base * 1e6, length * 1e6) == (pytest.approx(before), pytest.approx(ns))
                before += ns

    @staticmethod
    def rectangles(chart: BarChart) -> dict[tuple[int, int], int]:
        """The heights on the page by slot, added up; cut off at the top."""
        heights: dict[tuple[int, int], int] = Counter()
        for path in bar_plot(chart).paths:
            for x, height in re.findall(r"M(\d+) \d+h\d+v(\d+)", path.d):
                heights[int(x) // SLOT, "faded" in path.look] += int(height)
        return heights

    @pytest.mark.slow
    def test_bars(self, demo: nsysdiag.Report) -> None:
        for named in every(BarChart, demo):
            chart = named.chart.drawing
            assert isinstance(chart, BarChart)
            sums: Counter[int] = Counter()
            for trace in data(named):
                if trace["type"] == "bar":
                    assert all(row[1] == format_exact_ns(row[0]) for row in trace["customdata"])
                    sums.update(dict(zip(trace["x"], (row[0] for row in trace["customdata"]), strict=True)))
            for (at, _faded), height in self.rectangles(chart).items():
                assert height == min(HEIGHT, round(HEIGHT * sums[at] / chart.top))
            lines = [each for each in drawn(named).layout.shapes if each.y0 == each.y1]
            assert len(lines) == len(shown_levels(chart))

    @pytest.mark.slow
    def test_histograms(self, demo: nsysdiag.Report) -> None:
        for named in every(Histogram, demo):
            histogram = named.chart.drawing
            assert isinstance(histogram, Histogram)
            for at, chart in enumerate(histogram.panels.values()):
                sums: Counter[float] = Counter()
                for trace in data(named):
                    if trace["yaxis"] == f"y{at + 1}"[: 1 + bool(at)]:
                        sums.update(dict(zip(trace["x"], (row[0] for row in trace["customdata"]), strict=True)))
                heights = self.rectangles(chart)
                assert heights
                for (slot, _faded), height in heights.items():
                    assert height == round(HEIGHT * sums[slot + 0.5] / chart.top)

    @pytest.mark.slow
    def test_curves(self, demo: nsysdiag.Report) -> None:
        for named in every(Curve, demo):
            curve = named.chart.drawing
            assert isinstance(curve, Curve)

            def place(value: float, curve: Curve = curve) -> int:
                share = math.log1p(value) / math.log1p(curve.top) if curve.log else value / curve.top
                return HEIGHT - round(HEIGHT * share)

            on_page = {int(y) for path in curve_plot(curve).paths for y in re.findall(r"(?:M\d+ |V)(\d+)", path.d)}
            told = {place(row[0]) for _name, row in rows(named)}
            assert on_page <= told | {HEIGHT}
            assert told <= on_page | {HEIGHT}

    @pytest.mark.slow
    def test_strips(self, demo: nsysdiag.Report) -> None:
        for named in every(CurveStrips, demo):
            strips = named.chart.drawing
            assert isinstance(strips, CurveStrips)
            for strip, plot, trace in zip(strips.strips, strip_plots(strips), data(named), strict=True):
                heights = {HEIGHT - int(y) for y in re.findall(r"V(\d+)", plot.paths[0].d)}
                told = {round(HEIGHT * row[0] / strip.curve.top) for row in trace["customdata"] if row}
                assert told | {0} == heights | {0}
                texts = {hover.tooltip.partition(": ")[2] for hover in plot.hovers}
                if plot.hovers[0].width == SLOT:  # else a place tells the mean of several steps
                    assert {unescape(row[1]) for row in trace["customdata"] if row} <= texts

    @pytest.mark.slow
    def test_lanes(self, demo: nsysdiag.Report) -> None:
        for named in every(DrawnLanes, demo):
            lanes = named.chart.drawing
            assert isinstance(lanes, DrawnLanes)
            drawn_lanes = [lane for group in lanes.groups for lane in group.lanes]
            areas = [each for lane in drawn_lanes for each in zip(lane.areas, lane_paths(lane), strict=True)]
            assert len(areas) == len(data(named)) > 1
            for (area, path), trace in zip(areas, data(named), strict=True):
                assert trace["name"] == area.label
                levels = {FULL - int(y) for y in re.findall(r"V(\d+)", path.d)} - {0}
                assert {round(FULL * row[0]) for row in trace["customdata"] if row} - {0} == levels

    def test_waterfalls(self) -> None:
        result = COMPARISONS["one"]()
        (named,) = (each for each in charts(result).values() if isinstance(each.chart.drawing, Waterfall))
        (table,) = (each for each in page(result).all("table") if "waterfall" in each.attributes.get("class", ""))
        exact = [each.attributes["title"] for each in table.all("td") if "title" in each.attributes]
        placed = [pair for trace in data(named) for pair in zip(trace["y"], trace["customdata"], strict=True)]
        told = [row for _place, row in sorted(placed)]
        assert [row[1] for row in told] == exact
        before, *steps, after = (row[0] for row in told)
        assert before + sum(steps) == after


class TestLook:
    def test_parts_have_the_colours_of_the_page(self) -> None:
        theme = dict(re.findall(r"--([\w-]+): (#\w{6});", asset("app.css").partition("@media")[0]))
        named = {"gone": "good", "renamed": "high"}
        assert {part: theme[named.get(part, part)] for part in plots.PART_COLORS} == plots.PART_COLORS
        assert tuple(theme[name] for name in ("accent", "ink", "muted", "line", "line-strong", "high")) == (
            plots.ACCENT,
            plots.INK,
            plots.MUTED,
            plots.LINE,
            plots.REST,
            plots.SLOW,
        )

    @pytest.mark.thorough
    def test_is_the_same_with_any_template(self, demo: nsysdiag.Report) -> None:
        first = {name: figure.to_json() for name, figure in nsysdiag.figures(demo).items()}
        before = plotly.io.templates.default
        plotly.io.templates.default = "plotly_dark"
        try:
            assert {name: figure.to_json() for name, figure in nsysdiag.figures(demo).items()} == first
        finally:
            plotly.io.templates.default = before

    @pytest.mark.slow
    def test_axes_have_names_and_units(self, demo: nsysdiag.Report) -> None:
        found = nsysdiag.figures(demo)
        assert found["gpu0/iterations"].layout.yaxis.title.text == "Time (ms)"
        assert found["gpu0/launches"].layout.xaxis.title.text == "Time in the trace (s)"
        assert found["gpu0/gap-lengths"].layout.yaxis2.title.text == "Idle time in them (ms)"
        memory = nsysdiag.figures(SAMPLES["one_device"]())["gpu0/device-memory"]
        assert memory.layout.yaxis.title.text == "Device memory given out (GiB)"

    @pytest.mark.sampled(quick=17, normal=5)
    @pytest.mark.parametrize("name", RESULTS)
    def test_no_name_is_markup(self, name: str) -> None:
        for figure in nsysdiag.figures(RESULTS[name]()).values():
            made = json.loads(figure.to_json())
            for text in texts({**made, "layout": {**made["layout"], "template": None}}):
                words = re.sub(r"<br>|<extra></extra>|<span style=\"color:#[0-9a-f]{6}\">|</span>", "", text)
                assert "<" not in words
                assert "$" not in words
                assert text.isprintable()

    @pytest.mark.slow
    def test_hostile_colours_are_grey(self) -> None:
        made = SAMPLES["one_device"]()
        causes = [msgspec.structs.replace(cause, color='red" onload="x') for cause in made.causes]
        for figure in nsysdiag.figures(msgspec.structs.replace(made, causes=causes)).values():
            assert "onload" not in figure.to_json()

    @pytest.mark.thorough
    @pytest.mark.browser
    def test_a_browser_draws_them_all(self, chromium: Chromium, demo: nsysdiag.Report, tmp_path: Path) -> None:
        found = {**nsysdiag.figures(demo), **nsysdiag.figures(SAMPLES["one_device"]())}
        parts = [
            plotly.io.to_html(figure, include_plotlyjs=not at, full_html=False)
            for at, figure in enumerate(found.values())
        ]
        path = tmp_path / "figures.html"
        path.write_text(f"<!doctype html><meta charset=utf-8><title>Figures</title>{''.join(parts)}", encoding="utf-8")
        with Browser(chromium) as browser:
            browser.open(path.as_uri())
            browser.until(f"document.querySelectorAll('.plot-container').length === {len(found)}")
            titles = browser.value("Array.from(document.querySelectorAll('.gtitle'), t => t.textContent)")
            assert titles == [unescape(figure.layout.title.text) for figure in found.values()]
            # A legend that has too little room gets a bar to scroll by.
            bars = "Array.from(document.querySelectorAll('.scrollbar'), bar => +bar.getAttribute('height'))"
            assert not any(browser.value(bars))
            assert browser.console == []


def texts(value: Any) -> list[str]:
    """Every text in a figure."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) else []


def test_a_comparison_says_of_which_device(demo: nsysdiag.Report) -> None:
    found = nsysdiag.compare(demo, demo)
    assert isinstance(found, Comparison)
    assert {"gpu0/waterfall", "gpu1/waterfall"} <= set(nsysdiag.figures(found))
