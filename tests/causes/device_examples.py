"""After the launch: waits for events, the default stream, other processes, and what remains."""

from __future__ import annotations

from tests.builder import MAIN, SAVE_END, TraceBuilder
from tests.causes.example import NEIGHBOUR, STRANGER, Ledgered, fires, first, issued, late, spares

EVENT = 3
NO_EVENT = 0xFFFFFFFF


def record(trace: TraceBuilder, at: int, *, stream: int = 7, event: int = EVENT, event_sync: int = NO_EVENT) -> None:
    """cudaEventRecord on a stream, 100 ns."""
    correlation = trace.correlation(MAIN[0])
    trace.api("cudaEventRecord", at, at + 100, correlation=correlation)
    trace.event_row(correlation=correlation, event=event, stream=stream, event_sync=event_sync)


def wait(
    trace: TraceBuilder,
    at: int,
    *,
    stream: int = 9,
    event: int = EVENT,
    event_sync: int = NO_EVENT,
    api: str = "cudaStreamWaitEvent",
    kind: str = "wait",
    context: int = 1,
) -> None:
    """cudaStreamWaitEvent on a stream, 100 ns."""
    correlation = trace.correlation(MAIN[0])
    trace.api(api, at, at + 100, correlation=correlation)
    trace.sync_row(
        at,
        at + 100,
        correlation=correlation,
        stream=stream,
        event=event,
        event_sync=event_sync,
        kind=kind,
        context=context,
    )


def waiting(*, api: str = "cudaStreamWaitEvent", kind: str = "wait", context: int = 1) -> TraceBuilder:
    """
    device, stream 7  [==A==)
    device, stream 9         ....40_000....[==B==)
    thread         [A][record 7][wait 9][B]
    """
    trace = first()
    record(trace, 5_500)
    wait(trace, 6_000, api=api, kind=kind, context=context)
    return trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9)


WAITED = {"stream_wait": 40_000}
STALLED = {"device_stall": 40_000}


@fires("stream_wait")
def for_a_kernel() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9         ....40_000....[==B==)
    thread         [A][record 7][wait 9][B]
    """
    return Ledgered(waiting(), WAITED, labels={"stream_wait": {"waits for compute": 40_000}})


@fires("stream_wait")
def told_by_the_name_of_the_call() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9         ....40_000....[==B==)
    thread         [A][record 7][wait 9][B]         some versions call its type a stream synchronization
    """
    return Ledgered(waiting(kind="stream"), WAITED)


