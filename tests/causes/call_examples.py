"""CUDA calls on the launching thread before the launch: what the device waited for while the host was late."""

from __future__ import annotations

from tests.builder import TraceBuilder
from tests.causes.example import CALL, NEIGHBOUR, STRANGER, Ledgered, fires, first, issued, late, spares

NOT_READY = 600


@fires("sync")
def a_stream() -> Ledgered:
    """
    device  [==A==)40_000                 70_000[launch B][==B==)
    thread                [cudaStreamSynchronize: 60_000]
    """
    trace = late().api("cudaStreamSynchronize", 150_000, 210_000)
    return Ledgered(
        trace,
        {"sync": 60_000, "uncovered": 110_000, **CALL},
        labels={"sync": {"waits for a stream": 60_000}},
        evidence={"sync": "cudaStreamSynchronize"},
    )


@fires("sync")
def for_another_device() -> Ledgered:
    """
    device 0  [==A==)40_000                 70_000[launch B][==B==)
    device 1     [==========C=============)
    thread                [cudaStreamSynchronize: 60_000]             on the stream of C
    """
    trace = late().kernel(20_000, 205_000, device=1, stream=14, launch=(5_100, 5_200))
    trace.api("cudaStreamSynchronize", 150_000, 210_000, correlation=700)
    trace.sync_row(150_000, 210_000, correlation=700, device=1, stream=14)
    return Ledgered(
        trace,
        {"sync": 60_000, "uncovered": 110_000, **CALL},
        labels={"sync": {"waits for another device": 60_000}},
        key="gpu0",
    )


def _two_contexts() -> TraceBuilder:
    """`late` in context 1 of device 0; C in context 2 of device 1."""
    return late().kernel(20_000, 205_000, device=1, context=2, stream=14, launch=(5_100, 5_200))


@fires("sync")
def for_another_device_by_its_context() -> Ledgered:
    """
    device 0  [==A==)40_000                 70_000[launch B][==B==)
    device 1     [==========C=============)
    thread                [cudaStreamSynchronize: 60_000]             in the context of C; the row says device 0
    """
    trace = _two_contexts().api("cudaStreamSynchronize", 150_000, 210_000, correlation=700)
    trace.sync_row(150_000, 210_000, correlation=700, device=0, context=2, stream=14)
    return Ledgered(
        trace,
        {"sync": 60_000, "uncovered": 110_000, **CALL},
        labels={"sync": {"waits for another device": 60_000}},
        key="gpu0",
    )


@fires("sync")
def in_its_own_context_of_two() -> Ledgered:
    """
    device 0  [==A==)40_000                 70_000[launch B][==B==)
    device 1     [==========C=============)
    thread                [cudaStreamSynchronize: 60_000]             in the context of A and B
    """
    trace = _two_contexts().api("cudaStreamSynchronize", 150_000, 210_000, correlation=700)
    trace.sync_row(150_000, 210_000, correlation=700, device=0, context=1, stream=7)
    return Ledgered(
        trace,
        {"sync": 60_000, "uncovered": 110_000, **CALL},
        labels={"sync": {"waits for a stream": 60_000}},
        key="gpu0",
    )


@fires("sync")
def in_a_context_without_work() -> Ledgered:
    """
    device 0  [==A==)40_000                 70_000[launch B][==B==)
    device 1     [==========C=============)[D]
    thread                [cudaStreamSynchronize: 60_000][sync]       in a third context: what the row says is not
                                                                      believed, as the other one's is wrong
    """
    trace = TraceBuilder().kernel(10_000, 110_000, device=1, context=2, stream=14, launch=(1_000, 5_000))
    trace.kernel(20_000, 205_000, launch=(5_100, 5_200))
    trace.kernel(300_000, 400_000, device=1, context=2, stream=14, launch=(280_000, 290_000))
    trace.api("cudaStreamSynchronize", 150_000, 210_000, correlation=700)
    trace.sync_row(150_000, 210_000, correlation=700, device=0, context=3, stream=7)
    trace.api("cudaStreamSynchronize", 410_000, 420_000, correlation=701)
    trace.sync_row(410_000, 420_000, correlation=701, device=0, context=2, stream=14)
    return Ledgered(
        trace,
        {"sync": 60_000, "uncovered": 110_000, **CALL},
        labels={"sync": {"waits for a stream": 60_000}},
        key="gpu1",
    )


