"""What a workload asks of a GPU: PyTorch's where there is one, else one that is only reckoned with.

The stand-in takes operations in order, each for as long as it was asked to, and logs when each would have run and which
call launched it. Its calls and waits take real time on the calling thread, so that a capture of the program shows a
real host beside a device that has to be put in from the log.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from waitlog import Log, clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from meeting import Meeting, Shared

try:
    import torch
except ImportError:
    torch = None

US, MS = 1_000, 1_000_000
LAUNCH_NS, LATENCY_NS, BETWEEN_NS = 6 * US, 2 * US, 1 * US
TINY_NS = 2 * US
LAST_NS = 200 * US
"""For so long a wait looks at the clock, even one that leaves the CPU to others."""
ALL_REDUCE, COLLECTIVES = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 13
BYTES_PER_NS = {"pageable": 3, "pinned": 12}


class Device(Protocol):
    """Asynchronous unless said otherwise, in the order of the calls."""

    def work(self, ns: int, name: str = "work") -> None:
        """A kernel of about so long."""

    def all_reduce(self, ns: int) -> None:
        """With the other ranks, of about so long: after what was launched so far, beside what is launched next."""

    def tiny(self, name: str = "tiny") -> None:
        """A kernel of a few µs, whose launch takes longer than itself."""

    def graph_of_tiny(self, count: int) -> Callable[[], None]:
        """A graph of tiny kernels; what is returned launches it."""

    def graph(self, count: int, ns: int, name: str) -> Callable[[], None]:
        """A graph of so many kernels of about so long; what is returned launches it."""

    def host_buffer(self, size: int, *, pinned: bool) -> Any:
        """Bytes in the host's memory to copy from."""

    def copy_in(self, buffer: Any) -> None:
        """Copy a host buffer to the device; returns when it is done where the buffer is pageable."""

    def read_back(self) -> float:
        """A number from the device, when everything before is done."""

    def read_later(self) -> Callable[[], None]:
        """Copy a number from the device to pinned memory; what is returned waits for that, and for nothing later."""

    def churn(self, size: int) -> None:
        """Allocate and free so many bytes at the driver."""

    def synchronize(self) -> None:
        """Return when everything is done."""


def open_device(log: Log, meeting: Meeting | None = None, shared: Shared | None = None) -> Device:
    """The GPU of this machine, or the stand-in; of several ranks each has its own, but for one that is shared."""
    if torch is not None and torch.cuda.is_available():
        return TorchDevice(meeting)
    return StandIn(log, meeting, shared)


