"""A training program in many forms: each fix and each fault is one switch of it, chance is its seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from tests.simulator import Simulation
from tests.simulator.actions import Node
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from tests.simulator.actions import Channel, Thread
    from tests.simulator.capture import Capture
    from tests.simulator.host import Body

LAYERS = 6
GEMM, RELU, NORM = "ampere_sgemm_128x64_tn", "vectorized_elementwise_kernel", "vectorized_layer_norm_kernel"
FORMS: dict[str, list[tuple[str, int]]] = {
    "": [(GEMM, 120), (RELU, 22), (NORM, 30)],
    "renamed": [("sm90_xmma_gemm_f16_tn", 120), (RELU, 22), (NORM, 30)],
    "all renamed": [("sm90_xmma_gemm_f16_tn", 120), ("relu_v2", 22), ("ln_fwd_v2", 30)],
    "fused": [(GEMM, 120), ("fused_relu_norm", 30)],
    "fused into one": [("triton_mm_relu_norm", 150)],
    "split": [(GEMM, 60), ("splitKreduce_kernel", 60), (RELU, 22), (NORM, 30)],
    "other": [("fft_radix_8", 120), ("scan_by_key", 22), ("histogram", 30)],
}
"""The kernels of a layer, and what each takes in µs: the same work in other kernels, and other work."""


@dataclass(frozen=True)
class Program:
    """Steps of a training: a batch from `workers` loaders (0: from memory) is copied, layers run, a loss is read back.

    `sync` waits for the device at every step, and `tail` is how late that returns; `thinking` is host code after it,
    `pageable` how the batch is copied, `graph`
    launches the layers at once, `gemm` and `python` multiply what the kernels and the host code take, `reading` is how
    long a loader needs for a batch, `jitter` the spread of all times, `named` puts NVTX ranges around the steps.
    `layers` and `batch` (bytes) are the work of a step, `tuning` how many kernels a start-up tries. After every `every`
    steps from `first_pause` on the host writes a checkpoint for `pause`. `items` multiplies the threads of all
    kernels and what they take, and `threads` the threads alone, of the kernels it names. `word` is what the ranges call
    a step, and `inputs` whether it has any input that is copied. `form` says in which kernels a layer is.
    """

    seed: int = 0
    steps: int = 30
    sync: bool = False
    tail: int = 2 * US
    thinking: int = 0
    pageable: bool = False
    workers: int = 0
    graph: bool = False
    gemm: float = 1.0
    python: float = 1.0
    reading: int = 4 * MS
    jitter: float = 0.03
    named: bool = True
    layers: int = LAYERS
    batch: int = 8 << 20
    tuning: int = 0
    every: int = 0
    first_pause: int = 0
    pause: int = 20 * MS
    items: float = 1.0
    threads: tuple[str, ...] = ()
    word: str = "step"
    inputs: bool = True
    form: str = ""

    def simulated(self) -> Simulation:
        """The program after it ran."""
        sim = Simulation()
        run = _Run(self, sim)
        process = sim.process()
        for number in range(self.workers):
            loader = sim.process(gpus=[])
            sim.thread(loader, lambda t, number=number: run.load(t, number), name="pt_data_worker", loads="name")
        sim.thread(process, run.main)
        return sim.run()

    def write(self, path: Path, capture: Capture | None = None) -> Path:
        """Its trace, simulated once: many tests compare the same few programs."""
        path.write_bytes(_trace(self, capture))
        return path


@lru_cache(maxsize=64)
def _trace(program: Program, capture: Capture | None) -> bytes:
    with TemporaryDirectory() as folder:
        return program.simulated().write(Path(folder) / "trace.sqlite", capture).read_bytes()


class _Run:
    def __init__(self, program: Program, sim: Simulation) -> None:
        self.program = program
        self.random = np.random.default_rng(program.seed)
        self.batches: Channel = sim.channel()

    def about(self, ns: float) -> int:
        """So long, give or take."""
        return max(int(ns * np.exp(self.random.normal(0.0, self.program.jitter))), 200)

    def load(self, t: Thread, number: int) -> Body:
        for _step in range(number, self.program.steps, self.program.workers):
            yield from t.read_file(self.about(self.program.reading))
            yield from t.put(self.batches)

    def main(self, t: Thread) -> Body:
        program = self.program
        copies = t.process.stream()
        yield from t.launch("distribution_elementwise_grid_stride_kernel", 90 * US)
        for kernel in range(program.tuning):
            yield from t.launch(f"cutlass_tile_{kernel}_gemm", self.about(1 * MS))
            yield from t.synchronize(t.process.null, cost=self.about(300 * US))
        for step in range(program.steps):
            if program.every and step and step >= program.first_pause and step % program.every == 0:
                yield from t.compute(self.about(program.pause), "write_checkpoint")
            if program.named:
                t.push(f"{program.word} {step}")
            if program.workers:
                yield from t.get(self.batches)
            if program.pageable:
                yield from t.blocking_copy("HtoD", program.batch, self.about(700 * US), staging=self.about(400 * US))
            elif program.inputs:
                yield from t.copy("HtoD", program.batch, self.about(330 * US), copies)
            yield from self.layers(t)
            if program.sync:
                yield from t.synchronize(t.process.null, cost=self.about(program.tail))
            if program.thinking:
                yield from t.compute(self.about(program.thinking * program.python), "log_metrics")
            if program.named:
                t.pop()
        yield from t.synchronize(t.process.null)

    def layers(self, t: Thread) -> Body:
        program = self.program
        first, *others = FORMS[program.form]
        layer = [(first[0], first[1] * US * program.gemm), *((name, ns * US) for name, ns in others)]
        kernels = layer * program.layers
        if program.graph:
            yield from t.compute(self.about(20 * US * program.python))
            yield from t.launch_graph([Node(name, self.about(ns)) for name, ns in kernels])
            return
        for name, ns in kernels:
            yield from t.compute(self.about(14 * US * program.python))
            yield from t.launch(name, self.about(ns * program.items), shape=self.shape(name))

    def shape(self, name: str) -> dict[str, int]:
        """Of 256 threads a block."""
        program = self.program
        return {"gridX": round(108 * program.items * (2 if name in program.threads else 1)), "blockX": 256}
