"""Tables of plain values: a column is declared once, with how its cells are found in a row.

Where a table shows records, the columns are their fields, with names and kinds from the record:

    columns(CopyRow, "operation source_memory=src count total_ns")     some, under another name where that is given
    columns(ApiRow)                                                    all, in their order
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.fields import fields_of, leaves_at, value_at

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Report


Row = TypeVar("Row")
Source = TypeVar("Source")
Cell = str | int | float | bool | None
Kind = Literal["text", "integer", "integer or none", "number", "truth"]
_KINDS: dict[Any, Kind] = {str: "text", int: "integer", float: "number", bool: "truth"}
_NONE = type(None)


class RecordColumn(Struct, Generic[Row], frozen=True):
    """A column, what its cells hold, and how a row gives its cell. Text, numbers and truths may be None, integers only
    where their kind says so."""

    name: str
    kind: Kind
    cell: Callable[[Row], Cell]


class RecordTable(Struct, Generic[Source, Row], frozen=True):
    """A table of a report: its rows are found in the `Source`."""

    name: str
    columns: tuple[RecordColumn[Row], ...]
    rows: Callable[[Source], Iterable[Row]]

    @property
    def header(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    def cells(self, source: Source) -> Iterator[list[Cell]]:
        """The cells of every row, in the order of the columns."""
        for row in self.rows(source):
            yield [column.cell(row) for column in self.columns]


def columns(record: type[Row], names: str = "") -> tuple[RecordColumn[Row], ...]:
    """Columns that show fields of a record or named tuple, all of them unless `names` are given. `calls=churn.calls` is
    a field of the record in the field `churn`, None if that is None. Raises TypeError for a field without a plain
    value."""
    kind: type = record
    pairs = [name.partition("=") for name in names.split() or fields_of(kind)]
    return tuple(_of_path(kind, name, path or name) for name, _, path in pairs)


def of_devices(
    name: str, shown: tuple[RecordColumn[Row], ...], rows: Callable[[DeviceReport], Iterable[Row]]
) -> RecordTable[Report, Any]:
    """A table of all devices: the key of its device comes first in each row."""
    key = RecordColumn[Any]("device", "text", lambda pair: pair[0])
    return RecordTable(
        name,
        (key, *(_of_second(column) for column in shown)),
        lambda report: ((device.key, row) for device in report.devices for row in rows(device)),
    )


def _of_second(column: RecordColumn[Any]) -> RecordColumn[Any]:
    cell = column.cell
    return replace(column, cell=lambda pair: cell(pair[1]))


def _of_path(record: type, name: str, path: str) -> RecordColumn[Any]:
    kinds = {leaf.kind for leaf in leaves_at(record, path)}
    missing = _NONE in kinds
    kind: Kind | None = _KINDS.get(*(kinds - {_NONE})) if len(kinds) == 1 + missing else None
    if kind is None:
        raise TypeError(f"{record.__name__}.{path} is no plain value: give a function for its cells")
    if kind == "integer" and missing:
        kind = "integer or none"
    return RecordColumn(name, kind, lambda row: value_at(row, path))
