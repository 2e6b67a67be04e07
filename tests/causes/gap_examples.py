"""Causes that the case of a gap alone decides: dispatch, unified memory, graphs, unknown launches."""

from __future__ import annotations

from tests.builder import TraceBuilder
from tests.causes.example import CALL, Ledgered, fires, first, issued, late, spares


@fires("dispatch")
def within_the_floor() -> Ledgered:
    """
    device  [==A==)|5_000|[==B==)      the floor is 5 µs where the trace does not teach another
    thread [A][B]
    """
    return Ledgered(issued(115_000), {"dispatch": 5_000})


@fires("dispatch")
def within_the_floor_without_a_launch_row() -> Ledgered:
    """
    device  [==A==)|3_000|[==B==)
    thread [A]                          no row has B's correlation id
    """
    return Ledgered(first().kernel(113_000, 213_000, correlation=9_999), {"dispatch": 3_000})


@spares("dispatch")
def one_ns_above_the_floor() -> Ledgered:
    """
    device  [==A==)|5_001|[==B==)
    thread [A][B]
    """
    return Ledgered(issued(115_001), {"device_stall": 5_001})


@spares("dispatch")
def short_but_launched_late() -> Ledgered:
    """
    device  [==A==)|  3_000 idle  |[==B==)
    thread [A]     .500.[ 1_000 ].1_500.
    """
    trace = first().kernel(113_000, 213_000, launch=(110_500, 111_500))
    return Ledgered(trace, {"uncovered": 500, "launch_call": 1_000, "launch_latency": 1_500})


@spares("dispatch")
def short_while_the_call_still_ran() -> Ledgered:
    """
    device  [==A==)|  3_000 idle  |[==B==)
    thread [A]  [launch B: 2_000 of it idle]
    """
    trace = first().kernel(113_000, 213_000, launch=(105_000, 112_000))
    return Ledgered(trace, {"launch_call": 2_000, "launch_latency": 1_000})


@fires("unified_memory")
def migration_before_launched_work() -> Ledgered:
    """
    device  [==A==)..40_000..[migration)[==B==)
    thread [A][B]
    """
    trace = issued(160_000).memcpy(150_000, 160_000, kind="UM HtoD")
    return Ledgered(trace, {"unified_memory": 40_000})


@fires("unified_memory")
def migration_within_the_floor() -> Ledgered:
    """
    device  [==A==)1_000[migration)[==B==)      whatever the floor
    thread [A][B]
    """
    trace = issued(121_000).memcpy(111_000, 121_000, kind="UM DtoH")
    return Ledgered(trace, {"unified_memory": 1_000})


@fires("unified_memory")
def several_migrations_looked_through() -> Ledgered:
    """
    device  [==A==)..20_000..[m1)..10_000..[m2)[==B==)
    thread [A][B]
    """
    trace = issued(160_000).memcpy(130_000, 140_000, kind="UM HtoD").memcpy(150_000, 160_000, kind="UM DtoD")
    return Ledgered(trace, {"unified_memory": 30_000})


@fires("unified_memory")
def migration_before_work_launched_before_the_capture() -> Ledgered:
    """
    device  [==A==)..40_000..[migration)[==B==)
    thread [A: correlation 101]         B: correlation 50, issued before the capture began
    """
    trace = first().memcpy(150_000, 160_000, kind="UM HtoD").kernel(160_000, 260_000, correlation=50)
    return Ledgered(trace, {"unified_memory": 40_000})


@spares("unified_memory")
def migration_before_work_launched_late() -> Ledgered:
    """
    device  [==A==)..90_000..[migration)....90_000.........[==B==)
    thread [A]                              ..70_000..[launch B]
    """
    trace = late().memcpy(200_000, 210_000, kind="UM HtoD")
    return Ledgered(trace, {"uncovered": 160_000, **CALL})


@spares("unified_memory")
def migration_before_an_unknown_launch() -> Ledgered:
    """
    device  [==A==)..40_000..[migration)[==B==)
    thread [A]                          no row has B's correlation id
    """
    trace = first().memcpy(150_000, 160_000, kind="UM HtoD").kernel(160_000, 260_000, correlation=9_999)
    return Ledgered(trace, {"launch_unknown": 40_000})


@spares("unified_memory")
def gap_after_the_migration() -> Ledgered:
    """
    device  [==A==)[migration)..30_000..[==B==)      the next operation is B itself
    thread [A][B]
    """
    trace = issued(150_000).memcpy(110_000, 120_000, kind="UM HtoD")
    return Ledgered(trace, {"device_stall": 30_000})


