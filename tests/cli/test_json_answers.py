"""`nsysdiag analyze --json`: a short answer on stdout and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result
    from tests.shared import Shared

pytestmark = pytest.mark.usefixtures("analyzed_once")


@pytest.mark.slow
def test_on_the_command_line(cli: Callable[..., Result], shared: Shared, folder: Path) -> None:
    trace = shared.trace("counted_training")
    result = cli("analyze", trace, "--json", "diagnosis,findings", "--limit", "1")
    assert (result.code, result.stderr, list(folder.iterdir())) == (0, "", [])
    found = json.loads(result.stdout)
    assert result.stdout.count(b"\n") == 1
    assert found["diagnosis"]["headline"]
    assert len(found["findings"]["items"]) == 1
    both = cli("analyze", trace, "--json", "time", "-o", "report.json")
    assert [each.name for each in folder.iterdir()] == ["report.json"]
    assert json.loads(both.stdout) == json.loads(cli("analyze", "report.json", "--json", "time").stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--limit", "3"],
        ["--json", "x"],
        ["--json", "time", "-o", "-", "--format", "json"],
        ["--json", "time", "--format", "md"],
    ],
)
def test_what_does_not_fit(cli: Callable[..., Result], shared: Shared, arguments: list[str]) -> None:
    result = cli("analyze", shared.trace("counted_training"), *arguments)
    assert (result.code, result.stdout) == (2, b"")


@pytest.mark.slow
def test_redacted_answers_hold_no_names(cli: Callable[..., Result], shared: Shared) -> None:
    trace = shared.trace("counted_training")
    plain, hidden = (cli("analyze", trace, "--json", "kernels", *more).stdout for more in ([], ["--redact"]))
    name = json.loads(plain)["kernels"]["items"][0][2]
    assert name.encode() in plain
    assert name.encode() not in hidden
