"""`nsysdiag info`: what a trace is and what it can tell, without an analysis. `nsysdiag bundle`: a zip for a ticket."""

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nsysdiag.cli import options
from nsysdiag.cli.console import aligned, as_json, emit, emit_text, progress_bar
from nsysdiag.cli.help import DebugOption
from nsysdiag.messages import JSON, UsageError, note, printable
from nsysdiag.shortage import Attempt
from nsysdiag.trace.formats import named, stem_of

if TYPE_CHECKING:
    from nsysdiag.queries.asking import Answer
    from nsysdiag.report import Report
    from nsysdiag.trace.capabilities import TraceFacts


INFO_EXAMPLES = """\b
Examples:
  nsysdiag info train.sqlite
  nsysdiag info train.sqlite --format json"""


def info(
    trace: options.TraceArgument,
    *,
    format_name: Annotated[
        Literal["text", "json"], typer.Option("--format", metavar="F", help="text or json.")
    ] = "text",
    debug: DebugOption = False,
) -> None:
    """Say what a trace holds, and what it lacks.

    Shows versions, devices, tables and the kinds of evidence, with the nsys option that brings a missing one.
    """
    import msgspec

    from nsysdiag.trace.capabilities import gather
    from nsysdiag.trace.trace import open_trace

    with Attempt(f"read '{printable(trace)}'"), open_trace(Path(trace)) as opened:
        facts = gather(opened)
    if format_name == "json":
        emit_text(as_json(msgspec.to_builtins(facts)), JSON)
    else:
        emit_text(_text(facts))


def _text(facts: "TraceFacts") -> str:
    tables = [(name, str(rows)) for name, rows in facts.tables.items() if not name.startswith("ENUM_")]
    evidence = [
        (each.id, "yes" if each.available else "no", "; nsys profile ".join(filter(None, (each.why, each.recapture))))
        for each in facts.capabilities
    ]
    sections = [
        aligned(("file", facts.file), _facts_rows(facts)),
        aligned(("table", "rows"), tables),
        aligned(("evidence", "here", "why, and what brings it"), evidence),
        *(f"warning: {printable(warning)}\n" for warning in facts.warnings),
    ]
    return "\n".join(sections)


def _facts_rows(facts: "TraceFacts") -> list[tuple[str, str]]:
    from nsysdiag.units import format_bytes, format_count, format_ns

    gpus = []
    for gpu, count in Counter(facts.gpus).items():
        known = [gpu.name]
        unit = "CUs" if "AMD" in gpu.name else "SMs"
        known += [f"{gpu.sm_count} {unit}"] if gpu.sm_count and unit not in gpu.name else []
        known += [format_bytes(gpu.memory_bytes)] if gpu.memory_bytes else []
        gpus.append(("gpu", f"{count} x {', '.join(known)}"))
    return [
        ("size", format_bytes(facts.size_bytes)),
        ("recorded by", facts.recorder) if facts.recorder else ("nsys", facts.nsys_version or "unknown version"),
        ("schema", facts.schema_version or "unknown version"),
        ("capture", "unknown length" if facts.capture_ns is None else format_ns(facts.capture_ns)),
        *(gpus or [("gpu", "none listed")]),
        ("processes", format_count(facts.processes)),
        ("threads", format_count(facts.threads)),
    ]


SUFFIX = ".zip"
BUNDLE_EXAMPLES = """\b
Examples:
  nsysdiag bundle train.sqlite
  nsysdiag bundle train.sqlite -o ticket.zip
  nsysdiag bundle train.sqlite --device gpu1 -o gpu1.zip
  nsysdiag bundle train.sqlite --redact -o for-the-vendor.zip"""


