"""A program made by chance of a class: how it runs, its loops, its fixes, and what is true of it."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from nsysdiag.causes import CAUSES
from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import US, Marks
from tests.replay.pairs.pair import ranged, varied
from tests.simulator import EVERYTHING, Capture, Simulation

if TYPE_CHECKING:
    from nsysdiag.arrays.intervals import IntArray
    from tests.simulator.actions import Thread
    from tests.simulator.device import Context, Op
    from tests.simulator.host import Body, Process

STEPS, WARM = 40, 4
NAMES = ("steps", "none", "misleading")
"""What ranges a program has: one for each step; none; or some that say `step` of what is none."""


class Made(SimpleNamespace):
    """The sizes of a program, all by chance. `first` are steps that are unlike the others."""

    first = 0

    def but(self, **changes: object) -> Made:
        """The same with other ones."""
        return Made(**{**vars(self), **changes})


@dataclass(slots=True)
class Loops(Marks):
    """Where each repeat of each loop begins: `begun` by level, as its thread and the number of operations that this has
    launched before it. `stopped` are the numbers of steps in which the program does something else for a time."""

    begun: dict[str, list[tuple[Thread, int]]] = field(default_factory=dict)
    stopped: list[int] = field(default_factory=list)
    _counted: dict[tuple[Thread, Context], tuple[int, int]] = field(default_factory=dict)

    def step(self, t: Thread, level: str = "step") -> None:
        """A repeat of `level` begins with the next operation of the thread."""
        launched = sum(self._launched(t, context) for context in t.process.contexts)
        self.begun.setdefault(level, []).append((t, launched))

    def _launched(self, t: Thread, context: Context) -> int:
        """How many operations of a context's GPU the thread has launched: those behind the last count are looked at."""
        ops = context.gpu.ops
        seen, count = self._counted.get((t, context), (0, 0))
        count += sum(_is_of(ops[at], t) for at in range(seen, len(ops)))
        self._counted[t, context] = len(ops), count
        return count


def _is_of(op: Op, t: Thread) -> bool:
    return op.call is not None and op.call.owner is t


def _of_threads(begun: Iterable[tuple[Thread, int]]) -> dict[Thread, list[Op]]:
    """The operations of each thread of some repeats, in the order in which it launched them."""
    return {t: _of_thread(t) for t in dict.fromkeys(t for t, _ in begun)}


def _of_thread(t: Thread) -> list[Op]:
    ops = [op for context in t.process.contexts for op in context.gpu.ops]
    return sorted((op for op in ops if _is_of(op, t)), key=lambda op: op.enqueued)


Build = Callable[[Simulation, Loops, Made], None]


@dataclass(frozen=True, slots=True)
class Fix:
    """What is fixed: the sizes that change, and the transforms that describe it, or the largest finding of a cause."""

    name: str
    change: dict[str, object]
    transforms: tuple[Transform, ...] = ()
    finding: str = ""


@dataclass(frozen=True, slots=True)
class Class:
    """A class of programs. `levels` are the loops that may be called its steps; `leads` what may lead besides what most
    time truly goes to."""

    name: str
    sizes: Callable[[random.Random], Made]
    build: Build
    fixes: Callable[[Made], Sequence[Fix]]
    levels: tuple[str, ...] = ("step",)
    gpus: int = 1
    capture: Capture = EVERYTHING
    leads: frozenset[str] = frozenset()

    def made(self, seed: int, salt: str = "") -> Made:
        """The sizes of a seed."""
        return self.sizes(random.Random(f"{self.name} {seed}{salt}"))

    def run(self, made: Made) -> tuple[Simulation, Loops]:
        """The program with these sizes has run."""
        simulation, loops = Simulation(self.gpus), Loops()
        simulation.capture = self.capture
        self.build(simulation, loops, made)
        return simulation.run(), loops


CLASSES: dict[str, Class] = {}


