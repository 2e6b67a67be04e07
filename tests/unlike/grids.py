"""Programs that compute in levels: cycles over grids, rays that end, layers that are computed again."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import ranged
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.host import Body
from tests.unlike.made import Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, read_back


def _cycles_sizes(chance: random.Random) -> Made:
    return Made(
        levels=chance.choice((3, 5)),
        sweeps=chance.choice((1, 2)),
        kernel=some(chance, 200),
        move=some(chance, 60),
        coarse=some(chance, 100),
        on_host=chance.random() < 0.6,
        every=chance.choice((1, 1, 4)),
        waits=chance.random() < 0.7,
        names=chance.choice(("steps", "none", "levels")),
    )


def _cycles_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "smooth", "kernel", "kernel")]
    return found + ([halved(made, "coarse_solve", "coarse"), gone("coarse_solve", "coarse")] if made.on_host else [])


@programs(_cycles_fixes, _cycles_sizes)
def cycles_over_grids(sim: Simulation, loops: Loops, made: Made) -> None:
    """V-cycles from fine to coarse grids and back; the coarsest one is solved by the host, and the norm read back."""
    process = solver(sim)

    def level(t: Thread, number: int, at: int, way: str) -> Body:
        for sweep in range(made.sweeps):
            yield from t.launch("smooth", varied(made.kernel, number, at, sweep, way) >> at)
        yield from t.launch("restrict" if way == "down" else "prolong", made.move >> at)

    def step(t: Thread, number: int) -> Body:
        for way, levels in (("down", range(made.levels)), ("up", range(made.levels - 1, -1, -1))):
            for at in levels:
                yield from ranged(t, f"level {at}" if made.names == "levels" else "", level(t, number, at, way))
            if way == "down" and made.on_host:
                yield from t.blocking_copy("DtoH", 4096, 3 * US)
                solved = varied(made.coarse, "coarse", number)
                yield from ranged(t, "coarse_solve", t.compute(solved, "dgetrs"))
                yield from t.copy("HtoD", 4096, 3 * US)
            elif way == "down":
                yield from t.launch("coarse_direct", made.coarse)
        yield from t.launch("norm", 20 * US)
        if number % made.every == made.every - 1:
            yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)


def _rays_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        kernel=some(chance, 400),
        shading=some(chance, 300),
        lost=chance.choice((0.3, 0.6)),
        tone=some(chance, 150),
        scene=some(chance, 100),
        names=chance.choice(("steps", "none", "bounces")),
    )


def _rays_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "shade", "shading", "kernel"), halved(made, "update_scene", "scene")]
    return [*found, gone("update_scene", "scene")]


@programs(_rays_fixes, _rays_sizes, levels=("step", "bounce"))
def rays_until_none_is_left(sim: Simulation, loops: Loops, made: Made) -> None:
    """Each frame traces rays, bounce by bounce, of which fewer are left each time; the host reads how many."""
    process = solver(sim)

    def bounce(t: Thread, left: float, *key: int) -> Body:
        yield from t.launch("trace", round(varied(made.kernel, *key) * left) + 2 * US)
        yield from t.launch("shade", round(varied(made.shading, *key, "s") * left))
        yield from t.launch("compact", 8 * US)
        yield from t.blocking_copy("DtoH", 4, 2 * US)

    def step(t: Thread, number: int) -> Body:
        chance = random.Random(f"{made.order} {number}")
        yield from ranged(t, "update_scene", t.compute(varied(made.scene, "scene", number), "refit"))
        yield from t.copy("HtoD", SIZE, 30 * US)
        yield from t.launch("generate_rays", 60 * US)
        left, at = 1.0, 0
        while left > 0.02 and at < 12:
            loops.step(t, "bounce")
            yield from ranged(t, f"bounce {at}" if made.names == "bounces" else "", bounce(t, left, number, at))
            left, at = left * (1 - made.lost * chance.uniform(0.6, 1.4)), at + 1
        yield from t.launch("tone_map", made.tone)

    in_steps(sim, process, loops, made, step)


def _again_sizes(chance: random.Random) -> Made:
    return Made(
        layers=chance.choice((4, 8)),
        each=chance.choice((1, 2)),
        host=some(chance, 60),
        kernel=some(chance, 80),
        update=some(chance, 100),
        every=chance.choice((1, 5)),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none", "layers")),
    )


def _again_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "forward_gemm", "kernel", "kernel"), halved(made, "collate", "host")]
    return [found[1], gone("collate", "host"), halved(made, "adam", "update", "kernel")]


@programs(_again_fixes, _again_sizes)
def layers_computed_again(sim: Simulation, loops: Loops, made: Made) -> None:
    """Forward passes of some layers at a time are computed again in the backward pass; the loss is read now and
    then."""
    process = solver(sim)

    def layer(t: Thread, name: str, number: int, at: int) -> Body:
        yield from t.launch(f"{name}_gemm", varied(made.kernel, number, at, name))
        yield from t.launch(f"{name}_norm", 12 * US)

    def backward(t: Thread, number: int, at: int) -> Body:
        for part in range(made.each):
            yield from layer(t, "forward", number, at + part)
        for part in range(made.each):
            yield from layer(t, "backward", number, at + part)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "collate", t.compute(varied(made.host, "host", number), "collate"))
        yield from t.copy("HtoD", SIZE, 30 * US)
        for at in range(made.layers):
            yield from ranged(t, f"layer {at}" if made.names == "layers" else "", layer(t, "forward", number, at))
        yield from t.launch("loss", 15 * US)
        for at in range(0, made.layers, made.each):
            yield from backward(t, number, at)
        yield from t.launch("adam", made.update)
        if number % made.every == made.every - 1:
            yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)
