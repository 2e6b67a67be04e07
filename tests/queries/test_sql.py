"""SQL over a report and its trace: sums are the numbers of the report, and nothing can be changed."""

from __future__ import annotations

import hashlib
import html
import re
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nsysdiag
from nsysdiag.formats.tables import BY_NAME
from nsysdiag.messages import UsageError
from nsysdiag.queries.asking import ABOUT, TIME, Answer, ask, query_trace, sql_tables, trace_columns, unit_of
from tests.shared import Shared

if TYPE_CHECKING:
    from nsysdiag.report import Report

pytestmark = pytest.mark.usefixtures("analyzed_once")
COOKBOOK = Path(__file__).parents[2] / "docs" / "sql.md"
QUESTIONS = dict(re.findall(r"### ([^\n]+)\n\n```sql\n(.+?)```", COOKBOOK.read_text(encoding="utf-8"), re.DOTALL))
TWO_GPUS = "starved_data_parallel"


class Opened:
    """A trace, and its report with the table of time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.report: Report = nsysdiag.analyze(path)
        self.asked = 0

    def made(self) -> Report:
        """The report, counted."""
        self.asked += 1
        return self.report

    def __call__(self, sql: str, limit: int | None = None) -> Answer:
        return ask(self.path, sql, self.made, limit)

    def pairs(self, sql: str) -> dict[Any, Any]:
        """Rows of a key and a number."""
        return dict(self(sql).rows)


@pytest.fixture(scope="module")
def opened(shared: Shared) -> Opened:
    return Opened(shared.trace(TWO_GPUS))


def nonzero(sums: dict[str, int]) -> dict[str, int]:
    return {name: ns for name, ns in sums.items() if ns}


@pytest.mark.sampled
@pytest.mark.parametrize("name", [TWO_GPUS, "counted_training"])
def test_sums_of_time_are_the_numbers_of_the_report(shared: Shared, name: str) -> None:
    of = Opened(shared.trace(name))
    assert of.report.devices
    for device in of.report.devices:
        judged = of.report.judged_of(device.key)
        assert judged is not None
        where = f"FROM time WHERE device = '{device.key}' AND judged"
        charged = f"SELECT name, ns FROM time_sums WHERE device = '{device.key}' AND scope = 'judged'"
        assert of.pairs(f"{charged} AND \"column\" = 'bottleneck'") == nonzero(judged.account)
        assert of.pairs(f"SELECT bottleneck, sum(ns) {where} GROUP BY 1") == nonzero(judged.account)
        assert of.pairs(f"SELECT cause, sum(ns) {where} AND state = 'idle' GROUP BY 1") == nonzero(judged.ledger)
        steps = of(f"SELECT step, sum(ns) FROM time WHERE device = '{device.key}' AND step >= 0 GROUP BY 1").rows
        assert device.iterations is not None
        assert [ns for _, ns in steps] == [each.end_ns - each.start_ns for each in device.iterations.rows]


@pytest.mark.slow
def test_tables_have_the_rows_of_the_csv_output(opened: Opened) -> None:
    for name, table in BY_NAME.items():
        answer = opened(f'SELECT * FROM "{name}"')
        assert answer.columns == table.header
        assert [list(row) for row in answer.rows] == [list(row) for row in table.cells(opened.report)]


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_of_the_documentation(opened: Opened, question: str) -> None:
    answer = opened(QUESTIONS[question])
    assert answer.columns
    assert answer.rows or question in EMPTY


EMPTY = {"Which GPU waits for which?"}
"""Questions to which the trace has no answer: without graphs no device waits for the stream of another one."""


def test_there_are_enough_questions() -> None:
    assert len(QUESTIONS) >= 25


@pytest.mark.slow
def test_answers_of_some_questions(opened: Opened) -> None:
    report = opened.report
    judged = opened(QUESTIONS["How much of the run is judged?"]).rows
    assert [row[1] for row in judged] == [
        sum(found.account.values()) for each in report.devices if (found := report.judged_of(each.key))
    ]
    slowest = opened(QUESTIONS["Which steps are the slowest?"]).rows[0]
    lengths = [row.end_ns - row.start_ns for each in report.devices if each.iterations for row in each.iterations.rows]
    assert slowest[3] == max(lengths)
    kernels = opened(QUESTIONS["Which kernels ran, by the trace alone?"]).rows
    total: dict[str, int] = {}
    for device in report.devices:
        for kernel in device.kernels:
            total[kernel.short_name] = total.get(kernel.short_name, 0) + kernel.total_ns
    assert {name: ns for name, _, ns in kernels} == total


@pytest.mark.slow
def test_the_trace_alone_needs_no_analysis(opened: Opened) -> None:
    before = opened.asked
    assert opened("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").rows[0][0] > 0
    assert opened.asked == before
    assert opened("SELECT count(*) FROM time").rows[0][0] > 0
    assert opened.asked == before + 1


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM time",
        "DROP TABLE time",
        "DROP TABLE trace.StringIds",
        "INSERT INTO trace.StringIds VALUES (1, 'x')",
        "UPDATE time SET ns = 0",
        "CREATE TABLE x (y)",
        "CREATE TEMP TABLE x AS SELECT 1",
        "ATTACH 'other.sqlite' AS other",
        "DETACH trace",
        "VACUUM INTO 'copy.sqlite'",
        "PRAGMA query_only=0",
        "PRAGMA trace.writable_schema=1",
        "SELECT load_extension('x')",
        "SELECT 1; DROP TABLE time",
        "BEGIN",
        "REINDEX",
        "",
    ],
)
def test_nothing_but_reading(opened: Opened, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = hashlib.sha256(opened.path.read_bytes()).digest()
    with pytest.raises(UsageError):
        opened(sql)
    assert hashlib.sha256(opened.path.read_bytes()).digest() == before
    assert not list(tmp_path.iterdir())


def test_views_and_virtual_tables_of_a_trace_are_hidden(opened: Opened, tmp_path: Path) -> None:
    path = tmp_path / "views.sqlite"
    path.write_bytes(opened.path.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE VIEW trap AS SELECT * FROM StringIds")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    connection.close()
    reading = partial(ask, path, report=opened.made, limit=None)
    for name in ("trap", "Trap", "trace.trap", '"trap"', "[Trap]", "words", "trace.words"):
        with pytest.raises(UsageError, match="only SELECT"):
            reading(f"SELECT * FROM {name}")
    assert reading("SELECT count(*) FROM StringIds").rows[0][0] > 0
    assert {"trap", "words"}.isdisjoint(trace_columns(path))


@pytest.mark.slow
def test_more_rows_than_the_limit_are_said(opened: Opened) -> None:
    few, all_of_them = opened("SELECT ns FROM time", 3), opened("SELECT ns FROM time")
    assert (len(few.rows), few.truncated) == (3, True)
    assert (len(all_of_them.rows) > 3, all_of_them.truncated) == (True, False)
    assert not opened("SELECT ns FROM time LIMIT 3", 3).truncated


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("SELECT * FROM fidings", "findings"),
        ("SELECT * FROM CUPTI_ACTIVITY_KIND_KERNELS", "CUPTI_ACTIVITY_KIND_KERNEL"),
        ("SELECT lenght_ns FROM gaps", "length_ns"),
    ],
)
def test_misspelt_names_are_suggested(opened: Opened, sql: str, meant: str) -> None:
    with pytest.raises(UsageError) as raised:
        opened(sql)
    assert meant in (raised.value.hint or "")


def test_every_table_says_what_it_holds() -> None:
    assert ABOUT.keys() == {TIME, *BY_NAME}
    assert [table.name for table in sql_tables()] == [TIME, *BY_NAME]


def test_columns_have_units() -> None:
    units = {name: unit_of(name) for name in ("ns", "idle_ns", "peak_bytes", "share", "sm_share", "name", "ins")}
    assert units == {
        "ns": "ns",
        "idle_ns": "ns",
        "peak_bytes": "bytes",
        "share": "0 to 1",
        "sm_share": "0 to 1",
        "name": "",
        "ins": "",
    }


@pytest.mark.slow
def test_columns_of_time_are_those_of_the_data_frame(opened: Opened) -> None:
    (time,) = (table for table in sql_tables() if table.name == TIME)
    assert sorted(each.name for each in time.columns) == sorted(map(str, opened.report.time))
    some = opened("SELECT * FROM time ORDER BY device, start_ns").rows
    frame = opened.report.time.sort_values(["device", "start_ns"])
    assert [row[3] for row in some] == frame.ns.tolist()


@pytest.mark.slow
def test_in_python(opened: Opened, tmp_path: Path) -> None:
    sql = "SELECT bottleneck, sum(ns) AS ns FROM time WHERE judged GROUP BY 1 ORDER BY 2"
    frame = opened.report.sql(sql)
    assert list(frame.columns) == ["bottleneck", "ns"]
    assert frame.ns.tolist() == [ns for _, ns in opened(sql).rows]
    assert query_trace(opened.path, sql).equals(frame)
    with pytest.raises(UsageError, match="no such table"):
        opened.report.sql("SELECT * FROM StringIds")
    saved = tmp_path / "saved.json"
    opened.report.save(saved)
    assert query_trace(saved, "SELECT count(*) AS n FROM findings").n[0] == len(opened.report.findings)
    with pytest.raises(UsageError, match="table of time"):
        query_trace(saved, sql)


def test_broken_text_is_written_out(opened: Opened, tmp_path: Path) -> None:
    path = tmp_path / "broken.sqlite"
    path.write_bytes(opened.path.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE StringIds SET value = CAST(x'ff41' AS TEXT) WHERE id = (SELECT min(id) FROM StringIds)"
        )
    connection.close()
    found = ask(path, "SELECT value FROM StringIds ORDER BY id", opened.made, 1)
    assert found.rows == [("\\xffA",)]
    assert ask(path, "SELECT x'0aff' AS data", opened.made, 1).rows == [("0aff",)]


@pytest.mark.slow
def test_every_section_with_numbers_has_a_query(opened: Opened) -> None:
    """And each query runs; those of tables give all of their rows for the device."""
    page = opened.report.to_html()
    queries = dict(re.findall(r'<pre id="([\w-]+)-sql" hidden>(.+?)</pre>', page, re.DOTALL))
    sections = set(re.findall(r'<section id="([\w-]+)"', page))
    assert sections - queries.keys() == {"health", "method"}
    for section, sql in queries.items():
        rows = opened(html.unescape(sql)).rows
        assert rows or section.endswith("bandwidth"), sql
    kernels = opened(html.unescape(queries["gpu-1-kernels"])).rows
    assert [row[2] for row in kernels] == [each.name for each in opened.report.devices["gpu1"].kernels]
