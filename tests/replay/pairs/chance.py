"""Programs made by chance, and fixes of them: no shape of a program that somebody thought of."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import US, Marks, solver
from tests.replay.pairs.pair import STEPS, Pair, faster, loop, ranged, varied, without
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.device import Stream
from tests.simulator.host import Body

SIZE = 1 << 20
KERNELS = ("assemble", "border", "solve")
NOT_BLOCKING = "copy that does not block"
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
    "synchronize an event": 1,
    "graph": 1,
    "memset": 1,
    "free": 1,
}
"""What a program may do, and how often one is among others."""
FIXES: dict[str, Sequence[Transform]] = {
    "kernel": (faster("kernel", "solve", 0.5),),
    "host": (faster("host", "update", 0.5),),
    "free": without("memory_allocation"),
    "synchronize": without("sync"),
    "sleep": without("sleep"),
    "read": without("io_wait"),
    "blocking copy": (Transform("async-copies"),),
}
"""By the first words of what is fixed."""


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


def of_helper(seed: int, count: int) -> range:
    """The places of those of so many actions that another thread does, while the first one waits for it: none in every
    second program."""
    chance = random.Random(-1 - seed)
    first = chance.randrange(count)
    return range(first, chance.randint(first + 1, count) if seed % 2 else first)


def program(sim: Simulation, marks: Marks, *, actions: Sequence[Action], helper: range) -> None:
    """A thread that does these in each of its steps, but for those that the helper does. Between steps streams wait for
    each other: one that runs further and further ahead of another has no steps in common with it."""
    process, asked, done = solver(sim), sim.channel(), sim.channel()
    streams = [process.stream() for _ in range(1 + max(max(each.stream, each.other) for each in actions))]

    def some(t: Thread, number: int, places: range) -> Body:
        for place in places:
            yield from _act(t, actions[place], varied(actions[place].ns, place, number), streams)

    def step(t: Thread, number: int) -> Body:
        yield from some(t, number, range(helper.start))
        if helper:
            yield from t.put(asked, "sem_post")
            yield from t.get(done, "sem_wait")
        yield from some(t, number, range(helper.stop, len(actions)))
        for stream in streams[1:]:
            yield from _behind(t, streams[0], stream)
        for stream in streams[1:]:
            yield from _behind(t, stream, streams[0])

    def help_out(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(asked, "sem_wait")
            yield from some(t, number, helper)
            yield from t.put(done, "sem_post")

    if helper:
        sim.thread(process, help_out, name="helper")
    loop(sim, marks, step, process=process)


def _act(t: Thread, action: Action, ns: int, streams: Sequence[Stream]) -> Body:
    stream, acts = streams[action.stream], ACTS.get(action.kind)
    if action.kind == "kernel":
        yield from t.launch(action.name, ns, stream)
    elif action.kind == "event":
        yield from _behind(t, streams[action.other], stream)
    elif acts:
        yield from acts(t, ns, stream)


def _host(t: Thread, ns: int, stream: Stream) -> Body:
    yield from ranged(t, "update", t.compute(ns, "update"))


def _event(t: Thread, ns: int, stream: Stream) -> Body:
    event = t.event()
    yield from t.record(event, stream)
    yield from t.synchronize(event)


ACTS: dict[str, Callable[[Thread, int, Stream], Body]] = {
    "host": _host,
    "sleep": lambda t, ns, stream: t.sleep(ns),
    "read": lambda t, ns, stream: t.read_file(ns),
    "copy": lambda t, ns, stream: t.copy("HtoD", SIZE, ns, stream),
    "blocking copy": lambda t, ns, stream: t.blocking_copy("DtoH", SIZE, ns, stream, staging=4 * US),
    NOT_BLOCKING: lambda t, ns, stream: t.copy("DtoH", SIZE, ns, stream, call=2 * US),
    "memset": lambda t, ns, stream: t.fill(SIZE, 8 * US, stream),
    "graph": lambda t, ns, stream: t.launch_graph([Node(f"node_{number}", ns // 3) for number in range(3)], stream),
    "free": lambda t, ns, stream: t.free(30 * US),
    "synchronize the device": lambda t, ns, stream: t.synchronize(),
    "synchronize a stream": lambda t, ns, stream: t.synchronize(stream),
    "synchronize an event": _event,
}
"""What each kind of action does for about so many ns, or with a stream."""


def _behind(t: Thread, waiting: Stream, awaited: Stream) -> Body:
    """One stream waits for what another has to do until now."""
    event = t.event()
    yield from t.record(event, awaited)
    yield from t.wait_event(waiting, event)


def fixed(before: Sequence[Action], what: str) -> list[Action]:
    """The same actions with a fix; what is fixed away takes its place as nothing, so that others stay alike."""
    change = {"kernel": _halved, "host": _half, "blocking copy": _not_blocking}.get(what, _left_out)
    return [change(each) if each.kind.startswith(what) else each for each in before]


def _halved(each: Action) -> Action:
    return each._replace(ns=each.ns // 2) if each.name == "solve" else each


def _half(each: Action) -> Action:
    return each._replace(ns=each.ns // 2)


def _not_blocking(each: Action) -> Action:
    return each._replace(kind=NOT_BLOCKING)


def _left_out(each: Action) -> Action:
    return each._replace(kind="nothing")


def pairs(seed: int) -> list[Pair]:
    """A program and each fix that something in it needs."""
    before = actions(seed)
    helper = of_helper(seed, len(before))
    return [
        Pair(
            f"{seed}: {what}",
            before=partial(program, actions=before, helper=helper),
            after=partial(program, actions=fixed(before, what), helper=helper),
            transforms=tuple(transforms),
            saves=(0, 1),
        )
        for what, transforms in FIXES.items()
        if any(each.kind.startswith(what) for each in before)
    ]