@options.spread
def bundle(
    trace: options.TraceArgument,
    *,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="PATH", help="Write the zip to PATH.", show_default=False)
    ] = None,
    device: options.DeviceOption = None,
    same_gpu: options.SameGpuOption = False,
    redact: options.RedactOption = False,
    out: options.Writing,
) -> None:
    """Write a zip for a ticket: report.html, summary.md, findings.json, and trace.sqlite, a slice of the trace.

    The slice is the smallest part found that analyzes again to the same verdict. It never holds the environment, the
    command line, the host or programs that were not traced. With --redact no file in the zip holds a name of the
    trace. Without -o, writes TRACE-stem.nsysdiag.zip into the current folder, with --redact redacted.nsysdiag.zip.
    """
    from nsysdiag.cli.output import check_file
    from nsysdiag.config.settings import Settings
    from nsysdiag.formats import write
    from nsysdiag.saved import is_saved_report
    from nsysdiag.share.bundle import LEFT_OUT, bundle_of, coverage, differences, is_ours
    from nsysdiag.units import format_bytes

    source = named(Path(trace))
    target = _target(options.REDACTED_STEM if redact else stem_of(source), output)
    if is_saved_report(source):
        raise UsageError(
            f"{source} is a saved report: a bundle holds a slice of the trace, which a report does not",
            hint="name the trace that it was made from",
        )
    check_file(target, source, force=out.force, is_ours=is_ours)
    settings = Settings(device=device, same_gpu=same_gpu)
    with Attempt(f"bundle '{printable(source)}'") as attempt, progress_bar(quiet=out.quiet) as progress:
        made = bundle_of(source, settings, attempt.noting(progress), redact=redact)
    write(target, made.data, force=out.force, is_ours=is_ours)
    size = made.slice_bytes
    missing = LEFT_OUT if size is None else "the slice does not show what the trace shows"
    for difference in differences(made.slice):  # also if all else is quiet: the bundle lacks something
        note(f"nsysdiag: {missing}: {difference}")
    if not out.quiet:
        content = "without trace.sqlite" if size is None else f"{coverage(made.slice)} ({format_bytes(size)})"
        note(f"wrote {target}; {content}")


def _target(stem: str, output: str | None) -> Path:
    if output is None:
        return Path(f"{stem.removesuffix('.nsysdiag') or 'trace'}.nsysdiag{SUFFIX}")
    if not output.lower().endswith(SUFFIX):
        raise UsageError(f"a bundle is a zip, and '{output}' is none by its name", hint="add -o ticket.zip")
    return Path(output)


EPILOG = """\b
Examples:
  nsysdiag sql train.sqlite "SELECT bottleneck, sum(ns) AS ns FROM time WHERE judged GROUP BY 1 ORDER BY 2 DESC"
  nsysdiag sql train.sqlite "SELECT title, lost_ns FROM findings" --format json
  nsysdiag sql train.sqlite "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"
  nsysdiag sql train.sqlite - --format csv
  nsysdiag sql train.sqlite --schema"""
MOST_SQL = 1_000_000
"""Characters of a query."""


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
        Literal["text", "csv", "json"], typer.Option("--format", metavar="F", help="text, csv or json.")
    ] = "text",
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
    from nsysdiag.cli.settings import settings_of_file
    from nsysdiag.pipeline.loading import analyze
    from nsysdiag.saved import is_saved_report

    of_file = settings_of_file(file, saved=is_saved_report(path), quiet=quiet).settings
    with progress_bar(quiet=quiet) as progress:
        return analyze(path, part.of(of_file), progress)


def _emit(answer: "Answer", format_name: str) -> None:
    from nsysdiag.formats.tables import csv_of
    from nsysdiag.messages import JSON, TEXT

    if format_name == "csv":
        emit(csv_of(answer.columns, map(list, answer.rows)), TEXT)
    elif format_name == "json":
        emit_text(as_json({"columns": answer.columns, "rows": answer.rows, "truncated": answer.truncated}), JSON)
    else:
        emit_text(aligned(answer.columns, [["" if cell is None else str(cell) for cell in row] for row in answer.rows]))


def _emit_schema(trace: Path | None, format_name: str) -> None:
    from nsysdiag.queries.asking import Answer, sql_tables, trace_columns

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
    debug: DebugOption = False,
) -> None:
    """Answer agents: a server of the Model Context Protocol on stdin and stdout.

    Six tools: open, diagnosis, query (SQL), explain, whatif and compare. They read traces below the folders of
    --root, and write nothing. Needs the extra `mcp`: pip install '.[mcp]' in a copy of the repository.
    """
    from nsysdiag.queries.server import Traces, server

    folders = [Path(each) for each in root or ["."]]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"'{folder}' is not a folder", hint="name one that holds traces")
    server(Traces(folders, redact=redact)).run("stdio")
