"""A bundle of every real trace: sliced to the same verdict, smaller, and with the same gaps."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from nsysdiag.cli.app import app
from nsysdiag.cli.guard import run
from tests.bundle.bundling import assert_gaps_are_those_of_the_trace, sliced

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
FILES = sorted(FOLDER.glob("*.sqlite"))

pytestmark = pytest.mark.real
every_trace = pytest.mark.parametrize("trace", FILES or [Path("none")], ids=lambda path: path.stem)


@every_trace
def test_a_slice_with_the_same_verdict(trace: Path, tmp_path: Path) -> None:
    found = sliced(trace, tmp_path)
    size, full = found.path.stat().st_size, trace.stat().st_size
    print(f"{trace.name}: {full:,} bytes to {size:,}", "whole" if found.whole else "a part", "lean" * found.lean)
    assert found.alike
    assert size < full
    for pair in found.pairs:
        assert_gaps_are_those_of_the_trace(pair)


@every_trace
def test_a_bundle(trace: Path, tmp_path: Path) -> None:
    before = sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in FOLDER.iterdir())
    assert run(app, ["bundle", str(trace), "-o", str(tmp_path / "ticket.zip"), "--quiet"]) == 0
    with zipfile.ZipFile(tmp_path / "ticket.zip") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["findings.json", "report.html", "summary.md", "trace.sqlite"]
    assert sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in FOLDER.iterdir()) == before
