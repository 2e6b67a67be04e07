"""`nsysdiag demo`: a first report from the trace that ships with the program."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from nsysdiag.functions import bundled_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import FakeAnalysis, Result


@pytest.fixture
def _bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    content = gzip.compress(b"SQLite format 3\0", mtime=0)
    monkeypatch.setattr("nsysdiag.functions.bundled_trace", lambda: content)


@pytest.mark.usefixtures("_bundled")
class TestOnAFakeAnalysis:
    def test_prints_the_summary_and_where_the_report_is(
        self, cli: Callable[..., Result], folder: Path, analysis: FakeAnalysis
    ) -> None:
        result = cli("demo")
        assert result.code == 0
        assert result.stdout
        assert result.stderr == "wrote demo.nsysdiag.html\n"
        assert [path.name for path in folder.iterdir()] == ["demo.nsysdiag.html"]

    def test_outputs_as_in_analyze(self, cli: Callable[..., Result], folder: Path, analysis: FakeAnalysis) -> None:
        assert cli("demo", "-o", "x.md", "-o", "y.json", "--quiet").code == 0
        assert {path.name for path in folder.iterdir()} == {"x.md", "y.json"}

    @pytest.mark.usefixtures("folder")
    def test_unpacked_trace_is_removed(self, cli: Callable[..., Result], analysis: FakeAnalysis) -> None:
        assert cli("demo", "-o", "-", "--format", "json").code == 0
        ((path, _settings),) = analysis.calls
        assert path.name == "demo.sqlite"
        assert not path.parent.exists()


def test_bundled_trace_is_an_export() -> None:
    assert gzip.decompress(bundled_trace()).startswith(b"SQLite format 3\0")


@pytest.mark.thorough
def test_real_thing(cli: Callable[..., Result], folder: Path) -> None:
    result = cli("demo")
    assert result.code == 0
    assert b"<html" in (folder / "demo.nsysdiag.html").read_bytes()
