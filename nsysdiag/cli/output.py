"""Where results go: -o and --format as destinations, checked before the work starts and written after it; and what
becomes of budgets on the streams, with the exit codes that follow."""

from __future__ import annotations

import os
import shutil
import sys
import webbrowser
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec import Struct

from nsysdiag.ci.facts import FAIL, IGNORE, WARN
from nsysdiag.cli import options
from nsysdiag.cli.console import BROKEN_BUDGET, complain, emit, emit_text
from nsysdiag.cli.settings import changes_analysis, say_found, say_unpriced
from nsysdiag.formats import (
    FORMATS,
    REPORT,
    Destination,
    DocumentKind,
    RenderOptions,
    check,
    content,
    format_for,
    rendered,
    write,
)
from nsysdiag.messages import JSON, TEXT, OutputError, UsageError, note, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsysdiag.ci.budgets import Budget, Judgement
    from nsysdiag.ci.facts import BudgetResult, UnjudgedBudget
    from nsysdiag.cli.settings import FromFile
    from nsysdiag.config.settings import Settings
    from nsysdiag.formats import Document, Files
    from nsysdiag.report import Report


STDOUT = "-"


def plan(
    out: options.Outputs, default_stem: str, kind: DocumentKind | None = None, *, inputs: Sequence[Path] = ()
) -> list[Destination]:
    """The destinations of the options; without -o, one file in the current folder.

    Kind None means a report. Raises UsageError for an unknown or unsupported format, '-' without a format, an unused
    format, one path given twice, or --open without an HTML file. Raises OutputError for a file that cannot be written,
    is one of the `inputs`, or was not written by nsysdiag.
    """
    kind = kind or REPORT
    outputs, format_name = out.output, out.format_name
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
    if out.open_html and not _html_files(found):
        raise UsageError("--open needs an HTML report", hint="add -o report.html")
    for source in inputs or (None,):
        for path in [path for each in found for path in each.files()]:
            check_file(path, source, force=out.force)
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
    """Raise UsageError if the suffix of every output picks another format."""
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
    """Raise OutputError if one file cannot be written, is the input itself, or is not ours to overwrite."""
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise OutputError(f"{path} is the input itself", hint="choose another -o PATH")
    check(path, force=force, is_ours=is_ours)
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"cannot write {path}: the folder {path.parent} is read-only")


def write_all(
    document: Document,
    destinations: Sequence[Destination],
    out: options.Outputs,
    *,
    summary: bool = True,
    judged: Judgement | None = None,
    comment: str | None = None,
    report_url: str | None = None,
    accept: Mapping[str, str] | None = None,
) -> None:
    """Print the text summary to stdout unless that is taken or it is to be quiet, and write every destination. `judged`
    is what became of the budgets of a report. `comment` is the key of a comment, which Markdown is then. It links to
    `report_url`, and has the commands of `accept`, which accept a budget, by its id.

    Exits with the code of an unwritable output (2) after the others have been written. All are made before the first
    is written: if memory runs out, which is a MemoryShortError, there is none.
    """
    rendering = RenderOptions(
        details=out.details,
        budgets=tuple(judged.results) if judged else (),
        unjudged=tuple(judged.unjudged) if judged else (),
        comment=comment,
        report_url=report_url,
        accept=dict(accept or {}),
    )
    made = [(each, _made(document, each, rendering)) for each in destinations]
    if summary and not out.quiet and all(each.path for each in destinations):
        emit(rendered(document, "txt", for_stdout(details=out.details)), TEXT)
    failures = [error for each, files in made if (error := _write(each, files, out))]
    for error in failures:
        complain(error.message, error.hint)
    for path in _html_files(destinations) if out.open_html else ():
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


def for_stdout(*, details: bool = False) -> RenderOptions:
    """How text is written to stdout: as wide as the terminal and with colours if it is one."""
    if sys.stdout is None or not sys.stdout.isatty():
        return RenderOptions(details=details)
    width = shutil.get_terminal_size().columns
    return RenderOptions(width=width, color="NO_COLOR" not in os.environ, details=details)


def _write(destination: Destination, files: Files | OutputError, out: options.Outputs) -> OutputError | None:
    """Write what was made; returns why that could not be done."""
    if isinstance(files, OutputError):
        return files
    try:
        for path, data in files:
            if path is None:
                emit(data, FORMATS[destination.format].syntax)
                continue
            write(path, data, force=out.force)
            if not out.quiet:
                note(f"wrote {path}")
    except OutputError as error:
        return error
    return None


def _html_files(destinations: Sequence[Destination]) -> list[Path]:
    return [each.path for each in destinations if each.path and each.format == "html"]


