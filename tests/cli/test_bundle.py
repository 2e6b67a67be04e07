"""`nsysdiag bundle`: what is in the zip, what it overwrites, and what it says."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag import Settings, analyze
from nsysdiag.functions import bundled_trace
from nsysdiag.saved import unpack
from nsysdiag.share import slicing
from tests.builder import TraceBuilder
from tests.share.bundle.bundling import contents_of
from tests.share.bundle.test_slicing import MS, steps

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsysdiag.report import DeviceReport
    from tests.cli.conftest import Result

    Cli = Callable[..., Result]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("analyzed_once")]


@pytest.fixture
def train(folder: Path) -> Path:
    """A trace of forty like steps, `train.sqlite` in the current folder."""
    return steps(40, 8 * MS).write(folder / "train.sqlite").relative_to(folder)


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


class TestContents:
    def test_four_files(self, cli: Cli, folder: Path, train: Path) -> None:
        result = cli("bundle", train, "-o", "ticket.zip")
        assert (result.code, result.stdout) == (0, b"")
        assert result.stderr.startswith("wrote ticket.zip; trace.sqlite holds 60.0 ms of 391 ms: iterations ")
        assert list(contents_of(folder / "ticket.zip")) == [
            "findings.json",
            "report.html",
            "summary.md",
            "trace.sqlite",
        ]
        assert entries(folder) == {"train.sqlite", "ticket.zip"}

    def test_a_default_name_in_the_current_folder(self, cli: Cli, folder: Path, train: Path) -> None:
        assert cli("bundle", train, "--quiet").stderr == ""
        assert entries(folder) == {"train.sqlite", "train.nsysdiag.zip"}

    def test_report_and_summary_are_those_of_the_whole_trace(self, cli: Cli, folder: Path, train: Path) -> None:
        cli("bundle", train, "-o", "ticket.zip")
        cli("analyze", train, "-o", "own.html", "-o", "own.md")
        found = contents_of(folder / "ticket.zip")
        assert found["report.html"] == (folder / "own.html").read_bytes()
        own = (folder / "own.md").read_text()
        assert found["summary.md"].decode().startswith(own)

    def test_the_summary_compares_slice_and_trace(self, cli: Cli, folder: Path, train: Path) -> None:
        """
        device  [==A==).........[==A==).........[==A==)      1 ms of compute, 9 ms idle, most of it in read

        The trace has 40 kernels in 391 ms, the slice 7 in 61 ms, for the last one ends the sixth step: 10.2%, 11.5%.
        """
        cli("bundle", train, "-o", "ticket.zip")
        section = contents_of(folder / "ticket.zip")["summary.md"].decode().partition("## The slice in trace.sqlite")[2]
        assert "holds 60.0 ms of 391 ms: iterations" in section
        assert "has the verdict of the trace, and the same cause leads" in section
        assert "| gpu0 | Verdict | input-bound | input-bound |" in section
        assert "| gpu0 | Compute | 10.2% | 11.5% |" in section
        assert "| gpu0 | Idle: File and network I/O |" in section

    def test_findings_with_their_evidence(self, cli: Cli, folder: Path, train: Path) -> None:
        cli("bundle", train, "-o", "ticket.zip")
        data = contents_of(folder / "ticket.zip")["findings.json"]
        found = json.loads(data)
        assert list(found) == sorted(found) == ["devices", "findings", "schema_version", "tool", "trace"]
        report = analyze(train)
        assert [finding["id"] for finding in found["findings"]] == [finding.id for finding in report.findings]
        assert found["findings"][0]["rows"]
        assert found["devices"][0]["verdict"]["id"] == "input-bound"
        assert found["trace"]["fingerprint"] == report.trace.fingerprint

    def test_the_slice_opens_as_an_export(self, cli: Cli, folder: Path, train: Path) -> None:
        cli("bundle", train, "-o", "ticket.zip")
        (folder / "part.sqlite").write_bytes(contents_of(folder / "ticket.zip")["trace.sqlite"])
        assert cli("info", "part.sqlite").code == 0
        (device,) = analyze(folder / "part.sqlite", Settings(gaps=0)).devices
        assert (device.verdict.id, device.ops.kernel) == ("input-bound", 7)
        assert unpack(device.gaps_packed)[1].tolist() == [9 * MS] * 6

    @pytest.mark.thorough
    def test_a_real_program_with_workers(self, cli: Cli, folder: Path) -> None:
        (folder / "demo.sqlite").write_bytes(gzip.decompress(bundled_trace()))
        result = cli("bundle", "demo.sqlite", "-o", "demo.zip")
        assert result.code == 0
        assert "the slice does not show" not in result.stderr
        section = contents_of(folder / "demo.zip")["summary.md"].decode().partition("## The slice")[2]
        assert "| gpu0 | Verdict | input-bound | input-bound |" in section
        assert "| gpu1 | Verdict | input-bound | input-bound |" in section

    @pytest.mark.thorough
    def test_one_device(self, cli: Cli, folder: Path) -> None:
        (folder / "demo.sqlite").write_bytes(gzip.decompress(bundled_trace()))
        assert cli("bundle", "demo.sqlite", "-o", "demo.zip", "--device", "gpu1").code == 0
        found = contents_of(folder / "demo.zip")
        assert [device["key"] for device in json.loads(found["findings.json"])["devices"]] == ["gpu1"]
        assert b"| gpu0 | Verdict" not in found["summary.md"]

    def test_same_trace_same_bytes(self, cli: Cli, folder: Path, train: Path) -> None:
        cli("bundle", train, "-o", "a.zip")
        cli("bundle", train, "-o", "b.zip")
        assert (folder / "a.zip").read_bytes() == (folder / "b.zip").read_bytes()


class TestRedacted:
    def test_all_files_are_redacted_and_the_report_is_that_of_analyze(
        self, cli: Cli, folder: Path, train: Path
    ) -> None:
        assert cli("bundle", train, "--redact", "-o", "ticket.zip").code == 0
        cli("analyze", train, "--redact", "-o", "own.html", "-o", "own.md")
        found = contents_of(folder / "ticket.zip")
        assert list(found) == ["findings.json", "report.html", "summary.md", "trace.sqlite"]
        assert found["report.html"] == (folder / "own.html").read_bytes()
        assert b"nsysdiag analyze &#39;file 1&#39; --redact" in found["report.html"]
        assert found["summary.md"].decode().startswith((folder / "own.md").read_text())
        assert json.loads(found["findings.json"])["trace"]["file"] == "file 1"
        assert not [name for name, data in found.items() if b"gemm" in data or b"train.sqlite" in data]

    def test_the_summary_says_how_to_read_the_slice(self, cli: Cli, folder: Path, train: Path) -> None:
        cli("bundle", train, "--redact", "-o", "ticket.zip")
        section = contents_of(folder / "ticket.zip")["summary.md"].decode().partition("## The slice")[2]
        assert "Names are replaced as in the report, with a dot in them (kernel·7 is kernel 7)" in section
        assert "of paths it has the last part" not in section
        assert "has the verdict of the trace, and the same cause leads" in section

    def test_the_zip_does_not_bear_the_name_of_the_trace(self, cli: Cli, folder: Path, train: Path) -> None:
        result = cli("bundle", train, "--redact")
        assert result.stderr.startswith("wrote redacted.nsysdiag.zip; trace.sqlite holds 60.0 ms of 391 ms")
        assert entries(folder) == {"train.sqlite", "redacted.nsysdiag.zip"}

    @pytest.mark.thorough
    def test_a_slice_that_says_something_else_is_left_out(
        self, cli: Cli, folder: Path, train: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every analysis of a slice is made to find nothing."""
        pair = slicing.SlicePair
        monkeypatch.setattr(slicing, "SlicePair", lambda full, _part: pair(full, None))
        result = cli("bundle", train, "--redact", "-o", "ticket.zip")
        left_out = "trace.sqlite is left out: without its names no slice shows what the trace shows"
        told = "gpu0 is input-bound in the trace, and nothing of it is in the slice"
        assert result.code == 0
        assert result.stderr == f"nsysdiag: {left_out}: {told}\nwrote ticket.zip; without trace.sqlite\n"
        found = contents_of(folder / "ticket.zip")
        assert list(found) == ["findings.json", "report.html", "summary.md"]
        section = found["summary.md"].decode().partition("## The slice in trace.sqlite")[2]
        assert section == f"\n\n{left_out}.\n\n- {told}\n"


