"""Programs with models: rollouts and updates in turn, verified drafts, images, experts, and input by others."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

from tests.diagnosis.programs.registry import MS, US, solver
from tests.replay.pairs.pair import ranged, waking
from tests.simulator import Simulation
from tests.simulator.actions import Node, Thread
from tests.simulator.device import Collective
from tests.simulator.host import Body
from tests.unlike.computing import nothing
from tests.unlike.made import STEPS, Fix, Loops, Made, in_steps, programs, some, varied
from tests.unlike.training import SIZE, gone, halved

LAST_STAGE = 2
"""Of a pipeline of three stages."""


def _rl_sizes(chance: random.Random) -> Made:
    return Made(
        envs=chance.choice((8, 16, 32)),
        epochs=chance.choice((1, 2, 4)),
        batches=chance.choice((2, 4)),
        env=some(chance, 120),
        policy=some(chance, 20, 0.4),
        kernel=some(chance, 150),
        memory="pageable",
        names=chance.choice(("steps", "none", "parts")),
    )


def _rl_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "policy_mlp", "policy", "kernel"), halved(made, "env", "env"), gone("env", "env")]
    return [*found, Fix("pinned", {"memory": "pinned"}, finding="blocking_copy")]


@programs(_rl_fixes, _rl_sizes)
def rollouts_and_updates(sim: Simulation, loops: Loops, made: Made) -> None:
    """A rollout of actions, one by one, then some epochs of updates on what it gave."""
    process = solver(sim)

    def act(t: Thread, *key: int) -> Body:
        yield from ranged(t, "env", t.compute(varied(made.env, "env", *key), "env_step"))
        yield from t.copy("HtoD", 65536, 6 * US)
        for part in range(3):
            yield from t.launch("policy_mlp", varied(made.policy, *key, part))
        yield from t.launch("sample_action", 5 * US)
        yield from t.blocking_copy("DtoH", 256, 2 * US, staging=(10 if made.memory == "pageable" else 4) * US)

    def update(t: Thread, *key: int) -> Body:
        yield from t.compute(20 * US, "index")
        for part in range(3):
            yield from t.launch("ppo_forward", varied(made.kernel, *key, part))
        for part in range(3):
            yield from t.launch("ppo_backward", varied(made.kernel * 2, *key, part, "b"))
        yield from t.launch("adam", 40 * US)

    def step(t: Thread, number: int) -> Body:
        for at in range(made.envs):
            loops.step(t, "env")
            yield from ranged(t, "act" if made.names == "parts" else "", act(t, number, at))
        for epoch in range(made.epochs):
            for batch in range(made.batches):
                loops.step(t, "batch")
                yield from ranged(t, "update" if made.names == "parts" else "", update(t, number, epoch, batch))

    in_steps(sim, process, loops, made, step)


def _draft_sizes(chance: random.Random) -> Made:
    return Made(
        order=chance.randint(0, 999),
        drafts=chance.choice((3, 5)),
        layers=chance.choice((2, 4)),
        small=some(chance, 15, 0.4),
        large=some(chance, 120),
        host=some(chance, 50),
        graphs=chance.random() < 0.5,
        early=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


def _draft_fixes(made: Made) -> Sequence[Fix]:
    return [halved(made, "verify_layer", "large", "kernel"), halved(made, "accept", "host"), gone("accept", "host")]


@programs(_draft_fixes, _draft_sizes)
def drafts_that_are_verified(sim: Simulation, loops: Loops, made: Made) -> None:
    """A small model drafts some tokens, a large one verifies them; the host counts the accepted ones. A draft may stop
    early."""
    process = solver(sim)

    def pass_of(t: Thread, name: str, ns: int, layers: int, number: int, *key: object) -> Body:
        nodes = [Node(name, varied(ns, *key, at)) for at in range(layers)]
        if made.graphs:
            yield from t.launch_graph(nodes, number=number)
        else:
            for node in nodes:
                yield from t.launch(node.name, node.duration)

    def step(t: Thread, number: int) -> Body:
        count = made.drafts
        if made.early:
            count = random.Random(f"{made.order} {number}").randint(1, made.drafts)
        for at in range(count):
            loops.step(t, "draft")
            yield from pass_of(t, "draft_layer", made.small, made.layers, 1, number, at)
            yield from t.launch("draft_sample", 5 * US)
            if made.early:
                yield from t.blocking_copy("DtoH", 8, 2 * US)
        yield from pass_of(t, "verify_layer", made.large, 3 * made.layers, 2, number, "v")
        yield from t.launch("rejection_sample", 8 * US)
        yield from t.blocking_copy("DtoH", 64, 2 * US)
        yield from ranged(t, "accept", t.compute(varied(made.host, "host", number), "accept"))

    in_steps(sim, process, loops, made, step)


def _diffusion_sizes(chance: random.Random) -> Made:
    return Made(
        denoise=chance.choice((4, 8, 20)),
        blocks=chance.choice((3, 6)),
        kernel=some(chance, 100),
        scheduler=some(chance, 60),
        decode=some(chance, 600),
        save=some(chance, 800),
        reads=chance.random() < 0.5,
        names=chance.choice(("steps", "none", "denoise")),
    )


def _diffusion_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "scheduler", "scheduler"), gone("scheduler", "scheduler")]
    return [*found, halved(made, "save", "save"), gone("save", "save")]


@programs(_diffusion_fixes, _diffusion_sizes, levels=("step", "denoise"))
def images_by_diffusion(sim: Simulation, loops: Loops, made: Made) -> None:
    """Each image takes some passes of a network, the host's scheduler between, then a decoder, and a file."""
    process = solver(sim)

    def denoise(t: Thread, *key: int) -> Body:
        yield from ranged(t, "scheduler", t.compute(varied(made.scheduler, "s", *key), "scheduler_step"))
        if made.reads:
            yield from t.copy("HtoD", 64, 2 * US)
        for at in range(made.blocks):
            yield from t.launch("conv", varied(made.kernel, *key, at))
            yield from t.launch("flash_attention", varied(made.kernel // 2, *key, at, "a"))
        yield from t.launch("euler_update", 12 * US)
        if made.reads:
            yield from t.blocking_copy("DtoH", 8, 2 * US)

    def step(t: Thread, number: int) -> Body:
        yield from t.compute(50 * US, "tokenize")
        yield from t.copy("HtoD", 4096, 3 * US)
        yield from t.launch("text_encoder", 150 * US)
        for at in range(made.denoise):
            loops.step(t, "denoise")
            yield from ranged(t, f"step {at}" if made.names == "denoise" else "", denoise(t, number, at))
        for part in range(4):
            yield from t.launch("vae_decode", varied(made.decode // 4, "vae", number, part))
        yield from t.blocking_copy("DtoH", SIZE, 60 * US)
        yield from ranged(t, "save", t.compute(varied(made.save, "save", number), "png_write"))

    in_steps(sim, process, loops, made, step)


def _moe_sizes(chance: random.Random) -> Made:
    return Made(
        layers=chance.choice((2, 4)),
        attention=some(chance, 80),
        expert=some(chance, 120),
        uneven=chance.choice((0.2, 0.6, 1.0)),
        comm=some(chance, 40),
        host=some(chance, 40),
        hot=chance.random() < 0.5,
        reads=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


@programs(nothing, _moe_sizes, gpus=4, levels=("step", "layer"), leads=("communication",))
def experts_of_uneven_load(sim: Simulation, loops: Loops, made: Made) -> None:
    """Four GPUs exchange tokens with all others around experts, of which some have more of them."""
    joined: dict[tuple[object, ...], Collective] = {}

    def together(*key: object) -> Collective:
        return joined.setdefault(key, sim.collective(4))

    def step(t: Thread, rank: int, number: int) -> Body:
        yield from t.compute(varied(made.host, rank, number), "prepare")
        for layer in range(made.layers):
            if not rank:
                loops.step(t, "layer")
            yield from t.launch("flash_fwd", varied(made.attention, rank, number, layer))
            if made.reads:
                yield from t.blocking_copy("DtoH", 64, 2 * US)
            yield from t.launch("ncclDevKernel_SendRecv", made.comm, collective=together(number, layer, 0))
            chance = random.Random(repr((rank, number, layer))).random()
            load = 1 + made.uneven * (rank == 2 if made.hot else chance)
            yield from t.launch("expert_gemm", round(varied(made.expert, rank, number, layer, "e") * load))
            yield from t.launch("ncclDevKernel_SendRecv", made.comm, collective=together(number, layer, 1))
        yield from t.launch("head", 50 * US)
        yield from t.blocking_copy("DtoH", 64, 2 * US)

    for rank in range(4):
        _in_rank(sim, loops, made, partial(step, rank=rank), rank)


def _bubbles_sizes(chance: random.Random) -> Made:
    return Made(
        micro=chance.choice((2, 4, 8)),
        forward=some(chance, 100),
        ratio=chance.choice((1.0, 1.0, 1.8)),
        send=some(chance, 15, 0.4),
        update=some(chance, 100),
        host=some(chance, 10, 0.3),
        names=chance.choice(("steps", "none")),
    )


@programs(nothing, _bubbles_sizes, gpus=3, levels=("step", "micro"), leads=("communication",))
def stages_with_bubbles(sim: Simulation, loops: Loops, made: Made) -> None:
    """Three stages, a process each: forward passes of all micro batches, then backward passes, by sends and
    receives."""
    joined: dict[tuple[object, ...], Collective] = {}

    def meet(t: Thread, near: int, *key: object) -> Body:
        """Send to the stage behind `near`, or receive from it; the first and the last have no neighbour there."""
        if 0 <= near < LAST_STAGE:
            both = joined.setdefault((near, *key), sim.collective(2))
            yield from t.launch("ncclDevKernel_SendRecv", made.send, collective=both)

    def step(t: Thread, rank: int, number: int) -> Body:
        scale = made.ratio if rank == 1 else 1.0
        for part in range(made.micro):
            if not rank:
                loops.step(t, "micro")
            yield from t.compute(made.host, "schedule")
            yield from meet(t, rank - 1, number, part, "forward")
            yield from t.launch("forward_gemm", round(scale * varied(made.forward, rank, number, part)))
            yield from meet(t, rank, number, part, "forward")
        for part in range(made.micro):
            yield from t.compute(made.host, "schedule")
            yield from meet(t, rank, number, part, "backward")
            yield from t.launch("backward_gemm", round(2 * scale * varied(made.forward, rank, number, part, "b")))
            yield from meet(t, rank - 1, number, part, "backward")
        yield from t.launch("multi_tensor_adam", made.update)
        yield from t.synchronize()

    for rank in range(LAST_STAGE + 1):
        _in_rank(sim, loops, made, partial(step, rank=rank), rank)


def _in_rank(sim: Simulation, loops: Loops, made: Made, step: Callable[..., Body], rank: int) -> None:
    """A process of its own takes all steps; the first one is that whose steps are counted."""

    def main(t: Thread) -> Body:
        if not rank:
            loops.begin(t)
        for number in range(STEPS):
            if not rank:
                loops.step(t)
            yield from ranged(t, f"step {number}" if made.names == "steps" else "", step(t, number=number))
        if not rank:
            loops.end(t)

    sim.thread(solver(sim, [rank]), main, name=f"rank{rank}")


def _workers_sizes(chance: random.Random) -> Made:
    return Made(
        workers=chance.choice((1, 2, 4)),
        read=some(chance, 300),
        decode=some(chance, 800),
        kernel=some(chance, 150),
        pin=some(chance, 60),
        host=some(chance, 40),
        waits=chance.random() < 0.5,
        names=chance.choice(("steps", "none")),
    )


@programs(nothing, _workers_sizes, leads=("input",))
def workers_in_other_processes(sim: Simulation, loops: Loops, made: Made) -> None:
    """Worker processes read and decode batches in turn, and write them to pipes; a thread copies each."""
    trainer, ready = solver(sim), sim.channel()
    pipes = [sim.channel() for _ in range(made.workers)]
    asked = [sim.channel() for _ in range(made.workers)]
    for each in asked:
        each.items = 2

    def work(index: int) -> Callable[[Thread], Body]:
        def run(t: Thread) -> Body:
            for number in range(index, STEPS, made.workers):
                yield from t.get(asked[index], "read")
                yield from t.read_file(varied(made.read, "read", number), "read")
                yield from t.compute(varied(made.decode, "decode", number), "jpeg_idct_islow")
                yield from t.put(pipes[index], "write")

        return run

    def pin(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(pipes[number % made.workers], "read")
            yield from t.compute(varied(made.pin, "pin", number), "memcpy")
            yield from t.put(ready, "pthread_cond_signal")

    def step(t: Thread, number: int) -> Body:
        yield from t.get(ready, "pthread_cond_wait")
        yield from t.put(asked[number % made.workers], "write")
        yield from t.compute(varied(made.host, number), "to_device")
        yield from t.copy("HtoD", SIZE, 70 * US)
        for part in range(4):
            yield from t.launch("train_gemm", varied(made.kernel, number, part))
        yield from t.launch("adam", 60 * US)
        if made.waits:
            yield from t.blocking_copy("DtoH", 4, 2 * US)

    for index in range(made.workers):
        waking(sim.thread(sim.process(gpus=[]), work(index), name="pt_data_worker", loads="name"))
    waking(sim.thread(trainer, pin, name="stager"))
    in_steps(sim, trainer, loops, made, step)


def _video_sizes(chance: random.Random) -> Made:
    return Made(
        frames=chance.choice((1, 4, 8)),
        decode=some(chance, 200),
        kernel=some(chance, 150),
        post=some(chance, 80),
        ahead=chance.choice((0, 1)),
        names=chance.choice(("steps", "none")),
    )


def _video_fixes(made: Made) -> Sequence[Fix]:
    found = [halved(made, "trt_conv", "kernel", "kernel"), halved(made, "boxes", "post"), gone("boxes", "post")]
    return [*found, Fix("no decoding", {"decode": 0}, finding="io_wait")]


@programs(_video_fixes, _video_sizes, leads=("input", "sync", "unknown"))
def frames_decoded_by_the_gpu(sim: Simulation, loops: Loops, made: Made) -> None:
    """The decoder of the GPU, which leaves no rows, makes frames; a thread waits for each in ioctl, and converts it."""
    process, full, free = solver(sim), sim.channel(), sim.channel()
    free.items = 1 + made.ahead
    side, own = process.stream(), process.stream()

    def decoder(t: Thread) -> Body:
        for number in range(STEPS):
            yield from t.get(free, "sem_wait")
            for frame in range(made.frames):
                if made.decode:
                    yield from t.os_call("ioctl", varied(made.decode, "decode", number, frame), "io_wait", blocked=True)
                yield from t.launch("nv12_to_rgb", 15 * US, side)
            yield from t.synchronize(side)
            yield from t.put(full, "pthread_cond_signal")

    def step(t: Thread, number: int) -> Body:
        yield from t.get(full, "pthread_cond_wait")
        for part in range(4):
            yield from t.launch("trt_conv", varied(made.kernel, number, part), own)
        yield from t.blocking_copy("DtoH", 65536, 6 * US, own)
        yield from t.put(free, "sem_post")
        yield from ranged(t, "boxes", t.compute(varied(made.post, "post", number), "nms_cpu"))

    in_steps(sim, process, loops, made, step)
    sim.thread(process, decoder, name="decoder")


def _fused_sizes(chance: random.Random) -> Made:
    return Made(
        compile=chance.choice((50, 300, 1500)) * MS,
        kernels=chance.choice((2, 3)),
        kernel=some(chance, 900),
        host=some(chance, 80),
        waits=chance.choice((1, 5, 10)),
        names=chance.choice(("steps", "none")),
    )


@programs(nothing, _fused_sizes, leads=("startup",))
def few_fused_kernels_behind_a_compile(sim: Simulation, loops: Loops, made: Made) -> None:
    """A long compile, then a few large kernels in each step, which the host launches ahead."""
    process = sim.process()

    def step(t: Thread, number: int) -> Body:
        if not number:
            yield from t.compute(made.compile, "llvm_optimize")
            yield from t.api("cuModuleLoadDataEx", 4 * MS, "module_load")
        yield from t.compute(varied(made.host, number), "dispatch")
        yield from t.copy("HtoD", SIZE, 40 * US)
        for part in range(made.kernels):
            yield from t.launch(f"fused_block_{part}", varied(made.kernel, number, part))
        if number % made.waits == 0:
            yield from t.blocking_copy("DtoH", 4, 2 * US)

    in_steps(sim, process, loops, made, step)