@fires("stream_wait")
def by_the_driver_call() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9         ....40_000....[==B==)
    thread         [A][record 7][cuStreamWaitEvent_ptsz 9][B]
    """
    return Ledgered(waiting(api="cuStreamWaitEvent_ptsz"), WAITED)


@fires("stream_wait")
def launched_late_but_held_back_by_the_event() -> Ledgered:
    """
    device, stream 8  [=====A=====)10_000[....70_000....)
    device, stream 9                                     [==B==)
    thread         [A][record][wait]  [launch B: 10_000]         the event's part begins where the call ends
    """
    trace = TraceBuilder().kernel(10_000, 110_000, launch=(1_000, 5_000), stream=8)
    record(trace, 5_500, stream=8)
    wait(trace, 6_000)
    trace.kernel(200_000, 250_000, launch=(100_000, 130_000), stream=9)
    return Ledgered(trace, {"launch_call": 20_000, "stream_wait": 70_000})


@fires("stream_wait")
def for_a_copy() -> Ledgered:
    """
    device, stream 7  [=copy=)
    device, stream 9          ....40_000....[==B==)
    thread      [copy][record 7][wait 9][B]
    """
    trace = TraceBuilder().memcpy(10_000, 110_000, launch=(1_000, 5_000))
    record(trace, 5_500)
    wait(trace, 6_000)
    trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9)
    return Ledgered(trace, WAITED, labels={"stream_wait": {"waits for a copy": 40_000}})


@fires("stream_wait")
def for_communication() -> Ledgered:
    """
    device, stream 7  [=ncclDevKernel_AllReduce=)
    device, stream 9                             ....40_000....[==B==)
    thread         [nccl][record 7][wait 9][B]
    """
    trace = TraceBuilder().kernel(10_000, 110_000, launch=(1_000, 5_000), name="ncclDevKernel_AllReduce")
    record(trace, 5_500)
    wait(trace, 6_000)
    trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9)
    return Ledgered(trace, WAITED, labels={"stream_wait": {"waits for communication": 40_000}})


@fires("stream_wait")
def for_another_device() -> Ledgered:
    """
    device 1, stream 14  [======producer======)
    device 0, stream 7   [==A==)
    device 0, stream 9          ....40_000....[==B==)
    thread         [A][producer][record 14][wait 9][B]
    """
    trace = first().kernel(10_000, 150_000, launch=(5_100, 5_300), device=1, stream=14)
    record(trace, 5_500, stream=14)
    wait(trace, 6_000)
    trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9)
    return Ledgered(trace, WAITED, labels={"stream_wait": {"waits for another device": 40_000}}, key="gpu0")


@fires("stream_wait")
def for_an_event_that_nobody_saw_recorded() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9         ....40_000....[==B==)
    thread         [A]          [wait 9][B]            the producer is unknown
    """
    trace = first()
    wait(trace, 6_000)
    trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9)
    return Ledgered(trace, WAITED, labels={"stream_wait": {"producer unknown": 40_000}})


@spares("stream_wait")
def for_an_unseen_event_with_nothing_to_wait_for() -> Ledgered:
    """
    device, stream 9  [==A==)....40_000....[==B==)
    thread         [A]        [wait 9][B]            A is of the same stream: the wait was for something else
    """
    trace = TraceBuilder().kernel(10_000, 110_000, launch=(1_000, 5_000), stream=9)
    wait(trace, 6_000)
    trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9)
    return Ledgered(trace, STALLED, labels={"device_stall": {"waits for an event": 40_000}})


@spares("stream_wait")
def for_an_unseen_event_while_the_launch_is_on_its_way() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9         ..20_000..[==B==)
    thread         [A][wait 9][B: to 110_000]          A may have been waited for, but the launch is as near
    """
    trace = first()
    wait(trace, 6_000)
    trace.kernel(130_000, 250_000, launch=(100_000, 110_000), stream=9)
    return Ledgered(trace, {"launch_latency": 20_000})


@spares("stream_wait")
def for_an_unseen_event_after_what_was_done() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9         ....40_000....[==B==)
    thread         [A]        [wait 9][B: 115_000]     A had ended when B was launched
    """
    trace = first()
    wait(trace, 6_000)
    trace.kernel(150_000, 250_000, launch=(115_000, 116_000), stream=9)
    return Ledgered(trace, {"uncovered": 5_000, "launch_call": 1_000, "launch_latency": 20_000, "device_stall": 14_000})


