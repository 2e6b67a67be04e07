"""The stacks of a device with 40 ms of idle time and 30 ms of waits."""

from __future__ import annotations

from nsysdiag.ranges.facts import FlameGraph, FlameStack

MS = 1_000_000


def flame_graph(step: str = "train", call: str = "cudaStreamSynchronize", function: str = "load") -> FlameGraph:
    """
    sync          18 ms   in a step, in a call; 10 of them in a function
    host_compute   9 ms   in a function
    lock_wait      5 ms
    """
    idle = [
        FlameStack(["Waiting in a synchronisation", step, call, "main", function], 10 * MS, "sync"),
        FlameStack(["Host code", step, "main", function], 9 * MS, "host_compute"),
        FlameStack(["Waiting in a synchronisation", step, call], 8 * MS, "sync"),
        FlameStack(["Waiting for a lock"], 5 * MS, "lock_wait"),
        FlameStack(["Launch call"], 4 * MS, "launch_call"),
        FlameStack(["Unexplained"], 4 * MS, "uncovered"),
    ]
    return FlameGraph(idle=idle, waits=[FlameStack(["gemm; a<b>", step, call], 30 * MS)])
