"""Where results go: reads -o and --format, and finds out what cannot be written before the work starts."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nsysdiag.errors import OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Destination:
    """One result: a file, or stdout where `path` is None. `format` is a key of the registry of formats; `tables` names
    the files beside a CSV file, None for those of a report."""

    path: Path | None
    format: str
    tables: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """What is written: what it is called, the formats that it has, and the tables beside a CSV file, None for those of
    a report."""

    what: str
    formats: Sequence[str]
    tables: Sequence[str] | None = None


def plan(
    outputs: Sequence[str], format_name: str | None, default_stem: str, kind: Kind | None = None
) -> list[Destination]:
    """The destinations that the options ask for; without -o, one file in the current folder. None is the kind of a
    report.

    Raises UsageError for an unknown format or one that the kind has not, '-' without a format, a format that nothing
    uses, or one place named twice.
    """
    kind = kind or Kind("a report", _formats())
    _require_known(format_name, kind)
    if not outputs:
        found = [_default(default_stem, format_name or "html")]
    else:
        found = [_destination(output, format_name, kind) for output in outputs]
        _refuse_unused_format(outputs, format_name)
    _require_formats(found, kind)
    _refuse_repeats(found)
    return [replace(each, tables=kind.tables) for each in found]


def _default(stem: str, format_name: str) -> Destination:
    from nsysdiag.formats.registry import FORMATS

    return Destination(Path(f"{stem}.nsysdiag{FORMATS[format_name].suffix}"), format_name)


def _destination(output: str, format_name: str | None, kind: Kind) -> Destination:
    if output == STDOUT:
        if format_name is None:
            raise UsageError("'-o -' needs a format", hint=f"add --format with one of {', '.join(kind.formats)}")
        return Destination(None, format_name)
    return Destination(Path(output), _format_of(output, format_name, kind))


def _format_of(output: str, format_name: str | None, kind: Kind) -> str:
    from nsysdiag.formats.registry import format_for

    try:
        return format_for(output, kind.formats)
    except UsageError:
        if format_name is None:
            raise
        return format_name


def _formats() -> list[str]:
    from nsysdiag.formats.registry import FORMATS

    return list(FORMATS)


def _require_formats(destinations: Sequence[Destination], kind: Kind) -> None:
    for destination in destinations:
        if destination.format not in kind.formats:
            raise UsageError(
                f"{kind.what} cannot be written as {destination.format}",
                hint=f"its formats are: {', '.join(kind.formats)}",
            )


def _require_known(format_name: str | None, kind: Kind) -> None:
    if format_name is not None and format_name not in _formats():
        raise UsageError(f"unknown format '{format_name}'", hint=f"the formats are: {', '.join(kind.formats)}")


def _refuse_unused_format(outputs: Sequence[str], format_name: str | None) -> None:
    if format_name is None or any(_takes_format(output) for output in outputs):
        return
    raise UsageError(
        f"--format {format_name} is used by no output: the suffix of {outputs[0]} picks its format",
        hint="leave --format out, or add '-o -' to have that format on stdout",
    )


def _takes_format(output: str) -> bool:
    from nsysdiag.formats.registry import format_for

    if output == STDOUT:
        return True
    try:
        format_for(output)
    except UsageError:
        return True
    return False


def _refuse_repeats(destinations: Sequence[Destination]) -> None:
    seen: set[Path | None] = set()
    for destination in destinations:
        places = {path.absolute() for path in files_of(destination)} if destination.path else {None}
        if twice := places & seen:
            raise UsageError(f"two outputs go to {twice.pop() or 'stdout'}", hint="name each once")
        seen |= places


def check(destinations: Sequence[Destination], source: Path | None, *, force: bool) -> None:
    """Raise OutputError for the first destination that cannot be written, or is the input itself."""
    for destination in destinations:
        for path in files_of(destination):
            check_file(path, source, force=force)


def files_of(destination: Destination) -> list[Path]:
    """Every file that a destination stands for: a CSV result has one for each of its tables."""
    from nsysdiag.formats.csv_ import TABLES, table_path

    if destination.path is None:
        return []
    if destination.format != "csv":
        return [destination.path]
    beside = TABLES if destination.tables is None else destination.tables
    return [destination.path, *(table_path(destination.path, table) for table in beside)]


def check_file(path: Path, source: Path | None, *, force: bool, is_ours: Callable[[bytes], bool] | None = None) -> None:
    """Raise OutputError where one file cannot be written, is the input itself, or is not ours to overwrite."""
    from nsysdiag.formats.write import check as check_target

    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise OutputError(f"{path} is the input itself", hint="choose another -o PATH")
    check_target(path, force=force, is_ours=is_ours)
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"cannot write {path}: the folder {path.parent} is read-only")