@fires("sync")
def for_the_first_device() -> Ledgered:
    """
    device 0     [==========C=============)
    device 1  [==A==)40_000                 70_000[launch B][==B==)
    thread                [cudaStreamSynchronize: 60_000]             on the stream of C
    """
    trace = TraceBuilder().kernel(10_000, 110_000, device=1, stream=14, launch=(1_000, 5_000))
    trace.kernel(20_000, 205_000, launch=(5_100, 5_200))
    trace.kernel(300_000, 400_000, device=1, stream=14, launch=(280_000, 290_000))
    trace.api("cudaStreamSynchronize", 150_000, 210_000, correlation=700)
    trace.sync_row(150_000, 210_000, correlation=700, device=0, stream=7)
    return Ledgered(
        trace,
        {"sync": 60_000, "uncovered": 110_000, **CALL},
        labels={"sync": {"waits for another device": 60_000}},
        key="gpu1",
    )


@fires("sync")
def only_its_part_after_the_work() -> Ledgered:
    """
    device   [======A======)20_000..150_000..[launch B][==B==)
    thread [A]   [cudaDeviceSynchronize ]                        80_000 long, 60_000 of them beside A
    """
    trace = late().api("cudaDeviceSynchronize", 50_000, 130_000)
    return Ledgered(trace, {"sync": 20_000, "uncovered": 150_000, **CALL})


@fires("sync")
def a_spin_on_a_query() -> Ledgered:
    """
    device  [==A==)............................................................[launch B][==B==)
    thread     [query 600].9_000.[query 600].9_000.[query 0]     21_000 from the first start to the last end
    """
    trace = late()
    for start, returned in ((150_000, NOT_READY), (160_000, NOT_READY), (170_000, 0)):
        trace.api("cudaEventQuery", start, start + 1_000, returned=returned)
    return Ledgered(
        trace,
        {"sync": 21_000, "uncovered": 149_000, **CALL},
        labels={"sync": {"spins on a query": 21_000}},
        evidence={"sync": "cudaEventQuery"},
    )


def two_queries(second: int, *, returned: int = NOT_READY) -> TraceBuilder:
    """A query [150_000, 151_000) and one of 1_000 ns from `second` that is ready."""
    trace = late().api("cudaStreamQuery", 150_000, 151_000, returned=returned)
    return trace.api("cudaStreamQuery", second, second + 1_000)


@fires("sync")
def a_spin_just_close_enough() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread        [query 600]...19_999...[query 0]
    """
    return Ledgered(two_queries(170_999), {"sync": 21_999, "uncovered": 148_001, **CALL})


@fires("sync")
def a_spin_with_the_old_error() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread        [query 34]...9_000...[query 0]        34 is cudaErrorNotReady of old
    """
    return Ledgered(two_queries(160_000, returned=34), {"sync": 11_000, "uncovered": 159_000, **CALL})


