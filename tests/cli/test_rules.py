"""`nsysdiag rules`: the registry as a table, and one cause in full."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from nsysdiag.analysis.causes import CAUSES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Result


def test_lists_every_cause_in_order(cli: Callable[..., Result]) -> None:
    result = cli("rules")
    header, *rows = result.stdout.decode().splitlines()
    assert (result.code, header.split()) == (0, ["order", "id", "title", "tables"])
    assert [row.split()[:2] for row in rows] == [[str(n), id] for n, id in enumerate(CAUSES, 1)]


@pytest.mark.parametrize("cause_id", list(CAUSES))
def test_one_cause_in_full(cli: Callable[..., Result], cause_id: str) -> None:
    result = cli("rules", cause_id)
    text, cause = result.stdout.decode(), CAUSES[cause_id]
    assert result.code == 0
    assert all(part in text for part in (cause.title, cause.meaning, *cause.tables, *cause.advice))


def test_json(cli: Callable[..., Result]) -> None:
    records = json.loads(cli("rules", "--format", "json").stdout)
    assert [record["id"] for record in records] == list(CAUSES)
    assert json.loads(cli("rules", "sync", "--format", "json").stdout) in records


def test_markdown(cli: Callable[..., Result]) -> None:
    lines = cli("rules", "--format", "md").stdout.decode().splitlines()
    assert len(lines) == len(CAUSES) + 2
    assert {line.count(" | ") for line in lines} == {4}
    assert cli("rules", "sync", "--format", "md").stdout.decode().startswith("## `sync`: ")


def test_unknown_cause(cli: Callable[..., Result]) -> None:
    result = cli("rules", "lock_weit")
    assert result.code == 2
    assert "did you mean 'lock_wait'" in result.stderr


def test_unknown_format(cli: Callable[..., Result]) -> None:
    result = cli("rules", "--format", "yaml")
    assert result.code == 2
    assert "'yaml' is not one of 'text', 'md', 'json'" in result.stderr
