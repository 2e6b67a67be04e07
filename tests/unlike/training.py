"""Training programs: uneven micro batches, two models in turn, evaluations, checkpoints, and a server of parameters."""

from __future__ import annotations

import random
from collections.abc import Sequence

from nsysdiag.replay.facts import Transform
from tests.diagnosis.programs.registry import US, solver
from tests.replay.pairs.pair import BACKGROUND, faster, ranged, waking, without
from tests.simulator import Simulation
from tests.simulator.actions import Thread
from tests.simulator.device import Stream
from tests.simulator.host import Body
from tests.unlike.made import STEPS, Fix, Loops, Made, programs, some, varied

SIZE = 1 << 20


def halved(made: Made, name: str, size: str, option: str = "host") -> Fix:
    """Kernels, or host code in a range, of half their time."""
    return Fix(f"{size} halved", {size: getattr(made, size) // 2}, (faster(option, name, 0.5),))


def gone(name: str, size: str) -> Fix:
    """Host code in a range is gone, as a finding says."""
    return Fix(f"{size} gone", {size: 0}, finding=f"host_compute:{name}")


def no_read_back(made: Made) -> list[Fix]:
    """The loss is read no more, if it was."""
    return [Fix("no read-back", {"waits": False}, without("blocking_copy"), "blocking_copy")] if made.waits else []


def read_back(t: Thread, made: Made, size: int = 4, stream: Stream | None = None) -> Body:
    """A value is copied to the host, which waits for it if `made.waits`."""
    if made.waits:
        yield from t.blocking_copy("DtoH", size, 2 * US, stream)
    else:
        yield from t.copy("DtoH", size, 2 * US, stream)


def _uneven_sizes(chance: random.Random) -> Made:
    return Made(
        micro=chance.choice((3, 4, 6)),
        host=some(chance, 60),
        kernel=some(chance, 120),
        update=some(chance, 80),
        spread=chance.choice((0.2, 0.5, 0.8)),
        apart=False,
        waits=chance.random() < 0.5,
        slow=chance.random() < 0.4,
        names=chance.choice(("steps", "none", "micro")),
    )


def _uneven_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "forward_gemm", "kernel", "kernel"), halved(made, "adam", "update", "kernel")]
    found += [halved(made, "collate", "host"), gone("collate", "host")]
    found += [Fix("copies apart", {"apart": True}, (Transform("overlap", "copies"),), "exposed_copy")]
    return [*found, *no_read_back(made)]


@programs(_uneven_fixes, _uneven_sizes)
def uneven_accumulation(sim: Simulation, loops: Loops, made: Made) -> None:
    """Micro batches of uneven lengths, then one update."""
    process = solver(sim)
    side, copied = process.stream(), []

    def upload(t: Thread) -> Body:
        yield from t.copy("HtoD", SIZE, 40 * US, side)
        copied.append(t.event())
        yield from t.record(copied[-1], side)

    def micro(t: Thread, number: int, part: int) -> Body:
        key = ("micro", number, part)
        yield from ranged(t, "collate", t.compute(varied(made.host, *key, "h", spread=made.spread), "collate"))
        if made.apart:  # the batch of the next one is copied while this one is computed
            yield from t.wait_event(process.null, copied[-1])
            yield from upload(t)
        else:
            yield from t.copy("HtoD", SIZE, 40 * US)
        yield from t.launch("forward_gemm", varied(made.kernel, *key, spread=made.spread))
        yield from t.launch("backward_act", varied(60 * US, *key, "b", spread=made.spread))

    def main(t: Thread) -> Body:
        loops.begin(t)
        if made.apart:
            yield from upload(t)
        for number in range(STEPS):
            loops.step(t)
            if made.names == "steps":
                t.push(f"step {number}")
            for part in range(made.micro):
                loops.step(t, "micro")
                name = f"batch {part}" if made.names == "micro" else ""
                yield from ranged(t, name, micro(t, number, part))
            for part in range(3):
                yield from t.launch("adam", varied(made.update, "update", number, part))
            if made.waits:
                yield from t.blocking_copy("DtoH", 4, 2 * US)
            if made.names == "steps":
                t.pop()
        loops.end(t)
        yield from t.synchronize()

    thread = sim.thread(process, main, name="trainer")
    if made.slow:
        waking(thread)


