"""The charts twice, drawn into the page and as figures for its script: both say the report's numbers, to the ns."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from typing import Any

import pytest

from nsysdiag.document.interactive.figures import LedgerCut, decimals, ledger_figure
from nsysdiag.document.names import plain
from nsysdiag.document.packed import unpack
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.report import DeviceReport, Report
from nsysdiag.units import NS_PER
from tests.output.page import Element, parse
from tests.output.rendered import tree
from tests.output.samples import HOSTILE, SAMPLES

DRAWN = [name for name in SAMPLES if not name.startswith("no_device")]
RECTANGLE = re.compile(r"M\d+ \d+h\d+v(\d+)h-\d+z")
ROUNDED = 1 / 1000  # of the height: where an edge is drawn
Figure = dict[str, Any]


@cache
def made(sample: str) -> tuple[Report, Element]:
    return SAMPLES[sample](), tree(sample)


def charts(sample: str, section: str) -> list[tuple[DeviceReport, Element, Figure]]:
    """Of each device that has the section with a chart: the box with drawing and figure, and the figure."""
    report, root = made(sample)
    found = []
    for index, device in enumerate(report.devices):
        anchor = section if len(report.devices) == 1 else f"gpu-{index}-{section}"
        for element in root.all("section"):
            if element.attributes["id"] == anchor:
                found += [(device, box, figure(box)) for box in element.all("div") if has_class(box, "chart")]
    return found


def has_class(element: Element, name: str) -> bool:
    return name in element.attributes.get("class", "").split()


def figure(box: Element) -> Figure:
    (data,) = (script for script in box.all("script") if has_class(script, "figure"))
    loaded: Figure = json.loads(data.text)
    return loaded


def in_ns(values: list[float], unit: str) -> int:
    return sum(round(value * NS_PER[unit]) for value in values)


def unit_of_hover(trace: Figure) -> str:
    """The unit that the pointer shows, from `%{x:,.6f} ms`."""
    return str(re.search(r"f\} (\w+)", trace["hovertemplate"]).group(1))  # type: ignore[union-attr]


@pytest.mark.parametrize("sample", DRAWN)
class TestSameNumbers:
    @pytest.mark.slow
    def test_ledger(self, sample: str) -> None:
        for device, box, found in charts(sample, "ledger"):
            by_cause = [in_ns(trace["x"][:1], unit_of_hover(trace)) for trace in found["data"]]
            assert sum(by_cause) == device.idle_ns
            assert sorted(ns for ns in by_cause if ns) == sorted(ns for ns in device.ledger.values() if ns)
            for stack in (svg for svg in box.all("svg") if has_class(svg, "stack")):
                widths = [float(rect.attributes["width"][:-1]) for rect in stack.all("rect")]
                assert sum(widths) == pytest.approx(100, abs=0.002 * len(widths))
                assert "aria-label" in stack.attributes
            first = next(svg for svg in box.all("svg") if has_class(svg, "stack"))
            shares = sorted(100 * ns / device.idle_ns for ns in device.ledger.values() if ns)
            assert sorted(float(rect.attributes["width"][:-1]) for rect in first.all("rect")) == pytest.approx(
                shares, abs=0.001
            )

    @pytest.mark.sampled(quick=3)
    def test_gaps(self, sample: str) -> None:
        for device, box, found in charts(sample, "gap-lengths"):
            sums = Counter[str]()
            for trace in found["data"]:
                sums[trace["yaxis"]] += sum(trace["y"])
            _starts, lengths, _causes = unpack(device.gaps_packed)
            assert sums == {"y": device.gap_count, "y2": int(lengths.sum())}
            drawings = [svg for svg in box.all("svg") if has_class(svg, "bar-chart")]
            for drawing, name in zip(drawings, ("y", "y2"), strict=True):
                top = found["layout"][name.replace("y", "yaxis")]["range"][1]
                rectangles = sum(len(RECTANGLE.findall(path.attributes["d"])) for path in drawing.all("path"))
                assert drawn_share(drawing) * top == pytest.approx(sums[name], abs=top * ROUNDED * (rectangles + 20))

    def test_iterations(self, sample: str) -> None:
        for device, box, found in charts(sample, "iterations"):
            assert device.iterations is not None
            bars = [trace for trace in found["data"] if trace["type"] == "bar"]
            drawn = Counter[str]()
            for trace in bars:
                for name, value in zip(trace["x"], trace["y"], strict=True):
                    drawn[name] += in_ns([value], unit_of_hover(trace))
            lengths = {f"#{row.index}": row.end_ns - row.start_ns for row in device.iterations.rows}
            assert drawn.items() <= lengths.items()
            assert len(drawn) == len([rect for rect in box.all("rect") if has_class(rect, "spot")])
            marks = found["data"][-1]
            slow = [name for name, said in zip(marks["x"], marks["customdata"], strict=True) if said.endswith(", slow")]
            steady = {f"#{row.index}" for row in device.iterations.rows if row.steady}
            assert slow == [
                f"#{each.index}" for each in device.iterations.slow if f"#{each.index}" in steady & drawn.keys()
            ]

    def test_kernels(self, sample: str) -> None:
        for device, box, found in charts(sample, "kernels"):
            assert device.launch.kernel is not None
            (trace,) = found["data"]
            assert sum(trace["y"]) == device.launch.kernel.count
            drawn = drawn_share(box) * found["layout"]["yaxis"]["range"][1]
            assert drawn == pytest.approx(device.launch.kernel.count, rel=0.01)


def trace_sum(found: Figure, axis: str) -> list[int]:
    return [sum(trace["y"]) for trace in found["data"] if trace["yaxis"] == axis]


def drawn_share(drawing: Element) -> float:
    """The heights of all rectangles together, as a multiple of the drawing's height."""
    return sum(int(height) for path in drawing.all("path") for height in RECTANGLE.findall(path.attributes["d"])) / 1000


