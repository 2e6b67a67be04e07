"""Histograms over lengths: bars from edge to edge, and only as many named edges as there is room for."""

from __future__ import annotations

import pytest

from nsysdiag.document.axis import EDGES, bound, edge_labels, panel
from nsysdiag.document.blocks import Chart, Section, Table
from nsysdiag.document.columns import COUNT
from nsysdiag.document.drawings import Bar, Histogram
from nsysdiag.document.svg import histogram_plots
from nsysdiag.document.view import Causes, Context, Share
from nsysdiag.gap_groups.show import lengths
from tests.output.samples import CAUSES, device, pack, report


def column(*values: int) -> Bar:
    parts = [Share(f"c{at}", f"cause {at}", value, "", f"#00000{at}") for at, value in enumerate(values)]
    return Bar("a range", [part for part in parts if part.ns], f"{sum(values)} gaps")


def test_bars_fill_the_width_and_the_fullest_the_height() -> None:
    """
    ```
     8 |    ##       six of one cause below two of another
     4 |##  ##
       |##__##__
    ```
    """
    chart = panel([column(4, 0), column(6, 2), column(0, 0)], COUNT)
    ((title, plot),) = histogram_plots(Histogram({"Gaps": chart}, {0: "1 µs", 3: "10 µs"}, "Length"))
    assert (title, plot.labels) == ("Gaps", [("0.000%", "1 µs"), ("100.000%", "10 µs")])
    assert (plot.width, plot.height) == (30, 1000)
    assert [(path.color, path.d) for path in plot.paths] == [
        ("#000000", "M1 500h8v500h-8zM11 250h8v750h-8z"),
        ("#000001", "M11 0h8v250h-8z"),
    ]
    assert plot.lines == [("75.000%", "2"), ("50.000%", "4"), ("25.000%", "6"), ("0.000%", "8")]
    assert [hover.tooltip for hover in plot.hovers] == ["4 gaps", "8 gaps", "0 gaps"]


def test_few_edges_are_all_named() -> None:
    assert edge_labels([2_000, 5_000, 10_000]) == {0: "2 µs", 1: "5 µs", 2: "10 µs"}


def test_of_many_edges_those_of_decades_are_named() -> None:
    edges = [step * 10**power for power in range(3, 7) for step in (1, 2, 5)]
    assert edge_labels(edges) == {0: "1 µs", 3: "10 µs", 6: "100 µs", 9: "1 ms"}


def test_the_bounds_of_all_bins_differ() -> None:
    names = [bound(at) for at in range(len(EDGES) + 1)]
    assert names[0] == "1 ns"
    assert names[-1] == "more"
    assert len(set(names)) == len(names)


def by_length(*gaps: int) -> Section | None:
    """The section of a device with gaps of these lengths in ns, one after the other."""
    packed = pack([(2 * at * 10**10, ns, 0) for at, ns in enumerate(gaps)], ["sync"])
    made = device(gaps_packed=packed, gap_count=len(gaps))
    return lengths(made, Context(report([made], []), Causes(CAUSES)))


@pytest.mark.parametrize(
    ("gaps", "rows"),
    [
        ((999, 1_000, 9_999), [("under 1 µs", 1, 999), ("1 µs to 10 µs", 2, 10_999)]),
        (
            (10**8, 10**9, 5 * 10**9),
            [("100 ms to 1 s", 1, 10**8), ("1 s and more", 2, 6 * 10**9)],
        ),
    ],
)
def test_decades_of_gaps(gaps: tuple[int, ...], rows: list[tuple[str, int, int]]) -> None:
    """The shortest and the longest are open: all of a second and more share one."""
    found = by_length(*gaps)
    assert found is not None
    chart, table = found.blocks
    assert isinstance(chart, Chart)
    assert isinstance(table, Table)
    assert [row[:3] for row in table.rows] == rows


def test_gaps_of_one_decade_have_no_section() -> None:
    """The longest gap and their number say as much."""
    assert by_length(1_000, 9_999) is None
    assert by_length(0, 0) is None
    assert by_length() is None
