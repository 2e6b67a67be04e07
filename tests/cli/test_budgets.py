"""Budgets on the command line: exit codes, what is said on stderr, and files that are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.record import to_json
from tests.comparison.programs import Program
from tests.output import samples
from tests.simulator.engine import US

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import FakeAnalysis, Result

    Cli = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("analyzed_once")

BROKEN, KEPT = "idle_share > 20%", "idle_share > 50%"
UNKNOWN = "cost.lost.hour > 1"
SAID = "idle_share on gpu0 is 40%, which is > 20%"


@pytest.mark.usefixtures("analysis")
class TestAnalyze:
    @pytest.mark.parametrize(
        ("options", "code"),
        [
            (("--fail-on", KEPT), 0),
            (("--warn-on", BROKEN), 0),
            (("--fail-on", BROKEN), 1),
            (("--fail-on", KEPT, "--fail-on", BROKEN), 1),
            (("--fail-on", KEPT, "--warn-on", BROKEN), 0),
            (("--fail-on", UNKNOWN), 2),
            (("--warn-on", UNKNOWN), 0),
            (("--fail-on", BROKEN, "--warn-on", UNKNOWN), 1),
            (("--fail-on", UNKNOWN, "--unjudged", "fail"), 2),
            (("--fail-on", UNKNOWN, "--unjudged", "warn"), 0),
            (("--fail-on", UNKNOWN, "--unjudged", "ignore"), 0),
            (("--fail-on", UNKNOWN, "--fail-on", BROKEN, "--unjudged", "ignore"), 1),
            (("--fail-on", UNKNOWN, "--unjudged", "often"), 2),
        ],
    )
    @pytest.mark.parametrize("quiet", [(), ("-q",)])
    def test_exit_codes(
        self, cli: Cli, trace: Path, folder: Path, options: tuple[str, ...], code: int, quiet: tuple[str, ...]
    ) -> None:
        result = cli("analyze", trace, "-o", "x.json", *options, *quiet)
        assert result.code == code
        assert (folder / "x.json").exists() or options[-1] == "often"

    @pytest.mark.parametrize(("does", "begins"), [("warn", "warn: --fail-on: "), ("ignore", None)])
    def test_what_cannot_be_judged_is_a_warning_or_nothing(
        self, cli: Cli, trace: Path, does: str, begins: str | None
    ) -> None:
        lines = cli("analyze", trace, "-q", "--fail-on", UNKNOWN, "--unjudged", does).stderr.splitlines()
        assert len(lines) == (begins is not None)
        assert all(line.startswith(begins or "") and "cannot be judged" in line for line in lines)

    def test_broken_ones_are_said_also_when_quiet(self, cli: Cli, trace: Path) -> None:
        options = ("--fail-on", BROKEN, "--fail-on", KEPT, "--warn-on", "gap_count > 1000")
        result = cli("analyze", trace, "-q", *options)
        assert result.stdout == b""
        assert result.stderr.splitlines() == [
            f"fail: {SAID} (--fail-on)",
            "warn: gap_count on gpu0 is 1,234, which is > 1,000 (--warn-on)",
        ]

    def test_they_stand_below_what_was_written(self, cli: Cli, trace: Path) -> None:
        result = cli("analyze", trace, "--fail-on", BROKEN, "--warn-on", "gap_count > 1000")
        assert result.stderr.splitlines()[0] == "wrote train.nsysdiag.html"
        assert result.stderr.splitlines()[1].startswith("warn: gap_count on gpu0 is 1,234")
        assert result.stdout.decode().endswith(f"\nfail: {SAID} (--fail-on)\n")

    def test_a_result_on_stdout_is_left_alone(self, cli: Cli, trace: Path) -> None:
        result = cli("analyze", trace, "--fail-on", BROKEN, "-o", "-", "--format", "json")
        assert b"fail: " not in result.stdout
        assert result.stderr.splitlines() == [f"fail: {SAID} (--fail-on)"]

    def test_what_cannot_be_judged_hides_nothing_else(self, cli: Cli, trace: Path) -> None:
        lines = cli("analyze", trace, "-q", "--fail-on", UNKNOWN, "--fail-on", BROKEN).stderr.splitlines()
        assert lines[0] == f"fail: {SAID} (--fail-on)"
        assert lines[1].startswith(f"nsysdiag: --fail-on: '{UNKNOWN}' cannot be judged by train.sqlite: ")
        assert "--gpu-hour-cost" in lines[1]

    def test_an_output_that_cannot_be_written_comes_first(self, cli: Cli, trace: Path, folder: Path) -> None:
        (folder / "taken.json").write_text("mine")
        result = cli("analyze", trace, "-q", "--fail-on", BROKEN, "-o", "taken.json")
        assert result.code == 2

    def test_the_report_is_the_same(self, cli: Cli, trace: Path, folder: Path) -> None:
        (folder / "budgets.toml").write_text(f"[[budgets]]\nfail = '{BROKEN}'")
        plain = cli("analyze", trace, "-o", "-", "--format", "json")
        for options in (("--fail-on", BROKEN), ("--config", "budgets.toml")):
            result = cli("analyze", trace, "-o", "-", "--format", "json", *options)
            assert (result.code, result.stdout) == (1, plain.stdout)

    @pytest.mark.slow
    def test_redacted_reports_are_judged_before(self, cli: Cli, trace: Path, folder: Path) -> None:
        (folder / "nsysdiag.toml").write_text("[[budgets]]\nfail = 'idle_ns > 16ms'\nnvtx = 'forward'")
        result = cli("analyze", trace, "-q", "--redact", "-o", "x.json")
        assert result.code == 1
        file, broken = result.stderr.splitlines()
        assert file == "budgets of ./nsysdiag.toml"
        assert broken.startswith("fail: idle_ns in 'forward' on gpu0 is 17.0 ms, which is > 16.0 ms")
        assert b"forward" not in (folder / "x.json").read_bytes()


class TestBeforeTheWork:
    @pytest.mark.parametrize(
        ("text", "lines"),
        [
            (
                "idle_share > 20",
                [
                    "nsysdiag: --fail-on: a share is from 0 to 1",
                    "    idle_share > 20",
                    " " * 17 + "^",
                    "  hint: write 20%",
                ],
            ),
            (
                "idle_ns:+5%",
                [
                    "nsysdiag: --fail-on: 'idle_ns:+5%' is about a change, and here is one capture alone",
                    "  hint: use it with 'nsysdiag compare BEFORE AFTER'",
                ],
            ),
        ],
    )
    def test_mistakes(self, cli: Cli, trace: Path, analysis: FakeAnalysis, text: str, lines: list[str]) -> None:
        result = cli("analyze", trace, "--fail-on", text)
        assert (result.code, result.stdout, analysis.calls) == (2, b"", [])
        assert result.stderr.splitlines() == lines

    def test_mistakes_in_a_file(self, cli: Cli, trace: Path, folder: Path, analysis: FakeAnalysis) -> None:
        (folder / "nsysdiag.toml").write_text("[[budgets]]\nwarn = 'idle_shar > 20%'")
        result = cli("analyze", trace)
        assert (result.code, analysis.calls) == (2, [])
        assert result.stderr.startswith(
            "nsysdiag: nsysdiag.toml: budgets[0].warn: there is no 'idle_shar'; did you mean 'idle_share'?\n"
            "    idle_shar > 20%\n    ^\n"
        )

    def test_mistakes_of_compare(self, cli: Cli, folder: Path) -> None:
        result = cli("compare", "a.sqlite", "b.sqlite", "--warn-on", "idle_share:+5%")
        assert result.code == 2
        assert result.stderr.startswith(
            "nsysdiag: --warn-on: a change of idle_share cannot be distinguished from chance"
        )

    def test_two_ways_at_once(self, cli: Cli, trace: Path, analysis: FakeAnalysis) -> None:
        result = cli("analyze", trace, "--config", "x.toml", "--no-config")
        assert (result.code, analysis.calls) == (2, [])
        assert "exclude each other" in result.stderr


class TestFiles:
    @pytest.fixture
    def file(self, folder: Path) -> Path:
        path = folder / "nsysdiag.toml"
        path.write_text(f"[[budgets]]\nfail = '{BROKEN}'\n[[budgets]]\nwarn = 'length:+3%'\n")
        return path

    @pytest.mark.usefixtures("file")
    def test_one_that_is_found(self, cli: Cli, trace: Path, analysis: FakeAnalysis) -> None:
        result = cli("analyze", trace)
        assert result.code == 1
        assert result.stderr.splitlines() == [
            "budgets of ./nsysdiag.toml",
            "wrote train.nsysdiag.html",
        ]
        assert result.stdout.decode().endswith(f"\nfail: {SAID} (nsysdiag.toml: budgets[0].fail)\n")
        assert analysis.settings.config is None  # the report does not depend on it

    @pytest.mark.usefixtures("file", "analysis")
    def test_it_is_named_where_a_budget_is_broken_even_if_quiet(self, cli: Cli, trace: Path) -> None:
        result = cli("analyze", trace, "-q")
        assert result.code == 1
        assert result.stderr == f"budgets of ./nsysdiag.toml\nfail: {SAID} (nsysdiag.toml: budgets[0].fail)\n"

    @pytest.mark.usefixtures("file", "analysis")
    def test_another_one_takes_its_place(self, cli: Cli, trace: Path, folder: Path) -> None:
        (folder / "other.toml").write_text(f"[[budgets]]\nwarn = '{BROKEN}'")
        result = cli("analyze", trace, "-q", "--config", "other.toml")
        assert (result.code, result.stderr) == (0, f"warn: {SAID} (other.toml: budgets[0].warn)\n")

    @pytest.mark.slow
    @pytest.mark.usefixtures("analysis")
    def test_only_the_traces_that_it_names(self, cli: Cli, trace: Path, folder: Path) -> None:
        text = "[[budgets]]\nfail = '{}'\ntrace = '{}'"
        (folder / "nsysdiag.toml").write_text(text.format(BROKEN, "rank*.sqlite"))
        assert cli("analyze", trace).code == 0
        (folder / "nsysdiag.toml").write_text(text.format(BROKEN, "tr*.sqlite"))
        assert cli("analyze", trace).code == 1

    @pytest.mark.slow
    def test_settings_and_budgets(self, cli: Cli, trace: Path, folder: Path, analysis: FakeAnalysis) -> None:
        (folder / "pyproject.toml").write_text(
            f"[tool.nsysdiag]\ngaps = 7\n[[tool.nsysdiag.budgets]]\nfail = '{BROKEN}'"
        )
        result = cli("analyze", trace)
        assert result.code == 1
        assert result.stderr.startswith("settings and budgets of ./pyproject.toml\n")
        assert (analysis.settings.gaps, analysis.settings.config) == (7, "pyproject.toml")


class TestSavedReports:
    @pytest.mark.slow
    def test_are_judged(self, cli: Cli, folder: Path) -> None:
        (folder / "report.json").write_bytes(to_json(samples.one_device()))
        assert cli("analyze", "report.json", "-q", "--fail-on", BROKEN).code == 1
        assert cli("analyze", "report.json", "-q", "--fail-on", KEPT).code == 0

    def test_keep_their_settings_whatever_is_found(self, cli: Cli, folder: Path) -> None:
        """A file that is named must fit them; of one that is found, prices and budgets count."""
        (folder / "nsysdiag.toml").write_text(
            "gaps = 7\n[cost]\ngpu_hour_cost = 2.0\n"
            f"[[budgets]]\nfail = '{BROKEN}'\n[[budgets]]\nwarn = 'cost.lost.hour > 1'"
        )
        (folder / "report.json").write_bytes(to_json(samples.one_device()))
        result = cli("analyze", "report.json", "-o", "x.md")
        assert result.code == 1  # 55 of 100 ms are lost, at 2 an hour
        assert result.stderr.splitlines()[0] == "settings and budgets of ./nsysdiag.toml"
        assert "warn: cost.lost.hour on gpu0 is 1.1, which is > 1 (nsysdiag.toml: budgets[1].warn)" in result.stderr
        assert cli("analyze", "report.json", "--config", "nsysdiag.toml").code == 2

    def test_no_settings_are_claimed_where_none_count(self, cli: Cli, folder: Path) -> None:
        (folder / "nsysdiag.toml").write_text("gaps = 7")
        (folder / "report.json").write_bytes(to_json(samples.one_device()))
        assert cli("analyze", "report.json", "-o", "x.md").stderr == "wrote x.md\n"


class TestCompare:
    @pytest.fixture
    def traces(self, folder: Path) -> list[str]:
        slow, fast = Program(steps=12, sync=True, tail=500 * US), Program(steps=12, seed=1)
        return [fast.write(folder / "fast.sqlite").name, slow.write(folder / "slow.sqlite").name]

    @pytest.mark.slow
    def test_exit_codes(self, cli: Cli, traces: list[str], folder: Path) -> None:
        fast, slow = traces
        for name in (fast, slow):
            assert cli("analyze", name, "-q", "-o", f"{name}.json").code == 0
        before, after = f"{fast}.json", f"{slow}.json"
        assert cli("compare", before, after, "-q", "--fail-on", "length:+5%").code == 1
        assert cli("compare", before, after, "-q", "--warn-on", "length:+5%").code == 0
        assert cli("compare", after, before, "-q", "--fail-on", "length:+5%").code == 0
        assert cli("compare", before, before, "-q", "--fail-on", "length:+0").code == 0
        assert cli("compare", before, after, "-q", "--fail-on", UNKNOWN).code == 2

    @pytest.mark.slow
    def test_what_is_said_and_written(self, cli: Cli, traces: list[str], folder: Path) -> None:
        (folder / "nsysdiag.toml").write_text(
            "[[budgets]]\nfail = 'length:+5%'\n[[budgets]]\nfail = 'ledger.sync > 300us/iter'\ntrace = 'slow*'"
        )
        plain = cli("compare", *traces, "--no-config", "-o", "-", "--format", "json")
        result = cli("compare", *traces, "-o", "-", "--format", "json")
        assert (plain.code, result.code) == (0, 1)
        assert plain.stdout == result.stdout
        first, second, third = result.stderr.splitlines()
        assert first == "budgets of ./nsysdiag.toml"
        assert second.startswith("fail: length on gpu0 grew from ")
        assert second.endswith(
            ", by more than 5% and not by chance (nsysdiag.toml: budgets[0].fail); against fast.sqlite"
        )
        assert third.startswith("fail: ledger.sync on gpu0 is ")

    @pytest.mark.slow
    def test_redacted_sides(self, cli: Cli, traces: list[str], folder: Path) -> None:
        result = cli("compare", *traces, "--redact", "-q", "-o", "c.json", "--fail-on", "length:+5%")
        assert result.code == 1