@fires("stream_wait")
def with_an_event_id_that_means_none() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9         ....40_000....[==B==)
    thread [record: none][A][wait 9: none][B]          4294967295 is no id: it does not match the record
    """
    trace = TraceBuilder()
    record(trace, 500, event=NO_EVENT)
    trace.kernel(10_000, 110_000, launch=(1_000, 5_000))
    wait(trace, 6_000, event=NO_EVENT)
    trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9)
    return Ledgered(trace, WAITED, labels={"stream_wait": {"producer unknown": 40_000}})


@spares("stream_wait")
def with_an_event_numbered_zero() -> Ledgered:
    """
    device, stream 8  [producer)                         ends 51 µs before the gap
    device, stream 7     [==A==)
    device, stream 9            ....40_000....[==B==)
    thread   [record 0 on 8][A][wait 9: 0][B]            the first event of a process: its record is known
    """
    trace = TraceBuilder().kernel(5_000, 58_000, launch=(200, 300), stream=8)
    record(trace, 400, stream=8, event=0)
    trace.kernel(10_000, 110_000, launch=(1_000, 5_000))
    wait(trace, 6_000, event=0)
    trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9)
    return Ledgered(trace, {"device_stall": 40_000})


def producer_ending(end: int) -> TraceBuilder:
    """
    device, stream 8  [producer)            ends at `end`
    device, stream 7  [==A==)               ends at 110_000
    device, stream 9         ....40_000....[==B==)
    thread  [producer][record 8][A][wait 9][B: 6_500]
    """
    trace = TraceBuilder().kernel(5_000, end, launch=(200, 300), stream=8)
    record(trace, 400, stream=8)
    trace.kernel(10_000, 110_000, launch=(1_000, 5_000))
    wait(trace, 6_000)
    return trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9)


@fires("stream_wait")
def whose_producer_ended_50_us_before() -> Ledgered:
    """
    device, stream 8  [producer)|- 50_000 -|
    device, stream 7  [==A=================)
    device, stream 9                        ....40_000....[==B==)
    """
    return Ledgered(producer_ending(60_000), WAITED)


@spares("stream_wait")
def whose_producer_ended_longer_before() -> Ledgered:
    """
    device, stream 8  [producer)|- 50_001 -|
    device, stream 7  [==A=================)
    device, stream 9                        ....40_000....[==B==)
    """
    return Ledgered(producer_ending(59_999), STALLED)


@spares("stream_wait")
def whose_producer_ended_60_us_before() -> Ledgered:
    """
    device, stream 8  [producer)|- 60_000 -|
    device, stream 7  [==A=================)
    device, stream 9                        ....40_000....[==B==)
    """
    return Ledgered(producer_ending(50_000), STALLED)


@spares("stream_wait")
def whose_producer_ended_before_the_launch() -> Ledgered:
    """
    device, stream 8  [producer)
    device, stream 7       [==A==)20_000|....
    device, stream 9                           [==B==)
    thread  [record 8][wait 9]      [B]                 the event was there when B was launched, at 100_000
    """
    trace = TraceBuilder().kernel(10_000, 100_000, launch=(200, 300), stream=8)
    record(trace, 400, stream=8)
    trace.kernel(10_000, 110_000, launch=(1_000, 5_000))
    wait(trace, 6_000)
    trace.kernel(150_000, 250_000, launch=(100_000, 101_000), stream=9)
    return Ledgered(trace, {"launch_latency": 11_000, "device_stall": 29_000})


@spares("stream_wait")
def for_an_event_with_nothing_before_it() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9         ....40_000....[==B==)
    thread         [A][record 8][wait 9][B]            stream 8 was empty: the event was there at once
    """
    trace = first()
    record(trace, 5_500, stream=8)
    wait(trace, 6_000)
    return Ledgered(trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9), STALLED)


@spares("stream_wait")
def issued_before_the_stream_s_last_operation() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9  [C)    ....40_000....[==B==)
    thread         [A][record 7][wait 9][C][B]         the wait was C's
    """
    trace = first()
    record(trace, 5_500)
    wait(trace, 5_700)
    trace.kernel(109_000, 110_000, launch=(5_900, 6_000), stream=9)
    return Ledgered(trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9), STALLED)


@spares("stream_wait")
def issued_after_the_launch() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9         ....40_000....[==B==)
    thread         [A][record 7][B][wait 9]
    """
    trace = first()
    record(trace, 5_500)
    trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9)
    wait(trace, 9_500)
    return Ledgered(trace, STALLED)


