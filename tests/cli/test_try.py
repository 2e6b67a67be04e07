"""`nsysdiag try`: a fix is predicted, the program changes, and one line says how good the prediction was."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.capture.stand_in import StandIn
from tests.cli.test_record import ROOT, environment
from tests.comparison.programs import Program
from tests.simulator.engine import US

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Result

    Cli = Callable[..., Result]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="nsys records programs of Linux"),
]

SLOW = Program(steps=20, sync=True, thinking=400 * US)
FAST = replace(SLOW, sync=False, seed=1)
FINDING = ("--finding", "f-sync")
SH = ("--", "sh", "-c", "echo ran")


@pytest.fixture
def traces(folder: Path) -> dict[str, Path]:
    """Before the fix, after it, and after another change that doubles the work."""
    programs = {"slow": SLOW, "fast": FAST, "double": replace(FAST, layers=12, batch=16 << 20)}
    return {name: program.write(folder / f"{name}.sqlite") for name, program in programs.items()}


@pytest.fixture
def nsys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in = StandIn(folder / "bin")
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (folder / "tmp").mkdir()
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    return stand_in


def lines(result: Result) -> list[str]:
    return [line for line in result.stdout.decode().splitlines() if line != "ran"]


class TestInTwoCalls:
    """Without a terminal nothing waits."""

    def test_both_are_recorded(self, cli: Cli, nsys: StandIn, traces: dict[str, Path]) -> None:
        nsys.says(export=str(traces["slow"]))
        first = cli("try", *FINDING, *SH)
        assert first.code == 0, first.stderr
        said = lines(first)
        assert said[0].startswith("f-sync: ")
        assert "ms predicted (" in said[1]
        assert said[1].endswith("--finding f-sync")
        assert said[2].startswith("  change: ")
        assert said[-1] == "  after the change: nsysdiag try --state sh.try -- sh -c 'echo ran'"
        assert {path.name for path in Path("sh.try").iterdir()} == {"before.nsys-rep", "before.json", "predicted.json"}
        nsys.says(export=str(traces["fast"]))
        second = cli("try", *SH)
        assert second.code == 0, second.stderr
        outcome, measured = lines(second)
        assert outcome.startswith("f-sync: step time 1.44 ms before, predicted 1.06 ms (")
        assert "), measured 1.0" in outcome
        assert outcome.endswith(": inside the bounds")
        assert measured.startswith("Step time 1.4")
        assert "× faster" in measured
        assert len(nsys.runs) == 2
        assert {path.name for path in Path("sh.try").iterdir()} >= {"after.nsys-rep", "after.json"}

    def test_traces_of_both(self, cli: Cli, nsys: StandIn, traces: dict[str, Path]) -> None:
        first = cli("try", *FINDING, "--before", traces["slow"], "--state", "s")
        assert first.code == 0, first.stderr
        assert lines(first)[-1] == "  after the change: nsysdiag try --state s -- TRACE".replace(
            "-- TRACE", "--after TRACE"
        )
        second = cli("try", "--after", traces["fast"], "--state", "s", "-o", "c.json")
        assert second.code == 0, second.stderr
        assert lines(second)[0].endswith(": inside the bounds")
        assert Path("c.json").exists()
        assert nsys.runs == []

    def test_a_change_that_did_not_help(self, cli: Cli, nsys: StandIn, traces: dict[str, Path]) -> None:
        cli("try", *FINDING, "--before", traces["slow"], "--state", "s")
        outcome = lines(cli("try", "--after", traces["slow"], "--state", "s"))[0]
        assert outcome.endswith(" above the bounds")

    def test_other_work_is_no_answer(self, cli: Cli, nsys: StandIn, traces: dict[str, Path]) -> None:
        cli("try", *FINDING, "--before", traces["slow"], "--state", "s")
        outcome, measured = lines(cli("try", "--after", traces["double"], "--state", "s"))
        assert outcome == "f-sync: the prediction is not judged, as the steps do not have the same work"
        assert measured.startswith("Not the same work per step: kernels 18 → 36")

    def test_begins_again(self, cli: Cli, nsys: StandIn, traces: dict[str, Path]) -> None:
        cli("try", *FINDING, "--before", traces["slow"], "--state", "s")
        assert cli("try", *FINDING, "--before", traces["slow"], "--state", "s").code == 2
        assert cli("try", *FINDING, "--before", traces["slow"], "--state", "s", "--anew").code == 0

    def test_quiet(self, cli: Cli, nsys: StandIn, traces: dict[str, Path]) -> None:
        first = cli("try", "-q", *FINDING, "--before", traces["slow"], "--state", "s")
        assert (first.code, first.stdout, first.stderr) == (0, b"", "")


class TestRefused:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ([], "neither a program nor --state is named"),
            (["--state", "s"], "--finding is missing"),
            (["--state", "s", *FINDING], "neither a program nor --before is named"),
            (["-o", "-", "--format", "json", *FINDING, *SH], "'-o -' cannot be used"),
        ],
    )
    def test_what_is_missing(self, cli: Cli, nsys: StandIn, words: list[str], said: str) -> None:
        result = cli("try", *words)
        assert result.code == 2
        assert said in result.stderr
        assert list(Path().iterdir()) == []

    def test_a_finding_that_is_not_there(self, cli: Cli, nsys: StandIn, traces: dict[str, Path]) -> None:
        result = cli("try", "--finding", "f-nothing", "--before", traces["slow"], "--state", "s")
        assert result.code == 2
        assert "f-nothing" in result.stderr
        assert not Path("s").exists()

    def test_the_folder_of_another_finding(self, cli: Cli, nsys: StandIn, traces: dict[str, Path]) -> None:
        cli("try", *FINDING, "--before", traces["slow"], "--state", "s")
        result = cli("try", "--finding", "f-kernels", "--after", traces["fast"], "--state", "s")
        assert result.code == 2
        assert "s holds a prediction for f-sync, not f-kernels" in result.stderr

    def test_a_trace_that_is_not_replayed(self, cli: Cli, nsys: StandIn, folder: Path) -> None:
        trace = Program(steps=12, sync=True, tail=500 * US).write(folder / "tail.sqlite")
        result = cli("try", *FINDING, "--before", trace, "--state", "s")
        assert result.code == 5
        assert "was refused" in result.stderr
        assert not Path("s").exists()

    def test_a_program_that_fails(self, cli: Cli, nsys: StandIn, traces: dict[str, Path]) -> None:
        nsys.says(export=str(traces["slow"]))
        result = cli("try", *FINDING, "--", "sh", "-c", "exit 3")
        assert result.code == 6
        assert not Path("sh.try/predicted.json").exists()


def test_a_terminal_waits_for_the_change(nsys: StandIn, traces: dict[str, Path]) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-P", "-m", "nsysdiag", "try", *FINDING, "--before", str(traces["slow"]), *SH]
    nsys.says(export=str(traces["fast"]))
    with subprocess.Popen(
        words, env={**environment(nsys), "PYTHONPATH": str(ROOT)}, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE
    ) as process:
        os.close(theirs)
        seen = b""
        while b"press Enter" not in seen:
            seen += os.read(ours, 4096)
        assert nsys.runs == []  # nothing is recorded before the change is made
        os.write(ours, b"\n")
        out = process.stdout.read() if process.stdout is not None else b""
    os.close(ours)
    assert process.returncode == 0
    assert b": inside the bounds\n" in out
    assert len(nsys.runs) == 1
