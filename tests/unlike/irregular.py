"""Programs whose steps differ by chance: drafted tokens, updates after enough tokens, misses of a cache, shapes without
a graph, and a producer of batches in bursts."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import ranged, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved, no_read_back, read_back


def _drafts_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        drafts=chance.choice((2, 4, 6)),
        small=some(chance, 15, 0.4),
        kernel=some(chance, 80),
        layers=chance.choice((3, 8)),
        accept=some(chance, 60),
        stops=chance.choice((0.0, 0.3)),
        reads=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _drafts_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "target_layer", "kernel", "kernel"), halved(made, "draft_layer", "small", "kernel")]
    return [*found, halved(made, "accept", "accept"), gone("accept", "accept")]


@programs(_drafts_fixes, _drafts_sizes, levels=("step", "draft"))
def drafts_of_a_small_model(sim: Simulation, loops: Loops, made: Made) -> None:
    """A small model drafts some tokens, fewer if it is unsure, and a large one checks them all at once."""
    process = solver(sim)

    def draft(t: Thread, number: int, at: int) -> Body:
        for layer in range(2):
            yield from t.launch("draft_layer", varied(made.small, "draft", number, at, layer))
        if made.reads:
            yield from t.blocking_copy("DtoH", 4, 2 * US)

    def step(t: Thread, number: int) -> Body:
        chance = random.Random(f"{made.order} {number}")
        yield from t.copy("HtoD", 4096, 3 * US)
        for at in range(made.drafts):
            loops.step(t, "draft")
            yield from draft(t, number, at)
            if chance.random() < made.stops:
                break
        for layer in range(made.layers):
            yield from t.launch("target_layer", varied(made.kernel, "target", number, layer))
        yield from t.launch("sample", 8 * US)
        yield from t.blocking_copy("DtoH", 256, 2 * US)
        yield from ranged(t, "accept", t.compute(varied(made.accept, "accept", number), "accept_tokens"))

    in_steps(sim, process, loops, made, step)


def _tokens_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        enough=chance.choice((2, 4, 7)),
        collate=some(chance, 80),
        kernel=some(chance, 120),
        back=some(chance, 240),
        update=some(chance, 100),
        waits=chance.random() < 0.5,
        norm=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _tokens_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "forward", "kernel", "kernel"), halved(made, "adam", "update", "kernel")]
    return [*found, halved(made, "collate", "collate"), gone("collate", "collate"), *no_read_back(made)]


@programs(_tokens_fixes, _tokens_sizes, levels=("step", "update"))
def updates_after_enough_tokens(sim: Simulation, loops: Loops, made: Made) -> None:
    """Batches of any number of tokens add to the gradient; once these are enough, the weights are updated."""
    process, chance, tokens = solver(sim), random.Random(f"tokens {made.order}"), 0.0
    many = [chance.uniform(0.4, 1.6) for _ in range(STEPS)]
    updates: list[bool] = []
    for each in many:
        updates.append(tokens + each >= made.enough)
        tokens = 0.0 if updates[-1] else tokens + each

    def step(t: Thread, number: int) -> Body:
        if not number or updates[number - 1]:
            loops.step(t, "update")
        yield from ranged(t, "collate", t.compute(varied(made.collate, "collate", number), "collate"))
        yield from t.copy("HtoD", SIZE, 30 * US)
        for part in range(3):
            yield from t.launch("forward", round(varied(made.kernel, number, part) * many[number]))
        yield from t.launch("backward", round(varied(made.back, "back", number) * many[number]))
        yield from read_back(t, made)
        if updates[number]:
            yield from t.launch("norm_of_gradient", 20 * US)
            if made.norm:
                yield from read_back(t, made)
            yield from t.launch("adam", varied(made.update, "update", number))

    in_steps(sim, process, loops, made, step)


def _misses_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        misses=chance.choice((0.1, 0.4, 0.8)),
        look=some(chance, 40),
        gather=some(chance, 300),
        copy=some(chance, 120),
        kernel=some(chance, 120),
        waits=chance.random() < 0.5,
        pinned=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _misses_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "interact", "kernel", "kernel"), halved(made, "look_up", "look"), gone("look_up", "look")]
    found += [halved(made, "gather_rows", "gather"), gone("gather_rows", "gather")]
    if not made.waits and made.pinned:
        return found
    change = {"waits": False, "pinned": True}
    both = made.waits and not made.pinned  # which are two findings
    return [*found, Fix("no blocking copies", change, without("blocking_copy"), "" if both else "blocking_copy")]


@programs(_misses_fixes, _misses_sizes, leads=("host", "copies"))
def lookups_with_misses(sim: Simulation, loops: Loops, made: Made) -> None:
    """Rows of a table are cached on the GPU; in some steps the host gathers those that are not, and uploads them."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        chance = random.Random(f"{made.order} {number}")
        yield from ranged(t, "look_up", t.compute(varied(made.look, "look", number), "look_up"))
        if chance.random() < made.misses:
            ns = round(varied(made.gather, "gather", number) * chance.uniform(0.5, 1.5)) if made.gather else 0
            yield from ranged(t, "gather_rows", t.compute(ns, "gather_rows"))
            upload = t.copy if made.pinned else t.blocking_copy
            yield from upload("HtoD", SIZE, varied(made.copy, "rows", number))
            yield from t.launch("fill_cache", 10 * US)
        yield from t.copy("HtoD", 8192, 4 * US)
        yield from t.launch("embed", 15 * US)
        for part in range(3):
            yield from t.launch("interact", varied(made.kernel, number, part))
        yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)