# What becomes of budgets on the streams, and the exit codes that follow.


def say_what_mattered(file: FromFile, settings: Settings, judged: Judgement) -> None:
    """With --quiet, name an automatically found settings file if it may have changed a verdict, or its budgets are
    broken or cannot be judged."""
    sources = {budget.source for budget in file.budgets}
    outcomes = {each.source for each in judged.results if each.broken}
    outcomes |= {each.source for each in judged.unjudged if each.outcome != IGNORE}
    say_found(file, settings=changes_analysis(file.settings, settings), budgets=bool(sources & outcomes))


def say_broken(result: BudgetResult, more: str = "", *, to_stdout: bool, of: str = "") -> None:
    """One line for a broken budget: `of` which input, and `more` about it. One that fails is a result, and so goes to
    stdout if that is free."""
    line = f"{result.level}: {of}{result.sentence} ({result.source}){more if result.level == FAIL else ''}"
    if to_stdout and result.level == FAIL:
        emit_text(f"{printable(line)}\n")
    else:
        note(line)


def say_unjudged(budget: UnjudgedBudget) -> None:
    """That it could not be judged, as an error or as a warning, or nothing."""
    if budget.outcome == FAIL:
        complain(budget.error, budget.hint)
    elif budget.outcome == WARN:
        note(f"{WARN}: {budget.error}")


@contextmanager
def concluding(
    judged: Judgement,
    file: FromFile,
    settings: Settings,
    *,
    quiet: bool,
    to_stdout: bool,
    against: Callable[[BudgetResult], str] = lambda _result: "",
) -> Iterator[None]:
    """After the outputs, print one line for each budget that is broken or could not be judged, even with --quiet. Lines
    on budgets of an automatically found settings file have its name. `against` says what a broken one was compared
    with. Failures go to stdout if that is free, all else to stderr.

    Then exits with 2 if a budget that fails could not be judged, with 1 if one is broken that fails.
    """
    try:
        yield
    finally:
        if quiet:
            say_what_mattered(file, settings, judged)
        for result in [each for each in judged.results if each.broken]:
            say_broken(result, against(result), to_stdout=to_stdout)
        for budget in judged.unjudged:
            say_unjudged(budget)
    if any(budget.outcome == FAIL for budget in judged.unjudged):
        raise typer.Exit(UsageError.exit_code)
    if any(result.broken and result.level == FAIL for result in judged.results):
        raise typer.Exit(BROKEN_BUDGET)


# What becomes of the report of one trace: its budgets are judged, and it is written as the options say.


class Answered(Struct, frozen=True):
    """The subjects of --json, and how many items of each list."""

    subjects: list[str]
    limit: int


class Wanted(Struct, frozen=True):
    """What the options ask for, checked before the work. `budgets` are those of options, `file` holds its own."""

    settings: Settings
    file: FromFile
    budgets: Sequence[Budget]
    destinations: Sequence[Destination]
    out: options.Outputs
    unjudged: str = FAIL
    comment: str | None = None
    answer: Answered | None = None


def conclude(report: Report, trace: str, wanted: Wanted) -> None:
    """Write the report of this trace. Exits with 1 if a failing budget is broken, with 2 if one could not be judged or
    an output could not be written. Raises UsageError for a redacted report that is to be redacted."""
    from nsysdiag.ci.budgets import Judgement, judge
    from nsysdiag.ci.budgets import check as check_budgets

    budgets = [*wanted.budgets, *wanted.file.budgets]
    judged = judge(budgets, lambda budget: check_budgets(report, [budget], trace), wanted.unjudged)
    shown = options.redacted_for(report, redact=wanted.out.redact)
    if not wanted.out.quiet:
        say_unpriced(shown, wanted.settings)
    public = Judgement() if wanted.out.redact else judged  # the expressions of budgets may hold names of the trace
    answer = wanted.answer
    free = not wanted.out.quiet and answer is None and all(each.path for each in wanted.destinations)
    with concluding(judged, wanted.file, wanted.settings, quiet=wanted.out.quiet, to_stdout=free):
        if answer is not None:
            _emit_answer(shown, answer)
        write_all(shown, wanted.destinations, wanted.out, summary=answer is None, judged=public, comment=wanted.comment)


def _emit_answer(report: Report, asked: Answered) -> None:
    """The answer in one line."""
    import json

    from nsysdiag.queries.answers import answer

    found = answer(report, asked.subjects, asked.limit)
    emit(f"{json.dumps(found, ensure_ascii=False, separators=(',', ':'))}\n".encode("utf-8", "backslashreplace"), JSON)