@fires("sync")
def a_spin_of_driver_calls() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread        [cuStreamQuery 600]...9_000...[cuStreamQuery 0]
    """
    trace = late().api("cuStreamQuery", 150_000, 151_000, returned=NOT_READY).api("cuStreamQuery", 160_000, 161_000)
    return Ledgered(trace, {"sync": 11_000, "uncovered": 159_000, **CALL})


@fires("sync")
def spins_are_the_first_and_the_last_calls() -> Ledgered:
    """
    device     [==A==)..............................[launch B][==B==)
    thread           [query 600]...9_000...[query 0]                           its first calls
    neighbour [A]                                                    [600][0]  its last calls
    """
    trace = TraceBuilder().kernel(10_000, 110_000, launch=(1_000, 5_000), thread=NEIGHBOUR)
    trace.kernel(300_000, 400_000, launch=(280_000, 290_000))
    trace.api("cudaStreamQuery", 150_000, 151_000, returned=NOT_READY).api("cudaStreamQuery", 160_000, 161_000)
    trace.api("cudaStreamQuery", 410_000, 411_000, returned=NOT_READY, thread=NEIGHBOUR)
    trace.api("cudaStreamQuery", 420_000, 421_000, thread=NEIGHBOUR)
    return Ledgered(trace, {"sync": 11_000, "uncovered": 159_000, **CALL})


@fires("sync")
def a_spin_of_the_second_thread() -> Ledgered:
    """
    device     [==A==)..............................[launch B][==B==)
    thread    [A]
    neighbour        [query 600]...9_000...[query 0]
    """
    trace = first().kernel(300_000, 400_000, launch=(280_000, 290_000), thread=NEIGHBOUR)
    trace.api("cudaStreamQuery", 150_000, 151_000, returned=NOT_READY, thread=NEIGHBOUR)
    trace.api("cudaStreamQuery", 160_000, 161_000, thread=NEIGHBOUR)
    return Ledgered(trace, {"sync": 11_000, "uncovered": 159_000, **CALL})


@fires("sync")
def a_spin_beside_another_thread() -> Ledgered:
    """
    device    [==A==)..............................[launch B][==B==)
    thread          [query 600]........[query 0]
    neighbour                 [cudaMalloc]
    """
    trace = two_queries(160_000).api("cudaMalloc", 153_000, 157_000, thread=NEIGHBOUR)
    return Ledgered(trace, {"sync": 11_000, "uncovered": 159_000, **CALL})


@spares("sync")
def queries_20_us_apart() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread        [query 600]...20_000...[query 0]
    """
    return Ledgered(two_queries(171_000), {"cuda_api": 2_000, "uncovered": 168_000, **CALL})


@spares("sync")
def queries_25_us_apart() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread        [query 600]...25_000...[query 0]
    """
    return Ledgered(two_queries(176_000), {"cuda_api": 2_000, "uncovered": 168_000, **CALL})


@spares("sync")
def a_query_that_was_ready_at_once() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread        [query 0]...9_000...[query 0]
    """
    return Ledgered(two_queries(160_000, returned=0), {"cuda_api": 2_000, "uncovered": 168_000, **CALL})


@spares("sync")
def a_query_that_failed() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread        [query 700]...9_000...[query 0]      700 is an illegal address, not a wait
    """
    return Ledgered(two_queries(160_000, returned=700), {"cuda_api": 2_000, "uncovered": 168_000, **CALL})


@spares("sync")
def a_query_after_another_call_that_was_not_ready() -> Ledgered:
    """
    device  [==A==)..........................................[launch B][==B==)
    thread        [cudaEventElapsedTime 600]...9_000...[query 0]
    """
    trace = late().api("cudaEventElapsedTime", 150_000, 151_000, returned=NOT_READY)
    trace.api("cudaEventQuery", 160_000, 161_000)
    return Ledgered(trace, {"cuda_api": 2_000, "uncovered": 168_000, **CALL})


@spares("sync")
def the_last_query_of_one_thread_and_the_first_of_the_next() -> Ledgered:
    """
    device     [==A==).................[==B==)
    thread   [A]                            [query 600]      nothing comes after it
    neighbour          [query 0][launch B]                   nothing came before it
    """
    trace = TraceBuilder().kernel(2_000, 5_000, launch=(1_000, 1_500))
    trace.kernel(40_000, 50_000, launch=(28_000, 30_000), thread=NEIGHBOUR)
    trace.api("cudaEventQuery", 10_000, 11_000, thread=NEIGHBOUR)
    trace.api("cudaEventQuery", 49_000, 50_000, returned=NOT_READY)
    ledger = {"cuda_api": 1_000, "uncovered": 22_000, "launch_call": 2_000, "launch_latency": 10_000}
    return Ledgered(trace, ledger)


@spares("sync")
def one_query_alone() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread        [query 600]
    """
    trace = late().api("cudaEventQuery", 150_000, 151_000, returned=NOT_READY)
    return Ledgered(trace, {"cuda_api": 1_000, "uncovered": 169_000, **CALL})


