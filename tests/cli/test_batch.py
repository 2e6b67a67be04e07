"""`nsysdiag batch`: what is written, what it says of bad inputs, what it keeps of an earlier run."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag import formats as results
from nsysdiag.batch import pool
from nsysdiag.batch.task import Limits, Outcome, Task, work
from nsysdiag.ci.facts import BatchEntry, BatchSummary, HistoryLine
from nsysdiag.saved import from_json
from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tests.cli.conftest import Result

    Cli = Callable[..., Result]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("analyzed_once")]

ROOT = Path(__file__).parent.parent.parent
MANY = 10
"""So many runs that some are left when a batch is interrupted."""


def write(path: Path, gap: int = 700) -> Path:
    """A tiny trace: two kernels, and between them the GPU is idle."""
    path.parent.mkdir(parents=True, exist_ok=True)
    builder = TraceBuilder().kernel(100, 200, name="gemm", launch=(50, 60))
    return builder.kernel(200 + gap, 1000 + gap, name="gemm", launch=(70, 80)).write(path)


@pytest.fixture
def runs(folder: Path) -> Path:
    """The traces of two ranks, in the current folder."""
    write(folder / "runs" / "rank0" / "report.sqlite", 700)
    write(folder / "runs" / "rank1" / "report.sqlite", 300)
    return folder / "runs"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """All work is done in this process, which is quicker; the tasks that were done."""
    done: list[Task] = []

    def run(tasks: list[Task], limits: Limits, watch: pool.Watch) -> Generator[Outcome, None, None]:
        for task in reversed(tasks):
            done.append(task)
            yield work(task)

    monkeypatch.setattr(pool, "run_locally", run)
    return done


def summary(folder: Path) -> BatchSummary:
    return from_json((folder / "summary.json").read_bytes(), BatchSummary)


def entries(folder: Path) -> dict[str, BatchEntry]:
    return {entry.name: entry for entry in summary(folder).entries}


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("here", "runs")
class TestOutputs:
    def test_a_page_and_a_saved_report_each_and_a_summary(self, cli: Cli, folder: Path) -> None:
        result = cli("batch", "runs", "-o", "out")
        assert (result.code, result.stderr) == (0, "wrote out: 2 analyzed\n")
        names = [f"runs/rank{rank}/report.{suffix}" for rank in (0, 1) for suffix in ("html", "json")]
        assert {*names, "summary.json", "summary.md", "index.html", "junit.xml"} <= tree(folder / "out").keys()
        made = summary(folder / "out")
        assert (made.failed, made.broken, made.warned) == (0, 0, 0)
        assert [(each.input, each.name, each.status, each.report) for each in made.entries] == [
            (f"runs/rank{rank}/report.sqlite", f"runs/rank{rank}/report", "analysed", f"runs/rank{rank}/report.html")
            for rank in (0, 1)
        ]
        (device,) = made.entries[0].devices
        assert (device.idle_ns, device.window_ns, sum(ns for _, ns in device.causes)) == (700, 1600, 700)

    def test_the_same_reports_as_analyze(self, cli: Cli, folder: Path) -> None:
        cli("batch", "runs", "-o", "out")
        cli("analyze", "runs/rank0/report.sqlite", "-o", "own.html", "-o", "own.json")
        for suffix in ("html", "json"):
            made = (folder / "out" / "runs" / "rank0" / f"report.{suffix}").read_bytes()
            assert made == (folder / f"own.{suffix}").read_bytes()

    def test_saved_reports(self, cli: Cli, folder: Path) -> None:
        cli("batch", "runs", "-o", "first")
        assert cli("batch", "first/runs", "-o", "second").code == 0
        made = [entries(folder / each) for each in ("first", "second")]
        assert [entry.fingerprint for entry in made[0].values()] == [entry.fingerprint for entry in made[1].values()]
        assert (folder / "second/first/runs/rank0/report.json").read_bytes() == (
            folder / "first/runs/rank0/report.json"
        ).read_bytes()

    @pytest.mark.thorough
    def test_settings(self, cli: Cli, folder: Path) -> None:
        (folder / "my.toml").write_text("gaps = 7")
        cli("batch", "runs", "-o", "out", "--config", "my.toml")
        saved = json.loads((folder / "out/runs/rank0/report.json").read_bytes())
        assert saved["settings"] == {"config": "my.toml", "gaps": 7}
        result = cli("batch", "runs", "out/runs/rank0/report.json", "-o", "again")  # without: another analysis
        assert result.code == 0
        (folder / "nsysdiag.toml").write_text("gaps = 9")  # found by itself: no saved report is refused for it
        assert cli("batch", "runs", "out/runs/rank0/report.json", "-o", "third").code == 0
        assert cli("batch", "out/runs/rank0/report.json", "-o", "last", "--config", "nsysdiag.toml").code == 4
        assert "is a saved report, made without" in entries(folder / "last")["out/runs/rank0/report"].error

    def test_names_that_end_like_another_format(self, cli: Cli, folder: Path) -> None:
        write(folder / "runs" / "x.perfetto.sqlite")
        for _ in range(2):
            assert cli("batch", "runs", "-o", "out").code == 0

    def test_a_table_on_stdout(self, cli: Cli) -> None:
        first, _, _, *table = (
            cli("batch", "runs", "-o", "out", "--fail-on", "idle_share > 30%").stdout.decode().splitlines()
        )
        assert first == "nsysdiag 0.1.0 · runs/"
        assert [line.split() for line in table[:2]] == [
            ["rank0/report", "gpu0", "▲", "Budget", "broken", "gpu", "56.2%", "43.8%", "0/1"],
            ["rank1/report", "gpu0", "✓", "Budgets", "kept", "gpu", "75.0%", "25.0%", "1/1"],
        ]

    def test_a_closed_stdout_is_no_reason_to_fail(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdout", None)
        assert cli("batch", "runs", "-o", "out").code == 0

    def test_quiet(self, cli: Cli) -> None:
        quiet = cli("batch", "runs", "nothing*", "-o", "out", "--quiet")
        assert (quiet.stdout, quiet.stderr) == (b"", "")
        assert cli("batch", "runs", "nothing*", "-o", "out").stderr.startswith("nothing fits nothing*\nwrote out")


@pytest.mark.usefixtures("here", "runs")
class TestReportsOfNsys:
    """`.nsys-rep` files in a folder, exported by a stand-in for nsys or by nothing."""

    REPORT = b"NVIDIA Tegra Profiler Report 2023" + bytes(64)

    def test_are_exported(self, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        template = write(folder / "template.sqlite", 500)
        (folder / "bin").mkdir()
        program = folder / "bin" / "nsys"
        program.write_text(f"""#!/bin/sh
            test "$2 $3" = "--type sqlite" && cp '{template}' "$5"
        """)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        (folder / "runs" / "my rank.nsys-rep").write_bytes(self.REPORT)
        assert cli("batch", "runs", "-o", "out").code == 0
        (device,) = entries(folder / "out")["runs/my rank"].devices
        assert device.idle_ns == 500
        assert sorted(path.name for path in (folder / "runs").iterdir()) == ["my rank.nsys-rep", "rank0", "rank1"]

    def test_without_nsys_each_is_named_with_the_command(
        self, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(folder / "nothing"))
        for name in ("a", "b c"):
            (folder / "runs" / f"{name}.nsys-rep").write_bytes(self.REPORT)
        result = cli("batch", "runs", "-o", "out")
        assert result.code == 4
        found = entries(folder / "out")
        assert {entry.name: entry.hint for entry in found.values() if entry.status == "failed"} == {
            "runs/a": "nsys export --type sqlite --output runs/a.sqlite runs/a.nsys-rep",
            "runs/b c": "nsys export --type sqlite --output 'runs/b c.sqlite' 'runs/b c.nsys-rep'",
        }
        assert found["runs/rank0/report"].status == "analysed"
        assert b"Not analyzed" in result.stdout
        assert "no `nsys` on the PATH" in result.stderr


@pytest.mark.usefixtures("here", "runs")
class TestBadInputs:
    def test_each_fails_alone(self, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / "runs" / "text.sqlite").write_bytes(b"text")
        (folder / "runs" / "empty.sqlite").write_bytes(b"")
        whole = (folder / "runs" / "rank0" / "report.sqlite").read_bytes()
        (folder / "runs" / "cut.sqlite").write_bytes(whole[: len(whole) // 2])
        (folder / "runs" / "torn.sqlite").write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))
        write(folder / "runs" / "secret.sqlite")
        original = type(folder).open

        def refused(path: Path, *rest: object, **named: object) -> object:
            if path.name == "secret.sqlite":
                raise PermissionError(13, "Permission denied", str(path))
            return original(path, *rest, **named)  # type: ignore[call-overload]

        monkeypatch.setattr(type(folder), "open", refused)
        result = cli("batch", "runs", "gone.sqlite", "-o", "out")
        assert result.code == 4
        made = entries(folder / "out")
        errors = {name: entry.error for name, entry in made.items() if entry.status == "failed"}
        assert errors.pop("runs/torn").startswith("'runs/torn.sqlite' cannot be read, it may be corrupt")
        assert errors.pop("runs/cut").startswith("'runs/cut.sqlite' is a truncated SQLite file")
        assert errors == {
            "gone": "'gone.sqlite' does not exist",
            "runs/empty": "'runs/empty.sqlite' is empty",
            "runs/secret": "'runs/secret.sqlite' cannot be read: Permission denied",
            "runs/text": "'runs/text.sqlite' is not an SQLite file",
        }
        assert [made[f"runs/rank{rank}/report"].status for rank in (0, 1)] == ["analysed", "analysed"]
        assert summary(folder / "out").failed == 6
        assert {entry.exit_code for entry in made.values()} == {0, 3}
        assert "nsysdiag: failed: runs/empty.sqlite: 'runs/empty.sqlite' is empty\n  hint: export" in result.stderr
        assert result.stderr.endswith("nsysdiag: 6 of 8 inputs could not be analyzed\n")

    @pytest.mark.parametrize(
        ("places", "code", "left"),
        [
            ({"rank0"}, 4, {"runs/rank1/report.html", "runs/rank1/report.json", "summary.json"}),
            ({"rank0", "rank1", "out"}, 2, set()),
        ],
    )
    def test_a_disk_that_fills_up(
        self, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, places: set[str], code: int, left: set[str]
    ) -> None:
        original = results._write_new

        def full(path: Path, data: bytes) -> None:
            if data and path.parent.name in places:
                path.write_bytes(data[:10])
                raise OSError(errno.ENOSPC, "No space left on device")
            original(path, data)

        monkeypatch.setattr(results, "_write_new", full)
        result = cli("batch", "runs", "-o", "out")
        assert (result.code, "the disk is full" in result.stderr) == (code, True)
        made = tree(folder / "out").keys()
        assert left <= made
        assert not [name for name in made if name.startswith("runs/") and name not in left]
        assert not [name for name in made if ".tmp" in name]

    def test_they_win_over_a_broken_budget(self, cli: Cli, folder: Path) -> None:
        (folder / "runs" / "text.sqlite").write_bytes(b"text")
        assert cli("batch", "runs", "-o", "out", "--fail-on", "idle_ns > 1ns").code == 4
        assert (summary(folder / "out").failed, summary(folder / "out").broken) == (1, 2)

    def test_a_named_folder_that_is_gone_is_told(self, cli: Cli, folder: Path) -> None:
        assert cli("batch", "runs", "runs2", "-o", "out").code == 4
        assert entries(folder / "out")["runs2"].error == "'runs2' does not exist"


@pytest.mark.usefixtures("here", "runs")
class TestBudgets:
    def test_broken_ones(self, cli: Cli, folder: Path) -> None:
        result = cli("batch", "runs", "-o", "out", "--fail-on", "idle_ns > 500ns", "--warn-on", "idle_ns > 100ns")
        assert result.code == 1
        made = summary(folder / "out")
        assert (made.failed, made.broken, made.warned) == (0, 1, 2)
        assert result.stderr.count("warn: runs/rank") == 2
        (line,) = [line for line in result.stdout.decode().splitlines() if line.startswith("fail: ")]
        assert line.startswith("fail: runs/rank0/report.sqlite: idle_ns on gpu0 is 700 ns")

    def test_they_are_on_stderr_where_all_else_is_quiet(self, cli: Cli) -> None:
        result = cli("batch", "runs", "-o", "out", "-q", "--fail-on", "idle_ns > 500ns")
        assert (result.code, result.stdout) == (1, b"")
        assert result.stderr.startswith("fail: runs/rank0/report.sqlite: ")

    def test_a_comment(self, cli: Cli, folder: Path) -> None:
        assert cli("batch", "runs", "-o", "out").code == 0
        assert not (folder / "out" / "comment.md").exists()
        for _time in range(2):
            assert cli("batch", "runs", "-o", "out", "--comment", "nightly", "--fail-on", "idle_ns > 500ns").code == 1
        text = (folder / "out" / "comment.md").read_text()
        assert text.splitlines()[1] == "<!-- nsysdiag comment: nightly -->"
        assert "idle_ns on gpu0 is 700 ns" in text
        assert cli("batch", "runs", "-o", "out", "--comment", "a--b").code == 2

    def test_kept_ones(self, cli: Cli, folder: Path) -> None:
        assert cli("batch", "runs", "-o", "out", "--fail-on", "idle_ns > 1s").code == 0
        assert [len(entry.budgets) for entry in entries(folder / "out").values()] == [1, 1]

    def test_of_a_file_for_some_traces(self, cli: Cli, folder: Path) -> None:
        (folder / "my.toml").write_text('[[budgets]]\nfail = "idle_ns > 1ns"\ntrace = "runs/rank1/*"\n')
        assert cli("batch", "runs", "-o", "out", "--config", "my.toml").code == 1
        assert [len(entry.budgets) for entry in entries(folder / "out").values()] == [0, 1]

    def test_a_pattern_that_fits_no_trace_is_told(self, cli: Cli, folder: Path) -> None:
        (folder / "runs" / "text.sqlite").write_bytes(b"text")
        budget = '[[budgets]]\nfail = "idle_ns > 1s"\ntrace = "{}"\n'
        patterns = ("rank*", "runs/rank1/*", "text.sqlite")
        (folder / "my.toml").write_text("".join(budget.format(each) for each in patterns))
        result = cli("batch", "runs", "-o", "out", "--config", "my.toml")
        assert [line for line in result.stderr.splitlines() if "about no trace" in line] == [
            "my.toml: budgets[0].fail is about no trace of this batch: nothing is like 'rank*'"
        ]

    def test_one_that_a_trace_cannot_tell(self, cli: Cli, folder: Path) -> None:
        """It is no pass, and hides nothing else: neither the other budgets nor the report."""
        options = ("--fail-on", "iterations.p50_ns > 1ms", "--fail-on", "idle_ns > 500ns")
        result = cli("batch", "runs", "-o", "out", "--history", "h.jsonl", *options)
        assert result.code == 2
        assert "cannot be judged by runs/rank0/report.sqlite" in result.stderr
        assert b"fail: runs/rank0/report.sqlite: idle_ns on gpu0 is 700 ns" in result.stdout
        made = summary(folder / "out")
        assert (made.failed, made.broken, made.unjudged) == (0, 1, 2)
        for entry in made.entries:
            assert (entry.status, entry.report, len(entry.devices)) == ("analysed", f"{entry.name}.html", 1)
            assert [each.budget for each in entry.budgets] == ["idle_ns > 500ns"]
            assert [each.budget for each in entry.unjudged] == ["iterations.p50_ns > 1ms"]
        assert len((folder / "h.jsonl").read_bytes().splitlines()) == 2
        (folder / "runs" / "text.sqlite").write_bytes(b"text")
        assert cli("batch", "runs", "-o", "out", *options).code == 4

    def test_one_that_warns_and_that_a_trace_cannot_tell(self, cli: Cli) -> None:
        result = cli("batch", "runs", "-o", "out", "--warn-on", "iterations.p50_ns > 1ms")
        assert result.code == 0
        assert result.stderr.count("warn: --warn-on: 'iterations.p50_ns > 1ms' cannot be judged by ") == 2

    @pytest.mark.parametrize("does", ["warn", "ignore"])
    def test_one_that_a_trace_cannot_tell_need_not_fail(self, cli: Cli, folder: Path, does: str) -> None:
        options = ("--fail-on", "iterations.p50_ns > 1ms", "--unjudged", does)
        result = cli("batch", "runs", "-o", "out", *options)
        assert result.code == 0
        assert result.stderr.count("cannot be judged") == (2 if does == "warn" else 0)
        made = summary(folder / "out")
        assert (made.broken, made.warned, made.unjudged, made.unjudged_failing) == (0, 0, 2, 0)
        assert {each.outcome for entry in made.entries for each in entry.unjudged} == {does}
        assert (folder / "out" / "junit.xml").read_text().count("cannot be judged") == 2
        assert "error" not in (folder / "out" / "github.txt").read_text()
        assert cli("batch", "runs", "-o", "out", *options, "--fail-on", "idle_ns > 500ns").code == 1

    @pytest.mark.parametrize("budget", ["idle", "idle_ns > 3 apples"])
    def test_a_mistake_is_found_before_any_work(self, cli: Cli, folder: Path, budget: str) -> None:
        assert cli("batch", "runs", "-o", "out", "--fail-on", budget).code == 2
        assert not (folder / "out").exists()


@pytest.mark.usefixtures("here", "runs")
def test_a_link_in_the_folder_leads_nowhere(cli: Cli, folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "out").mkdir()
    (folder / "out" / "runs").symlink_to(folder / "elsewhere", target_is_directory=True)
    result = cli("batch", "runs", "-o", "out", "--force")
    assert result.code == 2
    assert "out/runs is a symbolic link, which is never followed" in result.stderr
    assert not list((folder / "elsewhere").iterdir())


@pytest.mark.usefixtures("runs")
class TestResume:
    def test_what_is_the_same_is_kept(self, cli: Cli, folder: Path, here: list[Task]) -> None:
        cli("batch", "runs", "-o", "out", "--fail-on", "idle_ns > 1s")
        before = tree(folder / "out")
        times = {path: path.stat().st_mtime_ns for path in (folder / "out" / "runs").rglob("*.*")}
        result = cli("batch", "runs", "-o", "out", "--resume", "--fail-on", "idle_ns > 500ns")
        assert (result.code, result.stderr.splitlines()[0]) == (1, "wrote out: 2 resumed")
        assert times == {path: path.stat().st_mtime_ns for path in times}
        resumed = entries(folder / "out")
        assert [(entry.status, len(entry.budgets)) for entry in resumed.values()] == [("resumed", 1), ("resumed", 1)]
        assert [entry.devices for entry in resumed.values()] == [
            entry.devices for entry in from_json(before["summary.json"], BatchSummary).entries
        ]
        cli("batch", "runs", "-o", "out", "--fail-on", "idle_ns > 1s")  # and without the option all is done again
        assert tree(folder / "out") == before

    @pytest.mark.sampled(normal=3)
    @pytest.mark.parametrize("change", ["input", "page", "saved", "settings", "gone"])
    def test_what_is_not_is_done_again(self, cli: Cli, folder: Path, here: list[Task], change: str) -> None:
        cli("batch", "runs", "-o", "out")
        report = folder / "out" / "runs" / "rank0" / "report"
        options = []
        if change == "input":
            (folder / "runs/rank0/report.sqlite").unlink()
            write(folder / "runs/rank0/report.sqlite", 701)
        elif change == "page":
            report.with_suffix(".html").write_bytes(report.with_suffix(".html").read_bytes() + b"\n")
        elif change == "saved":
            report.with_suffix(".json").write_bytes(report.with_suffix(".json").read_bytes() + b"\n")
        elif change == "gone":
            report.with_suffix(".html").unlink()
        else:
            (folder / "my.toml").write_text("gaps = 7")
            options = ["--config", "my.toml"]
        cli("batch", "runs", "-o", "out", "--resume", *options)
        made = entries(folder / "out")
        assert made["runs/rank0/report"].status == "analysed"
        assert made["runs/rank1/report"].status == ("analysed" if options else "resumed")

    def test_another_version(self, cli: Cli, folder: Path, here: list[Task], monkeypatch: pytest.MonkeyPatch) -> None:
        cli("batch", "runs", "-o", "out")
        monkeypatch.setattr("nsysdiag.batch.task.__version__", "999")
        cli("batch", "runs", "-o", "out", "--resume")
        assert {entry.status for entry in entries(folder / "out").values()} == {"analysed"}

    def test_after_an_interruption(
        self, cli: Cli, folder: Path, here: list[Task], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        original = pool.run_locally

        def interrupted(tasks: list[Task], limits: Limits, watch: pool.Watch) -> Generator[Outcome, None, None]:
            yield next(original(tasks, limits, watch))
            raise KeyboardInterrupt

        monkeypatch.setattr(pool, "run_locally", interrupted)
        assert cli("batch", "runs", "-o", "out").code == 130
        assert not (folder / "out" / "summary.json").exists()
        monkeypatch.setattr(pool, "run_locally", original)
        cli("batch", "runs", "-o", "out", "--resume")
        assert [entry.status for entry in entries(folder / "out").values()] == ["analysed", "resumed"]

    def test_saved_reports_go_by_their_whole_content(self, cli: Cli, folder: Path, here: list[Task]) -> None:
        cli("analyze", "runs/rank0/report.sqlite", "-o", "saved.json")
        cli("batch", "saved.json", "-o", "out")
        cli("batch", "saved.json", "-o", "out", "--resume")
        assert entries(folder / "out")["saved"].status == "resumed"
        saved = folder / "saved.json"
        saved.write_bytes(saved.read_bytes().replace(b"gemm", b"gemn"))
        cli("batch", "saved.json", "-o", "out", "--resume")
        assert entries(folder / "out")["saved"].status == "analysed"

    def test_a_damaged_journal_loses_what_it_says(self, cli: Cli, folder: Path, here: list[Task]) -> None:
        cli("batch", "runs", "-o", "out")
        journal = folder / "out" / "resume.jsonl"
        journal.write_bytes(journal.read_bytes()[:-30])
        cli("batch", "runs", "-o", "out", "--resume")
        assert [entry.status for entry in entries(folder / "out").values()] == ["resumed", "analysed"]


@pytest.mark.usefixtures("here", "runs")
class TestHistory:
    def test_a_line_for_each_run_and_device(self, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000")
        for run in ("one", "two"):
            cli("batch", "runs", "-o", "out", "--history", "h.jsonl", "--run", run, "--fail-on", "idle_ns > 500ns")
        lines = [json.loads(line) for line in (folder / "h.jsonl").read_text().splitlines()]
        assert [(line["run"], line["input"], line["idle_ns"], line["broken"]) for line in lines] == [
            (run, f"runs/rank{rank}/report.sqlite", idle, broken)
            for run in ("one", "two")
            for rank, idle, broken in ((0, 700, 1), (1, 300, 0))
        ]
        assert {line["at"] for line in lines} == {1_000_000}
        assert lines[0].keys() == set(HistoryLine.__struct_fields__)
        assert "trend.html" in tree(folder / "out")

    def test_a_damaged_last_line_is_told(self, cli: Cli, folder: Path) -> None:
        cli("batch", "runs", "-o", "out", "--history", "h.jsonl")
        (folder / "h.jsonl").write_bytes((folder / "h.jsonl").read_bytes()[:-9])
        result = cli("batch", "runs", "-o", "out", "--history", "h.jsonl")
        assert (result.code, "line 2 of h.jsonl was not written to its end" in result.stderr) == (0, True)

    def test_in_the_folder_of_the_reports(self, cli: Cli, folder: Path) -> None:
        for lines in (2, 4):
            assert cli("batch", "runs", "-o", "out", "--history", "out/h.jsonl").code == 0
            assert len((folder / "out" / "h.jsonl").read_bytes().splitlines()) == lines

    @pytest.mark.parametrize("name", ["summary.json", "resume.jsonl", "runs/rank0/report.json"])
    def test_a_file_of_the_batch_is_none(self, cli: Cli, folder: Path, name: str) -> None:
        (folder / "out" / "runs" / "rank0").mkdir(parents=True)
        result = cli("batch", "runs", "-o", "out", "--history", f"out/{name}", "--force")
        assert (result.code, f"out/{name} is another file of this batch" in result.stderr) == (2, True)
        assert not tree(folder / "out")

    def test_another_file_is_refused_before_any_work(self, cli: Cli, folder: Path) -> None:
        (folder / "h.jsonl").write_text("mine")
        assert cli("batch", "runs", "-o", "out", "--history", "h.jsonl").code == 2
        assert not (folder / "out").exists()


@pytest.mark.usefixtures("runs")
class TestWrongUse:
    @pytest.mark.parametrize("name", ["runs/rank0/report.html", "summary.json", "index.html", "resume.jsonl"])
    def test_files_of_others_are_kept(self, cli: Cli, folder: Path, here: list[Task], name: str) -> None:
        path = folder / "out" / name
        path.parent.mkdir(parents=True)
        path.write_text("mine")
        result = cli("batch", "runs", "-o", "out")
        assert (result.code, tree(folder / "out"), here) == (2, {name: b"mine"}, [])
        assert "was not written by nsysdiag" in result.stderr
        assert cli("batch", "runs", "-o", "out", "--force").code == 0
        assert path.read_bytes() != b"mine"

    def test_an_input_is_never_overwritten(self, cli: Cli, folder: Path, here: list[Task]) -> None:
        cli("analyze", "runs/rank0/report.sqlite", "-o", "saved.json")
        result = cli("batch", "saved.json", "-o", ".", "--force")
        assert (result.code, here) == (2, [])
        assert "is an input itself" in result.stderr

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["nothing*", "-o", "out"], "no input"),
            (["runs"], "Missing option '-o'"),
            (["runs", "-o", "out", "--jobs", "0"], "greater than or equal to 1"),
            (["runs", "-o", "out", "--memory-limit", "much"], "'much' is not a size"),
            (["runs", "-o", "out", "--scheduler", "x", "--jobs", "2"], "--scheduler and --jobs exclude each other"),
            (["runs", "-o", "runs"], "is in the folder that the reports go to"),
            (["runs", "-o", "runs/rank0/report.sqlite"], "is not a folder"),
            (["runs", "-o", "runs/rank0/report.sqlite/out"], "cannot make the folder"),
        ],
    )
    def test_is_said(self, cli: Cli, folder: Path, arguments: list[str], said: str) -> None:
        result = cli("batch", *arguments)
        assert (result.code, said in result.stderr) == (2, True), result.stderr
        assert not (folder / "out").exists()


def command(*arguments: object) -> list[str]:
    """A batch by the code that is tested, wherever it is run."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from nsysdiag.entry import main; main()"
    return [sys.executable, "-c", code, "batch", *map(str, arguments)]


