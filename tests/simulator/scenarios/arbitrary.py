"""Arbitrary programs: threads that do one thing after another as a seed has it, on two streams of one GPU."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulator.engine import US
from tests.simulator.simulation import Simulation

if TYPE_CHECKING:
    from tests.simulator.actions import Channel, Mutex, Thread
    from tests.simulator.device import Stream
    from tests.simulator.host import Body

Action = Callable[["Thread", random.Random, "Mutex"], "Body"]

_ACTIONS: tuple[Action, ...] = (
    lambda t, chance, mutex: t.compute(chance.randint(100, 900) * US),
    lambda t, chance, mutex: t.read_file(chance.randint(100, 900) * US),
    lambda t, chance, mutex: t.sleep(chance.randint(100, 900) * US),
    lambda t, chance, mutex: t.os_call("mmap", chance.randint(100, 300) * US, "os_memory"),
    lambda t, chance, mutex: t.api("cudaMalloc", chance.randint(50, 400) * US, "memory_allocation", ioctl=30 * US),
    lambda t, chance, mutex: t.api("cudaGetDeviceProperties", chance.randint(50, 400) * US),
    lambda t, chance, mutex: t.blocking_copy("DtoH", 64, 20 * US, staging=chance.randint(50, 300) * US),
    lambda t, chance, mutex: t.synchronize(),
    lambda t, chance, mutex: t.build_graph(chance.randint(3, 9)),
    lambda t, chance, mutex: _locked(t, mutex, chance.randint(200, 900) * US),
)


def arbitrary(seed: int) -> Simulation:
    """Run the program that belongs to a seed."""
    chance = random.Random(seed)
    simulation = Simulation()
    process = simulation.process()
    mutex, turns = simulation.mutex(), (simulation.channel(), simulation.channel())
    streams = [process.stream(), process.stream()]
    turns[0].items = 1
    for number in range(2):
        body = _body(random.Random(chance.random()), streams, mutex, (turns[number], turns[1 - number]))
        simulation.thread(process, body, name=f"thread {number}")
    return simulation.run()


def _body(
    chance: random.Random, streams: list[Stream], mutex: Mutex, turns: tuple[Channel, Channel]
) -> Callable[[Thread], Body]:
    def body(t: Thread) -> Body:
        for _ in range(12):
            yield from t.get(turns[0], "sem_wait")
            for _ in range(chance.randint(1, 4)):
                yield from chance.choice(_ACTIONS)(t, chance, mutex)
            for _ in range(chance.randint(1, 12)):
                yield from t.launch("gemm", chance.randint(20, 200) * US, chance.choice(streams))
            yield from t.put(turns[1], "sem_post")

    return body


def _locked(t: Thread, mutex: Mutex, ns: int) -> Body:
    yield from t.lock(mutex)
    yield from t.compute(ns)
    yield from t.unlock(mutex)