@spares("sync")
def queries_with_a_call_between() -> Ledgered:
    """
    device  [==A==)..................................[launch B][==B==)
    thread        [query 600][cudaEventRecord][query 0]
    """
    trace = two_queries(160_000).api("cudaEventRecord", 153_000, 157_000)
    return Ledgered(trace, {"cuda_api": 6_000, "uncovered": 164_000, **CALL})


@spares("sync")
def a_watchdog_thread_synchronizes() -> Ledgered:
    """
    device    [==A==)..........................[launch B][==B==)
    neighbour      [cudaStreamSynchronize]                          not the launching thread
    """
    trace = late().api("cudaStreamSynchronize", 120_000, 260_000, thread=NEIGHBOUR)
    return Ledgered(trace, {"uncovered": 170_000, **CALL})


@spares("sync")
def a_sync_while_the_work_was_queued() -> Ledgered:
    """
    device  [==A==)..40_000..[==B==)      B is launched: the host delays nothing
    thread [A][B] [sync            ]
    """
    return Ledgered(issued().api("cudaStreamSynchronize", 100_000, 260_000), {"device_stall": 40_000})


def with_copy(api: str, host: str, *, kind: str = "HtoD", size: int = 4096) -> TraceBuilder:
    """
    device  [==A==)....40_000....[copy)................140_000................[==B==)
    thread        10_000[copy call: 80_000          ]..80_000..[launch B]
    """
    return late().memcpy(150_000, 160_000, kind=kind, host=host, size=size, launch=(120_000, 200_000), api=api)


COPY_LEDGER = {"blocking_copy": 30_000 + 40_000, "uncovered": 10_000 + 80_000, **CALL}
ASYNC_LEDGER = {
    "launch_call": 30_000 + 10_000,
    "cuda_api": 40_000,
    "uncovered": 10_000 + 80_000,
    "launch_latency": 10_000,
}


@fires("blocking_copy")
def a_synchronous_copy() -> Ledgered:
    """
    device  [==A==)....30_000[copy)40_000...........[==B==)
    thread        [cudaMemcpy         ]   [launch B]
    """
    trace = with_copy("cudaMemcpy", "pinned")
    return Ledgered(trace, COPY_LEDGER, labels={"blocking_copy": {"synchronous call": 70_000}})


@fires("blocking_copy")
def an_asynchronous_copy_of_pageable_memory() -> Ledgered:
    """
    device  [==A==)....30_000[copy)40_000...........[==B==)
    thread        [cudaMemcpyAsync    ]   [launch B]         the host's side is pageable: it is staged
    """
    trace = with_copy("cudaMemcpyAsync", "pageable")
    return Ledgered(trace, COPY_LEDGER, labels={"blocking_copy": {"pageable memory": 70_000}})


@fires("blocking_copy")
def a_read_back() -> Ledgered:
    """
    device  [==A==)....30_000[copy)40_000...........[==B==)
    thread        [cudaMemcpyAsync    ]   [launch B]         64 bytes from the device to pageable memory
    """
    trace = with_copy("cudaMemcpyAsync", "pageable", kind="DtoH", size=64)
    return Ledgered(trace, COPY_LEDGER, labels={"blocking_copy": {"read-back of at most 64 bytes": 70_000}})


