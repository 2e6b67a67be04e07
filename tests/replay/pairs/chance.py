"""Programs made by chance, and repairs of them: no shape of a program that somebody thought of."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import US, Marks, solver
from tests.replay.pairs.pair import STEPS, Pair, faster, loop, varied, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import Stream
from tests.simulator.host import Body

SIZE = 1 << 20
KERNELS = ("assemble", "border", "solve")
KINDS = {
    "kernel": 6,
    "host": 3,
    "synchronize the device": 1,
    "synchronize a stream": 2,
    "sleep": 1,
    "read": 1,
    "copy": 1,
    "blocking copy": 1,
    "event": 2,
}
"""What a program may do, and how often one is among others."""
REPAIRS: dict[str, Sequence[Transform]] = {
    "kernel": (faster("kernel", "solve", 0.5),),
    "synchronize": without("sync"),
    "sleep": without("sleep"),
    "read": without("io_wait"),
    "blocking copy": (Transform("async-copies"),),
}
"""By the first words of what is repaired."""


class Action(NamedTuple):
    """A part of a step, about `ns` long, in stream `stream`; an event of this stream is awaited by stream `other`."""

    kind: str
    ns: int
    stream: int
    other: int
    name: str


def actions(seed: int) -> list[Action]:
    """Those of a step, in order, with at least one kernel of each name."""
    chance = random.Random(seed)
    streams = chance.randint(1, 3)
    kinds = chance.choices(list(KINDS), list(KINDS.values()), k=chance.randint(2, 7)) + ["kernel"] * len(KERNELS)
    chance.shuffle(kinds)
    kernels = iter([*KERNELS, *chance.choices(KERNELS, k=len(kinds))])
    return [
        Action(
            kind,
            round(chance.lognormvariate(0, 1) * 100) * US + 5 * US,
            chance.randrange(streams),
            chance.randrange(streams),
            next(kernels) if kind == "kernel" else kind,
        )
        for kind in kinds
    ]


def program(sim: Simulation, marks: Marks, *, actions: Sequence[Action]) -> None:
    """A thread that does these in each of its steps. Between steps streams wait for each other: one that runs further
    and further ahead of another has no steps in common with it."""
    process = solver(sim)
    streams = [process.stream() for _ in range(1 + max(max(each.stream, each.other) for each in actions))]

    def step(t: Thread, number: int) -> Body:
        for place, each in enumerate(actions):
            yield from _act(t, each, varied(each.ns, place, number), streams)
        for stream in streams[1:]:
            yield from _behind(t, streams[0], stream)
        for stream in streams[1:]:
            yield from _behind(t, stream, streams[0])

    loop(sim, marks, step, process=process)


def _act(t: Thread, action: Action, ns: int, streams: Sequence[Stream]) -> Body:
    stream = streams[action.stream]
    if action.kind == "kernel":
        yield from t.launch(action.name, ns, stream)
    elif action.kind == "host":
        yield from t.compute(ns, "update")
    elif action.kind == "sleep":
        yield from t.sleep(ns)
    elif action.kind == "read":
        yield from t.read_file(ns)
    elif action.kind == "copy":
        yield from t.copy("HtoD", SIZE, ns, stream)
    elif action.kind == "blocking copy":
        yield from t.blocking_copy("DtoH", SIZE, ns, stream, staging=4 * US)
    elif action.kind == "copy that does not block":
        yield from t.copy("DtoH", SIZE, ns, stream, call=2 * US)
    elif action.kind == "event":
        yield from _behind(t, streams[action.other], stream)
    elif action.kind.startswith("synchronize"):
        yield from t.synchronize(stream if "stream" in action.kind else None)


def _behind(t: Thread, waiting: Stream, awaited: Stream) -> Body:
    """One stream waits for what another has to do until now."""
    event = t.event()
    yield from t.record(event, awaited)
    yield from t.wait_event(waiting, event)


def repaired(before: Sequence[Action], what: str) -> list[Action]:
    """The same actions with a repair; what is repaired away takes its place as nothing, so that others stay alike."""
    change = {"kernel": _halved, "blocking copy": _not_blocking}.get(what, _left_out)
    return [change(each) if each.kind.startswith(what) else each for each in before]


def _halved(each: Action) -> Action:
    return each._replace(ns=each.ns // 2) if each.name == "solve" else each


def _not_blocking(each: Action) -> Action:
    return each._replace(kind="copy that does not block")


def _left_out(each: Action) -> Action:
    return each._replace(kind="nothing")


def pairs(seed: int) -> list[Pair]:
    """A program and each repair that something in it needs."""
    before = actions(seed)
    whole = Pair(f"{seed}", partial(program, actions=before), partial(program, actions=before), (), (0, 1), warm=2)
    return [
        replace(
            whole,
            name=f"{seed}: {what}",
            after=partial(program, actions=repaired(before, what)),
            transforms=tuple(transforms),
            steps=STEPS,
        )
        for what, transforms in REPAIRS.items()
        if any(each.kind.startswith(what) for each in before)
    ]
