"""A settings file that was found by itself: named under --quiet where it mattered, and in reports."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from nsysdiag.batch import pool
from nsysdiag.batch.task import work
from nsysdiag.ci.facts import BatchSummary
from nsysdiag.record import to_json
from nsysdiag.saved import from_json
from tests.builder import TraceBuilder
from tests.levels import some
from tests.output import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import FakeAnalysis, Result

    Cli = Callable[..., Result]

pytestmark = pytest.mark.slow

FILE = "nsysdiag.toml"
BROKEN, KEPT, UNKNOWN = "idle_share > 1%", "idle_share > 100%", "gpu_metrics.sm_issue > 1%"
SETTINGS, BUDGETS, BOTH = (f"{what} of ./{FILE}" for what in ("settings", "budgets", "settings and budgets"))


def budget(text: str, level: str = "fail") -> str:
    return f"[[budgets]]\n{level} = '{text}'\n"


MATTERS = {
    'disabled = ["sync"]': SETTINGS,
    'communication_patterns = ["ring"]': SETTINGS,
    "[thresholds]\nbusy = 0.5": SETTINGS,
    budget(BROKEN): BUDGETS,
    budget(BROKEN, "warn"): BUDGETS,
    budget(UNKNOWN): BUDGETS,
    budget(UNKNOWN, "warn"): BUDGETS,
    f'disabled = ["sync"]\n{budget(KEPT)}{budget(BROKEN)}': BOTH,
}
DOES_NOT = ("", "gaps = 7", "[cost]\ngpu_hour_cost = 2", budget(KEPT), budget("length:+3%"), budget(KEPT, "warn"))
CASES = {**MATTERS, **dict.fromkeys(DOES_NOT)}


def write(path: Path, gap: int = 300_000) -> None:
    """Four kernels with gaps between them."""
    trace = TraceBuilder()
    for number in range(4):
        at = (100_000 + gap) * number + 100_000
        trace.kernel(at, at + 100_000, name="gemm", launch=(at - 50_000, at - 40_000))
    trace.write(path)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch does all its work in this process, which is quicker."""
    monkeypatch.setattr(pool, "run_locally", lambda tasks, limits, watch: (work(task) for task in tasks))


@pytest.fixture
def traces(folder: Path) -> list[str]:
    """Two traces in the current folder, and nothing else."""
    write(folder / "a.sqlite")
    write(folder / "b.sqlite", 400_000)
    return ["a.sqlite", "b.sqlite"]


def named(result: Result) -> str | None:
    """The line that names the file; no other line is like it."""
    lines = [line for line in result.stderr.splitlines() if line in (SETTINGS, BUDGETS, BOTH)]
    assert len(lines) <= 1
    assert result.stdout == b""
    return lines[0] if lines else None


every_case = pytest.mark.parametrize("text", CASES, ids=ascii)
some_cases = pytest.mark.parametrize("text", dict.fromkeys([*some(list(CASES), 3, 1), budget("length:+3%")]), ids=ascii)


class TestQuiet:
    @every_case
    def test_analyze(self, text: str, cli: Cli, trace: Path, folder: Path, analysis: FakeAnalysis) -> None:
        (folder / FILE).write_text(text)
        assert named(cli("analyze", trace, "-q", "-o", "x.md")) == CASES[text]
        assert named(cli("analyze", trace, "-q", "-o", "x.md", "--no-config")) is None
        assert named(cli("analyze", trace, "-q", "-o", "x.md", "--config", FILE)) is None

    @some_cases
    def test_compare(self, text: str, cli: Cli, traces: list[str], folder: Path) -> None:
        """A budget about a change is judged there: the traces have no iterations, so nothing is known of it."""
        (folder / FILE).write_text(text)
        assert named(cli("compare", *traces, "-q", "-o", "x.md")) == (BUDGETS if "length" in text else CASES[text])

    @some_cases
    def test_batch(self, text: str, cli: Cli, traces: list[str], folder: Path) -> None:
        (folder / FILE).write_text(text)
        assert named(cli("batch", "a.sqlite", "-q", "-o", "out")) == CASES[text]

    @some_cases
    def test_saved_reports_take_no_settings(self, text: str, cli: Cli, folder: Path) -> None:
        (folder / FILE).write_text(text)
        (folder / "report.json").write_bytes(to_json(samples.one_device()))
        expected = BUDGETS if CASES[text] == BOTH else None if CASES[text] == SETTINGS else CASES[text]
        assert named(cli("analyze", "report.json", "-q", "-o", "x.md")) == expected
        assert named(cli("batch", "report.json", "-q", "-o", "out")) == expected
        assert from_json((folder / "out" / "summary.json").read_bytes(), BatchSummary).settings.keys() <= {
            "config",
            "cost",
        }


