"""Programs on several GPUs made by chance, and fixes of them: no way to exchange that somebody thought of."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.devices import ALL_REDUCE
from tests.diagnosis.programs.registry import US, Marks, solver
from tests.replay.pairs.pair import Pair, faster, loop, ranged, varied, without
from tests.replay.pairs.pipelines import SEND_RECEIVE
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import Collective, Neighbours, Stream
from tests.simulator.engine import Signal
from tests.simulator.host import Body, Run, Spin

STEPS = 25
KERNELS = ("solve", "assemble")
PROCESSES, THREADS, ONE_THREAD = "a process a GPU", "a thread a GPU", "one thread"
OWN = {"kernel": 4, "host": 2, "synchronize": 2, "read": 1, "sleep": 1}
"""What a rank does alone, and how often one is among others."""
WAYS: dict[str, tuple[str, ...]] = {
    "nccl": ("reduce in order", "reduce beside", "stages", "ring", "all to all"),
    "mpi": ("MPI_Sendrecv", "MPI_Waitall", "MPI_Send", "MPI_Allreduce"),
    "peers": ("peer copy",),
}
"""How ranks exchange."""
LATE = ("host", "read", "kernels")
FIXES: dict[str, Sequence[Transform]] = {
    "kernel": (faster("kernel", "solve", 0.5),),
    "host": (faster("host", "update", 0.5),),
    "synchronize": without("sync"),
    "read": without("io_wait"),
    "sleep": without("sleep"),
    "late": (Transform("rank-like", "median"),),
    "reduce in order": (Transform("overlap", "communication"),),
}
"""By what is fixed."""


class Action(NamedTuple):
    """A part of a step of each rank, about `ns` long."""

    kind: str
    ns: int
    name: str = ""
    parts: int = 1


class Job(NamedTuple):
    """Ranks that do `actions` in each step. The rank `late` (-1: none) does so late, for `late_ns` more, by `why`.
    Calls of MPI may be recorded without what they send (`told`), and senders may wait for receivers (`met`). Before
    calls of MPI ranks wait for their GPU if it is `awaited`."""

    gpus: int
    layout: str
    actions: tuple[Action, ...]
    late: int
    why: str
    late_ns: int
    told: bool
    met: bool
    awaited: bool = True


def job(seed: int) -> Job:
    """The same for the same seed."""
    chance = random.Random(seed)
    way = chance.choices(list(WAYS), (6, 4, 1))[0]
    layout = {"mpi": PROCESSES, "peers": ONE_THREAD}.get(way) or chance.choices(
        (PROCESSES, THREADS, ONE_THREAD), (3, 1, 1)
    )[0]
    kinds = chance.choices(list(OWN), list(OWN.values()), k=chance.randint(1, 5)) + ["kernel"] * 2
    kinds += chance.choices(WAYS[way], k=chance.randint(1, 2))
    chance.shuffle(kinds)
    names = iter([*KERNELS, *chance.choices(KERNELS, k=len(kinds))])
    actions = [
        Action(
            kind,
            round(chance.lognormvariate(0, 1) * 200) * US + 20 * US,
            next(names) if kind == "kernel" else "",
            chance.randint(2, 4),
        )
        for kind in kinds
    ]
    if "reduce beside" in kinds:
        actions.append(Action("join", 0))
    if "MPI_Send" in kinds:
        actions.append(Action("MPI_Allreduce", 20 * US))
    gpus = chance.randint(2, 4)
    late = chance.randrange(gpus) if layout != ONE_THREAD and chance.random() < 0.6 else -1
    return Job(
        gpus,
        layout,
        tuple(actions),
        late,
        chance.choice(LATE) if late >= 0 else "",
        round(chance.lognormvariate(0, 0.7) * 600) * US + 200 * US,
        chance.random() < 0.7,
        chance.random() < 0.5,
    )


class _Machine:
    """What the ranks of a job have in common, and the streams of each."""

    def __init__(self, sim: Simulation, job: Job) -> None:
        self.sim, self.job = sim, job
        self.met: dict[object, Collective] = {}
        self.signals: dict[object, Signal] = defaultdict(Signal)
        self.came: dict[object, int] = defaultdict(int)
        if job.layout == PROCESSES:
            self.processes = [solver(sim, [rank]) for rank in range(job.gpus)]
        else:
            self.processes = [solver(sim)] * job.gpus
        contexts = [
            process.contexts[0 if job.layout == PROCESSES else rank] for rank, process in enumerate(self.processes)
        ]
        for rank, process in enumerate(self.processes):
            process.rank = rank if job.layout == PROCESSES else -1
        self.work = [each.stream() for each in contexts]
        self.beside = [each.stream() for each in contexts]

    def collective(self, key: object, make: Callable[[], Collective]) -> Collective:
        """That of a key, the same for all ranks."""
        if key not in self.met:
            self.met[key] = make()
        return self.met[key]

    def neighbours(self, rank: int) -> list[int]:
        """Those before and behind in a ring."""
        return sorted({(rank - 1) % self.job.gpus, (rank + 1) % self.job.gpus})


class _At(NamedTuple):
    """Where a rank is: in which action of which step."""

    machine: _Machine
    rank: int
    number: int
    place: int
    action: Action

    @property
    def stream(self) -> Stream:
        return self.machine.work[self.rank]

    @property
    def gpus(self) -> int:
        return self.machine.job.gpus

    def ns(self, *key: object) -> int:
        return varied(self.action.ns, self.place, self.rank, self.number, *key)

    @property
    def exchange_ns(self) -> int:
        """The same for all ranks."""
        return varied(self.action.ns // 2, self.place, self.number)


def program(sim: Simulation, marks: Marks, *, job: Job) -> None:
    """A job, with a thread for each rank or one for all."""
    machine = _Machine(sim, job)

    def step(t: Thread, number: int, *, ranks: Sequence[int]) -> Body:
        for rank in ranks:
            if rank == job.late:
                yield from _late(t, _At(machine, rank, number, -1, Action("late", job.late_ns)))
        for place, action in enumerate(job.actions):
            for rank in ranks:
                yield from ACTS[action.kind](t, _At(machine, rank, number, place, action))

    if job.layout == ONE_THREAD:
        loop(sim, marks, partial(step, ranks=range(job.gpus)), process=machine.processes[0], steps=STEPS)
        return
    for rank, process in enumerate(machine.processes):
        own = marks if rank == 0 else Marks()
        loop(sim, own, partial(step, ranks=[rank]), process=process, steps=STEPS)


def _late(t: Thread, at: _At) -> Body:
    why = at.machine.job.why
    if why == "host":
        yield from t.compute(at.ns(), "build_batch")
    elif why == "read":
        yield from t.read_file(at.ns())


def _nothing(t: Thread, at: _At) -> Body:
    yield from ()


def _kernel(t: Thread, at: _At) -> Body:
    """The kernels `assemble` of a rank that is late by its kernels take longer."""
    job = at.machine.job
    slower = job.why == "kernels" and at.rank == job.late and at.action.name == "assemble"
    more = varied(job.late_ns, at.place, at.number) if slower else 0
    yield from t.launch(at.action.name, at.ns() + more, at.stream)


def _host(t: Thread, at: _At) -> Body:
    yield from ranged(t, "update", t.compute(at.ns(), "update"))


def _all_reduce(t: Thread, at: _At, stream: Stream) -> Body:
    met = at.machine.collective((at.place, at.number), lambda: Collective(at.gpus))
    yield from t.launch(ALL_REDUCE, at.exchange_ns, stream, collective=met, extended=True)


def _beside(t: Thread, at: _At) -> Body:
    yield from behind(t, at.machine.beside[at.rank], at.stream)
    yield from _all_reduce(t, at, at.machine.beside[at.rank])


def _join(t: Thread, at: _At) -> Body:
    yield from behind(t, at.stream, at.machine.beside[at.rank])


def _stages(t: Thread, at: _At) -> Body:
    """Each rank receives from the one before, computes, and sends to the next, part by part."""
    for part in range(at.action.parts):
        for link in (at.rank - 1, at.rank):
            if link == at.rank:
                yield from t.launch("stage", at.ns(part) // at.action.parts, at.stream)
            if 0 <= link < at.gpus - 1:
                met = at.machine.collective((at.place, at.number, part, link), lambda: Collective(2))
                ns = at.exchange_ns // at.action.parts // 4
                yield from t.launch(SEND_RECEIVE, ns, at.stream, collective=met, extended=True)


def _ring(t: Thread, at: _At) -> Body:
    """A group of a send to the next rank and a receive from the one before."""
    links = [(rank, (rank + 1) % at.gpus) for rank in range(at.gpus)]
    met = at.machine.collective((at.place, at.number), lambda: Neighbours(links))
    yield from t.launch(SEND_RECEIVE, at.exchange_ns, at.stream, collective=met, extended=True)


def _all_to_all(t: Thread, at: _At) -> Body:
    """A group of sends to all ranks and receives from all."""
    met = at.machine.collective((at.place, at.number), lambda: Collective(at.gpus))
    yield from t.launch(SEND_RECEIVE, at.exchange_ns, at.stream, collective=met, extended=True)


def _copy_to_next(t: Thread, at: _At) -> Body:
    """The last of the ranks of the thread makes all wait for the copies of those before them."""
    yield from behind(t, at.machine.beside[at.rank], at.stream)
    yield from t.copy("PtoP", 1 << 22, at.ns(), at.machine.beside[at.rank])
    if at.rank == at.gpus - 1:
        for rank in range(at.gpus):
            yield from behind(t, at.machine.work[rank], at.machine.beside[rank - 1])


def _before_mpi(t: Thread, at: _At) -> Body:
    if at.machine.job.awaited:
        yield from t.synchronize(at.stream)


def _sendrecv(t: Thread, at: _At) -> Body:
    """To the next rank in a ring, and from the one before."""
    job, signals = at.machine.job, at.machine.signals
    before, after = (at.rank - 1) % job.gpus, (at.rank + 1) % job.gpus
    yield from _before_mpi(t, at)
    with t.inside("mpi", "MPI_Sendrecv", "") as call:
        call.messages = tuple((each, at.place, 0) for each in (after, before)) if job.told else ()
        yield Run(2 * US)
        signals[at.place, at.number, at.rank].fire(t)
        yield Spin(signals[at.place, at.number, before])
        if job.met:
            yield Spin(signals[at.place, at.number, after])
        yield Run(at.exchange_ns // 4)


def _waitall(t: Thread, at: _At) -> Body:
    """With both neighbours, by calls that do not wait and one that does."""
    job, signals, near = at.machine.job, at.machine.signals, at.machine.neighbours(at.rank)
    yield from _before_mpi(t, at)
    requests = []
    for kind, name in enumerate(("MPI_Irecv", "MPI_Isend")):
        for other in near:
            requests.append((other, at.place, 1000 * at.place + 10 * other + kind + 1))
            with t.inside("mpi", name, "") as call:
                call.messages = (requests[-1],) if job.told else ()
                yield Run(2 * US)
    signals[at.place, at.number, at.rank].fire(t)
    yield from t.compute(20 * US, "update_inside")
    with t.inside("mpi", "MPI_Waitall", "") as call:
        call.messages = tuple(requests) if job.told else ()
        for other in near:
            yield Spin(signals[at.place, at.number, other])
        yield Run(at.exchange_ns // 4)


def _send(t: Thread, at: _At) -> Body:
    """Each rank receives from the one before, computes, waits for its GPU and sends to the next."""
    job, signals = at.machine.job, at.machine.signals
    sent, posted = ((at.place, at.number, what) for what in ("sent", "posted"))
    if at.rank > 0:
        with t.inside("mpi", "MPI_Recv", "") as call:
            call.messages = ((at.rank - 1, at.place, 0),) if job.told else ()
            yield Run(1 * US)
            signals[posted, at.rank].fire(t)
            yield Spin(signals[sent, at.rank - 1])
            yield Run(at.exchange_ns // 8)
    yield from t.launch("stage", at.ns() // 2, at.stream)
    yield from _before_mpi(t, at)
    if at.rank < job.gpus - 1:
        with t.inside("mpi", "MPI_Send", "") as call:
            call.messages = ((at.rank + 1, at.place, 0),) if job.told else ()
            yield Run(1 * US)
            signals[sent, at.rank].fire(t)
            if job.met:
                yield Spin(signals[posted, at.rank + 1])
            yield Run(at.exchange_ns // 8)


def _mpi_all_reduce(t: Thread, at: _At) -> Body:
    key = (at.place, at.number)
    yield from _before_mpi(t, at)
    with t.inside("mpi", "MPI_Allreduce", ""):
        yield Run(1 * US)
        at.machine.came[key] += 1
        if at.machine.came[key] == at.gpus:
            at.machine.signals[key].fire(t)
        yield Spin(at.machine.signals[key])
        yield Run(at.exchange_ns // 8)


def behind(t: Thread, waiting: Stream, awaited: Stream) -> Body:
    """One stream waits for what another has to do until now."""
    event = t.event()
    yield from t.record(event, awaited)
    yield from t.wait_event(waiting, event)


ACTS: dict[str, Callable[[Thread, _At], Body]] = {
    "nothing": _nothing,
    "kernel": _kernel,
    "host": _host,
    "synchronize": lambda t, at: t.synchronize(at.stream),
    "read": lambda t, at: t.read_file(at.ns()),
    "sleep": lambda t, at: t.sleep(at.ns()),
    "reduce in order": lambda t, at: _all_reduce(t, at, at.stream),
    "reduce beside": _beside,
    "join": _join,
    "stages": _stages,
    "ring": _ring,
    "all to all": _all_to_all,
    "MPI_Sendrecv": _sendrecv,
    "MPI_Waitall": _waitall,
    "MPI_Send": _send,
    "MPI_Allreduce": _mpi_all_reduce,
    "peer copy": _copy_to_next,
}
"""What each kind of action does for a rank."""


def fixed(before: Job, what: str) -> Job:
    """The same job with a fix; what is fixed away takes its place as nothing, so that others stay alike."""
    if what == "late":
        return before._replace(late=-1)
    actions = tuple(_fixed(each, what) for each in before.actions)
    late = -1 if what == "read" == before.why else before.late
    return before._replace(actions=actions, late=late, awaited=before.awaited and what != "synchronize")


def _fixed(each: Action, what: str) -> Action:
    if each.kind != what:
        return each
    if what == "kernel":
        return each._replace(ns=each.ns // 2) if each.name == "solve" else each
    if what == "host":
        return each._replace(ns=each.ns // 2)
    return each._replace(kind="reduce beside" if what == "reduce in order" else "nothing")


def needs(before: Job, what: str) -> bool:
    """Whether something in a job needs a fix."""
    if what == "late":
        return before.late >= 0
    kinds = {each.kind for each in before.actions}
    waits = any(each.startswith("MPI") for each in kinds)
    return what in kinds or (what == "synchronize" and waits) or what == "read" == before.why


def pairs(seed: int) -> list[Pair]:
    """A job and each fix that something in it needs."""
    before = job(seed)
    return [
        Pair(
            f"{seed}: {what}",
            before=partial(program, job=before),
            after=partial(program, job=fixed(before, what)),
            transforms=tuple(transforms),
            saves=(0, 1),
            gpus=before.gpus,
            steps=STEPS,
        )
        for what, transforms in FIXES.items()
        if needs(before, what)
    ]
