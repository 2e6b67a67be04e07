"""Programs of several threads made by chance: helpers, other launching threads, turns, locks, background work."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

from tests.diagnosis.programs.registry import MS, US, Marks, solver
from tests.replay.pairs.chance import ACTS, FIXES, NOT_BLOCKING
from tests.replay.pairs.pair import BACKGROUND, STEPS, Pair, loop, varied, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import Stream
from tests.simulator.host import Body
from tests.simulator.interpreter import Gil

KINDS = {
    "kernel": 5,
    "host": 4,
    "synchronize a stream": 3,
    "synchronize the device": 1,
    "synchronize an event": 1,
    "read": 1,
    "sleep": 1,
    "copy": 1,
    "blocking copy": 2,
}
"""What a thread may do, and how often one is among others."""
QUIET = ("host", "read", "sleep")
"""What a thread in the background may do."""
WAITING = ("synchronize", "read", "sleep", "blocking copy")
"""What begins like this lets go of the interpreter lock."""
ROLES = {
    "asked": 4,  # works while the first thread goes on, which then waits for it
    "behind": 1,  # the same, but the first thread waits for what it was asked for in the step before
    "producer": 2,  # works ahead, two items at most
    "born": 2,  # asked, and started anew in each step
    "turns": 2,  # works when the first thread has had its turn
    "free": 3,  # works at a pace of its own, and may launch
    "background": 2,  # the same, and does not launch
    "late": 1,  # the same, and is started in the middle
}
"""What another thread may be to the first, and how often."""
LOCKS = {"": 2, "mutex": 3, "semaphore": 1, "interpreter": 2}
"""What the threads hold in turns: a part of a step each; the interpreter's lock all the time but in waits."""
LOCK_WAIT = "lock"
LONGEST_NS = 10_000 * MS
"""Who has a pace of its own gives up then: another thread waits for a lock whose holder waits for that thread."""


class Part(NamedTuple):
    """A part of what a thread does in a step, about `ns` long; `name` is that of a kernel."""

    kind: str
    ns: int
    name: str


class Actor(NamedTuple):
    """A thread: what it is to the first one, what it does in a step, and which places of that under the lock. It is
    asked at place `first` of the first thread's step, and waited for at place `second`, by `signal`. It may use the
    first thread's stream."""

    role: str
    parts: tuple[Part, ...]
    locked: range
    first: int
    second: int
    signal: str
    shared: bool


class Program(NamedTuple):
    """The threads, the first of which takes the steps; the lock; and whether wake-ups take as long as real ones."""

    actors: tuple[Actor, ...]
    lock: str
    slow: bool


def made(seed: int) -> Program:
    """The program of a seed: two to four threads, of which the first launches. Where threads wait for each other for
    ever, they have no lock."""
    program = _drawn(seed)
    return program if ends(program) else program._replace(lock="")


@cache
def ends(program: Program) -> bool:
    """Whether the first thread comes to the end of its last step."""
    marks = Marks()
    simulation = Simulation(1)
    run(simulation, marks, program=program)
    simulation.run()
    return marks.end_ns is not None


def _drawn(seed: int) -> Program:
    chance = random.Random(f"threads {seed}")
    lock = chance.choices(list(LOCKS), list(LOCKS.values()))[0]
    main = [*_parts(chance, KINDS, chance.randint(1, 4)), Part("kernel", _length(chance), "solve")]
    chance.shuffle(main)
    actors = [_actor(chance, "", main, len(main))]
    for _ in range(chance.randint(1, 3)):
        role = chance.choices(list(ROLES), list(ROLES.values()))[0]
        quiet = role in ("background", "late") or chance.random() < 0.4
        parts = _parts(chance, dict.fromkeys(QUIET, 1) if quiet else KINDS, chance.randint(1, 4))
        actors.append(_actor(chance, role, parts, len(main)))
    return Program(tuple(actors), lock, chance.random() < 0.3)


def _length(chance: random.Random) -> int:
    return round(chance.lognormvariate(0, 1) * 150) * US + 5 * US


def _parts(chance: random.Random, kinds: dict[str, int], count: int) -> list[Part]:
    chosen = chance.choices(list(kinds), list(kinds.values()), k=count)
    return [Part(kind, _length(chance), chance.choice(("solve", "border"))) for kind in chosen]


