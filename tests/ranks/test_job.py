"""The diagnosis of a job of several ranks: the same from one file and from a file for each rank."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from nsysdiag import analyze, analyze_ranks
from nsysdiag.document.view import as_read
from nsysdiag.formats import RenderOptions
from nsysdiag.ranks.show.registry import RENDERERS
from nsysdiag.share.redaction import redacted
from tests.output.page import parse
from tests.ranks.run import one_file
from tests.simulator.scenarios import SCENARIOS, scenario
from tests.simulator.scenarios.patterns import RANKS, SLOW_RANK

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.ranks.report import RanksReport

MS = 1_000_000


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> RanksReport:
    """Eight ranks, one of which is late, each with a profiler and a clock of its own."""
    chance = random.Random(3)
    began = [chance.randrange(0, 5_000_000_000) for _ in range(RANKS)]
    errors = [chance.randrange(-3_000_000, 3_000_000) for _ in range(RANKS)]
    return analyze_ranks(scenario("slow_rank").write_each(tmp_path_factory.mktemp("ranks"), began, clock_errors=errors))


class TestOneFile:
    @pytest.mark.slow
    def test_it_is_the_diagnosis_of_the_trace(self, tmp_path: Path) -> None:
        path = one_file([[2 * MS, 2 * MS, 6 * MS]] * 12).write(tmp_path / "trace.sqlite")
        alone, compared = analyze(path), analyze_ranks([path])
        assert compared.diagnosis == alone.diagnosis
        assert [msgspec.structs.asdict(each) for each in compared.findings] == [
            msgspec.structs.asdict(each) for each in alone.findings
        ]

    @pytest.mark.slow
    def test_the_account_of_each_rank_is_that_of_its_judged_phase(self, tmp_path: Path) -> None:
        path = one_file([[2 * MS, 2 * MS, 6 * MS]] * 12).write(tmp_path / "trace.sqlite")
        alone, compared = analyze(path), analyze_ranks([path])
        assert alone.diagnosis is not None
        assert alone.diagnosis.phase is not None
        phase = alone.phases[alone.diagnosis.phase]
        assert {each.key: each.compute_ns for each in compared.judged} == {
            each.key: each.compute_ns for each in phase.devices
        }
        for each in compared.judged:
            assert sum(each.account.values()) == (
                each.compute_ns + each.exposed_comm_ns + each.exposed_copy_ns + each.idle_ns
            )


class TestAFileForEachRank:
    @pytest.mark.slow
    def test_the_cause_of_the_late_rank_leads(self, split: RanksReport) -> None:
        """The seven others wait in AllReduce, which is charged to why the eighth is late: its host code."""
        assert split.diagnosis is not None
        assert split.diagnosis.bottleneck == "host"
        assert split.diagnosis.basis == "steady"
        assert split.diagnosis.gpus_used == RANKS

    def test_what_to_fix_names_the_late_rank(self, split: RanksReport) -> None:
        assert split.diagnosis is not None
        assert split.diagnosis.action is not None
        first = split.findings[0]
        assert first.cause == "late_rank"
        assert first.title == f"rank{SLOW_RANK} is late, and others wait for it (Host code, in step #)"
        assert sorted(first.devices) == sorted(f"rank{at}" for at in range(RANKS))
        assert split.diagnosis.action.startswith(first.title)

    @pytest.mark.slow
    def test_it_says_what_one_file_of_all_ranks_says(self, split: RanksReport, tmp_path: Path) -> None:
        path = scenario("slow_rank").write(tmp_path / "trace.sqlite", SCENARIOS["slow_rank"].capture)
        whole = analyze(path).diagnosis
        assert whole is not None
        assert split.diagnosis is not None
        assert split.diagnosis.bottleneck == whole.bottleneck
        assert split.diagnosis.share == pytest.approx(whole.share, abs=0.03)

    def test_every_rank_has_a_row(self, split: RanksReport) -> None:
        assert [each.key for each in split.judged] == [f"rank{at}" for at in range(RANKS)]

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["html", "md", "txt"])
    def test_formats_begin_with_it(self, split: RanksReport, name: str) -> None:
        data = RENDERERS[name](split, RenderOptions())
        text = parse(data).whole_text() if name == "html" else data.decode()
        shown, read = " ".join(text.split()), as_read(split)
        assert read.diagnosis is not None
        assert read.diagnosis.headline in shown
        assert shown.index(read.diagnosis.headline) < shown.index(read.comparison.sentence)

    def test_what_to_fix_leads_to_its_finding(self, split: RanksReport) -> None:
        root = parse(RENDERERS["html"](split, RenderOptions()))
        (link,) = (each.attributes["href"] for each in root.all("a") if each.attributes["href"].startswith("#f-"))
        (finding,) = (each for each in root.walk() if each.attributes.get("id") == link[1:])
        assert as_read(split).findings[0].title in finding.whole_text()

    def test_redaction_takes_the_names_of_ranks_out_of_it(self, split: RanksReport) -> None:
        """The names of ranks are those of files."""
        shown = msgspec.json.encode(redacted(split)).decode()

        assert not re.search(r"\brank[0-9]", shown)
        assert "late_rank" in shown
