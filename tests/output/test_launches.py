"""Launches in the outputs: sentences only where something stands out, a chart that is true, tables that read alone."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

from nsysdiag.document.packed import unpack_series
from nsysdiag.document.svg import HEIGHT, SLOT, curve_plot
from nsysdiag.document.view import Causes
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.launches import show
from nsysdiag.launches.facts import QueueDrains
from nsysdiag.launches.words import launch_sentences
from nsysdiag.messages import InputError
from nsysdiag.report import DeviceReport
from tests.output.samples import CAUSES, LAUNCH, MS, device, launch_in_full, queue_depth, report, squeeze

STEP = re.compile(r"V(\d+)H(\d+)")


def sentences(**changes: object) -> list[str]:
    made: DeviceReport = device(launch=msgspec.structs.replace(launch_in_full(), **changes))
    return launch_sentences(made, Causes(CAUSES))


def drawn(suffix: str, **changes: object) -> str:
    launch = msgspec.structs.replace(launch_in_full(), **changes)
    return FORMATS[suffix].render(report([device(launch=launch)], []), RenderOptions(width=160, details=True)).decode()


def test_all_that_there_is_to_say() -> None:
    assert sentences() == [
        "3,632 launches, 36,320 a second; in the median a kernel takes 9.80 µs, its launch call 4.10 µs, "
        "15.3 µs pass from one launch to the next.",
        "The host runs ahead, which is good: 8 operations are outstanding in the median, and they wait 4.20 µs in "
        "the queue; nothing is outstanding 10.0% of the time.",
        "The queue drained 32 times, and 7.00 ms of idle time followed; most of it with the "
        "launching thread in cudaStreamSynchronize (30 times, 6.00 ms).",
        "2 launch-bound phases: 100 launches in 2.00 ms, 50,000 a second. The GPU finishes sooner "
        "than launches follow: it idles 1.50 ms, 1.5% of the window.",
        "20 graph launches of 400 nodes: a node costs the host 1.00 µs, a single kernel launch 4.10 µs; the GPU "
        "idles 80.0 µs in all, at 380 places between nodes.",
        "2 graph launches left only the launch call in the trace.",
        "The command buffer was full for 1.20 ms: the host was ahead and waited for space. That is no loss in itself.",
    ]


def test_nothing_to_say() -> None:
    quiet = queue_depth([])
    assert sentences(queue_depth=quiet, launch_bound=None, graphs=None, queue_full_ns=0) == []
    assert launch_sentences(device(launch=LAUNCH), Causes(CAUSES)) == []
    text = drawn("txt", queue_depth=quiet, launch_bound=None, graphs=None, queue_full_ns=0)
    assert "\nLaunches\n" not in text
    assert "\nLaunches\n" in drawn("txt")


@pytest.mark.parametrize(
    ("p50", "p95", "begins"),
    [
        (2, 9, "The host runs ahead, which is good: 2 operations"),
        (1, 9, "The host runs ahead only at times: nothing is outstanding 10.0% of the time; p95 is 9 outstanding"),
        (1, 1, "The host does not run ahead: nothing is outstanding 10.0% of the time"),
    ],
)
def test_whether_the_host_is_ahead(p50: int, p95: int, begins: str) -> None:
    ahead = msgspec.structs.replace(queue_depth([]), p50=p50, p95=p95)
    assert sentences(queue_depth=ahead)[1].startswith(begins)


@pytest.mark.parametrize(
    ("cause", "call", "told"),
    [
        ("sync", "cudaDeviceSynchronize", "in cudaDeviceSynchronize."),
        ("blocking_copy", "cudaMemcpy in cublasCreate", "in cudaMemcpy in cublasCreate."),
        ("io_wait", "read", "in read."),
        ("host_compute", "on a CPU by samples", "in host computing."),
        ("uncovered", "no evidence", "in something that the trace does not show."),
    ],
)
def test_where_the_thread_was(cause: str, call: str, told: str) -> None:
    is_call = cause not in ("host_compute", "uncovered")
    row = QueueDrains(cause=cause, call=call, is_call=is_call, count=30, idle_ns=6 * MS, median_depth=22)
    lead = "The queue drained 30 times, and 6.00 ms of idle time followed"
    assert sentences(queue_depth=queue_depth([row]))[2] == f"{lead}, with the launching thread {told}"


def test_what_is_not_known_of_a_device_that_launched_nothing() -> None:
    """A full queue is told all the same."""
    assert sentences(calls=0, queue_depth=None, launch_bound=None, graphs=None) == [
        "The command buffer was full for 1.20 ms: the host was ahead and waited for space. That is no loss in itself."
    ]


def test_launches_that_nothing_else_is_known_of() -> None:
    found = sentences(queue_depth=None, launch_bound=None, graphs=None, kernel=None, call=None, interval=None)
    assert found[0] == "3,632 launches, 36,320 a second."
    assert [each.split()[0] for each in found[1:]] == ["The"]


def test_graphs_without_nodes() -> None:
    graphs = launch_in_full().graphs
    assert graphs is not None
    whole = msgspec.structs.replace(graphs, nodes=0, node_api_ns=0, between_ns=0, untraced=0)
    assert sentences(graphs=whole)[4] == (
        "20 graph launches, recorded without their nodes: one costs the host 40.0 µs."
    )


# ---- the chart -------------------------------------------------------------------------------------------------


def test_the_band_lies_where_the_depth_is() -> None:
    ahead = queue_depth([])
    chart = show.queue_depth(ahead, 1000)
    assert chart is not None
    series = unpack_series(ahead)
    there, back = np.full(100, -1), np.full(100, -1)
    forth, place = True, 0
    for level, x in ((int(level), int(x) // SLOT) for level, x in STEP.findall(curve_plot(chart).paths[0].d)):
        forth = forth and x > place
        (there if forth else back)[min(place, x) : max(place, x)] = level
        place = x
    assert place == 0
    assert ((there >= 0) & (there <= back) & (back <= HEIGHT)).all()
    assert ((back == HEIGHT) == (series.lowest == 0)).all()
    assert there.min() == 0
    assert (np.sign(np.diff(series.highest)) == -np.sign(np.diff(there))).all()


def test_lines_at_powers_of_ten() -> None:
    chart = show.queue_depth(queue_depth([]), 1000)
    assert chart is not None
    plot = curve_plot(chart)
    assert [label for _y, label in plot.lines] == ["1", "10"]
    assert [hover.tooltip for hover in plot.hovers][:2] == [
        "at 0.090000 s: 0 to 4, mean 0.0",
        "at 0.091000 s: 1 to 8, mean 1.5",
    ]


def test_fewer_hovers_than_buckets() -> None:
    chart = show.queue_depth(queue_depth([]), 30)
    assert chart is not None
    hovers = curve_plot(chart).hovers
    assert (len(hovers), hovers[0].width) == (25, 4 * SLOT)
    assert hovers[0].tooltip == "at 0.090000 s: 0 to 16, mean 2.2"


def test_no_chart_where_nothing_was_ever_outstanding() -> None:
    ahead = queue_depth([])
    empty = squeeze(np.zeros(ahead.buckets, dtype="<i8"))
    assert (
        show.queue_depth(msgspec.structs.replace(ahead, highest=empty, lowest=empty, mean_thousandths=empty), 100)
        is None
    )


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("lowest", "???", "cannot be read"),
        ("highest", "eJwDAAAAAAE=", "contradicts itself"),
        ("buckets", 7, "cannot be read"),
        ("buckets", 999, "contradicts itself"),
    ],
)
def test_a_damaged_series_is_the_input_s_fault(field: str, value: object, said: str) -> None:
    ahead = msgspec.structs.replace(queue_depth([]), **{field: value})
    with pytest.raises(InputError, match=said):
        drawn("html", queue_depth=ahead)


# ---- tables ----------------------------------------------------------------------------------------------------


def test_markdown_tables() -> None:
    shown = drawn("md")
    assert "| `cudaStreamSynchronize` | 6.00 ms | 30 | 22 | Waiting in a synchronisation |" in shown
    assert "| `train › step N › optimizer` | 0.100000 s | 1.00 ms | 50 | 50,000 | 750 µs | 20.0 µs | 5.00 µs |" in shown
    assert "| – | 0.103000 s | 1.00 ms | 50 | 50,000 | 750 µs | 20.0 µs | 5.00 µs |" in shown


def test_the_page_tells_all_without_scripts() -> None:
    shown = drawn("html")
    for told in (
        "curve-area",
        "Launch-bound phases. Periods",
        "executable 7",
        "Durations of kernels, launch calls and waits",
    ):
        assert told in shown
    assert "median 8, p5 0, p95 32, at most 40; none 10.0% of the time" in shown


def test_a_report_of_before_has_the_plain_facts_only() -> None:
    shown = FORMATS["html"].render(report([device(launch=LAUNCH)], []), RenderOptions(details=True)).decode()
    assert "Launched operations" in shown
    assert "launched, not finished" not in shown
