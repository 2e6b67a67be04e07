"""Everything that shows a Report: formats chosen by name or by the suffix of a path, and the files of results."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Collection, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.ci.facts import BudgetResult, UnjudgedBudget
from nsysdiag.comparison.facts import Comparison
from nsysdiag.document.names import visible
from nsysdiag.document.one_line import command_of
from nsysdiag.messages import JSON, MARKUP, TEXT, OutputError, UsageError, printable
from nsysdiag.plugins import FORMATS as FORMATS_GROUP
from nsysdiag.plugins import plugins
from nsysdiag.ranks.report import RanksReport
from nsysdiag.record import to_json, value_in
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import Report
from nsysdiag.shortage import Attempt

if TYPE_CHECKING:
    Document = Report | RanksReport | Comparison | WhatIf
    Files = list[tuple[Path | None, bytes]]


class RenderOptions(Struct, frozen=True):
    """`width` (in columns) and `color` are for text. `details` shows all sections instead of the first screen, in text
    and Markdown. `source`, `command` and `created` go to the footer where given. `budgets` were checked on the report,
    `unjudged` are those that it cannot tell; both are for the formats of CI systems. With `comment`, a key, Markdown is
    a comment on a pull request, which holds them too; `accept` has the command that accepts a budget, by its id,
    and `report_url` is where the whole report is.

    Nothing is taken from the clock or the machine: the same report and options give the same bytes.
    """

    width: int = 100
    color: bool = False
    details: bool = False
    source: str | None = None
    command: str | None = None
    created: str | None = None
    budgets: tuple[BudgetResult, ...] = ()
    unjudged: tuple[UnjudgedBudget, ...] = ()
    comment: str | None = None
    report_url: str | None = None
    accept: dict[str, str] = {}


class Format(Struct, frozen=True):
    """One way to write a report. Its `module`, by its place in this package, is imported when it is first asked: a run
    needs few of them. Of its functions `function` writes, and `marker` tells whether the content of a file is ours.
    `syntax` is one of those of `workflow_commands`: how a command in it is broken where the result goes to stdout. One
    that another package `added` names its module in full."""

    name: str
    suffix: str
    title: str
    module: str
    syntax: str
    function: str = "render"
    marker: str = "is_ours"
    added: bool = False

    def render(self, report: Report, options: RenderOptions) -> bytes:
        """The report in this format."""
        return getattr(self._writer(), self.function)(report, options)

    def is_ours(self, data: bytes) -> bool:
        """Does the content of a file carry this format's marker?"""
        return getattr(self._writer(), self.marker)(data)

    def _writer(self) -> ModuleType:
        return import_module(self.module if self.added else f"{__name__}.{self.module}".rstrip("."))


# The formats that a report can be written in. To add one, write its file and name it here.

_KNOWN = (
    Format("html", ".html", "HTML report in one file", "html.page", MARKUP),
    Format("json", ".json", "JSON, the saved report", "", JSON, "render_json", "is_json"),
    Format("md", ".md", "Markdown for tickets", "prose", TEXT, "render_markdown", "is_markdown"),
    Format("txt", ".txt", "text summary", "prose", TEXT, "render_text", "is_text"),
    Format("csv", ".csv", "CSV, the gaps, and one more file for every other table", "tables", TEXT),
    Format("prom", ".prom", "OpenMetrics gauges for a Prometheus textfile collector", "openmetrics", TEXT),
    Format("perfetto", ".perfetto.json", "trace events of the gaps, for ui.perfetto.dev", "viewers", JSON, "perfetto"),
    Format("folded", ".folded", "collapsed stacks of idle time and waits, for flame graphs", "viewers", TEXT, "folded"),
    Format("speedscope", ".speedscope.json", "the same for speedscope.app", "viewers", JSON, "speedscope"),
    Format("junit", ".junit.xml", "JUnit XML, one test case a budget", "batch.ci", MARKUP, "junit_report", "is_junit"),
    Format("sarif", ".sarif", "SARIF 2.1.0 for code scanning", "batch.ci", JSON, "sarif_report", "is_sarif"),
)


def _refused(plugin: Format) -> str:
    taken = any({plugin.name, plugin.suffix} & {known.name, known.suffix} for known in _KNOWN)
    return "its name or suffix is that of another format" if taken else "" if plugin.added else "it is not `added`"


