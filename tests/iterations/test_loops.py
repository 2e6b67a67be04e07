"""Loops of built timelines: behind a long start, with slow repeats of every period, two of them, one inside another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.iterations.iterations import find_loops
from nsysdiag.pipeline import analyze, reading
from tests.builder import TraceBuilder
from tests.iterations.test_iterations import MS, found, only_device, work

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsysdiag.iterations.loop import Loop

START = 2 * MS


@dataclass
class Program:
    """A program that works step after step; `at` is where the next begins."""

    trace: TraceBuilder
    at: int = START
    named: bool = False

    def steps(self, lengths: Sequence[int], name: str = "step") -> Program:
        """A gemm and three relus each, launched at once, then nothing until the next."""
        for number, length in enumerate(lengths):
            work(self.trace, self.at)
            if self.named:
                self.trace.nvtx(f"{name} {number}", self.at, self.at + length)
            self.at += length
        return self

    def kernels(self, lengths: Sequence[int], name: str, *, last: str | None = None, share: float = 0.8) -> Program:
        """One kernel each, for that share of the length; the `last` may have another name."""
        for number, length in enumerate(lengths):
            called = last if last is not None and number == len(lengths) - 1 else name
            end = self.at + max(int(share * length), 1)
            self.trace.kernel(self.at, end, name=called, launch=(self.at - 9_000, self.at - 5_000))
            self.at += length
        return self

    def start_up(self, length: int, kernels: int = 40, seed: int = 1) -> Program:
        """Kernels of the names that steps use as well, at no regular distance."""
        chance = np.random.default_rng(seed)
        behind = self.at + length
        times = np.sort(chance.integers(self.at, behind - 100_000, kernels))
        for time in np.unique(times // 50_000 * 50_000).tolist():
            name = str(chance.choice(["gemm", "relu", "init"]))
            self.trace.kernel(time, time + 20_000, name=name, launch=(time - 9, time - 5))
        self.at = behind
        return self


def program(*, named: bool = False) -> Program:
    return Program(TraceBuilder(), named=named)


def loops_of(trace: TraceBuilder, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Loop]:
    """All loops of the only device."""
    seen: list[Loop] = []

    def noted(*given: object) -> list[Loop]:
        seen.extend(find_loops(*given))  # type: ignore[arg-type]
        return seen

    monkeypatch.setattr(reading, "find_loops", noted)
    analyze(trace.write(folder / f"{len(list(folder.iterdir()))}.sqlite"), Settings())
    return seen


def every(period: int, count: int, usual: int, slow: int) -> list[int]:
    return [slow if (number + 1) % period == 0 else usual for number in range(count)]


class TestLongStart:
    @pytest.mark.sampled(quick=5)
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("named", [True, False])
    def test_a_start_longer_than_the_steps(self, named: bool, seed: int, tmp_path: Path) -> None:
        """
        device  [init) . [gemm) .. [relu) ... 60 ms of start [step)[step)[step) ... 40 steps of 1 ms
        """
        made = program(named=named).start_up(60 * MS, seed=seed).steps([MS] * 40)
        iterations = found(made.trace, tmp_path)
        steady = [row.start_ns for row in iterations.rows if row.steady]
        assert steady == [START + (60 + number) * MS + 20_000 for number in range(39)]
        assert (iterations.p50_ns, iterations.worst_ns, iterations.slow_count) == (MS, MS, 0)
        # What did the same number of kernels just before may pass for a warm-up.
        assert iterations.count - 40 in ({0} if named else {0, 1})

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("named", [True, False])
    def test_work_behind_the_steps(self, named: bool, tmp_path: Path) -> None:
        """
        device  [step)[step) ... 20 of them [==== something else for four times as long ====)
        """
        made = program(named=named).steps([MS] * 20)
        made.kernels([80 * MS], "evaluate")
        iterations = found(made.trace, tmp_path)
        assert (iterations.count, iterations.p50_ns) == (20, MS)
        assert iterations.worst_ns == MS
        assert iterations.slow == []

    def test_too_short_to_tell_of_the_program(self, tmp_path: Path) -> None:
        """
        device  [k).[k).[k).[k).[k).[k) [============ 400 times as long ============)
        """
        made = program().kernels([MS] * 6, "k").kernels([400 * MS], "solve")
        assert only_device(made.trace, tmp_path).iterations is None

    def test_warm_up_by_name(self, tmp_path: Path) -> None:
        """
        NVTX  [step 0: 90 ms of compiling][step 1: 30 ms][step 2][step 3] ...
        """
        iterations = found(program(named=True).steps([90 * MS, 30 * MS, *[MS] * 30]).trace, tmp_path)
        assert (iterations.count, iterations.p50_ns) == (32, MS)
        assert iterations.left_out[:2] == [0, 1]
        assert iterations.slow_count == 0

    def test_warm_up_by_anchor_does_the_same_work(self, tmp_path: Path) -> None:
        iterations = found(program().steps([20 * MS, 12 * MS, *[MS] * 30]).trace, tmp_path)
        assert (iterations.count, iterations.p50_ns) == (32, MS)
        assert iterations.left_out[:2] == [0, 1]


class TestSlowOnes:
    @pytest.mark.sampled(quick=11, normal=3)
    @pytest.mark.parametrize("named", [True, False])
    @pytest.mark.parametrize("period", [2, 3, 4, 5, 7, 10, 12, 16, 25, 30])
    def test_a_slow_one_hides_no_loop(self, period: int, named: bool, tmp_path: Path) -> None:
        """
        device  [step)[step)[step)[step        )[step)[step)[step)[step        )      six times as long
        """
        count = 5 * period + period // 2 + 1
        iterations = found(program(named=named).steps(every(period, count, MS, 6 * MS)).trace, tmp_path)
        assert (iterations.count, iterations.p50_ns) == (count, MS)
        assert iterations.slow_period == period
        assert iterations.slow_count == 5
        assert iterations.slow_extra_ns == 5 * 5 * MS

    def test_all_count_and_ten_are_listed(self, tmp_path: Path) -> None:
        lengths = [3 * MS if number % 4 == 2 else MS for number in range(81)]
        iterations = found(program(named=True).steps(lengths).trace, tmp_path)
        assert (len(iterations.slow), iterations.slow_count) == (10, 20)
        assert iterations.slow_extra_ns == 20 * 2 * MS
        assert sum(each.extra_ns for each in iterations.slow) == 10 * 2 * MS

    @pytest.mark.slow
    def test_at_no_regular_distance(self, tmp_path: Path) -> None:
        slow = {3, 8, 21, 29, 30, 47}
        lengths = [4 * MS if number in slow else MS for number in range(60)]
        iterations = found(program(named=True).steps(lengths).trace, tmp_path)
        assert (iterations.slow_count, iterations.slow_period) == (6, None)

    def test_lengths_that_drift(self, tmp_path: Path) -> None:
        """The clock falls: each step takes a little longer, the last twice as long as the first."""
        lengths = np.linspace(MS, 2 * MS, 50).astype(int).tolist()
        iterations = found(program().steps(lengths).trace, tmp_path)
        assert iterations.count == 50
        assert (iterations.slow_count, iterations.slow_period) == (0, None)

    def test_lengths_that_vary(self, tmp_path: Path) -> None:
        chance = np.random.default_rng(5)
        lengths = (MS + 150_000 * chance.random(80)).astype(int).tolist()
        iterations = found(program().steps(lengths).trace, tmp_path)
        assert (iterations.count, iterations.slow_period) == (80, None)


class TestSeveral:
    def test_a_reference_and_then_another(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """
        device  [k===)[k===)[k===) ... 60 of 3.5 ms ........ [k)[k)[k) ... 60 of 1 ms      the same kernel
        """
        made = program().kernels([3_500_000] * 60, "jacobi")
        made.at += 240 * MS
        made.kernels([70 * MS, 50 * MS, *[MS] * 60], "jacobi", share=0.01)
        first, second = loops_of(made.trace, tmp_path, monkeypatch)
        assert (len(first), len(second)) == (60, 62)
        assert (int(first.starts[0]), int(second.starts[0])) == (START, START + 450 * MS)
        assert [int(np.median(each.ends - each.starts)) for each in (first, second)] == [3_500_000, MS]
        assert int(first.ends[-1]) == START + 60 * 3_500_000
        assert (first.ends[:-1] == first.starts[1:]).all()
        assert first.starts.dtype == first.ends.dtype == np.int64

    @pytest.mark.slow
    @pytest.mark.parametrize("named", [True, False])
    def test_a_pause_between_two_runs(self, named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """
        device  [step)[step) ... 30 ........ 100 ms ........ [step)[step) ... 30      one loop, entered twice
        """
        made = program(named=named).steps([MS] * 30)
        made.at += 100 * MS
        made.steps([MS] * 30)
        (loop,) = loops_of(made.trace, tmp_path, monkeypatch)
        assert len(loop) == 60
        assert int((loop.ends - loop.starts).max()) <= MS
        assert np.flatnonzero(loop.open).tolist() == [29]
        iterations = only_device(made.trace, tmp_path).iterations
        assert iterations is not None
        assert (iterations.slow_count, iterations.worst_ns) == (0, MS)
        assert 29 in iterations.left_out

    def test_training_and_evaluation_by_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = program(named=True).steps([2 * MS] * 20, "step").steps([MS] * 20, "evaluate")
        first, second = loops_of(made.trace, tmp_path, monkeypatch)
        assert [(each.name, len(each), each.source) for each in (first, second)] == [
            ("step #", 20, "nvtx"),
            ("evaluate #", 20, "nvtx"),
        ]
        assert first.total_ns > second.total_ns

    @pytest.mark.slow
    def test_none_share_time(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Random programs: repeats of a loop are disjoint and in order, and so are those of two loops, mostly."""
        chance = np.random.default_rng(11)
        for number in range(6):
            made = program(named=bool(number % 2)).start_up(int(chance.integers(1, 40)) * MS, seed=number)
            made.steps((MS * (1 + chance.random(30))).astype(int).tolist())
            made.kernels([int(chance.integers(1, 5)) * MS] * int(chance.integers(5, 20)), "solve")
            loops = loops_of(made.trace, tmp_path, monkeypatch)
            assert loops
            for loop in loops:
                assert (loop.starts < loop.ends).all()
                assert (loop.ends[:-1] <= loop.starts[1:]).all()
            assert [loop.total_ns for loop in loops] == sorted((loop.total_ns for loop in loops), reverse=True)