@spares("stream_wait")
def of_another_stream() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9         ....40_000....[==B==)
    thread         [A][record 7][wait 10][B]
    """
    trace = first()
    record(trace, 5_500)
    wait(trace, 6_000, stream=10)
    return Ledgered(trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9), STALLED)


@spares("stream_wait")
def of_the_same_stream_number_in_another_context() -> Ledgered:
    """
    device, context 1, stream 7  [==A==)
    device, context 1, stream 9         ....40_000....[==B==)
    thread         [A][record 7][wait on stream 9 of context 2][B]
    """
    return Ledgered(waiting(context=2), STALLED)


@spares("stream_wait")
def a_row_of_another_call() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9         ....40_000....[==B==)
    thread         [A][record 7][cudaStreamSynchronize][B]      its type says wait, its name does not
    """
    return Ledgered(waiting(api="cudaStreamSynchronize"), STALLED)


def recorded_twice(event_sync: int) -> TraceBuilder:
    """
    device, stream 7  [==A==)
    device, stream 8  [C)                              ends at 20_000
    device, stream 9         ....40_000....[==B==)
    thread  [A][record 7, 71][C][record 8, 72][wait 9, `event_sync`][B]
    """
    trace = first("3.24.8").kernel(10_000, 20_000, launch=(5_600, 5_700), stream=8)
    record(trace, 5_500, stream=7, event_sync=71)
    record(trace, 5_800, stream=8, event_sync=72)
    wait(trace, 6_000, event_sync=event_sync)
    return trace.kernel(150_000, 250_000, launch=(6_500, 9_000), stream=9)


@fires("stream_wait")
def for_the_record_that_eventsyncid_names() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 8  [C)
    device, stream 9         ....40_000....[==B==)
    thread  [A][record 7, 71][C][record 8, 72][wait 9, 71][B]
    """
    return Ledgered(recorded_twice(71), WAITED)


@spares("stream_wait")
def for_the_later_record_of_the_event() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 8  [C)                              ended 90_000 before the gap
    device, stream 9         ....40_000....[==B==)
    thread  [A][record 7, 71][C][record 8, 72][wait 9, 72][B]
    """
    return Ledgered(recorded_twice(72), STALLED)


@fires("host_function")
def behind_a_host_function() -> Ledgered:
    """
    device, stream 7  [==A==)(function         )[==B==)
    thread            [A][B]
    """
    trace = issued(schema="3.28.1").host_function(110_500, 149_000)
    return Ledgered(trace, {"host_function": 40_000})


@spares("host_function")
def beside_a_host_function_of_another_stream() -> Ledgered:
    """
    device, stream 7  [==A==)....40_000....[==B==)
    device, stream 9        (function     )
    """
    trace = issued(schema="3.28.1").host_function(110_500, 149_000, stream=9)
    return Ledgered(trace, STALLED)


@spares("host_function")
def long_after_a_host_function() -> Ledgered:
    """
    device, stream 7  [==A==)(function)....100_000....[==B==)
    """
    trace = first(schema="3.28.1").host_function(110_500, 120_000)
    return Ledgered(trace.kernel(220_000, 250_000, launch=(5_500, 9_000)), {"device_stall": 110_000})


@fires("stream_barrier")
def after_the_default_stream() -> Ledgered:
    """
    device, stream 7, the default one  [==A==)
    device, stream 9                          ....40_000....[==B==)
    """
    return Ledgered(issued(stream=9).null_stream(7).stream_info(9, 1), {"stream_barrier": 40_000})


@fires("stream_barrier")
def before_the_default_stream() -> Ledgered:
    """
    device, stream 7                   [==A==)
    device, stream 9, the default one         ....40_000....[==B==)
    """
    return Ledgered(issued(stream=9).stream_info(9, 3), {"stream_barrier": 40_000})


@fires("stream_barrier")
def in_an_old_export() -> Ledgered:
    """
    device, stream 7, the default one  [==A==)
    device, stream 9                          ....40_000....[==B==)
    """
    return Ledgered(issued(schema="2.9.1", stream=9).null_stream(7), {"stream_barrier": 40_000})


@spares("stream_barrier")
def beside_a_non_blocking_stream() -> Ledgered:
    """
    device, stream 7, the default one  [==A==)
    device, stream 9, non-blocking            ....40_000....[==B==)
    """
    return Ledgered(issued(stream=9).null_stream(7).stream_info(9, 2), STALLED)