def _shapes_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        eager=chance.choice((0.1, 0.3, 0.6)),
        layers=chance.choice((6, 20)),
        kernel=some(chance, 20, 0.5),
        prepare=some(chance, 60),
        waits=True,
        dispatch=some(chance, 15, 0.5),
        names=chance.choice(("steps", "none")),
    )


def _shapes_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "layer", "kernel", "kernel"), halved(made, "prepare", "prepare")]
    return [*found, gone("prepare", "prepare"), halved(made, "dispatch", "dispatch")]


@programs(_shapes_fixes, _shapes_sizes, leads=("launch", "host"))
def shapes_without_a_graph(sim: Simulation, loops: Loops, made: Made) -> None:
    """Batches of usual shapes are replayed as a graph; for others each layer is dispatched and launched by itself."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "prepare", t.compute(varied(made.prepare, "prepare", number), "prepare"))
        yield from t.copy("HtoD", 8192, 4 * US)
        nodes = [Node("layer", varied(made.kernel, number, at)) for at in range(made.layers)]
        if random.Random(f"{made.order} {number}").random() >= made.eager:
            yield from t.launch_graph(nodes, number=1)
        else:
            for at, node in enumerate(nodes):
                ns = varied(made.dispatch, "dispatch", number, at)
                yield from ranged(t, "dispatch", t.compute(ns, "dispatch"))
                yield from t.launch(node.name, node.duration)
        yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)


def _bursts_sizes(chance: random.Random) -> Made:
    return Made(
        shard=chance.choice((4, 6, 10)),
        room=chance.choice((2, 5, 12)),
        opening=some(chance, 1_500),
        decode=some(chance, 60),
        kernel=some(chance, 150),
        host=some(chance, 40),
        waits=chance.random() < 0.5,
        reads=chance.random() < 0.5,
        slow=chance.random() < 0.4,
        names=chance.choice(("steps", "none")),
    )


def _bursts_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train_gemm", "kernel", "kernel"), halved(made, "to_device", "host")]
    return [*found, gone("to_device", "host"), halved(made, "decode", "decode"), *no_read_back(made)]


@programs(_bursts_fixes, _bursts_sizes, leads=("input",))
def batches_in_bursts(sim: Simulation, loops: Loops, made: Made) -> None:
    """A producer opens a shard, which takes long, and gives its batches one after the other; a queue holds some."""
    process, full, free = solver(sim), sim.channel(), sim.channel()
    free.items = made.room

    def produce(t: Thread) -> Body:
        for number in range(STEPS):
            if number % made.shard == 0:
                ns = varied(made.opening, "opening", number)
                yield from t.read_file(ns, "pread64") if made.reads else t.compute(ns, "open_shard")
            yield from t.get(free, "pthread_cond_wait")
            yield from ranged(t, "decode", t.compute(varied(made.decode, "decode", number), "jpeg_idct_islow"))
            yield from t.put(full, "pthread_cond_signal")

    def step(t: Thread, number: int) -> Body:
        yield from t.get(full, "pthread_cond_wait")
        yield from t.put(free, "pthread_cond_signal")
        yield from ranged(t, "to_device", t.compute(varied(made.host, "host", number), "to_device"))
        yield from t.copy("HtoD", SIZE, 50 * US)
        for part in range(2):
            yield from t.launch("train_gemm", varied(made.kernel, number, part))
        yield from read_back(t, made)

    in_steps(sim, process, loops, made, step)
    thread = sim.thread(process, produce, name="producer")
    if made.slow:
        waking(thread)
