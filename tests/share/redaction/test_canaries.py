"""No name of a trace comes through: every word of every foreign name carries a canary, and none is found again."""

from __future__ import annotations

import base64
import gzip
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag import pipeline
from nsysdiag.document.one_line import command_of
from nsysdiag.formats import RenderOptions
from nsysdiag.ranks.pipeline import analyze_ranks
from nsysdiag.ranks.show.registry import RENDERERS, tables
from nsysdiag.record import to_json
from nsysdiag.share.redaction import redacted
from tests.levels import some
from tests.ranks.run import MS, files
from tests.share.redaction.canaries import CANARY, everything_written, found, mark_names
from tests.simulator.scenarios import SCENARIOS, scenario

if TYPE_CHECKING:
    from nsysdiag.report import Report

LATE = [[4 * MS, 7 * MS]] * 5
FOLDER = Path(__file__).parents[2] / "fixtures"
FIXTURES = [*FOLDER.glob("sim_*.sqlite.gz"), *some(sorted(FOLDER.glob("real_*.sqlite.gz")), 10, thorough=5)]


def assert_no_canary(report: Report) -> None:
    for name, data in everything_written(redacted(report)):
        assert found(CANARY, data) == [], name


@pytest.mark.sampled(normal=9)
@pytest.mark.parametrize("name", some(list(SCENARIOS), 12, 1, thorough=2))
def test_no_name_of_a_scenario_comes_through(name: str, tmp_path: Path) -> None:
    """Bundles of other scenarios are searched in tests/bundle."""
    path = tmp_path / f"train_{CANARY}.sqlite"
    scenario(name).write(path, SCENARIOS[name].capture)
    mark_names(path)
    report = pipeline.analyze(path)
    assert found(CANARY, to_json(report))
    assert_no_canary(report)


@pytest.mark.fixtures
@pytest.mark.slow
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.name.partition(".")[0])
def test_no_name_of_a_fixture_comes_through(fixture: Path, tmp_path: Path) -> None:
    path = tmp_path / f"train_{CANARY}.sqlite"
    path.write_bytes(gzip.decompress(fixture.read_bytes()))
    mark_names(path)
    assert_no_canary(pipeline.analyze(path))


@pytest.mark.slow
def test_no_name_of_ranks_comes_through(tmp_path: Path) -> None:
    paths = [path.rename(tmp_path / f"{CANARY}_{path.name}") for path in files(tmp_path, LATE, [0, 0], utc=[0, 0])]
    for path in paths:
        mark_names(path)
    plain = analyze_ranks(paths)
    assert found(CANARY, to_json(plain))
    made = redacted(plain)
    options = RenderOptions(command=command_of(made))
    written = {name: render(made, options) for name, render in RENDERERS.items()} | tables(made)
    assert not [(name, found(CANARY, data)) for name, data in written.items() if found(CANARY, data)]


def test_a_packed_canary_is_found() -> None:
    """The search looks into base64, and into what is compressed in it."""
    text = f"a longer text that holds the word {CANARY} in its middle".encode()
    for packed in (text, base64.b64encode(text), base64.b64encode(zlib.compress(text))):
        assert found(CANARY, b'{"blob": "' + packed + b'"}')
