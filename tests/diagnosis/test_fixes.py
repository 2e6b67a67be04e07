"""What fixing a program really brings, by simulating it again fixed, and what the report promises of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from nsysdiag import Settings, analyze
from tests.diagnosis.programs.bottlenecks import allocations, checkpoints
from tests.diagnosis.programs.copies import copies_and_kernels, long_copies
from tests.diagnosis.programs.devices import ranks
from tests.diagnosis.programs.registry import MS, US, Marks
from tests.diagnosis.programs.synchronizations import small_kernels, worker_behind
from tests.diagnosis.report_json import Json, as_json, diagnosis_of, saved_share
from tests.simulator import Simulation

SLACK = 0.02
Build = Callable[[Simulation, Marks], None]


@dataclass(frozen=True, slots=True)
class Fix:
    """A program as it is and fixed; the fix is what findings of `bottleneck` propose, and brings `share` of the
    time, from and to. Where `found` is false no finding has to propose it."""

    name: str
    before: Build
    after: Build
    bottleneck: str
    share: tuple[float, float]
    gpus: int = 1
    found: bool = True


FIXES = (
    Fix(
        "without the synchronization after each kernel",
        small_kernels,
        partial(small_kernels, synchronized=False),
        "sync",
        (0.3, 0.4),
    ),
    Fix(
        "without a synchronization before a slow worker",
        worker_behind,
        partial(worker_behind, synchronized=False),
        "sync",
        (0.0, 0.07),
        found=False,
    ),
    Fix(
        "with copies beside the kernels",
        copies_and_kernels,
        partial(copies_and_kernels, overlapped=True),
        "copies",
        (0.38, 0.42),
    ),
    Fix(
        "with long copies beside short kernels",
        long_copies,
        partial(long_copies, overlapped=True),
        "copies",
        (0.03, 0.06),  # the copies dwarf the kernels: the finding is about fewer bytes, and overlap brings little
    ),
    Fix(
        "without an allocation in each step",
        allocations,
        partial(allocations, kept=True),
        "memory",
        (0.75, 0.82),
    ),
    Fix(
        "without checkpoints",
        checkpoints,
        partial(checkpoints, every=1_000),
        "host",
        (0.74, 0.82),
    ),
    Fix(
        "without the files that one rank reads",
        partial(ranks, gemm=4 * MS, exchange=300 * US, late_ns=6 * MS),
        partial(ranks, gemm=4 * MS, exchange=300 * US, late_ns=0),
        "input",
        (0.53, 0.62),
        gpus=8,
    ),
)
every_fix = pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.name)


def _run(build: Build, gpus: int) -> Simulation:
    simulation = Simulation(gpus)
    build(simulation, Marks())
    return simulation.run()


def _length(simulation: Simulation) -> int:
    """From the first operation to the end of the last, over all GPUs."""
    ops = [op for gpu in simulation.gpus for op in gpu.ops]
    return max(op.end for op in ops) - min(op.start for op in ops)


def _brings(fix: Fix) -> float:
    return 1 - _length(_run(fix.after, fix.gpus)) / _length(_run(fix.before, fix.gpus))


@every_fix
def test_what_a_fix_brings(fix: Fix) -> None:
    assert fix.share[0] <= _brings(fix) <= fix.share[1]


def _promised(report: Json, bottleneck: str) -> Json | None:
    """The largest of the savings that findings of a bottleneck promise."""
    found = [each for each in report["findings"] if each["bottleneck"] == bottleneck and each["saves"]]
    best = max(found, key=lambda each: saved_share(each) or 0.0, default=None)
    return best["saves"] if best else None


@pytest.mark.slow
@every_fix
def test_the_report_promises_what_a_fix_brings(fix: Fix, tmp_path: Path) -> None:
    trace = _run(fix.before, fix.gpus).write(tmp_path / "trace.sqlite")
    report = as_json(analyze(trace, Settings(timeline=False)))
    assert diagnosis_of(report)
    promised = _promised(report, fix.bottleneck)
    if promised is None:
        assert not fix.found, f"no finding of {fix.bottleneck} promises anything"
        return
    low, high = promised["low_ns"] / promised["of_ns"], promised["high_ns"] / promised["of_ns"]
    assert low - SLACK <= _brings(fix) <= high + SLACK, promised
