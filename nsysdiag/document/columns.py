"""Tables of plain values: a column is declared once, with how its cells are found in a row.

Where a table shows records, the columns are their fields, with names and kinds from the record:

    columns(CopyRow, "operation source_memory=src count total_ns")     some, under another name if that is given
    columns(ApiRow)                                                    all, in their order
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import units
from nsysdiag.document.words import instant
from nsysdiag.fields import fields_of, leaves_at, value_at

if TYPE_CHECKING:
    from nsysdiag.report import DeviceReport, Report


# What a cell holds: its unit, and how every format writes it. Cells stay numbers until a renderer formats them.

MISSING = "–"
"""What stands for None."""


class CellKind(Struct, frozen=True):
    """How values of one unit are written: `show` for readers, `exact` with all digits. `right` ones are aligned as
    numbers, and sorted by value."""

    id: str
    show: Callable[[Any], str] = str
    exact: Callable[[Any], str] | None = None
    right: bool = True

    def text(self, value: object) -> str:
        """A value as text, a dash for None."""
        return MISSING if value is None else self.show(value)


class StatusMark(Struct, frozen=True):
    """A judgement as a sign and words, so that colour is not all that says it; `tone` names a colour of the theme."""

    icon: str
    word: str
    tone: str


def share_of(whole: float) -> CellKind:
    """int, ns: shown as its share of the whole"""
    return CellKind("share", lambda ns: units.format_share(ns, whole), units.format_exact_ns)


def money(currency: str) -> CellKind:
    """Amounts of one currency."""
    return CellKind("money", lambda amount: units.format_money(amount, currency))


TIME = CellKind("time", units.format_ns, units.format_exact_ns)
"""int, ns"""
MOMENT = CellKind("moment", instant, units.format_exact_ns)
"""int, ns of the trace's clock"""
DEPTH = CellKind("depth", lambda depth: units.format_count(depth) if isinstance(depth, int) else f"{depth:,.1f}")
"""int, or float if it is a mean of counts"""
SHARE = CellKind("share", lambda share: units.format_share(share, 1))
"""float, 1 for all"""
COUNT = CellKind("count", units.format_count)
"""int"""
INDEX = CellKind("index")
"""int, the number of a row"""
BYTES = CellKind("bytes", units.format_bytes)
"""int or float"""
RATE = CellKind("rate", units.format_rate)
"""float, bytes a second"""
RATIO = CellKind("ratio", lambda ratio: f"{ratio:,.2f}")
"""float"""
FIGURE = CellKind("figure")
"""str, aligned like a number"""
TEXT = CellKind("text", right=False)
"""str, or a sentence in parts"""
NAME = CellKind("name", right=False)
"""str or Name, from the trace"""
KEY = CellKind("key", right=False)
"""LegendEntry: a label with its colour"""
PARTS = CellKind(
    "parts", lambda parts: ", ".join(f"{entry.label} +{units.format_ns(ns)}" for entry, ns in parts), right=False
)
"""tuples of a LegendEntry and ns: what something has more of"""
SIDE = CellKind("side", lambda ns: units.format_ns(ns) if ns else MISSING, units.format_exact_ns)
"""int, ns, of one of two sides"""
SIGNED = CellKind("change", lambda ns: units.format_signed_ns(ns) if ns else MISSING, units.format_exact_ns)
"""int, ns, the difference of two sides"""
MARK = CellKind("mark", lambda mark: f"{mark.icon} {mark.word}", right=False)
"""Mark"""
KEYS = CellKind("keys", lambda entries: " → ".join(entry.label for entry in entries), right=False)
"""LegendEntry objects, of which each became the next"""
TIMES = CellKind(
    "times", lambda parts: ", ".join(f"{entry.label} {units.format_ns(ns)}" for entry, ns in parts), right=False
)
"""tuples of a LegendEntry and ns: what a time divides into"""
STACK = CellKind("stack", lambda stack: stack.said, right=False)
"""Stack, a stacked bar"""
SPARK = CellKind("spark", lambda spark: spark.said)
"""Spark, a small line"""
CODE = CellKind("code", right=False)
"""str, for a computer: an option, a checksum"""
HERTZ = CellKind("hertz", units.format_hertz)
"""float"""
BAR = CellKind("bar", lambda _share: "", right=False)
"""float, 1 for a full bar"""


OF_RUNS = {"Mean": "mean_ns", "Median": "median_ns", "Shortest": "min_ns", "Longest": "max_ns"}
"""Titles of columns, and the fields of a record about many runs, or calls, that they show."""


def part(some: float | None, whole: float | None) -> float | None:
    """A share; None of nothing, and of what is not known."""
    return some / whole if some is not None and whole else None


def part_of(path: str, whole: float) -> Callable[[object], float | None]:
    """The share of the field at a path of a record; None of nothing, and if the field is None."""
    return lambda record: part(value_at(record, path), whole)


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


def columns(record: type[Row], names: str = "", at: str = "") -> tuple[RecordColumn[Row], ...]:
    """Columns that show fields of a record or named tuple, all of them unless `names` are given. `calls=churn.calls` is
    a field of the record in the field `churn`, None if that is None; paths begin `at` a field if that is given. Raises
    TypeError for a field without a plain value."""
    kind: type = record
    pairs = [name.partition("=") for name in names.split() or fields_of(kind)]
    return tuple(_of_path(kind, name, f"{at}.{path or name}".lstrip(".")) for name, _, path in pairs)


def of_devices(
    name: str, shown: tuple[RecordColumn[Row], ...], rows: Callable[[DeviceReport], Iterable[Row]] | str
) -> RecordTable[Report, Any]:
    """A table of all devices: the key of its device comes first in each row. `rows` may be the path of a list in the
    device, or of the only row; there are none where that is None."""
    found = partial(rows_at, path=rows) if isinstance(rows, str) else rows
    key = RecordColumn[Any]("device", "text", lambda pair: pair[0])
    return RecordTable(
        name,
        (key, *(_of_second(column) for column in shown)),
        lambda report: ((device.key, row) for device in report.devices for row in found(device)),
    )


def rows_at(record: object, path: str) -> Sequence[Any]:
    """The records in a list at a path, or the one that is there; none where that is None."""
    held = value_at(record, path)
    return held if isinstance(held, list) else () if held is None else (held,)


def _of_second(column: RecordColumn[Any]) -> RecordColumn[Any]:
    cell = column.cell
    return replace(column, cell=lambda pair: cell(pair[1]))


def _of_path(record: type, name: str, path: str) -> RecordColumn[Any]:
    kinds = {leaf.kind for leaf in leaves_at(record, path)}
    missing = _NONE in kinds
    kind: Kind | None = _KINDS.get(*(kinds - {_NONE})) if len(kinds) == 1 + missing else None
    if kind is None:
        raise TypeError(f"{record.__name__}.{path} is not a plain value: give a function for its cells")
    if kind == "integer" and missing:
        kind = "integer or none"
    return RecordColumn(name, kind, lambda row: value_at(row, path))