@fires("blocking_copy")
def a_copy_of_65_bytes_is_no_read_back() -> Ledgered:
    """
    device  [==A==)....30_000[copy)40_000...........[==B==)
    thread        [cudaMemcpyAsync    ]   [launch B]         65 bytes
    """
    trace = with_copy("cudaMemcpyAsync", "pageable", kind="DtoH", size=65)
    return Ledgered(trace, COPY_LEDGER, labels={"blocking_copy": {"pageable memory": 70_000}})


@fires("blocking_copy")
def a_call_that_copied_nothing() -> Ledgered:
    """
    device  [==A==).......................[launch B][==B==)
    thread           [cudaMemcpy: 30_000]                       0 bytes: no operation, but the call
    """
    trace = late().api("cudaMemcpy", 150_000, 180_000)
    return Ledgered(trace, {"blocking_copy": 30_000, "uncovered": 140_000, **CALL})


@spares("blocking_copy")
def an_asynchronous_copy_of_pinned_memory() -> Ledgered:
    """
    device  [==A==)....30_000[copy)40_000...........[==B==)
    thread        [cudaMemcpyAsync    ]   [launch B]
    """
    return Ledgered(with_copy("cudaMemcpyAsync", "pinned"), ASYNC_LEDGER)


@spares("blocking_copy")
def a_small_read_into_pinned_memory() -> Ledgered:
    """
    device  [==A==)....30_000[copy)40_000...........[==B==)
    thread        [cudaMemcpyAsync    ]   [launch B]         4 bytes, pinned: the call does not wait
    """
    return Ledgered(with_copy("cudaMemcpyAsync", "pinned", kind="DtoH", size=4), ASYNC_LEDGER)


@spares("blocking_copy")
def another_thread_copies() -> Ledgered:
    """
    device    [==A==)..........................[launch B][==B==)
    neighbour       [cudaMemcpy: 30_000]
    """
    trace = late().api("cudaMemcpy", 150_000, 180_000, thread=NEIGHBOUR)
    return Ledgered(trace, {"uncovered": 170_000, **CALL})


@fires("memory_allocation")
def an_allocation() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread          [cudaMalloc: 50_000]
    """
    trace = late().api("cudaMalloc", 150_000, 200_000)
    return Ledgered(
        trace,
        {"memory_allocation": 50_000, "uncovered": 120_000, **CALL},
        evidence={"memory_allocation": "cudaMalloc"},
    )


@fires("memory_allocation")
def inside_a_library_call() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread          [cublasSgemm: 80_000        ]
                       [cudaMalloc: 30_000]                        the library never hides it
    """
    trace = late().library("cublasSgemm_v2", 120_000, 200_000).api("cudaMalloc", 130_000, 160_000)
    return Ledgered(trace, {"memory_allocation": 30_000, "cuda_api": 50_000, "uncovered": 90_000, **CALL})


@fires("memory_allocation")
def runtime_and_driver_rows_count_once() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread          [cudaMalloc: 50_000]
                      [cuMemAlloc_v2]
    """
    trace = late().api("cudaMalloc", 150_000, 200_000).api("cuMemAlloc_v2", 155_000, 195_000)
    return Ledgered(trace, {"memory_allocation": 50_000, "uncovered": 120_000, **CALL})


@spares("memory_allocation")
def asking_how_much_is_free() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread          [cudaMemGetInfo: 50_000]
    """
    trace = late().api("cudaMemGetInfo", 150_000, 200_000)
    return Ledgered(trace, {"cuda_api": 50_000, "uncovered": 120_000, **CALL})


