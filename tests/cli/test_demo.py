"""`nsysdiag demo`: a first report from the trace that ships with the program."""

from __future__ import annotations

import gzip
import re
import shlex
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from nsysdiag.cli.analyze import OWN_TRACE
from nsysdiag.functions import BEFORE_AND_AFTER, DEMO, bundled_trace
from tests.comparison.programs import Program
from tests.docs.pages import README, text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import FakeAnalysis, Result

pytestmark = pytest.mark.usefixtures("analyzed_once")


@pytest.fixture
def _bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    content = gzip.compress(b"SQLite format 3\0", mtime=0)
    monkeypatch.setattr("nsysdiag.functions.bundled_trace", lambda name="": content)


@pytest.mark.usefixtures("_bundled")
class TestOnAFakeAnalysis:
    def test_prints_the_summary_and_where_the_report_is(
        self, cli: Callable[..., Result], folder: Path, analysis: FakeAnalysis
    ) -> None:
        result = cli("demo")
        assert result.code == 0
        assert result.stdout
        assert result.stderr.splitlines() == ["wrote demo.nsysdiag.html", OWN_TRACE]
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

    def test_the_traces_are_kept(self, cli: Callable[..., Result], folder: Path, analysis: FakeAnalysis) -> None:
        result = cli("demo", "--trace", "kept/here", "-o", "x.md")
        assert result.code == 0
        names = [f"kept/here/{name}" for name in (DEMO, *BEFORE_AND_AFTER)]
        assert result.stderr.splitlines() == ["wrote x.md", *(f"wrote {name}" for name in names), OWN_TRACE]
        assert [str(path) for path, _ in analysis.calls] == names[:1]
        assert cli("demo", "--trace", "kept/here", "-o", "y.md").code == 0
        (folder / names[1]).write_bytes(b"mine")
        assert cli("demo", "--trace", "kept/here", "-o", "z.md").code == 2
        assert (folder / names[1]).read_bytes() == b"mine"
        assert cli("demo", "--trace", "x.md").code == 2


@pytest.mark.parametrize("name", [DEMO, *BEFORE_AND_AFTER])
def test_bundled_trace_is_an_export(name: str) -> None:
    assert gzip.decompress(bundled_trace(name)).startswith(b"SQLite format 3\0")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "workers"), list(zip(BEFORE_AND_AFTER, (1, 3), strict=True)))
def test_before_and_after_are_of_the_simulator(name: str, workers: int, tmp_path: Path) -> None:
    """`scripts/make_fixtures` writes them."""
    bundled = tmp_path / name
    bundled.write_bytes(gzip.decompress(bundled_trace(name)))
    made = Program(workers=workers, seed=workers).write(tmp_path / "made.sqlite")
    assert dumped(bundled) == dumped(made)


def dumped(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^nsysdiag (?!record|--version).*$", re.MULTILINE)


@pytest.mark.slow
def test_commands_of_the_readme(cli: Callable[..., Result], folder: Path) -> None:
    """Each runs as it is printed, in the folder of the traces of the demo."""
    commands = COMMAND.findall("".join(SHELL.findall(text(README))))
    assert commands[0] == "nsysdiag demo --trace ."
    assert {shlex.split(each)[1] for each in commands} >= {"analyze", "compare", "demo", "whatif"}
    for each in commands:
        assert cli(*shlex.split(each)[1:]).code == 0, each
    assert (folder / "train.nsysdiag.html").exists()


@pytest.mark.thorough
def test_real_thing(cli: Callable[..., Result], folder: Path) -> None:
    result = cli("demo")
    assert result.code == 0
    assert b"<html" in (folder / "demo.nsysdiag.html").read_bytes()