class StandIn:
    """A stream of a device that is not there, and one for collectives. Times are the log's clock.

    A process that others run beside leaves its CPU to them while it waits for the device.
    """

    def __init__(self, log: Log, meeting: Meeting | None = None, shared: Shared | None = None) -> None:
        self._log = log
        self._meeting, self._shared = meeting, shared
        self._collectives: list[tuple[int, int, int]] = []
        self._free = clock()
        self._calls = itertools.count(1)
        self._memory = np.empty(0, np.uint8)

    def work(self, ns: int, name: str = "work") -> None:
        self._launch(name, ns)

    def tiny(self, name: str = "tiny") -> None:
        self._launch(name, TINY_NS)

    def all_reduce(self, ns: int) -> None:
        if self._meeting is None:
            return
        start = clock()
        spin_until(start + LAUNCH_NS)
        call, end = self._called("cudaLaunchKernelExC", start)
        number = self._meeting.ready(max(self._free, end + LATENCY_NS))
        self._collectives.append((number, call, ns))

    def graph_of_tiny(self, count: int) -> Callable[[], None]:
        return self.graph(count, TINY_NS, "tiny")

    def graph(self, count: int, ns: int, name: str) -> Callable[[], None]:
        return lambda: self._launch(name, ns, api="cudaGraphLaunch", nodes=count)

    def host_buffer(self, size: int, *, pinned: bool) -> tuple[str, int]:
        return "pinned" if pinned else "pageable", size

    def copy_in(self, buffer: tuple[str, int]) -> None:
        host, size = buffer
        self._copy("HtoD", host, size, size // BYTES_PER_NS[host], waits=host == "pageable")

    def read_back(self) -> float:
        self._copy("DtoH", "pageable", 4, US, waits=True)
        return 0.0

    def read_later(self) -> Callable[[], None]:
        self._copy("DtoH", "pinned", 4, US, waits=False)
        done = self._free

        def wait() -> None:
            start = clock()
            spin_until(done)
            self._called("cudaEventSynchronize", start)

        return wait

    def churn(self, size: int) -> None:
        start = clock()
        self._memory = np.ones(size, np.uint8)
        self._called("cudaMalloc", start)
        start = clock()
        self._memory = np.empty(0, np.uint8)
        self._called("cudaFree", start)

    def synchronize(self) -> None:
        start = clock()
        self._join()
        self._wait()
        self._called("cudaDeviceSynchronize", start)

    def _launch(self, name: str, ns: int, api: str = "cudaLaunchKernel", nodes: int = 0) -> None:
        start = clock()
        spin_until(start + LAUNCH_NS)
        call, end = self._called(api, start)
        whole = nodes * (ns + BETWEEN_NS) - BETWEEN_NS if nodes else ns
        begin = self._reserve(whole, end)
        graph = {"nodes": nodes, "between": BETWEEN_NS} if nodes else {}
        self._operation("kernel", begin, whole, call, name=name, **graph)

    def _copy(self, kind: str, host: str, size: int, ns: int, *, waits: bool) -> None:
        start = clock()
        spin_until(start + LAUNCH_NS)
        if waits:
            self._join()
        begin = self._reserve(ns, clock())
        if waits:
            self._wait()
        call, _ = self._called("cudaMemcpyAsync", start)
        self._operation(kind, begin, ns, call, host=host, bytes=size)

    def _join(self) -> None:
        """What is launched next comes after all collectives so far, whose times every rank must know for that."""
        for number, call, ns in self._collectives:
            start, end = self._meeting.span(number, ns)
            self._operation("kernel", start, end - start, call, name=ALL_REDUCE, stream=COLLECTIVES)
            self._free = max(self._free, end)
        self._collectives = []

    def _wait(self) -> None:
        """Return when the device has done everything."""
        if self._meeting or self._shared:
            time.sleep(max(0, self._free - LAST_NS - clock()) / 1e9)
        spin_until(self._free)

    def _operation(self, kind: str, start: int, ns: int, call: int, **values: object) -> None:
        place = {} if self._meeting is None else {"device": self._meeting.rank}
        self._log.add("operation", kind=kind, start=start, end=start + ns, call=call, **place, **values)

    def _reserve(self, ns: int, now: int) -> int:
        """When an operation that is launched now begins."""
        start = max(now + LATENCY_NS, self._free + BETWEEN_NS)
        if self._shared is not None:
            start = self._shared.reserve(start, ns)
        self._free = start + ns
        return start

    def _called(self, api: str, start: int) -> tuple[int, int]:
        """The number of a call that ends now, and the time."""
        number, end = next(self._calls), clock()
        self._log.add("call", call=number, api=api, start=start, end=end)
        return number, end


def spin_until(end: int) -> None:
    """Look at the clock until it is so late."""
    while clock() < end:
        pass


class TorchDevice:
    """PyTorch on the first GPU, or on that of a rank."""

    SIDE = 1_024
    """Of the square matrices whose product is the unit of work: well under 1 ms on any GPU of today."""
    GRADIENTS = 1 << 22

    def __init__(self, meeting: Meeting | None = None) -> None:
        self._meeting = meeting
        if meeting is not None:
            torch.cuda.set_device(meeting.rank)
            meeting.join_torch()
        self._left = torch.randn(self.SIDE, self.SIDE, device="cuda")
        self._right = torch.randn(self.SIDE, self.SIDE, device="cuda")
        self._out = torch.empty_like(self._left)
        self._small = torch.zeros(32, device="cuda")
        self._gradients = torch.zeros(self.GRADIENTS, device="cuda")
        self._reducing: list[Any] = []
        self._targets: dict[int, Any] = {}
        self._unit_ns = self._measured()

    def work(self, ns: int, name: str = "work") -> None:
        for _ in range(max(1, round(ns / self._unit_ns))):
            torch.mm(self._left, self._right, out=self._out)

    def tiny(self, name: str = "tiny") -> None:
        self._small.add_(1)

    def all_reduce(self, ns: int) -> None:
        if self._meeting is not None and self._meeting.count > 1:
            self._reducing.append(torch.distributed.all_reduce(self._gradients, async_op=True))

    def graph_of_tiny(self, count: int) -> Callable[[], None]:
        return self._captured(count, self.tiny)

    def graph(self, count: int, ns: int, name: str) -> Callable[[], None]:
        return self._captured(count, lambda: self.work(ns, name))

    @staticmethod
    def _captured(count: int, body: Callable[[], None]) -> Callable[[], None]:
        body()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                body()
        replay: Callable[[], None] = graph.replay
        return replay

    def host_buffer(self, size: int, *, pinned: bool) -> Any:
        return torch.ones(size, dtype=torch.uint8, pin_memory=pinned)

    def copy_in(self, buffer: Any) -> None:
        size = len(buffer)
        if size not in self._targets:
            self._targets[size] = torch.empty(size, dtype=torch.uint8, device="cuda")
        self._targets[size].copy_(buffer, non_blocking=buffer.is_pinned())

    def read_back(self) -> float:
        for each in self._reducing:
            each.wait()
        self._reducing = []
        return float(self._small[0].item())

    def read_later(self) -> Callable[[], None]:
        host, event = torch.empty(32, pin_memory=True), torch.cuda.Event()
        host.copy_(self._small, non_blocking=True)
        event.record()
        wait: Callable[[], None] = event.synchronize
        return wait

    def churn(self, size: int) -> None:
        memory = torch.empty(size, dtype=torch.uint8, device="cuda")
        del memory
        torch.cuda.empty_cache()

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def _measured(self) -> float:
        """How long the unit of work takes, in ns, once the clocks are up."""
        count = 20
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for _ in range(count):
            torch.mm(self._left, self._right, out=self._out)
        begin.record()
        for _ in range(count):
            torch.mm(self._left, self._right, out=self._out)
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) * MS / count