@spares("memory_allocation")
def an_allocation_inside_another_call() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread          [cudaDeviceSynchronize: 50_000]
                       [cuMemFree_v2]                              the outermost row says what it is
    """
    trace = late().api("cudaDeviceSynchronize", 150_000, 200_000).api("cuMemFree_v2", 160_000, 170_000)
    return Ledgered(trace, {"sync": 50_000, "uncovered": 120_000, **CALL})


@fires("context_init")
def the_context_is_made() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread          [cuCtxCreate_v3: 50_000]
    """
    trace = late().api("cuCtxCreate_v3", 150_000, 200_000)
    return Ledgered(trace, {"context_init": 50_000, "uncovered": 120_000, **CALL})


@fires("context_init")
def a_stream_made_in_more_than_1_ms() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread          [cudaStreamCreate: 1_000_001]
    """
    trace = late(3_000_000).api("cudaStreamCreateWithFlags", 500_000, 1_500_001)
    return Ledgered(trace, {"context_init": 1_000_001, "uncovered": 1_869_999, **CALL})


@fires("context_init")
def a_stream_made_by_the_driver_in_more_than_1_ms() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread          [cuStreamCreate: 1_000_001]
    """
    trace = late(3_000_000).api("cuStreamCreateWithPriority", 500_000, 1_500_001)
    return Ledgered(
        trace,
        {"context_init": 1_000_001, "uncovered": 1_869_999, **CALL},
        labels={"context_init": {"slow stream creation": 1_000_001}},
    )


@spares("context_init")
def a_stream_made_in_1_ms() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread          [cudaStreamCreate: 1_000_000]
    """
    trace = late(3_000_000).api("cudaStreamCreateWithFlags", 500_000, 1_500_000)
    return Ledgered(trace, {"cuda_api": 1_000_000, "uncovered": 1_870_000, **CALL})


@spares("context_init")
def a_stream_made_in_900_us() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread          [cudaStreamCreate: 900_000]
    """
    trace = late(3_000_000).api("cudaStreamCreate", 500_000, 1_400_000)
    return Ledgered(trace, {"cuda_api": 900_000, "uncovered": 1_970_000, **CALL})


def second_process(api: str, start: int, end: int) -> TraceBuilder:
    """B is launched by another process on the same GPU, whose first call is `api`."""
    trace = first("3.17.2").cuda_device(0, 0).cuda_device(0, 0, pid=STRANGER[0])
    trace.api(api, start, end, thread=STRANGER)
    return trace.kernel(3_000_000, 3_100_000, launch=(2_980_000, 2_990_000), thread=STRANGER)


@fires("context_init")
def the_first_call_of_a_process() -> Ledgered:
    """
    device              [==A==)...............................................[==B==)
    another process            [cudaFree(0): 1_500_000]............[launch B]
    """
    return Ledgered(
        second_process("cudaFree", 500_000, 2_000_000),
        {"context_init": 1_500_000, "uncovered": 1_370_000, **CALL},
        labels={"context_init": {"first call of the process": 1_500_000}},
    )


@spares("context_init")
def a_first_call_of_1_ms() -> Ledgered:
    """
    device              [==A==)...............................................[==B==)
    another process            [cudaFree(0): 1_000_000]............[launch B]
    """
    trace = second_process("cudaFree", 500_000, 1_500_000)
    return Ledgered(trace, {"memory_allocation": 1_000_000, "uncovered": 1_870_000, **CALL})


@spares("context_init")
def a_later_call_over_1_ms() -> Ledgered:
    """
    device  [==A==)...............................................[==B==)
    thread [A]     [cudaFree: 1_500_000]................[launch B]         A's launch was the first call
    """
    trace = late(3_000_000).api("cudaFree", 500_000, 2_000_000)
    return Ledgered(trace, {"memory_allocation": 1_500_000, "uncovered": 1_370_000, **CALL})


