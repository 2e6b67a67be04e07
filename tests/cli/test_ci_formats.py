"""The formats of CI systems from the command line: the budgets that were checked are in them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result

BROKEN, KEPT = "idle_ns > 0", "idle_ns > 1000000s"


def cases(path: Path) -> dict[str, list[str]]:
    return {case.attrib["name"]: [each.tag for each in case] for case in ET.parse(path).iter("testcase")}


@pytest.mark.usefixtures("analysis")
class TestAnalyze:
    def test_each_budget_is_a_case(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        budgets = ["--fail-on", BROKEN, "--warn-on", BROKEN, "--fail-on", KEPT]
        result = cli("analyze", trace, *budgets, "-o", "x.junit.xml", "-o", "x.sarif")
        assert result.code == 1
        assert cases(folder / "x.junit.xml") == {
            BROKEN: ["failure"],
            f"{BROKEN} (2)": [],
            KEPT: [],
        }
        assert '"ruleId": "budget"' in (folder / "x.sarif").read_text(encoding="utf-8")

    def test_without_budgets_one_case_passes(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        assert cli("analyze", trace, "-o", "x.junit.xml").code == 0
        assert cases(folder / "x.junit.xml") == {"analysed": []}

    def test_a_redacted_report_names_no_budgets(self, cli: Callable[..., Result], trace: Path, folder: Path) -> None:
        result = cli("analyze", trace, "--redact", "--fail-on", BROKEN, "-o", "x.junit.xml")
        assert result.code == 1
        assert cases(folder / "x.junit.xml") == {"analysed": []}

    @pytest.mark.slow
    def test_our_own_files_are_written_over_others_are_not(
        self, cli: Callable[..., Result], trace: Path, folder: Path
    ) -> None:
        for name in ("x.junit.xml", "x.sarif"):
            assert cli("analyze", trace, "-o", name).code == 0
            assert cli("analyze", trace, "-o", name).code == 0
            (folder / name).write_text('{"mine": 1}', encoding="utf-8")
            assert cli("analyze", trace, "-o", name).code == 2


def test_comparisons_and_ranks_have_no_such_files(cli: Callable[..., Result], trace: Path) -> None:
    for command in (("ranks", trace), ("compare", trace, trace)):
        for name in ("x.junit.xml", "x.sarif"):
            result = cli(*command, "-o", name)
            assert result.code == 2
            assert "cannot be written as" in result.stderr


def test_code_quality_is_gone(cli: Callable[..., Result], trace: Path, folder: Path) -> None:
    """It is no report of another format by its last suffix."""
    result = cli("analyze", trace, "-o", "x.gitlab.json")
    assert (result.code, (folder / "x.gitlab.json").exists()) == (2, False)
    assert "write .junit.xml" in result.stderr