class TestHonesty:
    @pytest.mark.thorough
    def test_a_slice_that_shows_something_else_is_called_that(
        self, cli: Cli, folder: Path, train: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every analysis of a slice is made to find another verdict."""
        pair = slicing.SlicePair

        def otherwise(full: DeviceReport, part: DeviceReport) -> slicing.SlicePair:
            return pair(full, replace(part, verdict=replace(part.verdict, id="mixed")))

        monkeypatch.setattr(slicing, "SlicePair", otherwise)
        result = cli("bundle", train, "-o", "ticket.zip", "--quiet")
        told = "gpu0 is input-bound in the trace and mixed in the slice"
        assert result.code == 0
        assert result.stderr == f"nsysdiag: the slice does not show what the trace shows: {told}\n"
        section = contents_of(folder / "ticket.zip")["summary.md"].decode().partition("## The slice")[2]
        assert f"**The slice does not show all that the trace shows.**\n\n- {told}" in section
        assert "has the verdict of the trace" not in section
        assert "holds all events: no part of the trace represents the whole" in section

    def test_without_gpu_work(self, cli: Cli, folder: Path) -> None:
        TraceBuilder().osrt("read", 10, 20).write(folder / "cpu.sqlite")
        result = cli("bundle", "cpu.sqlite")
        assert result.code == 0
        assert "trace.sqlite holds all events: nothing ran on a GPU" in result.stderr


class TestOverwriting:
    def test_our_own_zip_is_replaced(self, cli: Cli, folder: Path, train: Path) -> None:
        assert cli("bundle", train, "-o", "ticket.zip").code == 0
        assert cli("bundle", train, "-o", "ticket.zip").code == 0

    @pytest.mark.parametrize("content", [b"", b"mine", b"PK\x05\x06" + bytes(18)])
    def test_a_foreign_file_is_kept_unless_forced(self, cli: Cli, folder: Path, train: Path, content: bytes) -> None:
        (folder / "ticket.zip").write_bytes(content)
        result = cli("bundle", train, "-o", "ticket.zip")
        assert result.code == 2
        assert "ticket.zip exists and was not written by nsysdiag" in result.stderr
        assert (folder / "ticket.zip").read_bytes() == content
        assert cli("bundle", train, "-o", "ticket.zip", "--force").code == 0

    def test_the_input_itself(self, cli: Cli, folder: Path, train: Path) -> None:
        (folder / "train.sqlite").rename(folder / "train.zip")
        result = cli("bundle", "train.zip", "-o", "train.zip", "--force")
        assert result.code == 2
        assert "is the input itself" in result.stderr

    def test_an_interruption_leaves_nothing(
        self,
        cli: Cli,
        folder: Path,
        train: Path,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path_factory: pytest.TempPathFactory,
    ) -> None:
        temporary = tmp_path_factory.mktemp("temporary")
        monkeypatch.setattr("tempfile.tempdir", str(temporary))

        def interrupt(_descriptor: int) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupt)
        assert cli("bundle", train, "-o", "ticket.zip").code == 130
        monkeypatch.setattr(slicing, "SlicePair", lambda *_: interrupt(0))
        assert cli("bundle", train, "-o", "ticket.zip").code == 130
        assert entries(folder) == {"train.sqlite"}
        assert entries(temporary) == set()


class TestWrongUse:
    def test_a_saved_report_has_no_trace_to_slice(self, cli: Cli, folder: Path, train: Path) -> None:
        cli("analyze", train, "-o", "report.json")
        result = cli("bundle", "report.json", "-o", "ticket.zip")
        assert result.code == 2
        assert "report.json is a saved report: a bundle holds a slice of the trace" in result.stderr

    @pytest.mark.parametrize("output", ["-", "ticket.html", "ticket"])
    def test_a_bundle_is_a_zip(self, cli: Cli, folder: Path, train: Path, output: str) -> None:
        result = cli("bundle", train, "-o", output)
        assert (result.code, entries(folder)) == (2, {"train.sqlite"})
        assert "a bundle is a zip" in result.stderr

    def test_no_trace(self, cli: Cli, folder: Path) -> None:
        (folder / "x.sqlite").write_bytes(b"no trace")
        assert cli("bundle", "x.sqlite").code == 3
        assert cli("bundle", "nowhere.sqlite").code == 3
        assert entries(folder) == {"x.sqlite"}

    def test_an_unknown_device(self, cli: Cli, folder: Path, train: Path) -> None:
        result = cli("bundle", train, "--device", "gpu9")
        assert (result.code, entries(folder)) == (2, {"train.sqlite"})

    @pytest.mark.thorough
    def test_a_read_only_trace_stays_as_it_is(self, folder: Path, train: Path) -> None:
        """In a process of its own, with the folder of the trace watched."""
        before = [(path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in folder.iterdir()]
        command = [
            sys.executable,
            "-P",
            "-m",
            "nsysdiag",
            "bundle",
            str(folder / train),
            "-o",
            str(folder.parent / "t.zip"),
        ]
        subprocess.run(command, check=True, capture_output=True)
        assert [(path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in folder.iterdir()] == before
        (folder.parent / "t.sqlite").write_bytes(contents_of(folder.parent / "t.zip")["trace.sqlite"])
        with closing(sqlite3.connect(folder.parent / "t.sqlite")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
