"""Steps of several kinds that take turns are one phase, as in a server: most decode, now and then one prefills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

import nsysdiag
from nsysdiag.iterations.by_host import take_turns
from nsysdiag.phases.steps import GRAPHS
from tests.simulator import Simulation
from tests.simulator.actions import Node
from tests.simulator.capture import CUDA_ONLY
from tests.simulator.engine import US

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

STEPS, LAYERS = 90, 8
DECODE, PREFILL = "paged_attention_v2_kernel", "flash_fwd_kernel"


@dataclass(frozen=True)
class Server:
    """A decode step for each request in a batch, as a CUDA graph for its size or kernel by kernel, and a prefill of any
    length with probability `prefills`, all in one loop that reads the tokens back and spends `host` on them."""

    seed: int = 0
    prefills: float = 0.12
    graphs: bool = True
    host: int = 900 * US
    sampling: str = "argmax_kernel"

    def write(self, path: Path, graphs: str) -> list[bool]:
        """Its trace, and which steps prefill."""
        chance = np.random.default_rng(self.seed)
        kinds = [bool(chance.random() < self.prefills) for _step in range(STEPS)]
        simulation = Simulation()
        simulation.thread(simulation.process(), lambda t: self.main(t, kinds, chance))
        simulation.run().write(path, CUDA_ONLY.but(graphs=graphs))
        return kinds

    def main(self, t: Thread, kinds: list[bool], chance: np.random.Generator) -> Body:
        batch = 4
        for prefills in kinds:
            yield from t.compute(int(self.host * chance.uniform(0.8, 1.2)))
            yield from t.copy("HtoD", 4_096, 2 * US)
            yield from self.prefill(t, chance) if prefills else self.decode(t, batch)
            batch = max(batch + (1 if prefills else -int(chance.random() < 0.1)), 1)
            yield from t.launch(self.sampling, 8 * US)
            yield from t.blocking_copy("DtoH", 64, 2 * US)

    def prefill(self, t: Thread, chance: np.random.Generator) -> Body:
        tokens = chance.uniform(0.5, 4)
        for _layer in range(LAYERS):
            yield from t.launch("ampere_bf16_s16816gemm_bf16_128x128_tn", int(500 * US * tokens))
            yield from t.launch(PREFILL, int(800 * US * tokens))

    def decode(self, t: Thread, batch: int) -> Body:
        nodes = [Node("gemv_kernel", 40 * US), Node(DECODE, (60 + 4 * batch) * US)] * LAYERS
        if self.graphs:
            yield from t.launch_graph(nodes, number=batch)
            return
        for node in nodes:
            yield from t.launch(node.name, node.duration)


def report_of(server: Server, folder: Path, graphs: str = "node") -> tuple[Report, list[bool]]:
    path = folder / "server.sqlite"
    kinds = server.write(path, graphs)
    return nsysdiag.analyze(path), kinds


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("server", "graphs", "name"),
    [
        ({}, "node", DECODE),
        ({}, "graph", GRAPHS),
        ({"graphs": False}, "node", DECODE),
        ({"host": 6_000 * US}, "graph", GRAPHS),
        ({"prefills": 0.3}, "node", DECODE),
    ],
    ids=["by node", "as a whole", "eager", "slow host", "many prefills"],
)
def test_a_server_is_one_phase_of_two_kinds_of_steps(
    server: dict[str, float], graphs: str, name: str, seed: int, tmp_path: Path
) -> None:
    report, kinds = report_of(Server(seed=seed, **server), tmp_path, graphs)
    (phase,) = [each for each in report.phases if each.judged]
    assert phase.end_ns - phase.start_ns >= 0.9 * report.devices[0].window_ns
    assert phase.steps is not None
    assert phase.steps.certain
    assert phase.steps.count >= STEPS - 8
    found = report.devices[0].iterations
    assert found is not None
    assert [each.name.split("(")[0] for each in found.kinds] == [name, PREFILL]
    left = STEPS - sum(each.count for each in found.kinds)
    assert 0 <= left <= 8
    assert sum(kinds) - left <= found.kinds[1].count <= sum(kinds)
    assert not any(each.cause == "slow_iterations" for each in report.findings)


@pytest.mark.slow
def test_decode_alone_has_no_kinds(tmp_path: Path) -> None:
    report, _kinds = report_of(Server(prefills=0.0), tmp_path)
    assert report.devices[0].iterations is not None
    assert report.devices[0].iterations.kinds == []


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("sampling", "advice"),
    [
        ("argmax_kernel", "Read it a step later"),
        ("void vllm::topk_kernel<float>(float *)", "--async-scheduling"),
        ("void sglang::topk_kernel<float>(float *)", "without --disable-overlap-schedule"),
        ("void tensorrt_llm::kernels::topKStage1<float>(float *)", "leave disable_overlap_scheduler at False"),
    ],
)
def test_a_read_back_of_tokens_has_advice_for_the_engine(sampling: str, advice: str, tmp_path: Path) -> None:
    report, _kinds = report_of(Server(host=4_000 * US, sampling=sampling), tmp_path)
    (found,) = [each for each in report.findings if each.cause == "blocking_copy"]
    assert advice in str(found.advice[0])


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ("ddddpddpdddddpdd", True),
        ("ddppdddpppddpddd", True),
        ("dddddddddddddddd", False),
        ("ddddddpppppppppp", False),  # two phases
        ("pdddddpddddddddd", False),  # twice only
        ("dpdpdpdpdpdpdpdp", False),  # neither is the usual one
        ("dddppppppppdddddddddpppppppdpppppp", True),  # decode steps, most of all, come in runs of 3, 9 and 1
        ("ddddddpppppp" * 4, False),  # six in a row are a phase
        ("", False),
    ],
)
def test_kinds_take_turns(kinds: str, expected: bool) -> None:
    assert take_turns(np.array([ord(each) for each in kinds], dtype=np.int64)) == expected
