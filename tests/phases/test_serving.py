"""Steps of a server by phase: by NVTX of the engine, by attention kernels, by graphs next to steps without them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

import nsysdiag
from nsysdiag.document import words
from nsysdiag.phases.serving import DECODE, MIXED, PHASES, PREFILL, StepNames, code_of, named_works, work_of
from tests.simulator import Simulation
from tests.simulator.actions import Node
from tests.simulator.capture import CUDA_ONLY
from tests.simulator.engine import US

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsysdiag.iterations.facts import IterationReport, ServingPhase
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

STEPS, LAYERS = 100, 6
Step = tuple[str, int, int]
"""Its phase, and the requests and tokens in it."""


@dataclass(frozen=True)
class Engine:
    """A loop of steps that decode, prefill, or do both. Decode steps may replay a CUDA graph for their batch."""

    decode: str = "paged_attention_v2_kernel"
    prefill: str = "flash_fwd_kernel"
    last: str = "argmax_kernel"
    graphs: bool = True
    named: Callable[[str, int, int], str] | None = None
    seed: int = 0

    def write(self, path: Path, graphs: str = "node") -> list[Step]:
        """Its trace, and what its steps do."""
        chance = np.random.default_rng(self.seed)
        steps: list[Step] = []
        for phase in chance.choice(["decode", "prefill", "mixed"], STEPS, p=[0.8, 0.12, 0.08]).tolist():
            requests = int(chance.integers(2, 5)) if phase == "decode" else 1 if phase == "prefill" else 6
            steps.append((phase, requests, requests if phase == "decode" else int(chance.integers(200, 900))))
        simulation = Simulation()
        simulation.thread(simulation.process(), lambda t: self._main(t, steps))
        capture = CUDA_ONLY.but(graphs=graphs, nvtx=self.named is not None)
        simulation.run().write(path, capture)
        return steps

    def _main(self, t: Thread, steps: list[Step]) -> Body:
        for step in steps:
            t.push(self.named(*step) if self.named else "")
            yield from self._step(t, *step)
            t.pop()

    def _step(self, t: Thread, phase: str, requests: int, tokens: int) -> Body:
        yield from t.compute(400 * US)
        yield from t.copy("HtoD", 4_096, 2 * US)
        nodes = self._nodes(phase, requests, tokens)
        if phase == "decode" and self.graphs:
            yield from t.launch_graph(nodes, number=requests)
        else:
            for node in nodes:
                yield from t.launch(node.name, node.duration)
        yield from t.launch(self.last, 8 * US)
        yield from t.blocking_copy("DtoH", 64, 2 * US)

    def _nodes(self, phase: str, requests: int, tokens: int) -> list[Node]:
        attends = []
        if phase != "decode":
            attends.append(Node(self.prefill, (100 + tokens) * US))
        if phase != "prefill":
            attends.append(Node(self.decode, (40 + 8 * requests) * US))
        return [Node("gemm_kernel", 60 * US), *attends] * LAYERS


def found(engine: Engine, folder: Path, graphs: str = "node") -> tuple[IterationReport, list[Step]]:
    path = folder / "server.sqlite"
    steps = engine.write(path, graphs)
    iterations = nsysdiag.analyze(path).devices[0].iterations
    assert iterations is not None
    return iterations, steps


def counts(phases: list[ServingPhase]) -> dict[str, int]:
    return {each.phase: each.count for each in phases}


def agrees(iterations: IterationReport, steps: list[Step], left_out: int = 6) -> bool:
    """Whether every phase has as many steps as it really has, but for those that are left out."""
    true = {phase: sum(step[0] == phase for step in steps) for phase in PHASES[:3]}
    shown = counts(iterations.serving)
    less = [count - shown.get(phase, 0) for phase, count in true.items()]
    return set(shown) == set(true) and min(less) >= 0 and sum(less) <= left_out


@pytest.mark.sampled(normal=4)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("decode", "prefill"),
    [
        ("paged_attention_v2_kernel", "flash_fwd_kernel"),
        ("BatchDecodeWithPagedKVCacheKernel", "BatchPrefillWithRaggedKVCacheKernel"),
        ("BatchDecodeWithPagedKVCacheKernel", "BatchPrefillWithPagedKVCacheKernel"),
        ("flash_fwd_splitkv_kernel", "flash_fwd_kernel"),
        ("_fwd_grouped_kernel_stage1", "_fwd_kernel"),
        ("mmha::masked_multihead_attention_kernel", "fmha_v2_flash_attention_bf16_64_64_S_128"),
    ],
)
@pytest.mark.parametrize("graphs", [True, False], ids=["graphs", "eager"])
def test_attention_kernels_tell_the_phase(decode: str, prefill: str, graphs: bool, seed: int, tmp_path: Path) -> None:
    iterations, steps = found(Engine(decode, prefill, graphs=graphs, seed=seed), tmp_path)
    assert agrees(iterations, steps)
    assert {each.shown_by for each in iterations.serving} == {"attention"}


NAMES = {
    "vllm": lambda phase, requests, tokens: (
        f"execute_context_{int(phase != 'decode')}({tokens - requests * (phase != 'prefill')})"
        f"_generation_{requests * (phase != 'prefill')}({requests * (phase != 'prefill')})"
    ),
    "sglang": lambda phase, requests, tokens: (
        f"step[DECODE bs={requests}]"
        if phase == "decode"
        else f"step[{'EXTEND' if phase == 'prefill' else 'MIXED'} bs={requests} toks={tokens}]"
    ),
    "tensorrt-llm": lambda phase, requests, tokens: (
        f"[Executor] _forward_step 3: {int(phase != 'decode')} ctx reqs, "
        f"{(tokens - requests * (phase == 'mixed')) * (phase != 'decode')} ctx tokens, "
        f"{requests * (phase != 'prefill')} gen reqs"
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize("graphs", ["node", "graph"])
def test_ranges_of_engines_tell_phase_requests_and_tokens(engine: str, graphs: str, tmp_path: Path) -> None:
    """Where the attention kernels are called the same in both phases, too."""
    iterations, steps = found(Engine("attention", "attention", named=NAMES[engine]), tmp_path, graphs)
    assert agrees(iterations, steps)
    assert {each.shown_by for each in iterations.serving} == {"nvtx"}
    by_phase = {each.phase: each for each in iterations.serving}
    decode = by_phase["decode"]
    assert [each.requests for each in decode.batches] == [2, 3, 4]
    assert decode.batches[0].median_ns < decode.batches[2].median_ns
    prefills = sorted(tokens for phase, _requests, tokens in steps if phase == "prefill")
    assert by_phase["prefill"].tokens in prefills[len(prefills) // 3 : -len(prefills) // 3]


@pytest.mark.slow
def test_graphs_next_to_longer_steps_decode(tmp_path: Path) -> None:
    iterations, _steps = found(Engine("attention", "attention"), tmp_path, "graph")
    assert set(counts(iterations.serving)) == {"decode", "prefill"}
    assert {each.shown_by for each in iterations.serving} == {"graphs"}
    (decode,) = [each for each in iterations.serving if each.phase == "decode"]
    assert len(decode.batches) == 3


@pytest.mark.sampled
@pytest.mark.parametrize(
    "engine",
    [
        Engine("attention", "attention", graphs=False),
        Engine("gemv", "gemm"),
        Engine("flash_fwd_kernel", "flash_fwd_kernel"),
        Engine(last="adam_kernel"),
        Engine(last="flash_bwd_kernel"),
    ],
    ids=["one attention, no graphs", "no attention", "no cache", "weights are updated", "backward"],
)
def test_without_evidence_no_step_has_a_phase(engine: Engine, tmp_path: Path) -> None:
    if engine.prefill == "flash_fwd_kernel" == engine.decode:
        engine = Engine(engine.decode, engine.prefill, graphs=False)
    iterations, _steps = found(engine, tmp_path)
    assert iterations.serving == []


@pytest.mark.slow
def test_phases_add_up_and_are_said(tmp_path: Path) -> None:
    iterations, _steps = found(Engine(), tmp_path)
    assert sum(each.count for each in iterations.serving) == iterations.steady
    assert sum(each.share for each in iterations.serving) == pytest.approx(1, abs=1e-5)
    assert all(sum(each.idle.values()) <= each.total_ns for each in iterations.serving)
    assert "Steps of a server: " in words.kinds_sentence(iterations)


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("execute_context_1(512)_generation_8(8)", StepNames(MIXED, 9, 520)),
        ("execute_context_0(0)_generation_8(16)", StepNames(DECODE, 8, 16)),
        ("execute_new_2_cached_0", StepNames(PREFILL, 2)),
        ("[Executor] _forward_step 7: 1 ctx reqs, 8 gen reqs", StepNames(MIXED, 9)),
        ("executeStep: 0 ctx reqs, 8 gen reqs", StepNames(DECODE, 8, 8)),
        ("step[DECODE bs=8]", StepNames(DECODE, 8, 8)),
        ("step[EXTEND bs=2 toks=12 c_sqsq=80]", StepNames(PREFILL, 2, 12)),
        ("step[TARGET_VERIFY bs=4]", StepNames(DECODE, 4)),
        ("prefill[bs=2 tok=16384]", StepNames(PREFILL, 2, 16384)),
        ("step[IDLE bs=0]", None),
        ("execute_context_0(0)_generation_0(0)", None),
        ("decode", None),
        ("step 7", None),
    ],
)
def test_what_a_range_says(name: str, work: StepNames | None) -> None:
    assert work_of(name) == work


def test_plain_words_count_where_both_phases_are_named() -> None:
    assert named_works(["decode", "load"]) == [None, None]
    assert named_works(["decode batch=8", "Prefill", "load"]) == [StepNames(DECODE, 8), StepNames(PREFILL), None]


@pytest.mark.parametrize(
    "name", ["gemm_kernel", "argmax_kernel", "jpeg_decode_kernel", "elementwise_kernel", "prefix_sum_kernel"]
)
def test_other_kernels_tell_no_phase(name: str) -> None:
    assert code_of(name) == 0
