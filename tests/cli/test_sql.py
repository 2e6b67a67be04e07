"""`nsysdiag sql`: what goes to stdout, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze
from tests.shared import Shared

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result

pytestmark = pytest.mark.usefixtures("analyzed_once")

BY_STATE = "SELECT state, sum(ns) AS ns FROM time WHERE judged GROUP BY 1 ORDER BY 1"


@pytest.fixture
def trace(shared: Shared) -> Path:
    return shared.trace("counted_training")


@pytest.mark.slow
def test_every_format_has_the_same_rows(cli: Callable[..., Result], trace: Path) -> None:
    found = {name: cli("sql", trace, BY_STATE, "--format", name) for name in ("text", "csv", "json")}
    assert {(each.code, each.stderr) for each in found.values()} == {(0, "")}
    whole = json.loads(found["json"].stdout)
    assert (whole["columns"], whole["truncated"]) == (["state", "ns"], False)
    rows = [[state, str(ns)] for state, ns in whole["rows"]]
    assert rows
    assert list(csv.reader(io.StringIO(found["csv"].stdout.decode())))[1:] == rows
    assert [line.split() for line in found["text"].stdout.decode().splitlines()[1:]] == rows
    judged = analyze(trace).judged_of("gpu0")
    assert judged is not None
    assert dict(whole["rows"])["idle"] == judged.idle_ns


def test_rows_beyond_the_limit_are_said(cli: Callable[..., Result], trace: Path) -> None:
    result = cli("sql", trace, "SELECT id FROM StringIds", "--limit", "2")
    assert len(result.stdout.splitlines()) == 3
    assert "the first 2 rows; --limit 0 gives all" in result.stderr
    assert cli("sql", trace, "SELECT id FROM StringIds", "--limit", "0").stderr == ""


def test_a_query_from_stdin(cli: Callable[..., Result], trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 40 + 2 AS answer"))
    assert cli("sql", trace, "-", "--format", "csv").stdout == b"answer\r\n42\r\n"


def test_schema_lists_tables_columns_and_units(cli: Callable[..., Result], trace: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(cli("sql", trace, "--schema", "--format", "csv").stdout.decode())))
    found = {(row["table"], row["column"]): row["unit"] for row in rows}
    assert found["time", "ns"] == "ns"
    assert found["findings", "saves_low_ns"] == "ns"
    assert ("CUPTI_ACTIVITY_KIND_KERNEL", "correlationId") in found


@pytest.mark.slow
def test_a_part_of_the_trace(cli: Callable[..., Result], trace: Path) -> None:
    whole, part = (
        json.loads(cli("sql", trace, "SELECT sum(ns) FROM time", "--format", "json", *more).stdout)["rows"][0][0]
        for more in ([], ["--iterations", "2:4"])
    )
    assert 0 < part < whole


@pytest.mark.parametrize("arguments", [[], ["SELECT 1", "--schema"]])
def test_a_query_or_the_schema(cli: Callable[..., Result], trace: Path, arguments: list[str]) -> None:
    result = cli("sql", trace, *arguments)
    assert (result.code, result.stdout) == (2, b"")
    assert "give a query, or --schema" in result.stderr


def test_wrong_sql_is_one_sentence(cli: Callable[..., Result], trace: Path) -> None:
    result = cli("sql", trace, "SELECT * FROM missing")
    assert (result.code, result.stdout) == (2, b"")
    assert "no such table: missing" in result.stderr


def test_formulas_and_controls_cannot_act(cli: Callable[..., Result], trace: Path) -> None:
    sql = "SELECT '=1+1' AS a, char(27) || '[31m' AS b"
    assert b"'=1+1" in cli("sql", trace, sql, "--format", "csv").stdout
    for name in ("text", "csv", "json"):
        assert b"\x1b" not in cli("sql", trace, sql, "--format", name).stdout
