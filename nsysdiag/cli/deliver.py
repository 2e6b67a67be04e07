"""Hands a finished report to its destinations; one that fails does not lose the others."""

from __future__ import annotations

import os
import shutil
import sys
import webbrowser
from typing import TYPE_CHECKING

import typer

from nsysdiag.cli.console import complain, emit, note
from nsysdiag.comparison.facts import Comparison
from nsysdiag.errors import OutputError, UsageError
from nsysdiag.printable import printable
from nsysdiag.ranks.report import RanksReport
from nsysdiag.shortage import Attempt
from nsysdiag.workflow_commands import TEXT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsysdiag.ci.budgets import Judgement
    from nsysdiag.cli.destinations import Destination
    from nsysdiag.report import Report

    Document = Report | RanksReport | Comparison
    Files = list[tuple[Path | None, bytes]]


def deliver(
    document: Document,
    destinations: Sequence[Destination],
    *,
    force: bool,
    quiet: bool,
    summary: bool = True,
    open_html: bool = False,
    judged: Judgement | None = None,
) -> None:
    """Write every destination, then the text summary to stdout unless that is taken or `quiet`. `judged` is what became
    of the budgets of a report.

    Exits with the code of an unwritable output (2) after the others have been written. All are made before the first
    is written: where memory runs out, which is a MemoryShortError, there is none.
    """
    ready = [(each, _made(document, each, judged)) for each in destinations]
    told = _summary(document) if summary and not quiet and all(d.path for d in destinations) else None
    failures = [error for each, files in ready if (error := _try_one(each, files, force=force, quiet=quiet))]
    if told is not None:
        emit(told, TEXT)
    for error in failures:
        complain(error.message, error.hint)
    if open_html:
        _open(destinations)
    if failures:
        raise typer.Exit(failures[0].exit_code)


def require_html(destinations: Sequence[Destination], *, open_html: bool) -> None:
    """Raise UsageError where --open has no HTML file to open."""
    if open_html and not _html_files(destinations):
        raise UsageError("--open needs an HTML report", hint="add -o report.html")


def _made(document: Document, destination: Destination, judged: Judgement | None) -> Files | OutputError:
    """The content of stdout, whose path is None, or of the files of a destination; or why there is none."""
    try:
        with Attempt(f"make '{printable(destination.path or destination.format)}'"):
            data = _rendered(document, destination.format, judged=judged)
            if destination.path is None:
                return [(None, data)]
            return _files(document, destination.path, destination.format, data)
    except OutputError as error:
        return error


def _try_one(destination: Destination, files: Files | OutputError, *, force: bool, quiet: bool) -> OutputError | None:
    if isinstance(files, OutputError):
        return files
    try:
        _deliver_one(destination, files, force=force, quiet=quiet)
    except OutputError as error:
        return error
    return None


def _deliver_one(destination: Destination, files: Files, *, force: bool, quiet: bool) -> None:
    from nsysdiag.formats.registry import FORMATS
    from nsysdiag.formats.write import write

    for path, content in files:
        if path is None:
            emit(content, FORMATS[destination.format].syntax)
            continue
        write(path, content, force=force)
        if not quiet:
            note(f"wrote {path}")


def _files(document: Document, path: Path, format_name: str, data: bytes) -> Files:
    from nsysdiag.formats.csv_ import MAIN_TABLE, table_path, tables
    from nsysdiag.ranks.show import csv_ as ranks_csv

    if format_name != "csv" or isinstance(document, Comparison):
        return [(path, data)]
    if isinstance(document, RanksReport):
        main, contents = ranks_csv.MAIN_TABLE, ranks_csv.tables(document)
    else:
        main, contents = MAIN_TABLE, tables(document)
    beside = [(table_path(path, table), content) for table, content in contents.items() if table != main]
    return [(path, data), *beside]


def _rendered(
    document: Document,
    format_name: str,
    *,
    width: int = 100,
    color: bool = False,
    judged: Judgement | None = None,
) -> bytes:
    from nsysdiag.cli import command
    from nsysdiag.comparison.show import registry as comparisons
    from nsysdiag.formats.format import RenderOptions
    from nsysdiag.formats.registry import FORMATS
    from nsysdiag.ranks.show import registry as ranks

    def options(line: str) -> RenderOptions:
        budgets = (tuple(judged.results), tuple(judged.unjudged)) if judged else ((), ())
        return RenderOptions(width=width, color=color, command=line, budgets=budgets[0], unjudged=budgets[1])

    if isinstance(document, RanksReport):
        return ranks.RENDERERS[format_name](document, options(command.command_of_ranks(document)))
    if isinstance(document, Comparison):
        return comparisons.RENDERERS[format_name](document, options(command.command_of_comparison(document)))
    return FORMATS[format_name].render(document, options(command.command_of(document)))


def _summary(document: Document) -> bytes:
    if sys.stdout is None or not sys.stdout.isatty():
        return _rendered(document, "txt")
    width = shutil.get_terminal_size().columns
    return _rendered(document, "txt", width=width, color="NO_COLOR" not in os.environ)


def _html_files(destinations: Sequence[Destination]) -> list[Path]:
    return [d.path for d in destinations if d.path and d.format == "html"]


def _open(destinations: Sequence[Destination]) -> None:
    for path in _html_files(destinations):
        if path.exists() and not webbrowser.open(path.absolute().as_uri()):
            note(f"no browser to open {path} with")
