"""`nsysdiag info`: what a trace is, without analyzing it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.builder import TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result


@pytest.fixture
def built(folder: Path) -> Path:
    """Two processes: one launches from one thread, the other waits in two."""
    builder = TraceBuilder()
    builder.kernel(100, 200, launch=(50, 60))
    builder.osrt("read", 10, 40, thread=(77, 78))
    builder.osrt("read", 10, 40, thread=(77, 79))
    return builder.write(folder / "two.sqlite").relative_to(folder)


def test_says_what_the_file_is(cli: Callable[..., Result], built: Path) -> None:
    result = cli("info", built)
    text = result.stdout.decode()
    facts = dict(line.split(maxsplit=1) for line in text.split("\n\n")[0].splitlines())
    assert (result.code, result.stderr) == (0, "")
    assert facts["file"] == "two.sqlite"
    assert (facts["processes"], facts["threads"]) == ("2", "3")
    assert {"size", "nsys", "schema", "capture", "gpu"} < facts.keys()


def test_lists_tables_and_what_is_missing(cli: Callable[..., Result], built: Path) -> None:
    rows = {line.split()[0]: line.split() for line in cli("info", built).stdout.decode().splitlines() if line}
    assert rows["OSRT_API"] == ["OSRT_API", "2"]
    assert rows["kernels"][1] == "yes"
    assert rows["scheduling"][1] == "no"
    assert " ".join(rows["scheduling"]).endswith("nsys profile --cpuctxsw=process-tree")
    assert not any(name.startswith("ENUM_") for name in rows)


def test_json_has_the_same_facts(cli: Callable[..., Result], built: Path) -> None:
    facts = json.loads(cli("info", built, "--format", "json").stdout)
    assert facts["file"] == "two.sqlite"
    assert (facts["processes"], facts["threads"]) == (2, 3)
    assert facts["tables"]["OSRT_API"] == 2
    scheduling = next(c for c in facts["capabilities"] if c["id"] == "scheduling")
    assert scheduling["recapture"] == "--cpuctxsw=process-tree"


@pytest.mark.usefixtures("folder")
def test_what_is_no_trace(cli: Callable[..., Result], folder: Path) -> None:
    (folder / "notes.sqlite").write_text("not a database")
    for name in ("notes.sqlite", "missing.sqlite", "."):
        result = cli("info", name)
        assert result.code == 3
        assert result.stdout == b""
        assert name in result.stderr
