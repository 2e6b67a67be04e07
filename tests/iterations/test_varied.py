"""Steps whose work differs: what shows them, and what is said where the trace does not show them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.iterations.named import family_of, stem_of
from nsysdiag.pipeline import analyze
from tests.iterations.known_loops.known import FAMILIES, Known, Loops
from tests.iterations.programs import graph, kernels
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.phases.facts import PhaseSteps
    from nsysdiag.report import Report
    from tests.iterations.known_loops.known import Script
    from tests.simulator.actions import Thread
    from tests.simulator.host import Body

QUICK = Settings(replay=False, timeline=False)


def report_of(script: Script, folder: Path, seed: int = 1, *, lost: str = "0", step: str | None = None) -> Report:
    """Of a program; `lost` is an SQL condition on the kernels that the trace lacks, `step` what the user calls one."""
    simulation, _ = Known("program", script, ("step",), seed).run()
    folder.mkdir(exist_ok=True)
    path = simulation.write(folder / "trace.sqlite")
    with closing(sqlite3.connect(path)) as trace, trace:
        trace.execute(f"DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE {lost}")
    return analyze(path, msgspec.structs.replace(QUICK, step=step))


def steps_of(report: Report) -> PhaseSteps | None:
    """The steps of the longest judged phase."""
    judged = [phase for phase in report.phases if phase.judged]
    return max(judged, key=lambda phase: phase.end_ns - phase.start_ns).steps


class TestWaits:
    @pytest.mark.slow
    def test_waits_that_are_alike_may_be_several_of_a_step(self, tmp_path: Path) -> None:
        script, _ = FAMILIES["any_operators"]
        steps = steps_of(report_of(script, tmp_path))
        assert steps is not None
        assert steps.words.startswith(f"{steps.count} steps (or several of them are one: see --step), ")

    @pytest.mark.slow
    def test_waits_of_two_kinds_in_turn_are_one_step(self, tmp_path: Path) -> None:
        script, _ = FAMILIES["a_flag_and_a_result"]
        steps = steps_of(report_of(script, tmp_path))
        assert steps is not None
        assert (steps.parts, steps.certain) == (2, True)

    def test_work_that_never_comes_again_has_no_steps(self, tmp_path: Path) -> None:
        def script(t: Thread, loops: Loops) -> Body:
            for part in range(25):
                yield from kernels(t, *((f"part_{part}_{each}", 80) for each in range(loops.size(2, 9))))
                yield from t.synchronize()

        assert steps_of(report_of(script, tmp_path)) is None

    @pytest.mark.parametrize("seed", [1, 2])
    def test_a_few_repeats_with_one_kernel_in_common_are_none(self, seed: int, tmp_path: Path) -> None:
        def script(t: Thread, loops: Loops) -> Body:
            for _ in range(150):
                yield from kernels(t, (f"library_{loops.size(0, 29)}", loops.size(20, 200)))
                if loops.size(0, 9) == 0:
                    yield from t.synchronize()

        assert steps_of(report_of(script, tmp_path, seed)) is None


def by_chance(t: Thread, loops: Loops) -> Body:
    """Kernels, or functions of a library, in random order: names of any number, some far more often than others."""
    names, chance = loops.chance.choice([3, 5, 8, 12, 20, 40, 80, 200]), loops.chance
    often = [(each + 1) ** -chance.choice([0, 0.6, 1.0, 1.4]) for each in range(names)]
    most = chance.choice([1, 1, 9])
    functions = [chance.choices(range(names), often, k=loops.size(1, most)) for _ in range(names)]
    waits = chance.choice([0, 0, 0.01, 0.1])
    for _ in range(loops.size(150, 900) // most):
        (called,) = chance.choices(functions, often)
        yield from kernels(t, *((f"library_{each}", loops.size(5, 300)) for each in called), host=loops.size(2, 90))
        if chance.random() < waits:
            yield from t.synchronize()


class TestChance:
    """Programs without a loop."""

    @pytest.mark.sampled(quick=40, normal=20)
    @pytest.mark.parametrize("seed", range(200))
    def test_no_steps_are_sure(self, seed: int, tmp_path: Path) -> None:
        steps = [phase.steps for phase in report_of(by_chance, tmp_path, seed).phases if phase.steps is not None]
        assert not any(each.of_the_program and each.certain for each in steps)

    @pytest.mark.slow
    def test_a_kernel_alone_may_be_a_part_of_a_step(self, tmp_path: Path) -> None:
        def script(t: Thread, loops: Loops) -> Body:
            for _ in range(60):
                yield from kernels(t, ("stencil", 80))
                if loops.waits:
                    yield from t.blocking_copy("DtoH", 8, 2 * US)

        words = [steps.words for seed in (1, 2) if (steps := steps_of(report_of(script, tmp_path / str(seed), seed)))]
        assert [" (or several of them are one: see --step)" in each for each in words] == [True, False]


def rounds(count: int, size: int, pause: int) -> Script:
    """Rounds of steps, and pauses of the host between them; seeds decide whether a copy or a wait ends a step."""

    def script(t: Thread, loops: Loops) -> Body:
        for at in range(count):
            yield from t.compute(pause * min(at, 1) * MS)
            for step in range(size):
                loops.push(f"iter {step}")
                yield from kernels(t, ("forward", 1_500), ("backward", 2_500), ("update", 400))
                yield from t.synchronize() if loops.waits else t.blocking_copy("DtoH", 4, 2 * US)
                loops.pop()

    return script


class TestRounds:
    """A pause between rounds of steps is no slow step, and hides no steps."""

    @pytest.mark.parametrize(
        ("seed", "step"), [(1, None), (2, None), (3, None), (1, "kernel=forward"), (1, "count=36")]
    )
    def test_steps_are_in_the_rounds(self, seed: int, step: str | None, tmp_path: Path) -> None:
        phases = report_of(rounds(3, 12, 311), tmp_path, seed, step=step).phases
        assert [each.steps.count for each in phases if each.steps is not None] == [12, 12, 12]
        pauses = [each.end_ns - each.start_ns for each in phases if each.name == "pause"]
        assert np.allclose(pauses, 311 * MS, rtol=0.03)

    def test_what_is_like_a_named_step_is_outside_of_it(self, tmp_path: Path) -> None:
        phases = report_of(rounds(1, 12, 0), tmp_path, 3, step="iter 3").phases
        assert [each.name for each in phases] == ["start-up", "outside", "steady", "outside"]
        assert [round((each.end_ns - each.start_ns) / (4.4 * MS)) for each in phases] == [0, 3, 1, 8]

    def test_the_named_steps_are_judged_not_a_warm_up_like_them(self, tmp_path: Path) -> None:
        """Two steps without a range, with pauses of the host, were judged instead, as the part that repeats."""

        def script(t: Thread, loops: Loops) -> Body:
            for step in range(-2, 24):
                yield from t.compute(30 * MS if step < 0 else 0)
                loops.push(f"iter {step}" if step >= 0 else "warm-up")
                yield from kernels(t, ("forward", 1_500), ("backward", 2_500), ("update", 400))
                yield from t.synchronize()
                loops.pop()

        report = report_of(script, tmp_path, 3, step="iter *")
        assert [(each.name, each.judged) for each in report.phases if each.judged or each.name == "outside"] == [
            ("outside", False),
            ("steady", True),
        ]
        assert report.diagnosis is not None
        assert report.diagnosis.basis == "steady"

    @pytest.mark.slow
    def test_steps_in_several_rounds_are_named(self, tmp_path: Path) -> None:
        phases = report_of(rounds(3, 12, 311), tmp_path, 3, step="iter [5-8]").phases
        assert [each.steps.count for each in phases if each.judged and each.steps is not None] == [4, 4, 4]
        outside = sum(each.end_ns - each.start_ns for each in phases if each.name == "outside")
        assert outside > 0.9 * (2 * 311 + 24 * 4.4) * MS

    @pytest.mark.parametrize("size", [3, 5])
    def test_no_group_holds_a_pause(self, size: int, tmp_path: Path) -> None:
        phases = report_of(rounds(3, 12, 311), tmp_path, step=f"every={size}").phases
        steps = [each.steps for each in phases if each.steps is not None]
        assert [each.count for each in steps] == [12 // size] * 3
        assert max(each.average_ns for each in steps) < (size + 1) * 5 * MS


class TestGraphs:
    @pytest.mark.parametrize(
        "lost", ["correlationId / 2 % 2 = 0", "abs(correlationId * 7919 + graphNodeId * 31) % 4 = 0"]
    )
    def test_nodes_that_are_lost_make_no_longer_steps(self, lost: str, tmp_path: Path) -> None:
        def script(t: Thread, loops: Loops) -> Body:
            for _ in range(40):
                loops.begin("step")
                yield from t.launch_graph(graph(*(f"node_{each}" for each in range(8)), each=30), number=1)
                yield from t.synchronize()
                yield from t.compute(60 * US)

        steps = steps_of(report_of(script, tmp_path, lost=f"graphNodeId % 256 > 1 AND {lost}"))
        assert steps is not None
        assert 39 <= steps.count <= 40
        assert (steps.parts, steps.certain) == (None, True)

    def test_graphs_that_take_turns_are_a_step_each_or_together(self, tmp_path: Path) -> None:
        script, _ = FAMILIES["buffers_in_turn"]
        steps = steps_of(report_of(script, tmp_path))
        assert steps is not None
        assert " of 2 parts (or the parts are steps: see --step), " in steps.words

    @pytest.mark.slow
    def test_steps_that_update_a_graph_count(self, tmp_path: Path) -> None:
        def script(t: Thread, loops: Loops) -> Body:
            for _ in range(40):
                yield from t.copy("HtoD", 1 << 12, 4 * US)
                yield from t.api("cudaGraphExecUpdate", loops.size(300, 500) * US, "graph_build")
                yield from t.launch_graph(graph("a", "b", "c", each=50), number=1)

        report = report_of(script, tmp_path)
        found = report.devices[0].iterations
        assert found is not None
        assert found.steady >= found.count - 2
        assert [each.shown for each in report.phases if each.judged] == ["building_graphs"]

    def test_steps_that_capture_a_graph_now_and_then_do_not(self, tmp_path: Path) -> None:
        def script(t: Thread, loops: Loops) -> Body:
            for step in range(40):
                yield from t.copy("HtoD", 1 << 12, 4 * US)
                if step % 10 == 5:
                    yield from t.build_graph(6)
                yield from t.launch_graph(graph("a", "b", "c", each=50), number=1)
                yield from t.synchronize()

        found = report_of(script, tmp_path).devices[0].iterations
        assert found is not None
        assert len(found.left_out) in (4, 5)
        assert np.isin(np.diff(found.left_out)[:3], 10).all()


def passes(*kinds: tuple[tuple[str, int], ...]) -> Script:
    """10 passes of 12 layers; these kinds take turns."""

    def script(t: Thread, loops: Loops) -> Body:
        for _ in range(10):
            yield from t.copy("HtoD", 1 << 14, 5 * US)
            yield from kernels(t, ("embedding", 15))
            for layer in range(12):
                yield from kernels(t, ("rms_norm", 8), ("gemm", 50), *kinds[layer % len(kinds)], ("gemm", 40))
            yield from kernels(t, ("rms_norm", 8), ("gemm", 90))

    return script


SLIDING, GLOBAL = (("sliding_attention", 20),), (("flash_attention", 60),)
DENSE = (("flash_fwd", 40), ("rms_norm", 8), ("gemm", 90), ("silu", 9))
EXPERTS = (("flash_fwd", 40), ("rms_norm", 8), ("topk_gating", 9), ("grouped_gemm", 140), ("combine", 15))


class TestLayers:
    @pytest.mark.parametrize(
        ("kinds", "said"),
        [
            ((SLIDING, GLOBAL), "12 layers (6 + 6)"),
            ((SLIDING, SLIDING, SLIDING, GLOBAL), "12 layers (9 + 3)"),
            ((DENSE, EXPERTS), "12 layers (6 + 6)"),
        ],
    )
    def test_kinds_are_counted(self, kinds: tuple[tuple[tuple[str, int], ...], ...], said: str, tmp_path: Path) -> None:
        steps = steps_of(report_of(passes(*kinds), tmp_path))
        assert steps is not None
        assert steps.words.startswith(f"10 steps of {said}, median ")

    def test_two_kinds_in_turn_are_two_layers_of_a_pass(self, tmp_path: Path) -> None:
        """Nothing but the attention shows that a repeat is more than a layer."""

        def script(t: Thread, loops: Loops) -> Body:
            yield from t.copy("HtoD", 1 << 14, 5 * US)
            yield from kernels(t, ("embedding", 15))
            for layer in range(24):
                attention = SLIDING if layer % 2 else GLOBAL
                yield from kernels(t, ("rms_norm", 8), ("gemm", 50), *attention, ("gemm", 40), ("silu_gemm", 90))
            yield from kernels(t, ("head", 90))
            yield from t.blocking_copy("DtoH", 4000, 3 * US)

        steps = steps_of(report_of(script, tmp_path))
        assert steps is not None
        assert steps.words.startswith("12 repeats of 10 kernels (probably 2 layers of one pass each: see --step)")

    @pytest.mark.slow
    def test_layers_of_one_kind_have_none(self, tmp_path: Path) -> None:
        steps = steps_of(report_of(passes(DENSE), tmp_path))
        assert steps is not None
        assert steps.layers == []

    @pytest.mark.sampled
    @pytest.mark.parametrize("name", ["decode_of_fixed_length", "diffusion"])
    def test_the_last_layer_of_each_pass_in_a_step_is_no_kind(self, name: str, tmp_path: Path) -> None:
        steps = steps_of(report_of(FAMILIES[name][0], tmp_path))
        assert steps is not None
        assert steps.layers == []

    @pytest.mark.parametrize("depth", [7, 24])
    def test_the_first_layer_may_lack_a_kernel(self, depth: int, tmp_path: Path) -> None:
        def script(t: Thread, loops: Loops) -> Body:
            yield from t.copy("HtoD", 1 << 14, 5 * US)
            yield from kernels(t, ("embedding", 15))
            for layer in range(depth):
                yield from kernels(t, *((("add_residual", 9),) if layer else ()), ("rms_norm", 8), ("gemm", 50))
                yield from kernels(
                    t, ("rotary", 9), ("flash_fwd", 40), ("gemm", 40), ("rms_norm", 8), ("silu_gemm", 90)
                )
            yield from kernels(t, ("head", 90))
            yield from t.blocking_copy("DtoH", 4000, 3 * US)

        steps = steps_of(report_of(script, tmp_path))
        assert steps is not None
        assert steps.words.startswith(f"{depth} repeats of 8 kernels (probably layers of one pass")

    @pytest.mark.slow
    def test_a_last_step_without_its_idle_end_is_no_teardown(self, tmp_path: Path) -> None:
        """As most of its time is in copies, and it has one kernel."""

        def script(t: Thread, loops: Loops) -> Body:
            for _ in range(4):
                yield from t.blocking_copy("HtoD", 1 << 28, 38 * MS)
                yield from kernels(t, ("saxpy", 17_000))
                yield from t.blocking_copy("DtoH", 1 << 27, 20 * MS)
                yield from t.compute(170 * MS)

        assert "teardown" not in [each.name for each in report_of(script, tmp_path).phases]


class TestCounters:
    """What a program counts from its first step to its last is a step, and what it counts again and again may not be
    one."""

    def test_counted_steps_are_steps_next_to_longer_ranges(self, tmp_path: Path) -> None:
        def script(t: Thread, loops: Loops) -> Body:
            for number in range(40):
                t.push(f"step {number}")
                yield from kernels(t, ("forward", 100), ("backward", 150))
                t.pop()
                if number % 5 == 4:
                    t.push("evaluate")
                    for _ in range(10):
                        yield from kernels(t, ("infer", 300))
                        yield from t.blocking_copy("DtoH", 4096, 3 * US)
                    t.pop()

        steps = steps_of(report_of(script, tmp_path))
        assert steps is not None
        assert (steps.count, steps.certain) == (40, True)

    @pytest.mark.parametrize(("each", "certain"), [(4, False), (100, True)])
    def test_steps_that_are_counted_again_may_be_parts_of_one(self, each: int, certain: bool, tmp_path: Path) -> None:
        """Not where these are more than a model has layers: then they are rounds, or epochs."""

        def script(t: Thread, loops: Loops) -> Body:
            for number in range(400):
                t.push(f"step {number % each}")
                yield from kernels(t, ("gemm", 50), ("norm", 10))
                t.pop()

        steps = steps_of(report_of(script, tmp_path))
        assert steps is not None
        assert (steps.count, steps.certain, steps.group) == (400, certain, None if certain else each)


class TestTurns:
    @pytest.mark.slow
    @pytest.mark.parametrize(("own", "certain"), [(3, False), (1, True)])
    def test_repeats_that_take_turns_may_be_one_step(self, own: int, certain: bool, tmp_path: Path) -> None:
        """Two models; but a kernel of many that differs is another direction of the same sweep."""

        def script(t: Thread, loops: Loops) -> Body:
            for number in range(40):
                yield from kernels(t, ("embed", 30), *(((f"model_{number % 2}", 100),) * own), *((("same", 60),) * 2))
                yield from t.blocking_copy("DtoH", 4, 2 * US)

        steps = steps_of(report_of(script, tmp_path))
        assert steps is not None
        assert (steps.count, steps.certain) == (40, certain)


class TestNames:
    @pytest.mark.parametrize(
        ("name", "family"),
        [
            ("execute_context_1(888_1)_generation_0(0)", "execute_context_#(#)_generation_#(#)"),
            ("execute_context_2(5_1, 17_3)_generation_0(0)", "execute_context_#(#)_generation_#(#)"),
            ("request 550e8400-e29b-41d4-a716-446655440000", "request #"),
            ("run req-0f3b9a21 len=12", "run req-# len=#"),
            ("decoded", "decoded"),
            ("deadbeef", "deadbeef"),
            ("layer_3_1", "layer_#_#"),
        ],
    )
    def test_ranges_that_differ_in_numbers_are_a_family(self, name: str, family: str) -> None:
        assert family_of(name) == family

    def test_kinds_of_a_step_share_what_says_so(self) -> None:
        names = "step[DECODE bs=#]", "execute_context_#(#)", "step #", "forward (#)", "optimizer.step"
        assert [stem_of(name) for name in names] == ["step*", "execute_context*", "step*", "", ""]

    def test_an_engine_has_one_loop(self, tmp_path: Path) -> None:
        script, _ = FAMILIES["kinds_of_ranges"]
        found = report_of(script, tmp_path).devices[0].iterations
        assert found is not None
        assert (found.name, found.source) == ("step*", "nvtx")
        assert np.isin(found.count, range(49, 81))