def _actor(chance: random.Random, role: str, parts: list[Part], places: int) -> Actor:
    if role == "free":  # else it would launch without end where no synchronization holds it
        working = sum(part.ns for part in parts if part.kind in ("kernel", "copy", "blocking copy"))
        parts = [*parts, Part("synchronize a stream", 0, ""), Part("host", 2 * working + _length(chance), "")]
    first = chance.randrange(len(parts))
    locked = range(first, chance.randint(first + 1, len(parts)) if chance.random() < 0.7 else first)
    asked = chance.randint(0, places)
    signal = chance.choice(("sem_wait", "pthread_cond_wait"))
    return Actor(role, tuple(parts), locked, asked, chance.randint(asked, places), signal, chance.random() < 0.3)


class Shared:
    """What the threads of a run share: the lock, and whether the last step is over."""

    def __init__(self, sim: Simulation, lock: str) -> None:
        self.sim, self.over = sim, False
        self.mutex = sim.mutex() if lock == "mutex" else None
        self.gil = Gil() if lock == "interpreter" else None
        self.semaphore = sim.channel() if lock == "semaphore" else None
        if self.semaphore:
            self.semaphore.items = 1

    def take(self, t: Thread) -> Body:
        """Take the lock, unless it is the interpreter's."""
        if self.mutex:
            yield from t.lock(self.mutex)
        elif self.semaphore:
            yield from t.get(self.semaphore, "sem_wait")

    def give(self, t: Thread) -> Body:
        """Give it back."""
        if self.mutex:
            yield from t.unlock(self.mutex)
        elif self.semaphore:
            yield from t.put(self.semaphore, "sem_post")

    def waiting(self, t: Thread, body: Body) -> Body:
        """A wait, without the interpreter's lock."""
        if self.gil:
            yield from self.gil.release(t)
        yield from body
        if self.gil:
            yield from self.gil.acquire(t)

    def working(self, t: Thread, body: Body) -> Body:
        """A thread that holds the interpreter's lock."""
        if self.gil:
            yield from self.gil.acquire(t)
        yield from body
        if self.gil:
            yield from self.gil.release(t)


def _act(t: Thread, shared: Shared, part: Part, ns: int, stream: Stream) -> Body:
    if part.kind == "kernel":
        yield from t.launch(part.name, ns, stream)
    elif part.kind == "host" and shared.gil:
        t.push("update")
        yield from shared.gil.compute(t, ns, "update")
        t.pop()
    elif part.kind in ACTS:
        body = ACTS[part.kind](t, ns, stream)
        yield from shared.waiting(t, body) if part.kind.startswith(WAITING) else body


def _some(t: Thread, shared: Shared, actor: Actor, key: object, places: range, stream: Stream) -> Body:
    """What a thread does at some places of a step, in order."""
    for place in places:
        part = actor.parts[place]
        if actor.locked and place == actor.locked.start:
            yield from shared.take(t)
        yield from _act(t, shared, part, varied(part.ns, actor.role, place, key), stream)
        if actor.locked and place == actor.locked.stop - 1:
            yield from shared.give(t)


def run(sim: Simulation, marks: Marks, *, program: Program) -> None:
    """Let the threads of a program run."""
    process = sim.process() if program.lock == "interpreter" else solver(sim)
    shared, main = Shared(sim, program.lock), program.actors[0]
    stream = process.stream()
    delayed: Callable[[Thread], Thread] = waking if program.slow else lambda t: t
    others = [
        Other(sim, shared, actor, stream if actor.shared else process.stream(), delayed) for actor in program.actors[1:]
    ]

    def step(t: Thread, number: int) -> Body:
        for place in range(len(main.parts) + 1):
            for other in others:
                if other.actor.first == place:
                    yield from other.ask(t, number)
            for other in others:
                if other.actor.second == place:
                    yield from other.wait(t)
            if place < len(main.parts):
                yield from _some(t, shared, main, number, range(place, place + 1), stream)
        shared.over = number == STEPS - 1

    def whole(t: Thread, number: int) -> Body:
        return shared.working(t, step(t, number))

    delayed(loop(sim, marks, whole, process=process))


