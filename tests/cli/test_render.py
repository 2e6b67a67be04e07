"""`nsysdiag render`: other views of a saved report, and what is not one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.record import to_json
from tests.output import samples
from tests.output.timeline.samples import timeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result


@pytest.fixture
def saved(folder: Path) -> Path:
    path = folder / "report.json"
    path.write_bytes(to_json(samples.one_device()))
    return path.relative_to(folder)


def test_writes_the_formats_asked_for(cli: Callable[..., Result], saved: Path, folder: Path) -> None:
    result = cli("render", saved, "-o", "a.html", "-o", "b.md")
    assert (result.code, result.stdout) == (0, b"")
    assert result.stderr == "wrote a.html\nwrote b.md\n"
    assert b"<html" in (folder / "a.html").read_bytes()


def test_stdout(cli: Callable[..., Result], saved: Path) -> None:
    assert cli("render", saved, "-o", "-", "--format", "json").stdout == saved.read_bytes()


def test_needs_an_output(cli: Callable[..., Result], saved: Path) -> None:
    result = cli("render", saved)
    assert result.code == 2
    assert "render needs an output" in result.stderr


def test_never_writes_over_its_input(cli: Callable[..., Result], saved: Path) -> None:
    before = saved.read_bytes()
    assert cli("render", saved, "-o", "./report.json", "--force").code == 2
    assert saved.read_bytes() == before


REPORT = json.loads(to_json(samples.one_device()))
DRAWN, LANES = samples.one_device(), timeline(0, 100)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a nsysdiag report"),
        (b"SQLite format 3\0", "is not a nsysdiag report"),
        (b"[1, 2]", "is not a nsysdiag report"),
        (b'{"a": 1}', "is not a nsysdiag report"),
        (b'{"schema_version": "1", "tool": {"name": "other"}}', "but not a nsysdiag report"),
        (json.dumps({**REPORT, "schema_version": "99"}).encode(), "has schema version 99"),
        (json.dumps({**REPORT, "devices": 3}).encode(), "is a damaged nsysdiag report"),
        (to_json(replace(DRAWN, timeline={"gpu0": replace(LANES, levels=[])})), "is a damaged nsysdiag report"),
        (to_json(samples.one_device())[:-40], "is not a nsysdiag report"),
    ],
)
def test_what_is_no_report(cli: Callable[..., Result], saved: Path, folder: Path, content: bytes, words: str) -> None:
    saved.write_bytes(content)
    result = cli("render", saved, "-o", "x.html")
    assert result.code == 3
    assert words in result.stderr
    assert not (folder / "x.html").exists()


@pytest.mark.parametrize("name", ["missing.json", "."])
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_read(cli: Callable[..., Result], name: str) -> None:
    result = cli("render", name, "-o", "x.html")
    assert result.code == 3
    assert "cannot read" in result.stderr