def graph(schema: str = "3.13.2") -> TraceBuilder:
    """A node of a graph launch, [10_000, 110_000)."""
    trace = TraceBuilder(schema=schema).api("cudaGraphLaunch", 1_000, 9_000, correlation=500)
    return trace.kernel(10_000, 110_000, correlation=500, graph_node=1)


@fires("intra_graph")
def nodes_of_one_launch() -> Ledgered:
    """
    device  [node 1)..40_000..[node 2)
    thread [cudaGraphLaunch]
    """
    return Ledgered(graph().kernel(150_000, 250_000, correlation=500, graph_node=2), {"intra_graph": 40_000})


@spares("intra_graph")
def nodes_of_two_launches() -> Ledgered:
    """
    device  [node 1)..40_000..[node 1)
    thread [cudaGraphLaunch][cudaGraphLaunch]
    """
    trace = graph().api("cudaGraphLaunch", 9_100, 9_900, correlation=501)
    return Ledgered(trace.kernel(150_000, 250_000, correlation=501, graph_node=1), {"device_stall": 40_000})


@spares("intra_graph")
def nodes_within_the_floor() -> Ledgered:
    """
    device  [node 1)5_000[node 2)
    thread [cudaGraphLaunch]
    """
    return Ledgered(graph().kernel(115_000, 215_000, correlation=500, graph_node=2), {"dispatch": 5_000})


@spares("intra_graph")
def a_graph_after_a_kernel() -> Ledgered:
    """
    device  [==A==)..40_000..[node 1)
    thread [A][cudaGraphLaunch]
    """
    trace = first().api("cudaGraphLaunch", 6_000, 9_000, correlation=500)
    return Ledgered(trace.kernel(150_000, 250_000, correlation=500, graph_node=1), {"device_stall": 40_000})


@fires("graph_untraced")
def until_the_next_operation() -> Ledgered:
    """
    device  [==A==)10_000|   180_000: probably the graph    |[==B==)
    thread [A]           [cudaGraphLaunch]      [launch B]
    """
    trace = late().api("cudaGraphLaunch", 120_000, 130_000)
    return Ledgered(trace, {"uncovered": 10_000, "graph_untraced": 180_000})


@fires("graph_untraced")
def until_a_sync_ends() -> Ledgered:
    """
    device  [==A==)10_000|      80_000      |80_000          [==B==)
    thread [A]           [cudaGraphLaunch][sync]     [launch B]
    """
    trace = late().api("cudaGraphLaunch", 120_000, 130_000).api("cudaStreamSynchronize", 140_000, 200_000)
    return Ledgered(trace, {"uncovered": 90_000, "graph_untraced": 80_000, **CALL})


@fires("graph_untraced")
def until_a_blocking_copy_ends() -> Ledgered:
    """
    device  [==A==)10_000|      80_000        |80_000        [==B==)
    thread [A]           [cuGraphLaunch][cudaMemcpy]  [launch B]
    """
    trace = late().api("cuGraphLaunch", 120_000, 130_000).api("cudaMemcpy", 140_000, 200_000)
    return Ledgered(trace, {"uncovered": 90_000, "graph_untraced": 80_000, **CALL})


@fires("graph_untraced")
def before_an_operation_without_a_launch() -> Ledgered:
    """
    device  [==A==)...90_000...[==X==)..50_000..[==B==)
    thread [A] [cudaGraphLaunch]            [B]         X has no launch row; the span ends where B starts
    """
    trace = late().api("cudaGraphLaunch", 105_000, 106_000).kernel(200_000, 250_000, correlation=9_999)
    return Ledgered(trace, {"graph_untraced": 140_000})


@fires("graph_untraced")
def runtime_and_driver_rows_of_one_launch() -> Ledgered:
    """
    device  [==A==)10_000|   180_000: probably the graph    |[==B==)
    thread [A]           [cudaGraphLaunch]
                          [cuGraphLaunch]       [launch B]
    """
    trace = late().api("cudaGraphLaunch", 120_000, 130_000, correlation=500)
    trace.api("cuGraphLaunch", 121_000, 129_000, correlation=500)
    return Ledgered(trace, {"uncovered": 10_000, "graph_untraced": 180_000})