@fires("graph_build")
def a_stream_capture() -> Ledgered:
    """
    device  [==A==)...................................................[launch B][==B==)
    thread        [begin capture][launch, captured] ... [end capture]              60_000 as one interval
    """
    trace = late().api("cudaStreamBeginCapture", 150_000, 152_000).api("cudaLaunchKernel", 170_000, 175_000)
    trace.api("cudaStreamEndCapture", 205_000, 210_000)
    return Ledgered(
        trace,
        {"graph_build": 60_000, "uncovered": 110_000, **CALL},
        labels={"graph_build": {"capture": 60_000}},
        evidence={"graph_build": "stream capture"},
    )


@fires("graph_build")
def a_stream_capture_by_the_driver() -> Ledgered:
    """
    device  [==A==)...................................................[launch B][==B==)
    thread        [begin capture to graph] ... [end capture]                       60_000 as one interval
    """
    trace = late().api("cuStreamBeginCaptureToGraph", 150_000, 152_000).api("cuStreamEndCapture", 205_000, 210_000)
    return Ledgered(trace, {"graph_build": 60_000, "uncovered": 110_000, **CALL})


@fires("graph_build")
def a_stream_capture_of_the_second_thread() -> Ledgered:
    """
    device     [==A==)............................................[==B==)
    thread    [A]
    neighbour        [begin capture] ... [end capture]  [launch B]
    """
    trace = first().kernel(300_000, 400_000, launch=(280_000, 290_000), thread=NEIGHBOUR)
    trace.api("cudaStreamBeginCapture", 150_000, 152_000, thread=NEIGHBOUR)
    trace.api("cudaStreamEndCapture", 205_000, 210_000, thread=NEIGHBOUR)
    return Ledgered(trace, {"graph_build": 60_000, "uncovered": 110_000, **CALL})


@spares("graph_build")
def an_end_whose_begin_is_of_another_thread() -> Ledgered:
    """
    device     [==A==)............................................[==B==)
    thread    [A]    [begin capture]
    neighbour                            [end capture]  [launch B]
    """
    trace = first().kernel(300_000, 400_000, launch=(280_000, 290_000), thread=NEIGHBOUR)
    trace.api("cudaStreamBeginCapture", 150_000, 152_000)
    trace.api("cudaStreamEndCapture", 205_000, 210_000, thread=NEIGHBOUR)
    return Ledgered(trace, {"cuda_api": 5_000, "uncovered": 165_000, **CALL})


@spares("graph_build")
def an_end_without_any_begin() -> Ledgered:
    """
    device  [==A==)...........................................[launch B][==B==)
    thread        [end capture: 5_000]
    """
    trace = late().api("cudaStreamEndCapture", 150_000, 155_000)
    return Ledgered(trace, {"cuda_api": 5_000, "uncovered": 165_000, **CALL})


@spares("graph_build")
def an_end_before_any_begin() -> Ledgered:
    """
    device  [==A==)...........................................[launch B][==B==)
    thread        [end capture]   [begin capture]
    """
    trace = late().api("cudaStreamEndCapture", 150_000, 155_000).api("cudaStreamBeginCapture", 205_000, 207_000)
    return Ledgered(trace, {"cuda_api": 7_000, "uncovered": 163_000, **CALL})


@fires("graph_build")
def an_instantiation() -> Ledgered:
    """
    device  [==A==).......................................[launch B][==B==)
    thread          [cudaGraphInstantiate: 50_000]
    """
    trace = late().api("cudaGraphInstantiate", 150_000, 200_000)
    return Ledgered(trace, {"graph_build": 50_000, "uncovered": 120_000, **CALL})


@spares("graph_build")
def asking_whether_a_stream_captures() -> Ledgered:
    """
    device  [==A==).......................................[launch B][==B==)
    thread          [cudaStreamIsCapturing: 50_000]
    """
    trace = late().api("cudaStreamIsCapturing", 150_000, 200_000)
    return Ledgered(trace, {"cuda_api": 50_000, "uncovered": 120_000, **CALL})