def token(made: Program, layers: int) -> None:
    """Layers of three kernels each, then the end of a step: two other kernels and a longer pause."""
    for _ in range(layers):
        made.kernels([20_000, 30_000, 50_000], "layer", last="mlp")
    made.kernels([30_000, 60_000], "head", last="sample")


class TestNested:
    def test_layers_in_steps_by_anchor(self, tmp_path: Path) -> None:
        """
        device  [layer)[layer)[mlp) x 12 [head)[sample)..[layer)[layer)[mlp) x 12 [head)[sample)
        """
        made = program()
        for _ in range(20):
            token(made, 12)
        iterations = found(made.trace, tmp_path)
        assert iterations.count == 20
        assert iterations.p50_ns == 12 * 100_000 + 90_000
        assert (iterations.kind, iterations.closed) == ("step", True)
        assert iterations.inner is not None
        assert (iterations.inner.name, iterations.inner.per_iteration) == ("mlp(float *, int)", 12)
        assert (iterations.inner.source, iterations.inner.median_ns) == ("anchor", 100_000)

    def test_steps_with_an_evaluation_now_and_then(self, tmp_path: Path) -> None:
        """Every twelfth step is followed by an evaluation; the program feeds each step, so each one closes."""
        made = program()
        for number in range(72):
            made.trace.memcpy(made.at - 4_000, made.at - 1_000, launch=(made.at - 9_900, made.at - 9_500))
            made.steps([MS])
            if number % 12 == 11:
                made.kernels([400_000, 400_000], "evaluate", last="score")
        iterations = found(made.trace, tmp_path)
        assert (iterations.count, iterations.slow_period) == (72, 12)

    def test_every_second_step_has_kernels_of_its_own(self, tmp_path: Path) -> None:
        """
        device  [a)[x)[b)[a)[y)[b)[a)[x)[b)[a)[y)[b)      sweeps in turn: x and y every second step, a every step
        """
        made = program()
        for number in range(20):
            made.kernels([100_000, 400_000, 200_000], "a", last="b")
            made.kernels([300_000], "xy"[number % 2])
        iterations = found(made.trace, tmp_path)
        assert (iterations.count, iterations.p50_ns) == (20, MS)

    def test_micro_batches_in_steps_by_name(self, tmp_path: Path) -> None:
        """
        NVTX  [step 0                                            ][step 1
              [micro 0  ][micro 1  ][micro 2  ][micro 3  ]        [micro 0
        """
        made = program()
        for step in range(10):
            begin = made.at
            made.named = True
            made.steps([MS] * 4, "micro")
            made.named = False
            made.steps([MS])
            made.trace.nvtx(f"step {step}", begin, made.at)
        iterations = found(made.trace, tmp_path)
        assert (iterations.name, iterations.count) == ("step #", 10)
        assert iterations.inner is not None
        assert (iterations.inner.name, iterations.inner.per_iteration) == ("micro #", 4)
        assert (iterations.inner.source, iterations.inner.median_ns) == ("nvtx", MS)

    def test_three_kernels_of_a_name_in_a_row_are_no_inner_loop(self, tmp_path: Path) -> None:
        assert found(program().steps([MS] * 20).trace, tmp_path).inner is None


