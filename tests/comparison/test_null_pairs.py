"""Pairs that differ by their seed alone: hardly ever a change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import nsysdiag
from nsysdiag.comparison.compare import compare_reports
from nsysdiag.comparison.facts import DECIDED
from nsysdiag.comparison.waterfall import outweighed
from tests.comparison.programs import Program
from tests.comparison.samples import beside, only, report_of, verdicts
from tests.levels import THOROUGH
from tests.simulator.engine import MS, US

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

RUNS, PAIRS = (30, 200) if THOROUGH else (20, 80)
DEVICES, SEVERAL = 8, 60
NOISY = Program(steps=16, workers=1, jitter=0.25, sync=True, tail=80 * US)


def by_chance(number: int) -> tuple[Program, Program]:
    """A program of any kind, twice: without markers in most cases, or with ranges on one side alone."""
    random = np.random.default_rng([41, number])
    kind = int(random.integers(4))
    program = Program(
        seed=2 * number,
        steps=int(random.integers(6, 50)),
        sync=bool(random.random() < 0.4),
        tail=int(random.choice([2, 80, 500])) * US,
        thinking=int(random.choice([0, 0, 300])) * US,
        workers=int(random.choice([1, 2, 3])) if kind == 3 else 0,
        reading=int(random.choice([1, 4, 8])) * MS,
        graph=bool(random.random() < 0.1),
        jitter=float(random.choice([0.01, 0.03, 0.1, 0.25])),
        named=kind in (1, 3),
        inputs=kind == 3,
        layers=int(random.integers(1, 9)),
        every=int(random.choice([0, 0, 0, 10])),
        tuning=int(random.choice([0, 0, 5])),
        form=str(random.choice(["", "fused", "renamed"])),
    )
    return program, replace(program, seed=2 * number + 1, named=kind in (2, 3))


@pytest.mark.slow
@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(range(2), id="few"),
        pytest.param(range(2, 226), id="many", marks=pytest.mark.thorough),
    ],
)
def test_programs_by_chance_do_not_change(numbers: range, tmp_path: Path) -> None:
    """At most one in two hundred; of the others none in so few."""
    changed, aligned = [], 0
    for number in numbers:
        sides = [
            each.write(tmp_path / f"{number}-{name}.sqlite")
            for name, each in zip(("before", "after"), by_chance(number), strict=True)
        ]
        made = nsysdiag.compare(*sides)
        loops = [each for each in made.job.phases if each.change.verdict in DECIDED] if made.job is not None else []
        changed += [number] if made.verdict not in ("same", "unknown") or loops else []
        aligned += "are aligned by the names" in made.notes[0]
    assert len(changed) <= len(numbers) / 200, changed
    assert aligned >= len(numbers) / 5


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(range(4), id="some", marks=pytest.mark.slow),
        pytest.param(range(4, 116), id="many", marks=pytest.mark.thorough),
    ],
)
def test_few_steps_do_not_change_by_chance(numbers: range, tmp_path: Path) -> None:
    """Two to five steps of 3 to 60 layers: nearly all have a verdict, and none of a change."""
    found = []
    for number in numbers:
        layers = int(np.random.default_rng(number).integers(3, 60))
        pair = [replace(each, steps=2 + number % 4, layers=layers) for each in by_chance(number)]
        sides = [each.write(tmp_path / f"{number}-{at}.sqlite") for at, each in enumerate(pair)]
        found.append(nsysdiag.compare(*sides).verdict)
    assert set(found) <= {"same", "unknown"}
    assert found.count("unknown") <= 0.05 * len(found)


@pytest.mark.slow
def test_steps_of_two_kinds_have_no_typical_one() -> None:
    """Two loaders: every second step waits. How they share the wait is chance, and so is the median step."""
    program = Program(steps=28, workers=2, sync=True, inputs=False, layers=5, reading=8 * MS)
    made = compare_reports(*([report_of(replace(program, seed=seed))] for seed in (1116, 1117)))
    assert made.verdict == "same"
    assert made.job is not None
    assert (made.job.statistic, made.job.slow_steps) == ("mean", False)


@pytest.fixture(scope="module")
def runs() -> list[Report]:
    return [report_of(replace(NOISY, seed=seed)) for seed in range(RUNS)]


@pytest.mark.thorough
def test_at_most_one_in_two_hundred_says_that_something_changed(runs: list[Report]) -> None:
    """Pairs of runs of a noisy program: steps, loaders and kernels that last a quarter longer or shorter."""
    pairs = [(one, two) for one in range(RUNS) for two in range(one + 1, RUNS)][:: RUNS * (RUNS - 1) // 2 // PAIRS]
    assert len(pairs) >= PAIRS
    made = [only(compare_reports([runs[one]], [runs[two]])) for one, two in pairs[:PAIRS]]
    assert sum(device.verdict != "same" for device in made) <= 0.005 * PAIRS
    parts = sum(len(device.parts) + len(device.ledger) for device in made)
    assert sum(len(verdicts(device)) for device in made) <= 0.05 * parts
    rows = [row.change.verdict for device in made for row in (*device.kernels, *device.signatures)]
    assert sum(verdict in ("improved", "regressed") for verdict in rows) <= 0.05 * len(rows)
    assert rows.count("unknown") < 0.01 * len(rows)


@pytest.mark.thorough
def test_devices_together_are_wrong_as_rarely_as_one(runs: list[Report]) -> None:
    """Eight devices a side, each a run of its own, and so independent."""
    random = np.random.default_rng(0)
    wrong = alone = 0
    for _pair in range(SEVERAL):
        drawn = [runs[at] for at in random.permutation(RUNS)[: 2 * DEVICES]]
        made = compare_reports([beside(drawn[:DEVICES])], [beside(drawn[DEVICES:])])
        wrong += made.verdict != "same"
        alone += any(device.length.verdict != "same" or outweighed(device.length) for device in made.devices)
    assert wrong <= 0.02 * SEVERAL
    assert alone > 0.1 * SEVERAL  # as many would be wrong, were each device judged by itself