@spares("stream_barrier")
def on_the_default_stream_itself() -> Ledgered:
    """
    device, stream 7, the default one  [==A==)....40_000....[==B==)
    """
    return Ledgered(issued().null_stream(7), STALLED)


@spares("stream_barrier")
def between_two_other_streams() -> Ledgered:
    """
    device, stream 7  [==A==)
    device, stream 9         ....40_000....[==B==)            the default stream is 5
    """
    return Ledgered(issued(stream=9).null_stream(5), STALLED)


@spares("stream_barrier")
def the_default_stream_of_another_context() -> Ledgered:
    """
    device, context 1, stream 7  [==A==)
    device, context 1, stream 9         ....40_000....[==B==)     stream 7 is the default one of context 2
    """
    return Ledgered(issued(stream=9).null_stream(7, context=2), STALLED)


@spares("stream_barrier")
def the_default_stream_of_another_process() -> Ledgered:
    """
    device, stream 7, the default one  [==A==)
    device, stream 9                          ....40_000....[==B==)     of another process; both call their context 1
    """
    trace = first("3.17.2").cuda_device(0, 0).cuda_device(0, 0, pid=STRANGER[0]).null_stream(7)
    trace.kernel(150_000, 250_000, launch=(6_000, 9_000), stream=9, thread=STRANGER)
    return Ledgered(trace, STALLED)


@spares("stream_barrier")
def before_an_unknown_stream() -> Ledgered:
    """
    device, stream 7, the default one  [==A==)
    device, who knows which                   ....40_000....[==B==)
    """
    return Ledgered(issued(stream=-1).null_stream(7), STALLED)


@spares("stream_barrier")
def after_an_unknown_stream() -> Ledgered:
    """
    device, who knows which            [==A==)
    device, stream 9, the default one         ....40_000....[==B==)
    """
    trace = TraceBuilder().kernel(10_000, 110_000, launch=(1_000, 5_000), stream=-1).null_stream(9)
    return Ledgered(trace.kernel(150_000, 250_000, launch=(6_000, 9_000), stream=9), STALLED)


@fires("stream_barrier")
def the_default_stream_is_number_0() -> Ledgered:
    """
    device, stream 9                   [==A==)
    device, stream 0, the default one         ....40_000....[==B==)
    """
    trace = TraceBuilder().kernel(10_000, 110_000, launch=(1_000, 5_000), stream=9).null_stream(0)
    return Ledgered(trace.kernel(150_000, 250_000, launch=(6_000, 9_000), stream=0), {"stream_barrier": 40_000})


@fires("stream_barrier")
def after_the_default_stream_of_number_0() -> Ledgered:
    """
    device, stream 0, the default one  [==A==)
    device, stream 9                          ....40_000....[==B==)
    """
    trace = TraceBuilder().kernel(10_000, 110_000, launch=(1_000, 5_000), stream=0).null_stream(0)
    return Ledgered(trace.kernel(150_000, 250_000, launch=(6_000, 9_000), stream=9), {"stream_barrier": 40_000})


@spares("stream_barrier")
def after_a_non_blocking_stream() -> Ledgered:
    """
    device, stream 7, non-blocking     [==A==)
    device, stream 9, the default one         ....40_000....[==B==)
    """
    return Ledgered(issued(stream=9).stream_info(7, 2).null_stream(9), STALLED)


@spares("stream_barrier")
def an_event_explains_it_first() -> Ledgered:
    """
    device, stream 7, the default one  [==A==)
    device, stream 9                          ....40_000....[==B==)
    thread         [A][record 7][wait 9][B]
    """
    return Ledgered(waiting().null_stream(7), WAITED)


