"""A program as it is and fixed, both simulated: what the fix truly brings, to hold a prediction against."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import Marks, solver, start_up
from tests.simulator import EVERYTHING, Capture, Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import Op
from tests.simulator.host import Body, Process

STEPS = 40
SPREAD = 0.1
BACKGROUND = "background"
"""The name of threads whose work is not of the steps."""
Build = Callable[[Simulation, Marks], None]
Step = Callable[[Thread, int], Body]


@dataclass(frozen=True, slots=True)
class Pair:
    """`before` is the program that is captured, `after` the same, with the same random numbers, with what `transforms`
    describe. Both run `steps` steps on `gpus` devices, of which the first `warm` are not measured; without steps, all
    is. The fix saves `saves` of a step, from and to.

    `finding`: in place of transforms, the largest finding of this bottleneck or cause is fixed. A prediction may
    be off by `tolerated` of a step; where it is `refusable` it may be refused, or match nothing. `quick` ones are
    always predicted in tests."""

    name: str
    before: Build
    after: Build
    transforms: tuple[Transform, ...]
    saves: tuple[float, float]
    finding: str = ""
    gpus: int = 1
    steps: int = STEPS
    warm: int = 2
    capture: Capture = EVERYTHING
    tolerated: float = 0.1
    refusable: bool = False
    quick: bool = False


def pair(
    name: str,
    program: Callable[..., None],
    fix: dict[str, object],
    transforms: Transform | Sequence[Transform],
    saves: tuple[float, float],
    **options: object,
) -> Pair:
    """A pair of one program; `fix` are the arguments with which it is fixed."""
    chosen = (transforms,) if isinstance(transforms, Transform) else tuple(transforms)
    return Pair(name, program, partial(program, **fix), chosen, saves, **options)  # type: ignore[arg-type]


def without(*causes: str) -> tuple[Transform, ...]:
    """`--without` for each of these causes."""
    return tuple(Transform("without", cause) for cause in causes)


def faster(option: str, name: str, factor: float) -> Transform:
    """`--kernel` or `--host` with a pattern and a factor."""
    return Transform(option, name, factor)


def varied(ns: int, *key: object, spread: float = SPREAD) -> int:
    """`ns`, up to `spread` more or less by chance: the same for the same key, in whatever order it is asked for."""
    return round(ns * (1 + spread * _by_chance(repr(key))))


@lru_cache(maxsize=1 << 16)
def _by_chance(key: str) -> float:
    """From -1 to 1. A program and its fixes, run one after another, ask for the same keys."""
    return random.Random(key).uniform(-1, 1)


def waking(thread: Thread) -> Thread:
    """The thread with wake-ups that take as long as those of real captures, each its own time."""
    chance = random.Random(thread.name)
    thread.latency = lambda: chance.randint(13_000, 70_000)
    thread.returning = lambda: chance.randint(1_000, 6_000)
    return thread


def loop(
    sim: Simulation,
    marks: Marks,
    step: Step,
    *,
    steps: int = STEPS,
    ranges: bool = True,
    starting: int = 0,
    process: Process | None = None,
) -> Thread:
    """A thread that takes these steps, each in an NVTX range unless told otherwise, after a start that takes about
    `starting` ns, and synchronizes in the end."""

    def main(t: Thread) -> Body:
        if starting:
            yield from start_up(t, starting)
        marks.begin(t)
        for number in range(steps):
            yield from ranged(t, f"step {number}" if ranges else "", step(t, number))
        marks.end(t)
        yield from t.synchronize()

    return sim.thread(process or solver(sim), main, name="solver")


def ranged(t: Thread, name: str, body: Body) -> Body:
    """A body in an NVTX range; without a name, in none."""
    if not name:
        yield from body
        return
    t.push(name)
    yield from body
    t.pop()


def simulated(build: Build, gpus: int, capture: Capture = EVERYTHING) -> tuple[Simulation, Marks]:
    """A program that has run, and when its loop began and ended."""
    simulation, marks = Simulation(gpus), Marks()
    simulation.capture = capture
    build(simulation, marks)
    return simulation.run(), marks


def length(simulation: Simulation, marks: Marks, steps: int, warm: int) -> float:
    """How long a step takes, in ns: from the last end of the first `warm` steps to that of all, over all GPUs. Of a
    program without `steps` it is all of its time up to the last end."""
    assert marks.start_ns is not None
    if not steps:
        return max(op.end for gpu in simulation.gpus for op in gpu.ops) - marks.start_ns
    begin, end = (max(_ended(simulation, marks.start_ns, part / steps, steps)) for part in (warm, steps))
    return (end - begin) / (steps - warm)


def _ended(simulation: Simulation, begin: int, part: float, steps: int) -> Iterator[int]:
    """When each thread's operations of the first `part` of the steps had ended on each GPU: threads may be steps apart.
    A thread that is born for a step is one with all others of its name."""
    for gpu in simulation.gpus:
        looped = [op for op in gpu.ops if op.enqueued >= begin and is_of_steps(op)]
        by_thread = Counter(id(op.call.owner) for op in looped if op.call)
        of: dict[object, list[Op]] = defaultdict(list)
        for op in looped:
            owner = op.call.owner if op.call else None
            of[owner.name if owner and by_thread[id(owner)] % steps else id(owner)].append(op)
        assert not any(len(ops) % steps for ops in of.values()), "every step has the same operations"
        yield from (op.end for ops in of.values() for op in ops[: round(len(ops) * part)])


def is_of_steps(op: Op) -> bool:
    """Whether an operation is work of the steps, and not of a thread in the background."""
    return op.call is None or op.call.owner.name != BACKGROUND


@dataclass(frozen=True, slots=True)
class Truth:
    """Lengths of a step before and after the fix, in ns."""

    before_ns: float
    after_ns: float

    @property
    def saved(self) -> float:
        """The share of a step that the fix saves."""
        return 1 - self.after_ns / self.before_ns


def truth(pair: Pair) -> Truth:
    """What both simulations say."""
    before, after = (length(*simulated(build, pair.gpus), pair.steps, pair.warm) for build in (pair.before, pair.after))
    return Truth(before, after)


def named(pairs: Sequence[Pair]) -> dict[str, Pair]:
    """The pairs by name. Raises ValueError where two have the same."""
    found = {each.name: each for each in pairs}
    if len(found) < len(pairs):
        raise ValueError("two pairs have the same name")
    return found
