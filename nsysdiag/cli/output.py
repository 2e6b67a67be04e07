"""Where results go: -o and --format as destinations, checked before the work starts, and written after it."""

from __future__ import annotations

import os
import shutil
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec import Struct

from nsysdiag.cli.console import complain, emit, note
from nsysdiag.comparison.facts import Comparison
from nsysdiag.errors import OutputError, UsageError
from nsysdiag.printable import printable
from nsysdiag.ranks.report import RanksReport
from nsysdiag.replay.facts import WhatIf
from nsysdiag.shortage import Attempt
from nsysdiag.workflow_commands import TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsysdiag.ci.budgets import Judgement
    from nsysdiag.report import Report

    Document = Report | RanksReport | Comparison | WhatIf
    Files = list[tuple[Path | None, bytes]]

STDOUT = "-"


class Destination(Struct, frozen=True):
    """One result: a file, or stdout where `path` is None. `format` is a key of the registry of formats; `tables` names
    the files beside a CSV file, None for those of a report."""

    path: Path | None
    format: str
    tables: Sequence[str] | None = None

    def files(self) -> list[Path]:
        """Every file that is written: a CSV result has one for each of its tables."""
        if self.path is None:
            return []
        if self.format != "csv":
            return [self.path]
        from nsysdiag.formats.csv_ import TABLES, table_path

        beside = TABLES if self.tables is None else self.tables
        return [self.path, *(table_path(self.path, table) for table in beside)]


class Kind(Struct, frozen=True):
    """What is written: what it is called, the formats that it has, and the tables beside a CSV file, None for those of
    a report."""

    what: str
    formats: Sequence[str]
    tables: Sequence[str] | None = None


def plan(
    outputs: Sequence[str] | None,
    format_name: str | None,
    default_stem: str,
    kind: Kind | None = None,
    *,
    inputs: Sequence[Path] = (),
    force: bool,
    open_html: bool = False,
) -> list[Destination]:
    """The destinations that the options ask for; without -o, one file in the current folder. None is the kind of a
    report.

    Raises UsageError for an unknown format or one that the kind has not, '-' without a format, a format that nothing
    uses, one place named twice, or --open without an HTML file; OutputError for a file that cannot be written, is one
    of the `inputs`, or is not ours to overwrite.
    """
    from nsysdiag.formats.registry import FORMATS

    kind = kind or Kind("a report", list(FORMATS))
    if format_name is not None and format_name not in FORMATS:
        raise UsageError(f"unknown format '{format_name}'", hint=f"the formats are: {', '.join(kind.formats)}")
    if outputs:
        found = [_destination(output, format_name, kind) for output in outputs]
        _require_use(format_name, outputs)
    else:
        chosen = format_name or "html"
        found = [Destination(Path(f"{default_stem}.nsysdiag{FORMATS[chosen].suffix}"), chosen, kind.tables)]
    for unknown in [each.format for each in found if each.format not in kind.formats]:
        raise UsageError(
            f"{kind.what} cannot be written as {unknown}", hint=f"its formats are: {', '.join(kind.formats)}"
        )
    _refuse_repeats(found)
    if open_html and not _html_files(found):
        raise UsageError("--open needs an HTML report", hint="add -o report.html")
    for source in inputs or (None,):
        for path in [path for each in found for path in each.files()]:
            check_file(path, source, force=force)
    return found


def _destination(output: str, format_name: str | None, kind: Kind) -> Destination:
    from nsysdiag.formats.registry import format_for

    if output == STDOUT:
        if format_name is None:
            raise UsageError("'-o -' needs a format", hint=f"add --format with one of {', '.join(kind.formats)}")
        return Destination(None, format_name, kind.tables)
    try:
        chosen = format_for(output, kind.formats)
    except UsageError:
        if format_name is None:
            raise
        chosen = format_name
    return Destination(Path(output), chosen, kind.tables)


def _require_use(format_name: str | None, outputs: Sequence[str]) -> None:
    """Raise UsageError where the suffix of every output picks another format."""
    from nsysdiag.formats.registry import format_for

    if format_name is None or STDOUT in outputs:
        return
    try:
        for output in outputs:
            format_for(output)
    except UsageError:
        return
    raise UsageError(
        f"--format {format_name} is used by no output: the suffix of {outputs[0]} picks its format",
        hint="leave --format out, or add '-o -' to have that format on stdout",
    )


def _refuse_repeats(destinations: Sequence[Destination]) -> None:
    seen: set[Path | None] = set()
    for destination in destinations:
        places: set[Path | None] = {path.absolute() for path in destination.files()} or {None}
        if twice := places & seen:
            raise UsageError(f"two outputs go to {twice.pop() or 'stdout'}", hint="name each once")
        seen |= places


