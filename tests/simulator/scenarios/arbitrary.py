"""Arbitrary programs: two threads in turn, doing one thing after another as a seed has it, on streams of two GPUs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulator.actions import Node
from tests.simulator.engine import US
from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from tests.simulator.actions import Channel, Mutex, Thread
    from tests.simulator.device import Stream
    from tests.simulator.host import Body


class Program:
    """What a seed makes of two threads that share a mutex, streams and a core or not."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.simulation = Simulation(gpus=2)
        self.process = self.simulation.process()
        self.mutex: Mutex = self.simulation.mutex()
        self.streams = [self.process.stream(device) for device in (0, 0, 1)]
        self.turns = (self.simulation.channel(), self.simulation.channel())
        self.turns[0].items = 1
        self.nodes = [Node("first", 30 * US), Node("second", 50 * US), Node("third", 20 * US, 25 * US)]

    def run(self) -> Simulation:
        first = self.simulation.thread(self.process, self._body(*self.turns), name="first")
        share = first if self.chance.random() < 0.3 else None
        self.simulation.thread(self.process, self._body(*reversed(self.turns)), name="second", share=share)
        return self.simulation.run()

    def _body(self, mine: Channel, other: Channel) -> Callable[[Thread], Body]:
        def body(t: Thread) -> Body:
            yield from t.api("cudaSetDevice", 2 * US)
            for _ in range(12):
                yield from t.get(mine, "sem_wait")
                for _ in range(self.chance.randint(1, 4)):
                    yield from self._host_action(t)
                for _ in range(self.chance.randint(1, 12)):
                    yield from self._device_action(t)
                yield from t.put(other, "sem_post")

        return body

    def _host_action(self, t: Thread) -> Body:
        ns = self.chance.randint(100, 900) * US
        actions: list[Callable[[], Body]] = [
            lambda: t.compute(ns),
            lambda: t.compute(ns * 10),
            lambda: t.read_file(ns),
            lambda: t.sleep(ns),
            lambda: t.os_call("mmap", ns, "os_memory"),
            lambda: t.api("cudaMalloc", ns, "memory_allocation", ioctl=30 * US),
            lambda: t.api("cudaGetDeviceProperties", ns),
            lambda: t.blocking_copy("DtoH", 64, 20 * US, self._stream(), staging=ns),
            lambda: t.synchronize(self._stream()),
            lambda: t.synchronize(self._stream(), blocking=True),
            lambda: t.build_graph(4, instantiate=ns),
            lambda: self._spin(t, self._stream()),
            lambda: self._locked(t, ns),
        ]
        return self.chance.choice(actions)()

    def _device_action(self, t: Thread) -> Body:
        ns, stream = self.chance.randint(20, 200) * US, self._stream()
        actions: list[Callable[[], Body]] = [
            lambda: t.launch("gemm", ns, stream),
            lambda: t.launch("tiny", 3 * US, stream, twin=True),
            lambda: t.launch("gemm", ns, stream, enqueue=0.3, call=25 * US),
            lambda: t.copy("HtoD", 1 << 20, ns, stream),
            lambda: t.fill(1 << 20, 8 * US, stream),
            lambda: t.library("cublasGemmEx", 20 * US, [t.launch("gemm", ns, stream)], 3 * US),
            lambda: t.launch_graph(self.nodes, stream),
            lambda: self._depend(t, stream, self._stream()),
        ]
        return self.chance.choices(actions, weights=[8, 4, 2, 2, 2, 2, 1, 2])[0]()

    def _stream(self) -> Stream:
        return self.chance.choice(self.streams)

    def _locked(self, t: Thread, ns: int) -> Body:
        yield from t.lock(self.mutex)
        yield from t.compute(ns)
        yield from t.unlock(self.mutex)

    def _spin(self, t: Thread, stream: Stream) -> Body:
        event = t.event()
        yield from t.record(event, stream)
        yield from t.spin_on(event)

    def _depend(self, t: Thread, before: Stream, after: Stream) -> Body:
        event = t.event()
        yield from t.record(event, before)
        yield from t.wait_event(after, event)
        yield from t.launch("dependent", 60 * US, after)


def arbitrary(seed: int) -> Simulation:
    """Run the program that belongs to a seed."""
    return Program(seed).run()