def test_every_kind_of_chart_was_looked_at() -> None:
    for section in ("ledger", "gap-lengths", "iterations", "kernels"):
        assert charts("one_device", section), section


@pytest.mark.slow
def test_the_demo_adds_up(demo: Report) -> None:
    root = parse(FORMATS["html"].render(demo, RenderOptions()))
    figures = [figure(box) for box in root.all("div") if has_class(box, "chart")]
    ledgers, gaps = figures[::4], figures[2::4]
    assert [cut_sum(each, 0) for each in ledgers] == [device.idle_ns for device in demo.devices]
    changed = [device.root_ledger != device.ledger for device in demo.devices]
    assert changed[0], "where the root is the same, a ledger has no bar of its own"
    roots = [
        sum(device.root_ledger.values()) if differs else 0
        for device, differs in zip(demo.devices, changed, strict=True)
    ]
    assert [cut_sum(each, 1) for each in ledgers] == roots
    assert [sum(trace_sum(each, "y2")) for each in gaps] == [device.idle_ns for device in demo.devices]


def cut_sum(found: Figure, cut: int) -> int:
    """The length of one bar of a ledger."""
    return sum(in_ns(trace["x"][cut : cut + 1], unit_of_hover(trace)) for trace in found["data"])


class TestHostileNames:
    def test_are_text_in_every_figure(self) -> None:
        """No `<` but of the line ends that are ours, no `&` but of an escape, no formula."""
        _report, root = made("hostile")
        texts = [
            text
            for script in root.all("script")
            if has_class(script, "figure")
            for text in strings(json.loads(script.text))
        ]
        assert len(texts) > 100
        for text in texts:
            ours = re.sub(r"<br>|<extra></extra>", "", text)
            assert "<" not in ours
            assert ">" not in ours
            assert not re.search(r"&(?!amp;|lt;|gt;|nbsp;|#36;)", ours)
            assert "$" not in ours.replace("var(", "")
            assert text.isprintable()

    def test_reach_the_figures(self) -> None:
        titles = [trace["name"] for _device, _box, found in charts("hostile", "ledger") for trace in found["data"]]
        assert any("&lt;" in title for title in titles)

    def test_no_figure_ends_its_element(self) -> None:
        _report, root = made("hostile")
        assert all("<" not in script.text for script in root.all("script") if has_class(script, "figure"))

    @pytest.mark.parametrize("name", HOSTILE)
    def test_plain_keeps_every_letter(self, name: str) -> None:
        escaped = plain(name)
        assert not set("<>$") & set(escaped)
        for escape, sign in (("&lt;", "<"), ("&gt;", ">"), ("&#36;", "$"), ("&amp;", "&")):
            escaped = escaped.replace(escape, sign)
        assert len(escaped) <= 60


class TestUnits:
    @pytest.mark.parametrize(("scale", "wanted"), [(1, 0), (1_000, 3), (1_000_000, 6), (1_000_000_000, 9)])
    def test_decimals_reach_the_nanosecond(self, scale: int, wanted: int) -> None:
        assert decimals(scale) == wanted


def test_the_bars_of_two_cuts_lie_where_the_drawing_has_them() -> None:
    """A label of 20 pixels, a bar of 34, twice:

    ```
    0 By what the thread did 20 ████████░░  middle 37 54 By root cause 74 ██████████  middle 91 108
    ```
    """
    lock, code = ("Lock", "#d1495b"), ("Code", "#2a9d8f")
    before = LedgerCut("By what the thread did", [(lock[0], 3_000_000, lock[1]), (code[0], 1_000_001, code[1])])
    after = LedgerCut("By root cause", [(lock[0], 0, lock[1]), (code[0], 4_000_001, code[1])])
    found = ledger_figure([before, after])
    assert found is not None
    assert [(trace["name"], trace["x"], trace["y"]) for trace in found["data"]] == [
        ("Lock", [3.0, 0.0], [37, 91]),
        ("Code", [1.000001, 4.000001], [37, 91]),
    ]
    assert found["layout"]["yaxis"]["range"] == [108, 0]
    assert [trace["text"] for trace in found["data"]] == [
        ["&nbsp; 75.0% Lock", ""],
        ["&nbsp; 25.0% Code", "&nbsp; 100.0% Code"],
    ]
    assert ledger_figure([LedgerCut("", [])]) is None


def strings(value: Any) -> list[str]:
    """All texts of a figure, keys too."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, each in value.items() for text in (key, *strings(each))]
    return [text for each in value for text in strings(each)] if isinstance(value, list) else []
