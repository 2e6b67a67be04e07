"""Nothing private leaves with a bundle, looked for byte by byte."""

from __future__ import annotations

import base64
import re
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest

from nsysdiag.cli.app import app
from nsysdiag.cli.console import run
from nsysdiag.share.cut import SliceCut
from tests.share.bundle.bundling import contents_of
from tests.share.slice.cutting import cut_file, rows, tables
from tests.share.slice.private import CANARY, MS, MUCH_LATER, private_trace

if TYPE_CHECKING:
    from pathlib import Path

WORDS = [CANARY.encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be")] + [CANARY.upper().encode()]
SPANS = [SliceCut(), SliceCut(50 * MS, 80 * MS), SliceCut(0, 10**9, lean=True)]


def unpacked(data: bytes) -> bytes:
    """The data, and what is packed inside it in base64, zlib or not."""
    found = [data]
    for match in re.findall(rb"(?:[A-Za-z0-9+/]{4}){10,}(?:[A-Za-z0-9+/]{2,3}={1,2})?", data):
        raw = base64.b64decode(match)
        found.append(raw)
        try:
            found.append(zlib.decompress(raw))
        except zlib.error:
            continue
    return b"\n".join(found)


def test_the_trace_itself_is_full_of_it(tmp_path: Path) -> None:
    data = private_trace(tmp_path / "trace.sqlite").read_bytes()
    assert data.count(WORDS[0]) > 200
    assert rows(tmp_path / "trace.sqlite", "PRAGMA freelist_count") > [(0,)]


@pytest.mark.parametrize("cut", SPANS)
def test_no_cut_holds_it(cut: SliceCut, tmp_path: Path) -> None:
    path = cut_file(private_trace(tmp_path / "trace.sqlite"), tmp_path / "cut.sqlite", cut)
    long = cut.end_ns is None or cut.end_ns > 900 * MS
    data = path.read_bytes().replace(MUCH_LATER.encode(), b"") if long else path.read_bytes()
    assert [word for word in WORDS if word in data] == []
    assert rows(path, "PRAGMA freelist_count") == [(0,)]
    assert {"notes", "kernels", "t", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV", "ProcessStreams"}.isdisjoint(
        tables(path)
    )


@pytest.mark.slow
def test_no_file_of_a_bundle_holds_it(tmp_path: Path) -> None:
    trace, bundle = private_trace(tmp_path / "trace.sqlite"), tmp_path / "ticket.zip"
    assert run(app, ["bundle", str(trace), "-o", str(bundle), "--device", "gpu0", "--quiet"]) == 0
    found = {name: [word for word in WORDS if word in unpacked(data)] for name, data in contents_of(bundle).items()}
    assert found == {"findings.json": [], "report.html": [], "summary.md": [], "trace.sqlite": []}
    assert WORDS[0] not in bundle.read_bytes()
    assert zipfile.ZipFile(bundle).testzip() is None