FORMATS = {known.name: known for known in (*_KNOWN, *plugins(FORMATS_GROUP, Format, _refused))}


def format_for(path: str, possible: Collection[str] = FORMATS.keys()) -> str:
    """The name of the format for the suffix of `path`; the longest matching suffix wins.

    Raises UsageError naming the suffixes of the `possible` ones.
    """
    if path.lower().endswith(".gitlab.json"):
        raise UsageError("GitLab's code quality format is gone", hint="write .junit.xml, which GitLab shows as tests")
    fitting = [known for known in FORMATS.values() if path.lower().endswith(known.suffix)]
    if fitting:
        return max(fitting, key=lambda known: len(known.suffix)).name
    suffixes = ", ".join(known.suffix for known in FORMATS.values() if known.name in possible)
    raise UsageError(f"no format has the suffix of '{visible(path)}'", hint=f"the suffixes are: {suffixes}")


def render_json(report: Report, _options: RenderOptions) -> bytes:
    """The report as UTF-8 JSON: the saved form, from which every other one can be made."""
    return to_json(report)


def is_json(data: bytes) -> bool:
    """Does the document name us as its tool?"""
    return bool(value_in(data, "tool", "name") == "nsysdiag")


# The only place that writes result files: all of a file or none of it, and never over a file of others.

IsOurs = Callable[[bytes], bool]
"""Whether the content of a file carries our marker."""
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EFBIG: "the file is too large for the file system",
}


def check(path: Path, *, force: bool, is_ours: IsOurs | None = None) -> None:
    """Raise OutputError if `write` would refuse: no such folder, not a plain file, or not written by nsysdiag.
    `is_ours` judges the content of files other than reports."""
    if _kind(path.parent, follow=True) != stat.S_IFDIR:
        what = "is not a folder" if _kind(path.parent, follow=True) else "does not exist"
        raise OutputError(f"cannot write {_shown(path)}: the folder {_shown(path.parent)} {what}")
    kind = _kind(path, follow=False)
    if kind is None:
        return
    if kind == stat.S_IFDIR:
        raise OutputError(f"cannot write {_shown(path)}: it is a folder", hint="name a file in it")
    if kind not in (stat.S_IFREG, stat.S_IFLNK):
        raise OutputError(f"cannot write {_shown(path)}: it is not a plain file", hint="use '-o -' for stdout")
    if not force:
        _check_replaceable(path, kind, is_ours or partial(_is_ours, path))