class TestProcesses:
    @pytest.mark.thorough
    @pytest.mark.parametrize(
        ("number", "to_all", "code", "told"),
        [
            # As a terminal does it: the signal goes to every process.
            pytest.param(signal.SIGINT, True, 130, b"interrupted", marks=pytest.mark.thorough),
            pytest.param(signal.SIGHUP, True, 129, b"ended by SIGHUP", marks=pytest.mark.thorough),
            pytest.param(signal.SIGHUP, False, 129, b"ended by SIGHUP", marks=pytest.mark.thorough),
            pytest.param(signal.SIGTERM, True, 143, b"ended by SIGTERM", marks=pytest.mark.thorough),
            (signal.SIGTERM, False, 143, b"ended by SIGTERM"),  # as a CI system does it
        ],
    )
    def test_an_interruption(self, folder: Path, number: signal.Signals, to_all: bool, code: int, told: bytes) -> None:
        for rank in range(MANY):
            write(folder / "runs" / f"rank{rank}" / "report.sqlite", 100 + rank)
        (folder / "temporary").mkdir()
        process = subprocess.Popen(
            command("runs", "-o", "out", "--jobs", "2"),
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder / "temporary")},
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # noqa: PLW1509, a suite in the background ignores some
        )
        journal = folder / "out" / "resume.jsonl"
        while process.poll() is None and not (journal.exists() and journal.stat().st_size):
            time.sleep(0.01)
        (os.killpg if to_all else os.kill)(process.pid, number)
        _, said = process.communicate()  # the workers hold its end too, so none of them is left
        assert (process.returncode, said) == (code, b"nsysdiag: " + told + b"\n")
        assert not list((folder / "temporary").iterdir())
        made = tree(folder / "out")
        assert not [name for name in made if ".tmp" in name or name == "summary.json"]
        finished = [json.loads(line)["name"] for line in made["resume.jsonl"].splitlines()]
        assert 0 < len(finished) < MANY
        assert all(made[f"{name}.html"].endswith(b"</html>\n") and made[f"{name}.json"] for name in finished)
        subprocess.run(command("runs", "-o", "out", "--resume"), cwd=folder, check=True)
        statuses = [entry.status for entry in entries(folder / "out").values()]
        assert statuses.count("resumed") == len(finished)
        assert len(statuses) == MANY

    @pytest.mark.thorough
    def test_who_ignores_a_hangup_is_not_ended_by_it(self, folder: Path, runs: Path) -> None:
        """As nohup has it."""
        process = subprocess.Popen(
            command("runs", "-o", "out"),
            cwd=folder,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),  # noqa: PLW1509
        )
        while process.poll() is None:
            process.send_signal(signal.SIGHUP)
            time.sleep(0.01)
        assert process.returncode == 0

    @pytest.mark.thorough
    def test_a_memory_limit(self, folder: Path, runs: Path) -> None:
        done = subprocess.run(
            command("runs", "-o", "out", "--memory-limit", "100MB"), cwd=folder, capture_output=True, check=False
        )
        assert done.returncode == 4
        assert "more than the limit of 95.4 MiB" in entries(folder / "out")["runs/rank0/report"].error
        done = subprocess.run(command("runs", "-o", "out", "--memory-limit", "200MB"), cwd=folder, check=False)
        assert done.returncode == 0  # one after the other
