"""Any document in any of its formats: a report of one trace or of ranks, a comparison, or a prediction."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.comparison.facts import Comparison
from nsysdiag.document.one_line import command_of
from nsysdiag.formats.format import FORMATS, RenderOptions, format_for
from nsysdiag.formats.write import check, write
from nsysdiag.messages import UsageError, printable
from nsysdiag.ranks.report import RanksReport
from nsysdiag.replay.facts import WhatIf
from nsysdiag.shortage import Attempt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.report import Report

    Document = Report | RanksReport | Comparison | WhatIf
    Files = list[tuple[Path | None, bytes]]


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
    WhatIf: ("a prediction", "nsysdiag.replay.show.registry"),
}
"""What the documents other than reports are called, and the modules with their RENDERERS, and TABLES where they have
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
        from nsysdiag.formats.csv_ import TABLES, table_path

        beside = TABLES if self.tables is None else self.tables
        return [self.path, *(table_path(self.path, table) for table in beside)]


def rendered(document: Document, format_name: str, options: RenderOptions | None = None) -> bytes:
    """The document in one of its formats, with the command that makes it."""
    options = replace(options or RenderOptions(), command=command_of(document))
    if isinstance(document, RanksReport | Comparison | WhatIf):
        made: bytes = import_module(OTHERS[type(document)][1]).RENDERERS[format_name](document, options)
        return made
    return FORMATS[format_name].render(document, options)


def content(document: Document, destination: Destination, options: RenderOptions | None = None) -> Files:
    """The content of stdout, whose path is None, or of the files of a destination. Raises MemoryShortError."""
    with Attempt(f"make '{printable(destination.path or destination.format)}'"):
        data = rendered(document, destination.format, options)
        if destination.path is None or destination.format != "csv":
            return [(destination.path, data)]
        return [(destination.path, data), *_tables_beside(document, destination.path)]


def _tables_beside(document: Document, path: Path) -> list[tuple[Path, bytes]]:
    """The additional CSV files of the main one at `path`."""
    from nsysdiag.formats import csv_
    from nsysdiag.ranks.show import registry as ranks_csv

    assert not isinstance(document, Comparison | WhatIf)  # have no CSV
    if isinstance(document, RanksReport):
        main, tables = ranks_csv.MAIN_TABLE, ranks_csv.tables(document)
    else:
        main, tables = csv_.MAIN_TABLE, csv_.tables(document)
    return [(csv_.table_path(path, table), made) for table, made in tables.items() if table != main]


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