def _gan_sizes(chance: random.Random) -> Made:
    return Made(
        critics=chance.choice((1, 1, 2, 5)),
        host=some(chance, 80),
        critic=some(chance, 150),
        kernel=some(chance, 200),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none", "parts")),
    )


def _gan_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "discriminate", "critic", "kernel"), halved(made, "generate", "kernel", "kernel")]
    found += [halved(made, "sample_noise", "host"), gone("sample_noise", "host")]
    return [*found, *no_read_back(made)]


@programs(_gan_fixes, _gan_sizes)
def two_models_in_turn(sim: Simulation, loops: Loops, made: Made) -> None:
    """A discriminator some times, then a generator: a read-back of the loss behind each."""
    process = solver(sim)

    def half(t: Thread, name: str, ns: int, *key: object) -> Body:
        yield from ranged(t, "sample_noise", t.compute(varied(made.host, *key, "h"), "sample_noise"))
        yield from t.launch("embed", 30 * US)
        for part in range(3):
            yield from t.launch(name, varied(ns, *key, part))
        if made.waits:
            yield from t.blocking_copy("DtoH", 4, 2 * US)

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(STEPS):
            loops.step(t)
            if made.names == "steps":
                t.push(f"iteration {number}")
            for part in range(made.critics):
                loops.step(t, "half")
                name = "critic" if made.names == "parts" else ""
                yield from ranged(t, name, half(t, "discriminate", made.critic, number, part))
            loops.step(t, "half")
            yield from ranged(t, "actor" if made.names == "parts" else "", half(t, "generate", made.kernel, number))
            if made.names == "steps":
                t.pop()
        loops.end(t)
        yield from t.synchronize()

    sim.thread(process, main, name="trainer")


def _evaluation_sizes(chance: random.Random) -> Made:
    return Made(
        every=chance.choice((5, 8, 10, 13)),
        batches=chance.choice((3, 10)),
        host=some(chance, 120),
        kernel=some(chance, 150),
        other=some(chance, 100),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _evaluation_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train_gemm", "kernel", "kernel"), halved(made, "augment", "host"), gone("augment", "host")]
    found += [halved(made, "infer_gemm", "other", "kernel")]
    return [*found, Fix("no sync", {"waits": False}, without("sync"), "sync")] if made.waits else found


@programs(_evaluation_fixes, _evaluation_sizes)
def evaluation_now_and_then(sim: Simulation, loops: Loops, made: Made) -> None:
    """Every few steps an evaluation of other kernels, with a read-back for each batch."""
    process = solver(sim)

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "augment", t.compute(varied(made.host, "host", number), "augment"))
        yield from t.copy("HtoD", SIZE, 50 * US)
        for part in range(4):
            yield from t.launch("train_gemm", varied(made.kernel, "kernel", number, part))
        yield from t.launch("update", 50 * US)
        if made.waits:
            yield from t.synchronize()

    def evaluate(t: Thread, number: int) -> Body:
        for batch in range(made.batches):
            yield from t.copy("HtoD", SIZE, 50 * US)
            yield from t.launch("infer_gemm", varied(made.other, "other", number, batch))
            yield from t.blocking_copy("DtoH", 4096, 3 * US)

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(STEPS):
            loops.step(t)
            yield from ranged(t, f"step {number}" if made.names == "steps" else "", step(t, number))
            if number % made.every == made.every - 1:
                yield from ranged(t, "evaluate" if made.names == "steps" else "", evaluate(t, number))
        loops.end(t)
        yield from t.synchronize()

    sim.thread(process, main, name="trainer")


def _checkpoint_sizes(chance: random.Random) -> Made:
    return Made(
        every=chance.choice((4, 8)),
        chunks=chance.choice((4, 16)),
        write=some(chance, 150),
        host=some(chance, 100),
        kernel=some(chance, 200),
        sync=chance.random() < 0.5,
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _checkpoint_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "train_gemm", "kernel", "kernel"), halved(made, "schedule", "host"), gone("schedule", "host")]
    found += [Fix("no writes", {"write": 0}, without("io_wait"))]
    return [*found, Fix("no sync", {"sync": False}, without("sync"), "sync")] if made.sync else found


