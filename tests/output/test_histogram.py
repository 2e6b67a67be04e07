"""Histograms over lengths: bars from edge to edge, and only as many named edges as there is room for."""

from __future__ import annotations

from nsysdiag.document.axis import EDGES, count_levels
from nsysdiag.document.histogram import Bin, bound, draw_columns, ticks
from nsysdiag.document.view import Share


def column(*values: int) -> Bin:
    parts = [Share(f"c{at}", f"cause {at}", value, "", f"#00000{at}") for at, value in enumerate(values)]
    return Bin([part for part in parts if part.ns], f"{sum(values)} gaps")


def test_bars_fill_the_width_and_the_fullest_the_height() -> None:
    """
    ```
     8 |    ##       six of one cause below two of another
     4 |##  ##
       |##__##__
    ```
    """
    chart = draw_columns([column(4, 0), column(6, 2), column(0, 0)], count_levels)
    assert chart is not None
    assert (chart.width, chart.height) == (30, 1000)
    assert [(path.color, path.d) for path in chart.paths] == [
        ("#000000", "M1 500h8v500h-8zM11 250h8v750h-8z"),
        ("#000001", "M11 0h8v250h-8z"),
    ]
    assert [(line.label, line.y) for line in chart.lines] == [
        ("2", "75.000%"),
        ("4", "50.000%"),
        ("6", "25.000%"),
        ("8", "0.000%"),
    ]
    assert [spot.tooltip for spot in chart.spots] == ["4 gaps", "8 gaps", "0 gaps"]


def test_nothing_to_draw() -> None:
    assert draw_columns([column(0)], count_levels) is None
    assert draw_columns([], count_levels) is None


def test_few_edges_are_all_named() -> None:
    found = [(tick.at, tick.x, tick.label) for tick in ticks([2_000, 5_000, 10_000])]
    assert found == [(0, "0.000%", "2 µs"), (1, "50.000%", "5 µs"), (2, "100.000%", "10 µs")]


def test_of_many_edges_those_of_decades_are_named() -> None:
    edges = [step * 10**power for power in range(3, 7) for step in (1, 2, 5)]
    assert [(tick.at, tick.label) for tick in ticks(edges)] == [(0, "1 µs"), (3, "10 µs"), (6, "100 µs"), (9, "1 ms")]


def test_the_bounds_of_all_bins_differ() -> None:
    names = [bound(at) for at in range(len(EDGES) + 1)]
    assert names[0] == "1 ns"
    assert names[-1] == "more"
    assert len(set(names)) == len(names)
