"""Servers of language models with one thing wrong in each: the findings name it by GPU and call rows alone."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import nsysdiag
from tests.simulator import Simulation
from tests.simulator.actions import Node
from tests.simulator.capture import CUDA_ONLY
from tests.simulator.device import Collective
from tests.simulator.engine import US

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

STEPS, LAYERS = 70, 12
NO_RANGES = CUDA_ONLY.but(nvtx=False)
SAMPLING = {"": "argmax_kernel", "vllm": "void vllm::topk<float>()", "sglang": "void sglang::topk<float>()"}


@dataclass(frozen=True)
class Server:
    """A loop of steps: it schedules, copies inputs, launches a forward pass, samples, and reads the tokens back. What
    is more than usual is what is wrong; times in ns."""

    schedules: int = 60 * US
    texts: int = 0
    uploads: int = 0
    updates: int = 0
    captures: bool = False
    graphs: bool = True
    eager: int = 0
    launch: int = 12 * US
    reads_back: bool = True
    synchronizes: bool = False
    function: int = 0
    allocates: int = 0
    engine: str = ""

    def steps(self, t: Thread, met: list[Collective] | None = None, late: int = 0) -> Body:
        chance = random.Random(t.name)
        for step in range(STEPS):
            yield from self._prepared(t, chance)
            yield from t.compute(late or US)
            yield from self._forward(t, prefills=chance.random() < 0.12)
            if met:
                yield from t.launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 20 * US, collective=met[step])
            yield from self._sampled(t, chance)

    def _prepared(self, t: Thread, chance: random.Random) -> Body:
        yield from t.compute(int(self.schedules * chance.uniform(0.8, 1.2)))
        yield from t.copy("HtoD", 4_096, 2 * US)
        for _upload in range(self.uploads):
            yield from t.blocking_copy("HtoD", 1 << 14, 3 * US, staging=20 * US, upload=True)
        if self.allocates:
            yield from t.api("cudaMalloc", self.allocates, "memory_allocation")
            yield from t.free(self.allocates)
        if self.updates:
            yield from t.api("cudaGraphExecUpdate", self.updates, "graph_build")
        if self.captures:
            yield from t.build_graph(8)

    def _forward(self, t: Thread, *, prefills: bool) -> Body:
        if prefills:
            for _layer in range(8):
                yield from t.launch("gemm_prefill", 400 * US)
                yield from t.launch("flash_fwd_kernel", 300 * US)
            return
        nodes = [Node("gemv_kernel", 15 * US), Node("paged_attention_v2_kernel", 20 * US)] * LAYERS
        if self.graphs:
            yield from t.launch_graph(nodes, call=self.launch)
        else:
            for node in nodes:
                yield from t.launch(node.name, 4 * US, call=9 * US)
        for _kernel in range(self.eager):
            yield from t.launch("vectorized_elementwise_kernel", 3 * US, call=9 * US)

    def _sampled(self, t: Thread, chance: random.Random) -> Body:
        yield from t.launch(SAMPLING[self.engine], 8 * US)
        if self.function:
            yield from t.host_function(self.function)
        if self.reads_back:
            yield from t.blocking_copy("DtoH", 64, 2 * US)
        if self.synchronizes:
            yield from t.synchronize()
        yield from t.compute(int(self.texts * chance.uniform(0.8, 1.2)) or US)


BETWEEN = "between cudaMemcpy and cudaMemcpyAsync"
SERVERS = {
    "scheduler": (Server(schedules=700 * US), {"uncovered", "blocking_copy"}, BETWEEN),
    "scheduler of vLLM": (Server(schedules=700 * US, engine="vllm"), {"blocking_copy"}, "--async-scheduling"),
    "scheduler of SGLang": (
        Server(schedules=700 * US, engine="sglang"),
        {"blocking_copy"},
        "overlap scheduler",
    ),
    "texts on the launching thread": (Server(texts=900 * US), {"uncovered", "blocking_copy"}, BETWEEN),
    "pageable inputs": (Server(uploads=25), {"exposed_copy"}, "Pin the host buffer"),
    "update of the graph": (Server(updates=600 * US), {"graph_build"}, "a graph is updated"),
    "capture of a graph": (Server(captures=True), {"graph_build"}, "Instantiate once"),
    "kernels outside of the graph": (Server(eager=90), {"dispatch", "unfused"}, "run the step as a CUDA graph"),
    "no graphs": (Server(graphs=False), {"launch_call"}, "run the sequence as a CUDA graph"),
    "launch of the graph": (Server(launch=900 * US), {"launch_call"}, "cudaGraphUpload"),
    "synchronization": (
        Server(schedules=500 * US, synchronizes=True, reads_back=False),
        {"sync"},
        "Take cudaDeviceSynchronize out",
    ),
    "host function": (Server(function=700 * US), {"host_function"}, "signal another thread"),
    "allocation": (Server(allocates=250 * US), {"memory_allocation"}, "keep the buffer and reuse it"),
}


def analyzed(simulation: Simulation, folder: Path, graphs: str, schema: str = "3.24.8") -> nsysdiag.Report:
    path = folder / "server.sqlite"
    simulation.run().write(path, NO_RANGES.but(graphs=graphs, schema=schema))
    return nsysdiag.analyze(path)


@pytest.mark.sampled(normal=7)
@pytest.mark.parametrize("graphs", ["node", "graph"])
@pytest.mark.parametrize("name", SERVERS)
def test_what_is_wrong_is_named(name: str, graphs: str, tmp_path: Path) -> None:
    server, causes, words = SERVERS[name]
    simulation = Simulation()
    simulation.thread(simulation.process(), server.steps)
    report = analyzed(simulation, tmp_path, graphs, "3.28.1" if server.function else "3.24.8")
    first = report.findings[:3]
    assert causes <= {each.cause for each in first}
    assert report.diagnosis is not None
    assert words in " ".join([report.diagnosis.headline, *(f"{each.title} {each.advice}" for each in first)])
    iterations = report.devices[0].iterations
    assert iterations is not None
    # Without a read-back nothing shows where a step ends that replays no graph.
    unknown = {"unnamed"} if server.synchronizes else set()
    assert {"decode"} < {each.phase for each in iterations.serving} <= {"decode", "prefill"} | unknown


@pytest.mark.slow
def test_a_wait_for_another_rank_is_named(tmp_path: Path) -> None:
    simulation, met = Simulation(2), [Collective(2) for _step in range(STEPS)]
    for gpu, late in enumerate((0, 700 * US)):
        simulation.thread(simulation.process([gpu]), lambda t, late=late: Server().steps(t, met, late))
    assert analyzed(simulation, tmp_path, "node").findings[0].cause == "late_rank"


@pytest.mark.slow
def test_nothing_is_wrong_with_a_server_that_is_ahead(tmp_path: Path) -> None:
    simulation = Simulation()
    simulation.thread(simulation.process(), Server(schedules=30 * US, reads_back=False).steps)
    report = analyzed(simulation, tmp_path, "graph")
    assert report.diagnosis is not None
    assert report.diagnosis.bottleneck == "kernels"
    assert not [each for each in report.findings if each.saves and each.saves.high_ns > 0.05 * each.saves.of_ns]