@programs(_checkpoint_fixes, _checkpoint_sizes)
def asynchronous_checkpoints(sim: Simulation, loops: Loops, made: Made) -> None:
    """A thread copies the parameters to the host and writes them; the next checkpoint waits for the last one."""
    process, asked, free = solver(sim), sim.channel(), sim.channel()
    free.items = 1
    own, side = process.stream(), process.stream()

    def save(t: Thread) -> Body:
        for number in range(0, STEPS, made.every):
            yield from t.get(asked, "pthread_cond_wait")
            for chunk in range(made.chunks):
                yield from t.copy("DtoH", SIZE, 60 * US, side)
                yield from t.synchronize(side)
                if made.write:
                    yield from t.read_file(varied(made.write, "write", number, chunk), "write")
            yield from t.put(free, "sem_post")

    def step(t: Thread, number: int) -> Body:
        yield from ranged(t, "schedule", t.compute(varied(made.host, "host", number), "schedule"))
        for part in range(3):
            yield from t.launch("train_gemm", varied(made.kernel, number, part), own)
        if number % made.every == 0:
            yield from t.get(free, "sem_wait")
            yield from t.put(asked, "pthread_cond_signal")
        if made.sync:
            yield from t.synchronize(own)

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(STEPS):
            loops.step(t)
            yield from ranged(t, f"step {number}" if made.names == "steps" else "", step(t, number))
        loops.end(t)
        yield from t.synchronize(own)

    threads = sim.thread(process, save, name=BACKGROUND), sim.thread(process, main, name="trainer")
    for each in threads if made.slow else ():
        waking(each)


def _server_sizes(chance: random.Random) -> Made:
    return Made(
        behind=chance.choice((0, 1, 2)),
        apply=some(chance, 200),
        host=some(chance, 80),
        kernel=some(chance, 250),
        pull=some(chance, 80),
        slow=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _server_fixes(made: Made) -> Sequence[Fix]:
    return [
        halved(made, "gradient", "kernel", "kernel"),
        halved(made, "prepare", "host"),
        gone("prepare", "host"),
        halved(made, "apply", "apply"),
        gone("apply", "apply"),
    ]


@programs(_server_fixes, _server_sizes)
def a_server_of_parameters(sim: Simulation, loops: Loops, made: Made) -> None:
    """A thread pulls gradients from the GPU, applies them on the CPU, and pushes parameters; steps may be some ahead.

    server   [pull][apply ......][push](post)
    trainer  [prepare][launch](asks)            (waits for the one `behind` before)
    """
    process, asked, done = solver(sim), sim.channel(), sim.channel()
    done.items = made.behind
    own, side = process.stream(), process.stream()
    ready = {}

    def serve(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(asked, "sem_wait")
            yield from t.wait_event(side, ready[number])
            yield from t.blocking_copy("DtoH", SIZE, varied(made.pull, "pull", number), side, host="pinned")
            yield from ranged(t, "apply", t.compute(varied(made.apply, "apply", number), "apply_gradients"))
            yield from t.copy("HtoD", SIZE, varied(made.pull, "push", number), side)
            yield from t.synchronize(side)
            yield from t.put(done, "sem_post")

    def step(t: Thread, number: int) -> Body:
        yield from t.get(done, "sem_wait") if number or made.behind else t.compute(2 * US)
        yield from ranged(t, "prepare", t.compute(varied(made.host, "host", number), "prepare"))
        yield from t.launch("gradient", varied(made.kernel, "kernel", number), own)
        ready[number] = t.event()
        yield from t.record(ready[number], own)
        yield from t.put(asked, "sem_post")

    def main(t: Thread) -> Body:
        loops.begin(t)
        for number in range(STEPS):
            loops.step(t)
            yield from ranged(t, f"step {number}" if made.names == "steps" else "", step(t, number))
        loops.end(t)
        yield from t.synchronize(own)

    threads = sim.thread(process, serve, name="server"), sim.thread(process, main, name="trainer")
    for each in threads if made.slow else ():
        waking(each)