def programs(
    fixes: Callable[[Made], Sequence[Fix]],
    sizes: Callable[[random.Random], Made],
    levels: tuple[str, ...] = ("step",),
    gpus: int = 1,
    capture: Capture = EVERYTHING,
    leads: tuple[str, ...] = (),
) -> Callable[[Build], Build]:
    """A class of its build."""

    def add(build: Build) -> Build:
        name = build.__name__
        CLASSES[name] = Class(name, sizes, build, fixes, levels, gpus, capture, frozenset(leads))
        return build

    return add


def in_steps(sim: Simulation, process: Process, loops: Loops, made: Made, step: Callable[[Thread, int], Body]) -> None:
    """A thread takes all steps, each in a range if the program has such, and waits for the last one."""

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(STEPS):
            loops.step(t)
            yield from ranged(t, f"step {number}" if made.names == "steps" else "", step(t, number))
        loops.end(t)
        yield from t.synchronize()

    sim.thread(process, main, name="runner")


def some(chance: random.Random, base: int = 200, spread: float = 0.8) -> int:
    """A time of about `base` µs, in ns."""
    return round(chance.lognormvariate(0, spread) * base) * US + 5 * US


def lengths(loops: Loops, first: int = 0) -> IntArray:
    """How long a step takes, in ns, by which of the steps are measured: from the last end of the `first` ones, or of
    some more, to that of all, or of some fewer, of the threads that take them; or the mean of those without a stop."""
    begun = loops.begun["step"]
    of = _of_threads(begun)
    ops = sorted((op for each in of.values() for op in each), key=lambda op: op.enqueued)
    at = {id(op): number for number, op in enumerate(ops)}
    ends = np.maximum.accumulate([op.end for op in ops])
    ends = ends[np.array([*(at[id(of[t][first])] for t, first in begun[1:]), len(ops)]) - 1]
    spans = [(first + more, len(ends) - fewer) for more in (1, 3, WARM, 2 * WARM) for fewer in (1, 2, WARM)]
    found = [(ends[last - 1] - ends[begin - 1]) / (last - begin) for begin, last in spans]
    stopped = np.array([each for each in loops.stopped if each > first], np.int64)
    found += [np.delete(np.diff(ends), stopped - 1)[first:].mean()] if len(stopped) else []
    return np.array(found)


def window_length(loops: Loops, first: int = 0) -> float:
    """How long a step takes, in ns, from the start of the step after the `first` ones to the end of all."""
    begun = loops.begun["step"]
    of = _of_threads(begun)
    t, at = begun[first]
    end = max(op.end for each in of.values() for op in each)
    return float(end - of[t][at].start) / (len(begun) - first)


OF_WRITES = {"io_wait": "host"}
"""Bottlenecks of causes in these programs, where they are not those of the causes: threads that launch only write."""


def account(simulation: Simulation, loops: Loops) -> dict[str, float]:
    """The true share of the time since the loop began that goes to each bottleneck, a mean over the GPUs: idle time by
    its roots. What else is no copy is in kernels."""
    assert loops.start_ns is not None
    shares: dict[str, float] = defaultdict(float)
    truths = simulation.truth(simulation.capture).values()
    for truth in truths:
        length = len(truths) * (truth.window[1] - max(loops.start_ns, truth.window[0]))
        gaps = (gap for gap in truth.gaps if gap.start >= loops.start_ns)
        for cause, ns in (root for gap in gaps for root in gap.root_ledger.items()):
            shares[OF_WRITES.get(cause, CAUSES[cause].bottleneck)] += ns / length
        shares["copies"] += truth.exposed_copy / (len(truths) * (truth.window[1] - truth.window[0]))
    return {**shares, "kernels": max(1 - sum(shares.values()), 0.0)}


def starts(loops: Loops) -> dict[str, IntArray]:
    """When each repeat of each level begins on its GPU."""
    ops = _of_threads(each for begun in loops.begun.values() for each in begun)
    found = {level: [ops[t][at].start for t, at in begun if at < len(ops[t])] for level, begun in loops.begun.items()}
    return {level: np.sort(np.array(each, np.int64)) for level, each in found.items()}


__all__ = [
    "CLASSES",
    "Class",
    "Fix",
    "Loops",
    "Made",
    "account",
    "in_steps",
    "lengths",
    "programs",
    "some",
    "starts",
    "varied",
    "window_length",
]