def shared_gpu(trace: TraceBuilder, *, pid: int = STRANGER[0], gpu: int = 0) -> Ledgered:
    """
    device     [==A==)....40_000....[==B==)
    time slice         10_000[20_000)
    """
    trace.context_switch(120_000, pid=pid, gpu=gpu, context=77).context_switch(140_000, SAVE_END, pid=pid, gpu=gpu)
    return Ledgered(trace, {"gpu_context_switch": 20_000, "device_stall": 20_000})


@fires("gpu_context_switch")
def the_slice_of_another_process() -> Ledgered:
    """
    device           [==A==)....40_000....[==B==)
    another process          10_000[20_000)              the rest stalls
    """
    return shared_gpu(issued())


@fires("gpu_context_switch")
def in_an_older_table() -> Ledgered:
    """
    device           [==A==)....40_000....[==B==)
    another process          10_000[20_000)              FECS_EVENTS
    """
    return shared_gpu(issued(schema="2.9.1"))


@spares("gpu_context_switch")
def the_slice_of_its_own_process() -> Ledgered:
    """
    device            [==A==)....40_000....[==B==)
    the same process          10_000[20_000)             its contextId is not CUDA's
    """
    return Ledgered(shared_gpu(issued(), pid=MAIN[0]).trace, STALLED)


@spares("gpu_context_switch")
def a_slice_on_another_gpu() -> Ledgered:
    """
    device 0                  [==A==)....40_000....[==B==)
    another process on GPU 1          10_000[20_000)
    """
    trace = issued(schema="3.17.2").cuda_device(gpu=0, ordinal=0)
    return Ledgered(shared_gpu(trace, gpu=1).trace, STALLED)


@spares("gpu_context_switch")
def a_slice_while_the_host_was_late() -> Ledgered:
    """
    device           [==A==)........170_000.........[launch B][==B==)
    another process          10_000[20_000)              nothing was waiting for the device
    """
    trace = shared_gpu(late()).trace
    return Ledgered(trace, {"uncovered": 170_000, "launch_call": 10_000, "launch_latency": 10_000})


@fires("device_stall")
def for_no_reason_in_the_trace() -> Ledgered:
    """
    device  [==A==)....40_000....[==B==)
    thread [A][B]
    """
    return Ledgered(issued(), STALLED)


@fires("device_stall")
def between_queued_copies() -> Ledgered:
    """
    device  [copy)....30_000....[copy)
    thread [copy][copy]
    """
    trace = TraceBuilder().memcpy(10_000, 110_000, launch=(1_000, 5_000))
    trace.memcpy(140_000, 150_000, launch=(6_000, 9_000))
    return Ledgered(trace, {"device_stall": 30_000}, labels={"device_stall": {"between queued copies": 30_000}})


@fires("device_stall")
def only_copies_on_both_sides_are_copies() -> Ledgered:
    """
    device  [copy)....30_000....[copy)....30_000....[==B==)....30_000....[copy)
    thread [copy][copy][B][copy]
    """
    trace = TraceBuilder().memcpy(10_000, 110_000, launch=(1_000, 2_000))
    trace.memcpy(140_000, 150_000, launch=(3_000, 4_000)).kernel(180_000, 190_000, launch=(5_000, 6_000))
    trace.memcpy(220_000, 230_000, launch=(7_000, 8_000))
    return Ledgered(trace, {"device_stall": 90_000}, labels={"device_stall": {"between queued copies": 30_000}})


@fires("device_stall")
def launched_by_another_thread() -> Ledgered:
    """
    device    [==A==)....40_000....[==B==)
    thread   [A]
    neighbour   [B]                            the thread that launches is found anew for each operation
    """
    trace = first().kernel(150_000, 250_000, launch=(6_000, 9_000), thread=NEIGHBOUR)
    return Ledgered(trace, STALLED)


@spares("device_stall")
def launched_in_time_for_latency_alone() -> Ledgered:
    """
    device  [==A==).20_000.[==B==)
    thread     [launch B]                      returned as the gap opened
    """
    trace = first().kernel(130_000, 200_000, launch=(100_000, 110_000))
    return Ledgered(trace, {"launch_latency": 20_000})
