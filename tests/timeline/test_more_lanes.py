"""Lanes of OpenACC and OpenMP, of launches of CUDA graphs, of host functions and of phases: by rows made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from nsysdiag.share.redaction import redacted
from nsysdiag.timeline.facts import TimelineLevels
from tests.builder import TraceBuilder, global_tid
from tests.ledger.traces import DRAWN, report_of
from tests.timeline.decode import lanes, rows

US = 1_000
MAIN = (4242, 4242)


def timeline(trace: TraceBuilder, folder: Path, start_ns: int | None = None) -> TimelineLevels:
    found = report_of(trace, folder, replace(DRAWN, start_ns=start_ns)).timeline
    assert isinstance(found, dict)
    return found["gpu0"]


def offloading() -> TraceBuilder:
    """
    ```
    OpenACC    [Compute construct test.f90:55 ......................)
                 [Enqueue launch test.f90:55)    [Wait test.f90:57)
    gpu                                [== test_55_gpu ==)
    ```
    """
    trace = TraceBuilder(schema="2.9.1")
    trace.kernel(100 * US, 200 * US, name="test_55_gpu", launch=(60 * US, 70 * US))
    trace.kernel(300 * US, 400 * US, name="test_55_gpu", launch=(260 * US, 270 * US))

    def event(table: str, name: str, start: int, end: int, line: int) -> None:
        values = {"nameId": trace.string(name), "srcFile": trace.string("/home/me/src/test.f90"), "lineNo": line}
        span = {"start": start * US, "end": end * US, "globalTid": global_tid(MAIN)}
        trace.row(f"CUPTI_ACTIVITY_KIND_OPENACC_{table}", {**span, **values})

    event("OTHER", "Compute construct", 110, 380, 55)
    event("LAUNCH", "Enqueue launch", 255, 280, 55)
    event("OTHER", "Wait", 290, 370, 57)
    return trace


@pytest.mark.slow
def test_openacc_by_depth_with_source_lines(tmp_path: Path) -> None:
    found = lanes(timeline(offloading(), tmp_path), "openacc")
    told = [[row[:3] for row in rows(timeline(offloading(), tmp_path), lane)] for lane in found]
    assert [lane.depth for lane in found] == [0, 1]
    assert told == [
        [(110 * US, 380 * US, "Compute construct at test.f90:55")],
        [(255 * US, 280 * US, "Enqueue launch at test.f90:55"), (290 * US, 370 * US, "Wait at test.f90:57")],
    ]


def test_redaction_hides_the_source_file(tmp_path: Path) -> None:
    report = redacted(report_of(offloading(), tmp_path, DRAWN))
    assert isinstance(report.timeline, dict)
    (outer, _) = lanes(report.timeline["gpu0"], "openacc")
    name = rows(report.timeline["gpu0"], outer)[0][2]
    assert "test.f90" not in name
    assert name.endswith(":55")


@pytest.mark.parametrize("kind", ["PARALLEL", "WORKSHARE"])
def test_openmp(tmp_path: Path, kind: str) -> None:
    trace = TraceBuilder(schema="3.13.2")
    trace.kernel(100 * US, 200 * US, launch=(60 * US, 70 * US)).kernel(300 * US, 400 * US, launch=(260 * US, 270 * US))
    span = {
        "start": 120 * US,
        "end": 250 * US,
        "globalTid": global_tid(MAIN),
        "nameId": trace.string("Parallel region"),
    }
    levels = timeline(
        trace.row(f"OPENMP_EVENT_KIND_{kind}", {**span, "nameId": trace.string("Parallel region")}), tmp_path
    )
    (lane,) = lanes(levels, "openmp")
    assert [row[:3] for row in rows(levels, lane)] == [(120 * US, 250 * US, "Parallel region")]


def graphs(schema: str = "3.13.2") -> TraceBuilder:
    """Two launches of three and two nodes; a kernel outside of graphs is in none."""
    trace = TraceBuilder(schema=schema).kernel(10 * US, 20 * US, launch=(1 * US, 2 * US))
    first, second = trace.correlation(MAIN[0]), trace.correlation(MAIN[0])
    for number, start, nodes in ((first, 100, 3), (second, 300, 2)):
        trace.api("cudaGraphLaunch", (start - 50) * US, (start - 40) * US, correlation=number)
        for at in range(nodes):
            where = (start + 20 * at) * US
            trace.kernel(where, where + 10 * US, graph_node=at + 1, correlation=number)
    return trace


def test_graphs_whose_nodes_were_recorded(tmp_path: Path) -> None:
    levels = timeline(graphs(), tmp_path)
    (lane,) = lanes(levels, "graphs")
    assert [row[:3] for row in rows(levels, lane)] == [
        (100 * US, 150 * US, "graph of 3 nodes"),
        (300 * US, 330 * US, "graph of 2 nodes"),
    ]


def test_what_ends_before_a_chosen_time_is_in_no_lane(tmp_path: Path) -> None:
    """Graphs and host functions: of each the second reaches into it."""
    trace = graphs("3.28.1")
    for start in (30, 310):
        trace.host_function(start * US, (start + 30) * US, stream=7, launch=((start - 5) * US, (start - 4) * US))
    levels = timeline(trace, tmp_path, start_ns=320 * US)
    held = {
        lane.kind: [row[2] for row in rows(levels, lane)]
        for lane in (*lanes(levels, "graphs"), *lanes(levels, "host_functions"))
    }
    assert held == {"graphs": ["graph of 2 nodes"], "host_functions": ["host function in stream 7"]}


def test_host_functions(tmp_path: Path) -> None:
    trace = TraceBuilder(schema="3.28.1")
    trace.kernel(100 * US, 200 * US, launch=(60 * US, 70 * US), stream=9)
    trace.host_function(210 * US, 260 * US, stream=9, launch=(80 * US, 85 * US))
    trace.kernel(280 * US, 300 * US, launch=(90 * US, 95 * US), stream=9)
    levels = timeline(trace, tmp_path)
    (lane,) = lanes(levels, "host_functions")
    assert [row[:3] for row in rows(levels, lane)] == [(210 * US, 260 * US, "host function in stream 9")]


def test_phases_and_what_the_host_did_in_a_start_up(tmp_path: Path) -> None:
    """A steady loop behind a start-up and with a pause: the lane has them from the first call on."""
    trace = TraceBuilder(schema="3.13.2").api("cudaFree", 1_000 * US, 390_000 * US)
    for at in range(120):
        start = (400_000 + 100 * at + 60_000 * (at >= 60)) * US
        trace.kernel(start, start + 80 * US, launch=(start - 30 * US, start - 20 * US))
    report = report_of(trace, tmp_path, DRAWN)
    assert isinstance(report.timeline, dict)
    levels = report.timeline["gpu0"]
    held = [each for lane in lanes(levels, "phases") for each in rows(levels, lane)]
    assert [row[:3] for row in held] == [(each.start_ns, each.end_ns, each.name) for each in report.phases]
    assert held[0][:3] == (1_000 * US, held[0][1], "start-up")
    assert levels.start_ns == 400_000 * US
    (started,) = lanes(levels, "start")
    assert rows(levels, started)[0][:3] == (1_000 * US, 390_000 * US, "cudaFree")
