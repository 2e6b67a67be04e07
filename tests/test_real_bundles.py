"""A bundle of every real trace: sliced to the same verdict, smaller, and with the same gaps."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

import pytest

from nsysdiag.cli.app import app
from nsysdiag.cli.console import run
from tests.levels import THOROUGH, some
from tests.share.bundle.bundling import assert_gaps_are_those_of_the_trace, contents_of, sliced
from tests.share.bundle.redacted import redacted_slice
from tests.share.redaction.test_real_redaction import is_foreign, names_of

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
FILES = [path for path in sorted(FOLDER.glob("*.sqlite")) if THOROUGH or "-after_" not in path.name]
"""Of a pair of one program one."""

ADDRESS = re.compile("0x[0-9a-f]+")

pytestmark = pytest.mark.real
every_other_trace = pytest.mark.parametrize("trace", some(FILES, 2) or [Path("none")], ids=lambda path: path.stem)
some_traces = pytest.mark.parametrize("trace", some(FILES, 6) or [Path("none")], ids=lambda path: path.stem)


@pytest.mark.sampled(normal=5)
@every_other_trace
def test_a_slice_with_the_same_verdict(trace: Path, tmp_path: Path) -> None:
    found = sliced(trace, tmp_path)
    size, full = found.path.stat().st_size, trace.stat().st_size
    print(f"{trace.name}: {full:,} bytes to {size:,}", "whole" if found.whole else "a part", "lean" * found.lean)
    assert found.alike
    assert size < full
    for pair in found.pairs:
        assert_gaps_are_those_of_the_trace(pair)


@some_traces
def test_a_bundle(trace: Path, tmp_path: Path) -> None:
    before = sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in FOLDER.iterdir())
    assert run(app, ["bundle", str(trace), "-o", str(tmp_path / "ticket.zip"), "--quiet"]) == 0
    with zipfile.ZipFile(tmp_path / "ticket.zip") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["findings.json", "report.html", "summary.md", "trace.sqlite"]
    assert sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in FOLDER.iterdir()) == before


@some_traces
def test_a_redacted_slice_with_the_same_verdict(trace: Path, tmp_path: Path) -> None:
    _, found = redacted_slice(trace, tmp_path)
    assert found.alike
    for pair in found.pairs:
        assert_gaps_are_those_of_the_trace(pair)


@some_traces
def test_no_name_in_a_redacted_bundle(trace: Path, tmp_path: Path) -> None:
    assert run(app, ["bundle", str(trace), "-o", str(tmp_path / "ticket.zip"), "--quiet", "--redact"]) == 0
    contents = contents_of(tmp_path / "ticket.zip")
    assert "trace.sqlite" in contents
    foreign = {name for name in names_of(trace) if is_foreign(name) and not ADDRESS.fullmatch(name)}
    for file, data in contents.items():
        text = data.decode(errors="replace")
        hits = {name for name in foreign if name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)}
        assert hits == set(), file