@fires("graph_untraced")
def before_a_graph_whose_nodes_come_in_any_order() -> Ledgered:
    """
    device  [==A==)10_000|   180_000: probably the graph    |[node)50_000[node)
    thread [A]           [cudaGraphLaunch]  [cudaGraphLaunch]
    """
    trace = first().api("cudaGraphLaunch", 120_000, 130_000)
    trace.api("cudaGraphLaunch", 280_000, 290_000, correlation=500)
    trace.kernel(400_000, 500_000, correlation=500, graph_node=2)
    trace.kernel(300_000, 350_000, correlation=500, graph_node=1)
    return Ledgered(trace, {"uncovered": 10_000, "graph_untraced": 180_000, "intra_graph": 50_000})


@fires("graph_untraced")
def until_the_outer_of_two_nested_syncs_ends() -> Ledgered:
    """
    device  [==A==)10_000|      80_000         |80_000       [==B==)
    thread [A]           [cudaGraphLaunch][sync     ]   [launch B]
                                          [driver ]
    """
    trace = late().api("cudaGraphLaunch", 120_000, 130_000)
    trace.api("cuStreamSynchronize", 140_000, 190_000).api("cudaStreamSynchronize", 140_000, 200_000)
    return Ledgered(trace, {"uncovered": 90_000, "graph_untraced": 80_000, **CALL})


@spares("graph_untraced")
def a_launch_that_failed() -> Ledgered:
    """
    device  [==A==).............190_000.....................[==B==)
    thread [A]           [cudaGraphLaunch: error]    [launch B]
    """
    trace = late().api("cudaGraphLaunch", 120_000, 130_000, returned=1)
    return Ledgered(trace, {"cuda_api": 10_000, "uncovered": 160_000, **CALL})


@spares("graph_untraced")
def a_launch_with_a_graph_row() -> Ledgered:
    """
    device  [==A==)10_000|10_000|20_000[==graph==)..50_000..[==B==)
    thread [A]           [launch]                    [launch B]
    """
    trace = late().graph_trace(150_000, 250_000, launch=(120_000, 130_000))
    return Ledgered(trace, {"uncovered": 10_000 + 30_000, "launch_call": 20_000, "launch_latency": 20_000 + 10_000})


@spares("graph_untraced")
def a_launch_with_nodes() -> Ledgered:
    """
    device  [==A==)10_000|10_000|20_000[=node=)..50_000..[==B==)
    thread [A]           [launch]                 [launch B]
    """
    trace = late().kernel(150_000, 250_000, launch=(120_000, 130_000), api="cudaGraphLaunch", graph_node=4)
    return Ledgered(trace, {"uncovered": 10_000 + 30_000, "launch_call": 20_000, "launch_latency": 20_000 + 10_000})


@spares("graph_untraced")
def dispatch_inside_the_span() -> Ledgered:
    """
    device  [==A==)3_000[==B==)
    thread [A][B]  [cudaGraphLaunch]      A and B were queued before it; nothing was launched after it
    """
    return Ledgered(issued(113_000).api("cudaGraphLaunch", 105_000, 106_000), {"dispatch": 3_000})


@spares("graph_untraced")
def migration_inside_the_span() -> Ledgered:
    """
    device  [==A==)40_000[migration)[==B==)
    thread [A][B]  [cudaGraphLaunch]
    """
    trace = issued(160_000).memcpy(150_000, 160_000, kind="UM HtoD").api("cudaGraphLaunch", 105_000, 106_000)
    return Ledgered(trace, {"unified_memory": 40_000})


@fires("launch_unknown")
def no_call_has_the_id() -> Ledgered:
    """
    device  [==A==)..90_000..[==B==)
    thread [A: correlation 101]         B: correlation 9_999
    """
    return Ledgered(first().kernel(200_000, 300_000, correlation=9_999), {"launch_unknown": 90_000})


@fires("launch_unknown")
def no_id_at_all() -> Ledgered:
    """
    device  [==A==)..90_000..[==B==)
    thread [A]                          B: correlation 0
    """
    return Ledgered(first().kernel(200_000, 300_000, correlation=0), {"launch_unknown": 90_000})


@spares("launch_unknown")
def launched_before_the_capture() -> Ledgered:
    """
    device  [==A==)..90_000..[==B==)
    thread [A: correlation 101]         B: correlation 50, so its call came before the first that was recorded
    """
    return Ledgered(first().kernel(200_000, 300_000, correlation=50), {"device_stall": 90_000})


@spares("launch_unknown")
def unknown_but_within_the_floor() -> Ledgered:
    """
    device  [==A==)5_000[==B==)
    thread [A]                          B: correlation 9_999
    """
    return Ledgered(first().kernel(115_000, 200_000, correlation=9_999), {"dispatch": 5_000})