@pytest.mark.usefixtures("analysis")
class TestOptions:
    def test_one_that_replaces_the_setting(self, cli: Cli, trace: Path, folder: Path) -> None:
        (folder / FILE).write_text('disabled = ["sync"]')
        assert named(cli("analyze", trace, "-q", "--disable", "io_wait")) is None

    def test_a_budget_of_an_option_is_not_one_of_the_file(self, cli: Cli, trace: Path, folder: Path) -> None:
        (folder / FILE).write_text(budget(KEPT))
        result = cli("analyze", trace, "-q", "--fail-on", BROKEN)
        assert (result.code, named(result)) == (1, None)

    def test_a_file_above(self, cli: Cli, trace: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / ".git").mkdir()
        (folder / FILE).write_text(budget(BROKEN))
        (folder / "runs").mkdir()
        monkeypatch.chdir(folder / "runs")
        assert cli("analyze", folder / trace, "-q").stderr.startswith(f"budgets of ../{FILE}\n")


class TestReports:
    """What was written names the file as well: it goes further than the terminal."""

    TEXT = f'disabled = ["sync"]\n{budget(BROKEN)}{budget(BROKEN, "warn")}{budget(UNKNOWN)}'

    @pytest.fixture(autouse=True)
    def file(self, folder: Path) -> None:
        (folder / FILE).write_text(self.TEXT)

    @pytest.mark.parametrize("suffix", ["html", "json", "md", "txt", "junit.xml", "sarif"])
    def test_of_analyze(self, suffix: str, cli: Cli, traces: list[str], folder: Path) -> None:
        cli("analyze", *traces[:1], "-q", "-o", f"x.{suffix}")
        assert FILE in (folder / f"x.{suffix}").read_text()

    @pytest.mark.parametrize("suffix", ["html", "json", "md", "txt"])
    def test_of_compare(self, suffix: str, cli: Cli, traces: list[str], folder: Path) -> None:
        cli("compare", *traces, "-q", "-o", f"x.{suffix}")
        assert FILE in (folder / f"x.{suffix}").read_text()
        (folder / FILE).write_text(budget(KEPT))
        cli("compare", *traces, "-q", "-o", f"x.{suffix}")
        assert FILE not in (folder / f"x.{suffix}").read_text()

    def test_each_budget_in_the_files_for_ci_says_where_it_stands(
        self, cli: Cli, traces: list[str], folder: Path
    ) -> None:
        result = cli("batch", "a.sqlite", "-q", "-o", "out")
        for name in ("github.txt", "junit.xml", "nsysdiag.sarif", "summary.md", "index.html"):
            text = (folder / "out" / name).read_text().replace("\\", "")
            assert all(f"{FILE}: budgets[{number}]" in text for number in range(3)), name
        for number, level in enumerate(("fail", "warn")):
            assert f"> 1% ({FILE}: budgets[{number}].{level})" in result.stderr

    def test_a_batch_without_budgets_names_it(self, cli: Cli, traces: list[str], folder: Path) -> None:
        (folder / FILE).write_text('disabled = ["sync"]')
        cli("batch", *traces, "-q", "-o", "out")
        assert json.loads((folder / "out" / "summary.json").read_bytes())["settings"] == {
            "config": FILE,
            "disabled": ["sync"],
        }
        assert all(FILE in (folder / "out" / name).read_text() for name in ("index.html", "summary.md", "a.html"))

    def test_redacted_ones_do_not(self, cli: Cli, traces: list[str], folder: Path) -> None:
        """The terminal is that of whoever redacts."""
        outputs = [word for suffix in ("html", "json", "md", "txt") for word in ("-o", f"x.{suffix}")]
        assert named(cli("compare", *traces, "-q", "--redact", *outputs)) == BOTH
        assert all(FILE not in (folder / name).read_text() for name in outputs[1::2])
        more = [word for suffix in ("junit.xml", "sarif") for word in ("-o", f"x.{suffix}")]
        assert named(cli("analyze", "a.sqlite", "-q", "--redact", *outputs, *more)) == BOTH
        assert all(FILE not in (folder / name).read_text() for name in [*outputs, *more][1::2])