class Other:
    """Another thread than the first, and how the first one meets it."""

    def __init__(
        self, sim: Simulation, shared: Shared, actor: Actor, stream: Stream, delayed: Callable[[Thread], Thread]
    ) -> None:
        self.sim, self.shared, self.actor, self.stream, self.delayed = sim, shared, actor, stream, delayed
        self.asked, self.done = sim.channel(), sim.channel()
        self.born: Thread | None = None
        self.asked.items = 2 if actor.role == "producer" else 0
        self.done.items = 1 if actor.role in ("behind", "turns") else 0
        self.post = {"sem_wait": "sem_post", "pthread_cond_wait": "pthread_cond_signal"}[actor.signal]
        loops = {"asked": self.served, "behind": self.served, "producer": self.served, "turns": self.served}
        loops |= {"free": self.free, "background": self.free}
        if actor.role in loops:
            free = loops[actor.role] == self.free
            delayed(sim.thread(sim.processes[0], loops[actor.role], name=BACKGROUND if free else "helper"))

    def one(self, t: Thread, number: int) -> Body:
        """What it does once."""
        key = (self.actor.first, number)
        places = range(len(self.actor.parts))
        yield from self.shared.working(t, _some(t, self.shared, self.actor, key, places, self.stream))

    def served(self, t: Thread) -> Body:
        """What it is asked for in each step."""
        for number in range(STEPS):
            yield from t.get(self.asked, self.actor.signal)
            yield from self.one(t, number)
            yield from t.put(self.done, self.post)

    def free(self, t: Thread) -> Body:
        """What it does until the steps are over."""
        number = 0
        while not self.shared.over and self.sim.clock.now < LONGEST_NS:
            yield from self.one(t, number)
            number += 1

    def once(self, t: Thread, number: int) -> Body:
        """What it is born for."""
        yield from self.one(t, number)
        if self.actor.shared:
            yield from t.put(self.done, self.post)

    def ask(self, t: Thread, number: int) -> Body:
        """The first thread asks it."""
        if self.actor.role in ("asked", "behind", "producer"):
            yield from t.put(self.asked, self.post)
        elif self.actor.role == "turns":
            yield from self.shared.waiting(t, t.get(self.done, self.actor.signal))
        elif self.actor.role == "born" or (self.actor.role == "late" and number == STEPS // 4):
            yield from t.spawn(partial(self.begin, number))

    def begin(self, number: int) -> Thread:
        """It is born for a step, or for all that follow."""
        late = self.actor.role == "late"
        body = self.free if late else partial(self.once, number=number)
        start, name = self.sim.clock.now + 30 * US, BACKGROUND if late else "helper"
        self.born = self.delayed(self.sim.thread(self.sim.processes[0], body, name=name, start=start))
        return self.born

    def wait(self, t: Thread) -> Body:
        """The first thread waits for it."""
        if self.actor.role in ("asked", "behind", "producer") or (self.actor.role == "born" and self.actor.shared):
            yield from self.shared.waiting(t, t.get(self.done, self.actor.signal))
        elif self.actor.role == "turns":
            yield from t.put(self.asked, self.post)
        elif self.actor.role == "born":
            assert self.born
            yield from self.shared.waiting(t, t.join(self.born))


def fixed(program: Program, what: str) -> Program:
    """The same with a fix; what is fixed away takes its place as nothing, so that others stay alike."""
    if what == LOCK_WAIT:
        return program._replace(lock="")
    return program._replace(
        actors=tuple(
            actor._replace(parts=tuple(_fixed(part, what) for part in actor.parts)) for actor in program.actors
        )
    )


def _fixed(part: Part, what: str) -> Part:
    if not part.kind.startswith(what) or (what == "kernel" and part.name != "solve"):
        return part
    if what in ("kernel", "host"):
        return part._replace(ns=part.ns // 2)
    return part._replace(kind=NOT_BLOCKING if what == "blocking copy" else "nothing")


def pairs(seed: int) -> Iterator[Pair]:
    """A program and each fix that something in it needs."""
    program = made(seed)
    kinds = {part.kind for actor in program.actors for part in actor.parts}
    fixes = {what: transforms for what, transforms in FIXES.items() if any(each.startswith(what) for each in kinds)}
    if program.lock == "mutex":
        fixes[LOCK_WAIT] = without("lock_wait")
    for what, transforms in fixes.items():
        if not ends(fixed(program, what)):
            continue
        yield Pair(
            f"{seed}: {what}",
            before=partial(run, program=program),
            after=partial(run, program=fixed(program, what)),
            transforms=tuple(transforms),
            saves=(-1, 1),
            refusable=True,
        )
