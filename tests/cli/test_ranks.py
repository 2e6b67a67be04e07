"""`nsysdiag ranks`: what goes where, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from nsysdiag.ranks.report import RanksReport
from nsysdiag.record import to_json
from nsysdiag.saved import from_json
from tests.output.rank_samples import ranks_report
from tests.ranks.run import MS, files, one_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result

LATE = [[4 * MS, 7 * MS]] * 5


@pytest.fixture
def traces(folder: Path) -> list[str]:
    """Two ranks, a file each; the clock of the second is 40 ms ahead."""
    return [path.name for path in files(folder, LATE, [0, 40 * MS], utc=[0, -40 * MS])]


@pytest.mark.slow
def test_no_output_writes_html_here_and_a_summary(cli: Callable[..., Result], traces: list[str], folder: Path) -> None:
    result = cli("ranks", *traces)
    assert result.code == 0
    assert result.stderr == "wrote ranks.nsysdiag.html\n"
    assert "rank1 is late for 5 of 5 collectives, by 15.0 ms in all" in " ".join(result.stdout.decode().split())
    assert b"<html" in (folder / "ranks.nsysdiag.html").read_bytes()


@pytest.mark.slow
def test_every_format(cli: Callable[..., Result], traces: list[str], folder: Path) -> None:
    outputs = [word for suffix in ("html", "json", "md", "txt", "csv") for word in ("-o", f"out.{suffix}")]
    assert cli("ranks", *traces, *outputs).code == 0
    beside = {"out.collectives.csv", "out.stragglers.csv", "out.waits.csv"}
    assert {path.name for path in folder.glob("out.*")} == {*outputs[1::2], *beside}
    assert cli("ranks", *traces, *outputs).code == 0  # its own files may be overwritten


@pytest.mark.slow
def test_tables_beside_one_output_are_no_other_output(
    cli: Callable[..., Result], traces: list[str], folder: Path
) -> None:
    """Those of ranks: they are other tables than a report's."""
    result = cli("ranks", *traces, "-o", "out.csv", "-o", "out.waits.csv")
    assert result.code == 2
    assert f"two outputs go to {folder / 'out.waits.csv'}" in result.stderr
    assert not list(folder.glob("out.*"))
    assert cli("ranks", *traces, "-o", "out.csv", "-o", "out.kernels.csv").code == 0


@pytest.mark.slow
def test_json_on_stdout(cli: Callable[..., Result], traces: list[str]) -> None:
    result = cli("ranks", *traces, "-o", "-", "--format", "json")
    assert result.stderr == ""
    saved = from_json(result.stdout, RanksReport)
    assert [(row.rank, row.offset_ns) for row in saved.comparison.ranks] == [("rank0", 0), ("rank1", -40 * MS)]
    assert [late.rank for late in saved.comparison.stragglers] == ["rank1"]
    assert json.loads(result.stdout)["kind"] == "ranks"


@pytest.mark.slow
def test_one_file_with_several_devices(cli: Callable[..., Result], folder: Path) -> None:
    one_file(LATE).write(folder / "run.sqlite")
    result = cli("ranks", "run.sqlite", "-o", "-", "--format", "md")
    assert result.code == 0
    assert b"gpu1 is late for 5 of 5" in result.stdout


class TestRefused:
    def test_one_rank_alone(self, cli: Callable[..., Result], traces: list[str], folder: Path) -> None:
        result = cli("ranks", traces[0])
        assert result.code == 2
        assert "there is nothing to compare: gpu0 is the only GPU with work" in result.stderr
        assert not list(folder.glob("*.html"))

    @pytest.mark.slow
    def test_nothing_that_matches(self, cli: Callable[..., Result], folder: Path) -> None:
        files(folder, [[4 * MS]] * 5, [0])
        one_file([[4 * MS]] * 6).write(folder / "other.sqlite")
        result = cli("ranks", "rank0.sqlite", "other.sqlite")
        assert result.code == 2
        assert "no collective of one rank matches one of another" in result.stderr
        assert "rank0 ran 5, other ran 6" in result.stderr

    def test_a_trace_named_twice(self, cli: Callable[..., Result], traces: list[str]) -> None:
        result = cli("ranks", traces[0], f"./{traces[0]}")
        assert (result.code, "named twice" in result.stderr) == (2, True)

    def test_an_input_as_output(self, cli: Callable[..., Result], traces: list[str]) -> None:
        result = cli("ranks", *traces, "-o", traces[1], "--format", "json", "--force")
        assert result.code == 2
        assert "is the input itself" in result.stderr

    def test_a_file_that_is_not_ours(self, cli: Callable[..., Result], traces: list[str], folder: Path) -> None:
        (folder / "out.waits.csv").write_text("mine\n")
        result = cli("ranks", *traces, "-o", "out.csv")
        assert result.code == 2
        assert "was not written by nsysdiag" in result.stderr

    @pytest.mark.slow
    def test_what_is_no_trace(self, cli: Callable[..., Result], traces: list[str], folder: Path) -> None:
        (folder / "notes.sqlite").write_text("notes")
        assert cli("ranks", *traces, "notes.sqlite").code == 3

    def test_open_without_a_page(self, cli: Callable[..., Result], traces: list[str]) -> None:
        assert cli("ranks", *traces, "-o", "x.json", "--open").code == 2

    def test_no_trace_at_all(self, cli: Callable[..., Result]) -> None:
        assert cli("ranks").code == 2


class TestSaved:
    @pytest.fixture
    def saved(self, folder: Path) -> str:
        (folder / "ranks.json").write_bytes(to_json(ranks_report()))
        return "ranks.json"

    def test_render_shows_it(self, cli: Callable[..., Result], saved: str, folder: Path) -> None:
        assert cli("render", saved, "-o", "x.html", "-o", "x.csv").code == 0
        assert "Rank comparison" in (folder / "x.html").read_text()
        assert (folder / "x.stragglers.csv").exists()

    def test_it_is_no_report_of_one_trace(self, cli: Callable[..., Result], saved: str) -> None:
        result = cli("analyze", saved)
        assert result.code == 3
        assert "is a report of ranks, not of one trace" in result.stderr

    def test_another_version_is_refused(self, cli: Callable[..., Result], saved: str, folder: Path) -> None:
        data = json.loads((folder / saved).read_bytes())
        (folder / saved).write_text(json.dumps({**data, "schema_version": "99"}))
        result = cli("render", saved, "-o", "x.html")
        assert (result.code, "has schema version 99" in result.stderr) == (3, True)
