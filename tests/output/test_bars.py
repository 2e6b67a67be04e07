"""Many stacked bars as a few paths: every rectangle is where its time says, whatever the number of bars."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.document.drawings import Bar, BarChart
from nsysdiag.document.svg import HEIGHT, SLOT, Plot, bar_plot
from nsysdiag.document.view import UNKNOWN_COLOR, Share

RECTANGLE = re.compile(r"M(\d+) (\d+)h(\d+)v(\d+)h-(\d+)z")
COLORS = ("#445566", "not a colour")


def bar(*times: int, slow: bool = False, faded: bool = False) -> Bar:
    """The first time is compute, the others causes."""
    work, *idle = times
    causes = [Share(f"c{at}", f"cause {at}", ns, "", COLORS[at]) for at, ns in enumerate(idle)]
    return Bar("told of", [Share("compute", "Compute", work, "compute", ""), *causes], "told", slow, faded)


def drawn(bars: list[Bar], top: int) -> Plot:
    return bar_plot(BarChart(bars, top, {}))


def rectangles(chart: Plot) -> list[tuple[int, int, int]]:
    """Slot, upper and lower edge of every rectangle."""
    found = [RECTANGLE.findall(path.d) for path in chart.paths]
    assert all(
        "".join(f"M{x} {y}h{w}v{h}h-{back}z" for x, y, w, h, back in rows) == path.d
        for rows, path in zip(found, chart.paths, strict=True)
    )
    return [(int(x) // SLOT, int(y), int(y) + int(h)) for rows in found for x, y, _w, h, _back in rows]


@given(st.lists(st.tuples(*[st.integers(0, 10**12)] * 3), min_size=1, max_size=300), st.integers(1, 10**12))
def test_each_bar_is_filled_from_the_bottom_to_its_length(times: list[tuple[int, int, int]], top: int) -> None:
    bars = [bar(*each) for each in times]
    edges: dict[int, list[tuple[int, int]]] = {}
    for slot, upper, lower in rectangles(drawn(bars, top)):
        edges.setdefault(slot, []).append((lower, upper))
    for at, each in enumerate(bars):
        pieces = sorted(edges.get(at, []), reverse=True)
        reach = HEIGHT - min(HEIGHT, round(HEIGHT * each.total / top))
        assert [lower for lower, _ in pieces] == [HEIGHT, *(upper for _, upper in pieces)][: len(pieces)]
        assert (pieces[-1][1] if pieces else HEIGHT) == reach


def test_one_path_a_colour_and_apart_what_is_faded() -> None:
    chart = drawn([bar(5, 5, 0), bar(5, 5, 0, slow=True), bar(5, 5, 0, faded=True)], 10)
    assert [(path.look, path.color) for path in chart.paths] == [
        ("fill-compute", ""),
        ("", "#445566"),
        ("fill-compute faded", ""),
        ("faded", "#445566"),
    ]
    assert chart.marks == [("7.500%", "slow"), ("12.500%", "left-out")]


def test_what_is_longer_than_the_scale_is_cut_and_said() -> None:
    assert BarChart([bar(5, 5, 0), bar(50, 0, 0, faded=True)], 10, {}).remarks == {"left-out", "cut"}
    assert BarChart([bar(5, 5, 0), bar(9, 0, 0, slow=True)], 10, {}).remarks == {"slow"}


def test_a_colour_of_a_report_is_a_colour_or_grey() -> None:
    chart = BarChart([bar(1, 1, 8)], 10, {})
    assert [entry.color for entry in chart.legend] == ["", UNKNOWN_COLOR, "#445566"]  # most time first
    assert [path.color for path in bar_plot(chart).paths] == ["", "#445566", UNKNOWN_COLOR]


def test_levels_that_would_lie_upon_each_other_are_left_out() -> None:
    levels = {"p50 50 ns": 50, "p95 55 ns": 55, "p99 90 ns": 90, "far 200 ns": 200}
    assert bar_plot(BarChart([bar(100, 0, 0)], 100, levels)).lines == [
        ("50.000%", "p50 50 ns"),
        ("10.000%", "p99 90 ns"),
    ]
