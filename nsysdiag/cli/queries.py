"""`nsysdiag sql`: a SELECT over the tables of a report and of its trace; and `nsysdiag mcp`: the server for agents."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nsysdiag.cli import options
from nsysdiag.messages import UsageError, note, printable
from nsysdiag.shortage import Attempt
from nsysdiag.trace.formats import named

if TYPE_CHECKING:
    from nsysdiag.queries.asking import Answer
    from nsysdiag.report import Report

EPILOG = """\b
Examples:
  nsysdiag sql train.sqlite "SELECT bottleneck, sum(ns) AS ns FROM time WHERE judged GROUP BY 1 ORDER BY 2 DESC"
  nsysdiag sql train.sqlite "SELECT title, lost_ns FROM findings" --format json
  nsysdiag sql train.sqlite "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"
  nsysdiag sql train.sqlite - --format csv
  nsysdiag sql train.sqlite --schema"""
MOST_SQL = 1_000_000
"""Characters of a query."""


class SqlFormat(StrEnum):
    """How rows are shown."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"


@options.spread
def sql(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help=f"{options.A_TRACE} or a saved report JSON.")],
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="One SELECT; '-' reads it from stdin.")] = None,
    *,
    schema: Annotated[
        bool, typer.Option("--schema", help="List tables, columns and units instead of running a query.")
    ] = False,
    limit: Annotated[
        int | None, options.value("--limit", "N", "Give at most N rows, 1000 by default; 0 gives all.", min=0)
    ] = None,
    part: options.AnalyzedPart,
    file: options.SettingsFile,
    format_name: Annotated[
        SqlFormat, typer.Option("--format", metavar="F", help="text, csv or json.")
    ] = SqlFormat.TEXT,
    out: options.Verbosity,
) -> None:
    """Ask the time, findings, phases and steps of a trace, and its own tables, in SQL.

    The table time has a row for each stretch of time of each GPU: its state, bottleneck, cause, phase and step. Sums of
    it are the numbers of the report. Other tables are those of the CSV output, and those of the trace.
    Nothing can be changed. A query about tables of the trace alone needs no analysis.
    """
    from nsysdiag.queries.asking import MOST_ROWS, ask
    from nsysdiag.saved import is_saved_report

    path = named(Path(trace))
    if schema == (query is not None):
        raise UsageError("give a query, or --schema", hint='nsysdiag sql TRACE "SELECT count(*) FROM time"')
    of_trace = None if is_saved_report(path) else path
    with Attempt(f"query '{printable(trace)}'"):
        if query is None:
            _emit_schema(of_trace, format_name)
            return
        most = MOST_ROWS if limit is None else limit or None
        answer = ask(of_trace, _read(query), lambda: _report(path, part, file, quiet=out.quiet), most)
    _emit(answer, format_name)
    if answer.truncated and not out.quiet:
        note(f"nsysdiag: the first {len(answer.rows):,} rows; --limit 0 gives all")


def _read(query: str) -> str:
    if query != "-":
        return query
    text = sys.stdin.read(MOST_SQL + 1)
    if len(text) > MOST_SQL:
        raise UsageError(f"a query has at most {MOST_SQL:,} characters")
    return text


def _report(path: Path, part: options.AnalyzedPart, file: options.SettingsFile, *, quiet: bool) -> "Report":
    from nsysdiag.cli.console import progress_bar
    from nsysdiag.cli.settings import settings_of_file
    from nsysdiag.pipeline.loading import analyze
    from nsysdiag.saved import is_saved_report

    of_file = settings_of_file(file, saved=is_saved_report(path), quiet=quiet).settings
    with progress_bar(quiet=quiet) as progress:
        return analyze(path, part.of(of_file), progress)


def _emit(answer: "Answer", format_name: SqlFormat) -> None:
    from nsysdiag.cli.console import emit, emit_text
    from nsysdiag.cli.tables import aligned, as_json
    from nsysdiag.formats.tables import csv_of
    from nsysdiag.messages import JSON, TEXT

    if format_name is SqlFormat.CSV:
        emit(csv_of(answer.columns, map(list, answer.rows)), TEXT)
    elif format_name is SqlFormat.JSON:
        emit_text(as_json({"columns": answer.columns, "rows": answer.rows, "truncated": answer.truncated}), JSON)
    else:
        emit_text(aligned(answer.columns, [["" if cell is None else str(cell) for cell in row] for row in answer.rows]))


def _emit_schema(trace: Path | None, format_name: SqlFormat) -> None:
    from nsysdiag.queries.asking import Answer, trace_columns
    from nsysdiag.queries.tables import sql_tables

    rows = [
        (table.name, column.name, column.type, column.unit, table.about)
        for table in sql_tables()
        for column in table.columns
    ]
    if trace is not None:
        rows += [
            (table, *column, "", "of the trace") for table, found in trace_columns(trace).items() for column in found
        ]
    _emit(Answer(["table", "column", "type", "unit", "about"], list(rows), truncated=False), format_name)


MCP_EXAMPLES = """\b
Examples:
  nsysdiag mcp --root traces
  nsysdiag mcp --root /data/traces --root . --redact"""


def mcp(
    *,
    root: Annotated[
        list[str] | None,
        options.value("--root", "DIR", "Traces below this folder can be read, by default the current one; repeatable."),
    ] = None,
    redact: options.RedactOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Answer agents: a server of the Model Context Protocol on stdin and stdout.

    Six tools: open, diagnosis, query (SQL), explain, whatif and compare. They read traces below the folders of
    --root, and write nothing. Needs the extra `mcp`: pip install '.[mcp]' in a copy of the repository.
    """
    from nsysdiag.queries.server import Traces, server

    folders = [Path(each) for each in root or ["."]]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"'{folder}' is no folder", hint="name one that holds traces")
    server(Traces(folders, redact=redact)).run("stdio")