def _kind(path: Path, *, follow: bool) -> int | None:
    """The file type bits of what is at `path`, None if nothing is."""
    try:
        return stat.S_IFMT(path.stat(follow_symlinks=follow).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise _failure(path, error) from error


def _check_replaceable(path: Path, kind: int, is_ours: IsOurs) -> None:
    if kind == stat.S_IFLNK:
        raise OutputError(
            f"{_shown(path)} is a symbolic link, which is never followed",
            hint="--force replaces the link itself by a file; what it points to stays as it is",
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _failure(path, error) from error
    if not is_ours(data):
        raise OutputError(
            f"{_shown(path)} exists and was not written by nsysdiag",
            hint="choose another name, or overwrite it with --force",
        )


def _is_ours(path: Path, data: bytes) -> bool:
    try:
        return FORMATS[format_for(str(path))].is_ours(data)
    except UsageError:
        return any(known.is_ours(data) for known in FORMATS.values())


def write(path: Path, data: bytes, *, force: bool, is_ours: IsOurs | None = None) -> None:
    """Put `data` at `path` in one step: readers see the old file or the new one, never a part.

    A symbolic link is never followed; with `force` the link itself is replaced. Raises OutputError, with nothing
    left behind, if the target may not be overwritten or cannot be written.
    """
    check(path, force=force, is_ours=is_ours)
    temporary = path.with_name(f".nsysdiag-{secrets.token_hex(8)}.tmp")
    try:
        _write_new(temporary, data)
        temporary.replace(path)
    except OSError as error:
        raise _failure(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    _sync_folder(path.parent)


def _write_new(path: Path, data: bytes) -> None:
    with path.open("xb") as file:  # x is O_EXCL: whatever is there already, a link too, is left alone
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the new name durable if the system can; the file is complete either way."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _failure(path: Path, error: Exception) -> OutputError:
    number = error.errno if isinstance(error, OSError) else None
    reason = _REASONS.get(number or 0) or (os.strerror(number) if number else str(error))
    return OutputError(f"cannot write {_shown(path)}: {reason}")


def _shown(path: Path) -> str:
    return visible(str(path))


class DocumentKind(Struct, frozen=True):
    """A kind of document: its name, its formats, and its additional CSV tables, None for those of a report."""

    what: str
    formats: Sequence[str]
    tables: Sequence[str] | None = None

    def require(self, format_name: str) -> None:
        """Raise UsageError for a format that it has not."""
        if format_name not in self.formats:
            raise UsageError(
                f"{self.what} cannot be written as {format_name}", hint=f"its formats are: {', '.join(self.formats)}"
            )


REPORT = DocumentKind("a report", [*FORMATS])


OTHERS: dict[type[object], tuple[str, str]] = {
    RanksReport: ("a comparison of ranks", "nsysdiag.ranks.show.registry"),
    Comparison: ("a comparison", "nsysdiag.comparison.show.registry"),
    WhatIf: ("a prediction", "nsysdiag.replay.show.blocks"),
}
"""What the documents other than reports are called, and the modules with their RENDERERS, and TABLES if they have
CSV. They are imported when they are first needed."""


def kind_of(document: Document) -> DocumentKind:
    """What a document is called, and its formats."""
    if type(document) not in OTHERS:
        return REPORT
    what, module = OTHERS[type(document)]
    registry = import_module(module)
    return DocumentKind(what, [*registry.RENDERERS], getattr(registry, "TABLES", ()))


class Destination(Struct, frozen=True):
    """One result: a file, or stdout where `path` is None. `format` is a key of the registry of formats; `tables` names
    the additional CSV files, None for those of a report."""

    path: Path | None
    format: str
    tables: Sequence[str] | None = None

    def files(self) -> list[Path]:
        """Every file that is written: a CSV result has one for each of its tables."""
        if self.path is None:
            return []
        if self.format != "csv":
            return [self.path]
        csv = import_module(f"{__name__}.tables")
        beside = csv.TABLES if self.tables is None else self.tables
        return [self.path, *(csv.table_path(self.path, table) for table in beside)]


def rendered(document: Document, format_name: str, options: RenderOptions | None = None) -> bytes:
    """The document in one of its formats, with the command that makes it."""
    options = replace(options or RenderOptions(), command=command_of(document))
    if isinstance(document, Report):
        return FORMATS[format_name].render(document, options)
    return import_module(OTHERS[type(document)][1]).RENDERERS[format_name](document, options)


def content(document: Document, destination: Destination, options: RenderOptions | None = None) -> Files:
    """The content of stdout, whose path is None, or of the files of a destination. Raises MemoryShortError."""
    with Attempt(f"make '{printable(destination.path or destination.format)}'"):
        data = rendered(document, destination.format, options)
        if destination.path is None or destination.format != "csv":
            return [(destination.path, data)]
        return [(destination.path, data), *_tables_beside(document, destination.path)]


def _tables_beside(document: Document, path: Path) -> list[tuple[Path, bytes]]:
    """The additional CSV files of the main one at `path`."""
    csv = import_module(f"{__name__}.tables")
    own = import_module(OTHERS[type(document)][1]) if type(document) in OTHERS else csv
    made: dict[str, bytes] = own.tables(document)
    return [(csv.table_path(path, table), data) for table, data in made.items() if table != own.MAIN_TABLE]


def save(document: Document, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a document to `path` in the format of its suffix; CSV writes one more file for each further table.

    Raises UsageError for a suffix of no format, or of an unsupported one. Raises OutputError for a file that cannot be
    written, or that nsysdiag did not write and that needs `force`. All files are checked and made before the first is
    written."""
    kind, name = kind_of(document), os.fsdecode(path)
    destination = Destination(Path(name), format_for(name, kind.formats), kind.tables)
    kind.require(destination.format)
    for each in destination.files():
        check(each, force=force)
    for file, data in content(document, destination):
        assert file is not None
        write(file, data, force=force)
