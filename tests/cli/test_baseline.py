"""Baselines on the command line: runs are added, compared with, and what they accept does not fail."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag.record import to_json
from tests.comparison.programs import Program
from tests.comparison.samples import report_of
from tests.output import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result

    Cli = Callable[..., Result]

STEADY = Program(steps=12, sync=True)
GROWN = ("compare", "--baseline", "main", "slow.json", "--fail-on", "length:+5%")


@pytest.fixture
def runs(folder: Path) -> Path:
    """Five runs of a program, and one of it with kernels that last a third longer."""
    for seed in range(5):
        level = (1.0, 1.01, 0.985, 1.005, 0.99)[seed]
        (folder / f"run{seed}.json").write_bytes(_saved(replace(STEADY, seed=seed, gemm=level)))
    (folder / "slow.json").write_bytes(_saved(replace(STEADY, seed=9, gemm=1.35)))
    return folder


@cache
def _saved(program: Program) -> bytes:
    return to_json(report_of(program))


@pytest.fixture
def main(runs: Path, cli: Cli) -> Path:
    """The folder of the baseline main with these runs."""
    assert cli("baseline", "add", "main", *sorted(runs.glob("run*.json"))).code == 0
    return runs / ".nsysdiag" / "baselines" / "main"


def saved(path: Path) -> Any:
    return json.loads(path.read_bytes())


class TestAdd:
    @pytest.mark.slow
    def test_says_what_it_wrote(self, cli: Cli, runs: Path) -> None:
        result = cli("baseline", "add", "main", "run0.json", "run1.json")
        assert (result.code, result.stdout) == (0, b"")
        first, second, count = result.stderr.splitlines()
        assert {first[: len("wrote .nsysdiag/baselines/main/20")], second[: len(first) - 1]} >= {
            "wrote .nsysdiag/baselines/main/20"
        }
        assert count == "baseline main has 2 runs"
        again = cli("baseline", "add", "main", "run1.json", "run2.json", "--runs", "2")
        assert again.stderr.splitlines()[1:] == [
            "baseline main has 2 runs; 1 known already and not added again; 1 removed"
        ]
        assert cli("baseline", "add", "main", "run3.json", "--replace", "-q").stderr == ""
        assert len(list((runs / ".nsysdiag" / "baselines" / "main").iterdir())) == 1

    @pytest.mark.slow
    def test_a_trace_is_analyzed(self, cli: Cli, folder: Path) -> None:
        STEADY.write(folder / "train.sqlite")
        assert cli("baseline", "add", "main", "train.sqlite").code == 0
        assert b"train.sqlite" in cli("baseline", "list", "main").stdout

    @pytest.mark.slow
    def test_the_settings_file_says_where_and_how_many(self, cli: Cli, runs: Path) -> None:
        (runs / "nsysdiag.toml").write_text("[baseline]\nfolder = 'perf'\nruns = 2\n")
        assert cli("baseline", "add", "main", "run0.json", "run1.json", "run2.json").code == 0
        assert len(list((runs / "perf" / "main").iterdir())) == 2
        assert cli("compare", "--baseline", "main", "slow.json", "-q").code == 0
        assert cli("compare", "--baseline", "main", "slow.json", "-q", "--baselines", "other").code == 2
        (runs / "nsysdiag.toml").write_text("[baseline]\nruns = 0\n")
        result = cli("baseline", "add", "main", "run0.json")
        assert (result.code, "baseline.runs is 0, but must be" in result.stderr) == (2, True)

    def test_the_folder_is_meant_from_the_settings_file_on(
        self, cli: Cli, runs: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (runs / "pyproject.toml").write_text("[tool.nsysdiag.baseline]\nfolder = 'perf'\n")
        (runs / ".git").mkdir()
        (runs / "deep").mkdir()
        monkeypatch.chdir(runs / "deep")
        assert cli("baseline", "add", "main", "../run0.json").code == 0
        assert len(list((runs / "perf" / "main").iterdir())) == 1

    @pytest.mark.parametrize(
        ("arguments", "code", "told"),
        [
            (("add", "main"), 2, "no run is named"),
            (("add",), 2, "the name of the baseline is missing"),
            (("add", "../x", "run0.json"), 2, "is not a name of a baseline"),
            (("add", "main", "run0.json", "run0.json"), 2, "is named twice"),
            (("add", "main", "missing.json"), 3, "missing.json"),
            (("add", "main", "idle.json"), 5, "idle.json has no GPU work"),
            (("add", "main", "run0.json", "--runs", "0"), 2, "--runs"),
            (("add", "main", "run0.json", "--what", "x"), 2, "--what is for 'baseline accept'"),
            (("accept", "main", "run0.json"), 2, "'accept' takes no runs"),
            (("list", "--runs", "3"), 2, "--runs is for 'baseline add'"),
            (("list", "none"), 2, "there is no baseline none"),
            (("remove", "main"), 2, "remove"),
        ],
    )
    def test_mistakes(self, cli: Cli, runs: Path, arguments: tuple[str, ...], code: int, told: str) -> None:
        (runs / "idle.json").write_bytes(to_json(samples.SAMPLES["no_device"]()))
        result = cli("baseline", *arguments)
        assert (result.code, result.stdout) == (code, b"")
        assert told in result.stderr
        assert not (runs / ".nsysdiag").exists()


class TestCompare:
    @pytest.mark.slow
    def test_a_regression_is_one_line_on_stdout(self, cli: Cli, main: Path) -> None:
        result = cli(*GROWN)
        assert result.code == 1
        (line,) = [line for line in result.stdout.decode().splitlines() if line.startswith("fail: ")]
        assert result.stdout.decode().endswith(f"{line}\n")
        assert "length on gpu0 grew from 1" in line
        assert "by more than 5% and not by chance (--fail-on); against baseline main (5 runs); to accept it: " in line
        assert "fail: " not in result.stderr
        command = shlex.split(line.partition("to accept it: ")[2])
        assert cli(*command[1:]).code == 0
        assert cli(*GROWN).code == 0
        assert len(list(main.glob("accepted.toml"))) == 1

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("options", [("-q",), ("-o", "-", "--format", "json")])
    @pytest.mark.usefixtures("main")
    def test_stdout_stays_clean(self, cli: Cli, options: tuple[str, ...]) -> None:
        result = cli(*GROWN, *options)
        assert result.code == 1
        assert b"fail: " not in result.stdout
        assert [line for line in result.stderr.splitlines() if line.startswith("fail: length on gpu0 grew")]
        assert options == ("-q",) or json.loads(result.stdout)["baseline"]["runs"] == 5

    @pytest.mark.slow
    @pytest.mark.usefixtures("main")
    def test_one_run_more_is_no_change(self, cli: Cli, folder: Path) -> None:
        (folder / "same.json").write_bytes(to_json(report_of(replace(STEADY, seed=20, gemm=1.008))))
        result = cli("compare", "--baseline", "main", "same.json", "--fail-on", "length:+0", "-o", "c.json")
        assert result.code == 0
        made = saved(folder / "c.json")
        assert (made["verdict"], made["baseline"]["name"], made["baseline"]["runs"]) == ("same", "main", 5)
        assert 0.001 < made["baseline"]["spread"] < 0.05
        assert len(made["before"]) == 5
        assert "nsysdiag compare --baseline main same.json" in result.stdout.decode()

    @pytest.mark.usefixtures("runs")
    def test_one_run_says_that_the_noise_is_not_known(self, cli: Cli) -> None:
        cli("baseline", "add", "main", "run0.json")
        result = cli("compare", "--baseline", "main", "slow.json", "-o", "c.md")
        text = " ".join(result.stdout.decode().split())
        assert "Baseline main has 1 run: what differs from run to run is not known before there are 3." in text

    @pytest.mark.slow
    def test_a_damaged_run_is_named(self, cli: Cli, main: Path) -> None:
        first = min(main.glob("*.json"))
        first.write_bytes(first.read_bytes()[:4000])
        result = cli("compare", "--baseline", "main", "slow.json", "-o", "c.json")
        assert result.code == 0
        made = saved(main.parents[2] / "c.json")
        assert (made["baseline"]["runs"], made["baseline"]["damaged"]) == (4, [first.name])
        assert f"cannot be read: {first.name}" in " ".join(result.stdout.decode().split())

    @pytest.mark.slow
    def test_several_captures_after(self, cli: Cli, main: Path) -> None:
        (main.parents[2] / "more.json").write_bytes(to_json(report_of(replace(STEADY, seed=8, gemm=1.35))))
        assert cli(*GROWN, "--after", "more.json", "-q").code == 1

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(
        ("arguments", "code", "told"),
        [
            (("--baseline", "none", "slow.json"), 2, "baseline none has no run in "),
            (("--baseline", "main", "run0.json", "slow.json"), 2, "with --baseline its runs are before"),
            (("--baseline", "main", "slow.json", "--before", "run0.json"), 2, "with --baseline its runs are before"),
            (("--baseline", "main"), 2, "AFTER is missing"),
            (("--baseline", "a/b", "slow.json"), 2, "is not a name of a baseline"),
        ],
    )
    @pytest.mark.usefixtures("main")
    def test_mistakes(self, cli: Cli, arguments: tuple[str, ...], code: int, told: str) -> None:
        result = cli("compare", *arguments)
        assert (result.code, result.stdout) == (code, b"")
        assert told in result.stderr

    @pytest.mark.thorough
    def test_names_are_replaced(self, cli: Cli, main: Path) -> None:
        cli("baseline", "accept", "main", "--what", "length:+90%", "--reason", "secret", "--until", "2099-01-01")
        result = cli(*GROWN, "--redact", "-o", "c.json", "-o", "c.md", "-o", "c.html")
        assert result.code == 0
        for name in ("c.json", "c.md", "c.html"):
            text = (main.parents[2] / name).read_text()
            assert [word for word in ("secret", "run-0", "sgemm", "Baseline main") if word in text] == []

    @pytest.mark.usefixtures("runs")
    def test_a_baseline_without_runs_passes_where_asked(self, cli: Cli, folder: Path) -> None:
        words = ("compare", "--baseline", "main", "slow.json", "--fail-on", "length:+5%", "--if-no-baseline")
        result = cli(*words, "pass", "-o", "c.md", "--comment", "k")
        assert (result.code, result.stdout) == (0, b"")
        assert result.stderr == "baseline main has no run yet: nothing is compared\n"
        assert not (folder / "c.md").exists()
        assert cli(*words, "fail").code == 2
        assert cli("compare", "--baseline", "a/b", "slow.json", "--if-no-baseline", "pass").code == 2
        assert cli("compare", "run0.json", "slow.json", "--if-no-baseline", "pass").code == 0

    def test_a_baseline_with_runs_is_compared_where_asked(self, cli: Cli, main: Path) -> None:
        assert cli(*GROWN, "-q", "--if-no-baseline", "pass").code == 1
        for run in main.glob("*.json"):
            run.write_text("{")
        assert cli(*GROWN, "-q", "--if-no-baseline", "pass").code == 2  # damaged is not new

    @pytest.mark.usefixtures("main")
    def test_a_comment_links_to_the_report(self, cli: Cli, folder: Path) -> None:
        words = ("-q", "-o", "c.md", "--report-url")
        assert cli(*GROWN, *words, "https://ci.example/run/7?x=1", "--comment", "k").code == 1
        assert "[The whole report](<https://ci.example/run/7?x=1>)" in (folder / "c.md").read_text()
        for url in ("ftp://a.b", "https://a b", "https://a>b", "javascript:x"):
            assert cli(*GROWN, *words, url, "--comment", "k").code == 2
        assert cli(*GROWN, *words, "https://a.b").code == 2


class TestAccept:
    @pytest.fixture
    def accepted(self, cli: Cli, main: Path) -> Path:
        options = ("--what", "length:+90%", "--reason", "larger | vocabulary", "--until", "2099-03-01")
        assert cli("baseline", "accept", "main", *options).code == 0
        return main / "accepted.toml"

    @pytest.mark.slow
    @pytest.mark.usefixtures("accepted")
    def test_every_format_has_it_with_its_reason(self, cli: Cli, folder: Path) -> None:
        outputs = [word for name in ("c.json", "c.md", "c.html", "c.txt") for word in ("-o", name)]
        result = cli(*GROWN, *outputs)
        assert (result.code, "fail: " in result.stdout.decode()) == (0, False)
        (told,) = saved(folder / "c.json")["baseline"]["accepted"]
        assert (told["status"], told["reason"], told["until"]) == ("used", "larger | vocabulary", "2099-03-01")
        assert "accepted up to length:+90% until 2099-03-01" in told["sentence"]
        for name in ("c.md", "c.html", "c.txt"):
            text = (folder / name).read_text().replace("\\|", "|")
            assert "larger | vocabulary" in text
            assert "length:+90%" in text

    @pytest.mark.slow
    def test_an_expired_one_fails_and_is_named(self, cli: Cli, accepted: Path) -> None:
        accepted.write_text(accepted.read_text().replace("2099-03-01", "2020-03-01"))
        result = cli(*GROWN)
        assert result.code == 1
        assert "expired: length on gpu0 grew from" in result.stderr
        assert "until 2020-03-01, which is over (reason: larger | vocabulary)" in result.stderr

    def test_one_that_grew_further_fails_and_is_named(self, cli: Cli, accepted: Path) -> None:
        accepted.write_text(accepted.read_text().replace("+90%", "+8%"))
        result = cli(*GROWN)
        assert result.code == 1
        assert "exceeded: length on gpu0 grew from" in result.stderr

    @pytest.mark.slow
    def test_a_further_regression_is_not_accepted_with_it(self, cli: Cli, main: Path) -> None:
        """The baseline fills with runs that take as long as was accepted, and the next ones take as much longer."""
        options = ("--what", "length:+30%", "--reason", "x", "--until", "2099-03-01")
        assert "length:+30%, from 1." in cli("baseline", "accept", "main", *options).stderr
        assert cli(*GROWN, "-q").code == 0
        for seed in range(10, 15):
            (main.parents[2] / f"new{seed}.json").write_bytes(to_json(report_of(replace(STEADY, seed=seed, gemm=1.35))))
        cli("baseline", "add", "main", *main.parents[2].glob("new*.json"), "--runs", "5")
        (main.parents[2] / "slow.json").write_bytes(to_json(report_of(replace(STEADY, seed=9, gemm=1.7))))
        result = cli(*GROWN, "-q")
        assert result.code == 1
        assert "exceeded: length on gpu0 grew from" in result.stderr
        (main / "accepted.toml").write_text("\n".join(_without_anchor(main / "accepted.toml")))
        assert cli(*GROWN, "-q").code == 0  # what people wrote without it goes by the baseline as it is

    def test_a_baseline_that_restarts_accepts_nothing(self, cli: Cli, accepted: Path, runs: Path) -> None:
        result = cli("baseline", "add", "main", "slow.json", "--replace")
        assert result.stderr.splitlines()[-1] == "baseline main has 1 run; 5 removed; 1 accepted no more"
        assert not accepted.exists()

    def test_a_restart_stops_at_a_file_that_cannot_be_read(self, cli: Cli, accepted: Path, main: Path) -> None:
        accepted.write_text("length = 3")
        assert cli("baseline", "add", "main", "slow.json", "--replace").code == 2
        assert len(list(main.glob("*.json"))) == 5

    def test_a_file_that_cannot_be_read_stops(self, cli: Cli, accepted: Path) -> None:
        accepted.write_text("length = 3")
        result = cli(*GROWN)
        assert (result.code, "accepted.toml holds something else" in result.stderr) == (2, True)

    @pytest.mark.usefixtures("accepted")
    def test_list(self, cli: Cli) -> None:
        lines = cli("baseline", "list", "main").stdout.decode().splitlines()
        assert len(lines) == 1 + 5 + 1 + 2
        assert lines[-1].split() == ["length:+90%", "2099-03-01", "accepted", "larger", "|", "vocabulary"]
        header, row = cli("baseline", "list").stdout.decode().splitlines()
        assert header.split() == ["name", "runs", "latest", "run", "accepted"]
        assert (row.split()[:2], row.split()[-1]) == (["main", "5"], "1")

    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (("--what", "length:+9%", "--reason", "x"), "--until is missing"),
            (("--what", "length:+9%", "--reason", " ", "--until", "2099-01-01"), "--reason is missing"),
            (("--reason", "x", "--until", "2099-01-01"), "--what is missing"),
            (("--what", "length", "--reason", "x", "--until", "2099-01-01"), "--what"),
            (("--what", "length:+9%", "--reason", "x", "--until", "soon"), "--until soon is not a date"),
            (("--what", "length:+9%", "--reason", "x", "--until", "2020-01-01"), "is over: nothing would be accepted"),
            (("--what", "length:+9%", "--reason", "x" * 501, "--until", "2099-01-01"), "501 characters"),
        ],
    )
    def test_mistakes(self, cli: Cli, main: Path, options: tuple[str, ...], told: str) -> None:
        result = cli("baseline", "accept", "main", *options)
        assert (result.code, result.stdout) == (2, b"")
        assert told in result.stderr
        assert not (main / "accepted.toml").exists()

    def test_no_baseline_is_begun_by_it(self, cli: Cli, folder: Path) -> None:
        options = ("--what", "length:+9%", "--reason", "x", "--until", "2099-01-01")
        assert cli("baseline", "accept", "main", *options).code == 2
        assert list(folder.iterdir()) == []


def _without_anchor(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("before_ns")]


def test_list_of_none(cli: Cli, folder: Path) -> None:
    result = cli("baseline", "list")
    assert (result.code, result.stderr) == (0, "")
    assert b"there are none: nsysdiag baseline add" in result.stdout
    assert list(folder.iterdir()) == []
