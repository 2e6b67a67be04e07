"""The slow rank of eight: who is late, by how much, and why, from one file and from eight with clocks of their own."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze_ranks
from tests.simulator.scenarios import SCENARIOS, scenario
from tests.simulator.scenarios.patterns import RANK_STEPS, RANKS, SLOW_RANK

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.ranks.facts import RankComparison

pytestmark = pytest.mark.slow

PREPARING_NS, SLOW_PREPARING_NS = 100_000, 4_000_000
DELAY_NS = SLOW_PREPARING_NS - PREPARING_NS
"""How much later the slow rank is in each step."""


def one_file(folder: Path) -> tuple[RankComparison, str]:
    """All ranks under one profiler."""
    path = scenario("slow_rank").write(folder / "trace.sqlite", SCENARIOS["slow_rank"].capture)
    return analyze_ranks([path]).comparison, f"gpu{SLOW_RANK}"


def eight_files(folder: Path) -> tuple[RankComparison, str]:
    """A profiler for each rank: sessions that began at different times, clocks that are up to 3 ms apart."""
    chance = random.Random(8)
    began = [chance.randrange(0, 5_000_000_000) for _ in range(RANKS)]
    errors = [chance.randrange(-3_000_000, 3_000_000) for _ in range(RANKS)]
    paths = scenario("slow_rank").write_each(folder, began, clock_errors=errors)
    return analyze_ranks(paths).comparison, f"rank{SLOW_RANK}"


@pytest.fixture(scope="module", params=[one_file, eight_files])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[RankComparison, str]:
    made: tuple[RankComparison, str] = request.param(tmp_path_factory.mktemp("ranks"))
    return made


class TestSlowRank:
    def test_it_is_the_straggler_and_holds_the_seven_others(self, found: tuple[RankComparison, str]) -> None:
        comparison, slow = found
        (late,) = comparison.stragglers
        assert late.rank.startswith(slow)
        assert late.late == late.of == RANK_STEPS
        assert late.late_ns == pytest.approx(DELAY_NS * RANK_STEPS, rel=0.05)
        assert late.caused_ns == pytest.approx(7 * late.late_ns, rel=0.05)

    def test_it_is_late_because_of_its_host_code(self, found: tuple[RankComparison, str]) -> None:
        comparison, _ = found
        (late,) = comparison.stragglers
        assert late.more["host_compute"] >= 0.95 * late.late_ns
        assert late.confidence >= 0.9

    def test_all_others_wait_for_it(self, found: tuple[RankComparison, str]) -> None:
        comparison, slow = found
        for rank in comparison.ranks:
            if not rank.rank.startswith(slow):
                mine = {wait.late_rank: wait.wait_ns for wait in comparison.waits if wait.rank == rank.rank}
                assert sum(mine.values()) == rank.wait_ns
                assert next(ns for late, ns in mine.items() if late and late.startswith(slow)) >= 0.95 * rank.wait_ns

    def test_clocks_agree_better_than_the_delay(self, found: tuple[RankComparison, str]) -> None:
        comparison, _ = found
        assert comparison.clock_error_ns is not None
        assert comparison.clock_error_ns < 100_000