@spares("graph_build")
def asking_about_a_capture() -> Ledgered:
    """
    device  [==A==).......................................[launch B][==B==)
    thread          [cudaStreamGetCaptureInfo_v2: 50_000]
    """
    trace = late().api("cudaStreamGetCaptureInfo_v2", 150_000, 200_000)
    return Ledgered(trace, {"cuda_api": 50_000, "uncovered": 120_000, **CALL})


@spares("graph_build")
def a_capture_of_another_thread() -> Ledgered:
    """
    device    [==A==).......................................[launch B][==B==)
    neighbour        [begin capture] ... [end capture]
    """
    trace = late().api("cudaStreamBeginCapture", 150_000, 152_000, thread=NEIGHBOUR)
    trace.api("cudaStreamEndCapture", 205_000, 210_000, thread=NEIGHBOUR)
    return Ledgered(trace, {"uncovered": 170_000, **CALL})


@spares("graph_build")
def a_capture_without_its_end() -> Ledgered:
    """
    device  [==A==)...................................................[launch B][==B==)
    thread        [begin capture: 2_000]
    """
    trace = late().api("cudaStreamBeginCapture", 150_000, 152_000)
    return Ledgered(trace, {"cuda_api": 2_000, "uncovered": 168_000, **CALL})


@fires("cuda_api")
def a_call_inside_a_library_call() -> Ledgered:
    """
    device  [==A==)..............................[launch B][==B==)
    thread          [cublasSgemm: 80_000        ]
                       [cudaEventRecord: 30_000]               what the calls inside leave is the library's
    """
    trace = late().library("cublasSgemm_v2", 120_000, 200_000).api("cudaEventRecord", 130_000, 160_000)
    return Ledgered(
        trace,
        {"cuda_api": 80_000, "uncovered": 90_000, **CALL},
        labels={"cuda_api": {"inside a library call": 50_000}},
    )


@fires("cuda_api")
def any_other_call() -> Ledgered:
    """
    device  [==A==).......................................[launch B][==B==)
    thread          [cudaEventRecord: 30_000]
    """
    trace = late().api("cudaEventRecord", 150_000, 180_000)
    return Ledgered(trace, {"cuda_api": 30_000, "uncovered": 140_000, **CALL}, evidence={"cuda_api": "cudaEventRecord"})


@fires("cuda_api")
def what_a_library_call_leaves() -> Ledgered:
    """
    device  [==A==).......................................[launch B][==B==)
    thread          [cudnnConvolutionForward: 50_000]
    """
    trace = late().library("cudnnConvolutionForward", 150_000, 200_000)
    return Ledgered(
        trace,
        {"cuda_api": 50_000, "uncovered": 120_000, **CALL},
        labels={"cuda_api": {"inside a library call": 50_000}},
        evidence={"cuda_api": "cudnnConvolutionForward"},
    )


@fires("cuda_api")
def an_os_call_inside_it() -> Ledgered:
    """
    device  [==A==).......................................[launch B][==B==)
    thread          [cudaEventRecord: 30_000]
                       [ioctl ]                                       an ioctl inside a CUDA call is that call
    """
    trace = late().api("cudaEventRecord", 150_000, 180_000).osrt("ioctl", 160_000, 170_000)
    return Ledgered(trace, {"cuda_api": 30_000, "uncovered": 140_000, **CALL})


@spares("cuda_api")
def a_call_of_another_thread() -> Ledgered:
    """
    device    [==A==).......................................[launch B][==B==)
    neighbour        [cudaEventRecord: 30_000]
    """
    trace = late().api("cudaEventRecord", 150_000, 180_000, thread=NEIGHBOUR)
    return Ledgered(trace, {"uncovered": 170_000, **CALL})


@spares("cuda_api")
def a_call_beside_the_work() -> Ledgered:
    """
    device  [==========A==========).........................[launch B][==B==)
    thread    [cudaEventRecord]
    """
    trace = late().api("cudaEventRecord", 50_000, 110_000)
    return Ledgered(trace, {"uncovered": 170_000, **CALL})