def check_file(path: Path, source: Path | None, *, force: bool, is_ours: Callable[[bytes], bool] | None = None) -> None:
    """Raise OutputError where one file cannot be written, is the input itself, or is not ours to overwrite."""
    from nsysdiag.formats.write import check

    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise OutputError(f"{path} is the input itself", hint="choose another -o PATH")
    check(path, force=force, is_ours=is_ours)
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"cannot write {path}: the folder {path.parent} is read-only")


def write_all(
    document: Document,
    destinations: Sequence[Destination],
    *,
    force: bool,
    quiet: bool,
    summary: bool = True,
    open_html: bool = False,
    judged: Judgement | None = None,
    details: bool = False,
) -> None:
    """Print the text summary to stdout unless that is taken or `quiet`, and write every destination. `judged` is what
    became of the budgets of a report; with `details` text and Markdown hold all sections.

    Exits with the code of an unwritable output (2) after the others have been written. All are made before the first
    is written: where memory runs out, which is a MemoryShortError, there is none.
    """
    made = [(each, _made(document, each, judged, details=details)) for each in destinations]
    if summary and not quiet and all(each.path for each in destinations):
        emit(_summary(document, details=details), TEXT)
    failures = [error for each, files in made if (error := _write(each, files, force=force, quiet=quiet))]
    for error in failures:
        complain(error.message, error.hint)
    for path in _html_files(destinations) if open_html else ():
        if path.exists() and not webbrowser.open(path.absolute().as_uri()):
            note(f"no browser to open {path} with")
    if failures:
        raise typer.Exit(failures[0].exit_code)


def _made(
    document: Document, destination: Destination, judged: Judgement | None, *, details: bool
) -> Files | OutputError:
    """The content of stdout, whose path is None, or of the files of a destination; or why there is none."""
    try:
        with Attempt(f"make '{printable(destination.path or destination.format)}'"):
            data = _rendered(document, destination.format, judged=judged, details=details)
            if destination.path is None or destination.format != "csv":
                return [(destination.path, data)]
            return [(destination.path, data), *_tables_beside(document, destination.path)]
    except OutputError as error:
        return error


def _rendered(
    document: Document,
    format_name: str,
    *,
    width: int = 100,
    color: bool = False,
    details: bool = False,
    judged: Judgement | None = None,
) -> bytes:
    from nsysdiag.document.command import command_of
    from nsysdiag.formats.format import RenderOptions

    options = RenderOptions(
        width=width,
        color=color,
        details=details,
        command=command_of(document),
        budgets=tuple(judged.results) if judged else (),
        unjudged=tuple(judged.unjudged) if judged else (),
    )
    if isinstance(document, RanksReport):
        from nsysdiag.ranks.show.registry import RENDERERS as OF_RANKS

        return OF_RANKS[format_name](document, options)
    if isinstance(document, Comparison):
        from nsysdiag.comparison.show.registry import RENDERERS as OF_COMPARISONS

        return OF_COMPARISONS[format_name](document, options)
    if isinstance(document, WhatIf):
        from nsysdiag.replay.show.registry import RENDERERS as OF_PREDICTIONS

        return OF_PREDICTIONS[format_name](document, options)

    from nsysdiag.formats.registry import FORMATS

    return FORMATS[format_name].render(document, options)


def _tables_beside(document: Document, path: Path) -> list[tuple[Path, bytes]]:
    """The CSV files beside the main one at `path`."""
    from nsysdiag.formats import csv_
    from nsysdiag.ranks.show import csv_ as ranks_csv

    assert not isinstance(document, Comparison | WhatIf)  # have no CSV
    if isinstance(document, RanksReport):
        main, tables = ranks_csv.MAIN_TABLE, ranks_csv.tables(document)
    else:
        main, tables = csv_.MAIN_TABLE, csv_.tables(document)
    return [(csv_.table_path(path, table), content) for table, content in tables.items() if table != main]


def _summary(document: Document, *, details: bool) -> bytes:
    if sys.stdout is None or not sys.stdout.isatty():
        return _rendered(document, "txt", details=details)
    width = shutil.get_terminal_size().columns
    return _rendered(document, "txt", width=width, color="NO_COLOR" not in os.environ, details=details)


def _write(destination: Destination, files: Files | OutputError, *, force: bool, quiet: bool) -> OutputError | None:
    """Write what was made; returns why that could not be done."""
    from nsysdiag.formats.registry import FORMATS
    from nsysdiag.formats.write import write

    if isinstance(files, OutputError):
        return files
    try:
        for path, content in files:
            if path is None:
                emit(content, FORMATS[destination.format].syntax)
                continue
            write(path, content, force=force)
            if not quiet:
                note(f"wrote {path}")
    except OutputError as error:
        return error
    return None


def _html_files(destinations: Sequence[Destination]) -> list[Path]:
    return [each.path for each in destinations if each.path and each.format == "html"]