LAYER_NAMES = ["layer_{}", "blocks.{}", "FSDP::pre_forward (blocks.{}._wrapped), op_id = 99{}", "model.layers.{}.mlp"]


class TestLayers:
    @pytest.mark.sampled(quick=3)
    @pytest.mark.parametrize("name", LAYER_NAMES)
    def test_a_slice_of_one_pass_has_no_steps(self, name: str, tmp_path: Path) -> None:
        """
        NVTX    [blocks.3][blocks.4][blocks.5] ...      each once: one forward pass, and none of its ends
        """
        made = program()
        for number in range(17):
            made.trace.nvtx(name.replace("{}", str(number + 3)), made.at, made.at + 900_000)
            made.steps([MS])
        iterations = found(made.trace, tmp_path)
        assert (iterations.kind, iterations.closed, iterations.count) == ("layer", False, 17)
        report = analyze(tmp_path / "trace.sqlite")
        assert "slow_iterations" not in {each.cause for each in report.findings}
        assert report.devices[0].iterations is not None
        assert report.devices[0].iterations.packed is None

    def test_short_ranges_in_layers_tell_as_well(self, tmp_path: Path) -> None:
        made = program()
        for number in range(17):
            made.trace.nvtx(f"FSDP::pre_forward (blocks.{number}._wrapped), op_id = {number}", made.at, made.at + 9_000)
            made.steps([MS])
        iterations = found(made.trace, tmp_path)
        assert (iterations.source, iterations.kind) == ("anchor", "layer")

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("name", LAYER_NAMES)
    def test_from_a_first_layer_to_the_next_is_a_step(self, name: str, tmp_path: Path) -> None:
        """
        NVTX    [blocks.0][blocks.1][blocks.2][blocks.3]  [blocks.0][blocks.1][blocks.2][blocks.3]
        """
        made = program()
        for step in range(10):
            for number in range(4):
                text = name.replace("99{}", str(100 * step + number)).replace("{}", str(number))
                made.trace.nvtx(text, made.at, made.at + 900_000)
                made.steps([MS])
            made.at += 500_000
        iterations = found(made.trace, tmp_path)
        assert (iterations.closed, iterations.count, iterations.p50_ns) == (True, 10, 4 * MS + 500_000)

    def test_short_ranges_of_layers_make_no_step_though_they_come_again(self, tmp_path: Path) -> None:
        """What repeats in the work is known to be layers by them.
        NVTX    [0]      [1]      [2]      [3]      [0]      [1]  ...      a hundredth of the time of a layer
        """
        made = program()
        for _ in range(10):
            for number in range(4):
                made.trace.nvtx(f"blocks.{number}", made.at, made.at + 10_500)
                made.steps([MS])
        iterations = found(made.trace, tmp_path)
        assert (iterations.source, iterations.kind, iterations.closed) == ("anchor", "layer", False)
        assert (iterations.count, iterations.p50_ns) == (40, MS)

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("name", ["step {}", "train_step.{}", "iteration {}", "Epoch 1 batch {}/20", "frame {}"])
    def test_names_of_steps_are_none(self, name: str, tmp_path: Path) -> None:
        made = program()
        for number in range(17):
            made.trace.nvtx(name.format(number), made.at, made.at + MS)
            made.steps([MS])
        iterations = found(made.trace, tmp_path)
        assert (iterations.source, iterations.kind, iterations.count) == ("nvtx", "step", 17)


def test_forward_and_backward_without_a_range_of_the_step(tmp_path: Path) -> None:
    """
    NVTX    [forward ][backward]  [forward ][backward]      each covers less than 60%
    """
    made = program()
    for _ in range(10):
        made.trace.nvtx("forward", made.at, made.at + 450_000).nvtx("backward", made.at + 450_000, made.at + 900_000)
        made.steps([MS])
    iterations = found(made.trace, tmp_path)
    assert (iterations.name, iterations.count, iterations.p50_ns) == ("forward", 10, MS)
