"""Budgets of comparisons, on pairs of simulated programs with one known change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest

from nsysdiag.ci.acceptances import check_comparison
from nsysdiag.ci.budgets import Budget
from nsysdiag.ci.expressions import parse
from nsysdiag.comparison.compare import compare_reports
from nsysdiag.messages import UsageError
from tests.comparison.programs import Program
from tests.comparison.samples import only, part, report_of
from tests.simulator.capture import CUDA_ONLY
from tests.simulator.engine import US

if TYPE_CHECKING:
    from nsysdiag.ci.facts import BudgetResult
    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.report import Report

PLAIN = Program(seed=1)
SYNC = Program(sync=True, tail=500 * US)


class Pair:
    """Two sides and what budgets say of them."""

    def __init__(self, before: list[Report], after: dict[str, Report]) -> None:
        self.after = after
        self.made: Comparison = compare_reports(before, list(after.values()))

    def judged(self, text: str, **limits: str) -> BudgetResult:
        (result,) = self.all(text, **limits)
        return result

    def all(self, text: str, **limits: str) -> list[BudgetResult]:
        budget = Budget(parse(text, "--fail-on"), "fail", "--fail-on", **limits)  # type: ignore[arg-type]
        return check_comparison(self.made, self.after, [budget])

    def refused(self, text: str, **limits: str) -> str:
        with pytest.raises(UsageError) as raised:
            self.judged(text, **limits)
        assert raised.value.exit_code == 2
        return raised.value.message


@pytest.fixture(scope="module")
def reports() -> tuple[Report, Report, Report]:
    """Without and with a wait for the device at every step, and once more without."""
    return report_of(PLAIN), report_of(SYNC), report_of(replace(PLAIN, seed=2))


@pytest.fixture(scope="module")
def worse(reports: tuple[Report, Report, Report]) -> Pair:
    return Pair([reports[0]], {"after.sqlite": reports[1]})


@pytest.fixture(scope="module")
def better(reports: tuple[Report, Report, Report]) -> Pair:
    return Pair([reports[1]], {"after.sqlite": reports[0]})


@pytest.fixture(scope="module")
def alike(reports: tuple[Report, Report, Report]) -> Pair:
    return Pair([reports[0]], {"after.sqlite": reports[2]})


class TestChanges:
    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("text", ["length:+5%", "idle_ns:+10%", "idle_ns:+300us", "ledger.sync:+50%", "length:+0"])
    def test_what_grew_breaks_it(self, worse: Pair, better: Pair, alike: Pair, text: str) -> None:
        assert worse.judged(text).broken
        assert not better.judged(text).broken
        assert not alike.judged(text).broken

    @pytest.mark.parametrize("text", ["length:-5%", "idle_ns:-10%", "idle_ns:-300us", "root_ledger.sync:-400us/iter"])
    def test_what_shrank(self, worse: Pair, better: Pair, alike: Pair, text: str) -> None:
        assert better.judged(text).broken
        assert not worse.judged(text).broken
        assert not alike.judged(text).broken

    def test_by_no_more_than_allowed(self, worse: Pair) -> None:
        """On either side of what it grew by."""
        length = only(worse.made).length
        share = length.change_ns / length.before_ns
        assert worse.judged(f"length:+{100 * share - 0.01:.4f}%").broken
        assert not worse.judged(f"length:+{100 * share + 0.01:.4f}%").broken
        assert worse.judged(f"length:+{length.change_ns - 1}ns").broken
        assert not worse.judged(f"length:+{length.change_ns}ns").broken
        assert not worse.judged("length:+2s").broken

    def test_the_value_is_the_change(self, worse: Pair, better: Pair) -> None:
        for pair in (worse, better):
            change = part(only(pair.made), "idle")
            assert pair.judged("idle_ns:+1ms").value == change.change_ns
            assert pair.judged("idle_ns:+1%").value == pytest.approx(change.change_ns / change.before_ns)

    def test_chance_breaks_nothing(self, alike: Pair) -> None:
        """Numbers differ, and still a budget of nothing at all is kept."""
        assert part(only(alike.made), "idle").change_ns != 0
        result = alike.judged("idle_ns:+0")
        assert not result.broken
        assert result.sentence.endswith("which is not a change beyond chance")

    def test_what_did_not_change_at_all(self, worse: Pair) -> None:
        assert worse.judged("compute_ns:+1%").broken is False
        assert worse.judged("exposed_comm_ns:+0").value == 0  # neither side has any
        assert not worse.judged("ledger.graph_build:+0").broken

    def test_words(self, worse: Pair) -> None:
        said = worse.judged("ledger.sync:+10%").sentence
        assert said.startswith("ledger.sync on gpu0 grew from ")
        assert said.endswith(", by more than 10% and not by chance")
        assert " a unit of work (+" in worse.judged("length:+5%").sentence
        assert worse.judged("length:+900%").sentence.endswith("and must not have grown by more than 900%")
        assert worse.judged("length:-1%").sentence.endswith("and must not have shrunk by more than 1%")

    def test_only_the_devices_that_it_names(self, worse: Pair) -> None:
        assert worse.judged("length:+5%", device="gpu0").broken
        assert "no device 'gpu7' is on both sides; those that are: gpu0" in worse.refused("length:+5%", device="gpu7")

    def test_only_the_traces_that_it_names(self, worse: Pair) -> None:
        assert worse.judged("length:+5%", trace="after*").broken
        assert worse.all("length:+5%", trace="before*") == []
        assert worse.all("idle_ns > 0", trace="before*") == []


class TestTheSideAfter:
    def test_plain_budgets_are_about_it(self, worse: Pair, better: Pair) -> None:
        assert worse.judged("ledger.sync > 300us/iter").broken
        assert not better.judged("ledger.sync > 300us/iter").broken
        assert worse.judged("idle_share > 1%").device == "gpu0"

    def test_the_worst_of_several_captures(self, reports: tuple[Report, Report, Report]) -> None:
        plain, sync, other = reports
        pair = Pair([plain, other], {"one.sqlite": plain, "two.sqlite": sync})
        result = pair.judged("ledger.sync > 300us/iter")
        assert result.broken
        assert result.sentence.startswith("two.sqlite: ledger.sync on gpu0 is ")
        assert not pair.judged("ledger.sync > 300us/iter", trace="one*").broken


class TestWhatCannotBeJudged:
    def test_without_an_interval(self, reports: tuple[Report, Report, Report]) -> None:
        """Whole windows, one a side: what is chance, nobody knows."""
        plain, sync, _other = (
            msgspec.structs.replace(made, devices=[msgspec.structs.replace(made.devices[0], iterations=None)])
            for made in reports
        )
        pair = Pair([plain], {"after.sqlite": sync})
        assert "what is chance is unknown" in pair.refused("length:+5%")
        assert "--before and --after" in pair.refused("ledger.sync:+5%")
        assert pair.judged("idle_share > 1%").broken

    @pytest.mark.slow
    def test_evidence_on_one_side_alone(self) -> None:
        program = Program(workers=1, steps=16)
        before, after = report_of(program, CUDA_ONLY), report_of(replace(program, seed=1))
        pair = Pair([before], {"after.sqlite": after})
        assert "not all captures can tell io_wait" in pair.refused("ledger.io_wait:+5%")
        assert not pair.judged("compute_ns:+50%").broken

    @pytest.mark.slow
    def test_evidence_on_no_side(self) -> None:
        program = Program(workers=1, steps=16)
        before, after = (report_of(replace(program, seed=seed), CUDA_ONLY) for seed in (0, 1))
        pair = Pair([before], {"after.sqlite": after})
        assert "no os-runtime evidence: --trace=osrt brings it" in pair.refused("ledger.io_wait:+5%")
