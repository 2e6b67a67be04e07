"""Where results go: -o and --format as destinations, checked before the work starts, and written after it."""

from __future__ import annotations

import os
import shutil
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from nsysdiag.cli.console import complain, emit, note
from nsysdiag.formats.documents import REPORT, Destination, DocumentKind, content, rendered
from nsysdiag.formats.format import FORMATS, RenderOptions, format_for
from nsysdiag.formats.write import check, write
from nsysdiag.messages import TEXT, OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsysdiag.ci.budgets import Judgement
    from nsysdiag.formats.documents import Document, Files

STDOUT = "-"


def plan(
    outputs: Sequence[str] | None,
    format_name: str | None,
    default_stem: str,
    kind: DocumentKind | None = None,
    *,
    inputs: Sequence[Path] = (),
    force: bool,
    open_html: bool = False,
) -> list[Destination]:
    """The destinations of the options; without -o, one file in the current folder.

    Kind None means a report. Raises UsageError for an unknown or unsupported format, '-' without a format, an unused
    format, one path given twice, or --open without an HTML file. Raises OutputError for a file that cannot be written,
    is one of the `inputs`, or was not written by nsysdiag.
    """
    kind = kind or REPORT
    if format_name is not None and format_name not in FORMATS:
        raise UsageError(f"unknown format '{format_name}'", hint=f"the formats are: {', '.join(kind.formats)}")
    if outputs:
        found = [_destination(output, format_name, kind) for output in outputs]
        _require_use(format_name, outputs)
    else:
        chosen = format_name or "html"
        found = [Destination(Path(f"{default_stem}.nsysdiag{FORMATS[chosen].suffix}"), chosen, kind.tables)]
    for each in found:
        kind.require(each.format)
    _refuse_repeats(found)
    if open_html and not _html_files(found):
        raise UsageError("--open needs an HTML report", hint="add -o report.html")
    for source in inputs or (None,):
        for path in [path for each in found for path in each.files()]:
            check_file(path, source, force=force)
    return found


def _destination(output: str, format_name: str | None, kind: DocumentKind) -> Destination:
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
    if format_name is None or STDOUT in outputs:
        return
    try:
        for output in outputs:
            format_for(output)
    except UsageError:
        return
    raise UsageError(
        f"--format {format_name} is not used: the suffix of {outputs[0]} picks its format",
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
    comment: str | None = None,
    report_url: str | None = None,
    accept: Mapping[str, str] | None = None,
) -> None:
    """Print the text summary to stdout unless that is taken or `quiet`, and write every destination. `judged` is what
    became of the budgets of a report; with `details` text and Markdown hold all sections. `comment` is the key of a
    comment, which Markdown is then. It links to `report_url`, and has the commands of `accept`, which accept a budget,
    by its id.

    Exits with the code of an unwritable output (2) after the others have been written. All are made before the first
    is written: where memory runs out, which is a MemoryShortError, there is none.
    """
    options = RenderOptions(
        details=details,
        budgets=tuple(judged.results) if judged else (),
        unjudged=tuple(judged.unjudged) if judged else (),
        comment=comment,
        report_url=report_url,
        accept=dict(accept or {}),
    )
    made = [(each, _made(document, each, options)) for each in destinations]
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


def _made(document: Document, destination: Destination, options: RenderOptions) -> Files | OutputError:
    """The content of stdout, whose path is None, or of the files of a destination; or why there is none."""
    try:
        return content(document, destination, options)
    except OutputError as error:
        return error


def _summary(document: Document, *, details: bool) -> bytes:
    return rendered(document, "txt", for_stdout(details=details))


def for_stdout(*, details: bool = False) -> RenderOptions:
    """How text is written to stdout: as wide as the terminal and with colours where it is one."""
    if sys.stdout is None or not sys.stdout.isatty():
        return RenderOptions(details=details)
    width = shutil.get_terminal_size().columns
    return RenderOptions(width=width, color="NO_COLOR" not in os.environ, details=details)


def _write(destination: Destination, files: Files | OutputError, *, force: bool, quiet: bool) -> OutputError | None:
    """Write what was made; returns why that could not be done."""
    if isinstance(files, OutputError):
        return files
    try:
        for path, data in files:
            if path is None:
                emit(data, FORMATS[destination.format].syntax)
                continue
            write(path, data, force=force)
            if not quiet:
                note(f"wrote {path}")
    except OutputError as error:
        return error
    return None


def _html_files(destinations: Sequence[Destination]) -> list[Path]:
    return [each.path for each in destinations if each.path and each.format == "html"]
