"""The least and the largest number of each column of a row group, from the footer of a Parquet file.

pyarrow tells them too, but ends the process where one is damaged, or where columns are encrypted. The footer is in the
compact protocol of Thrift: structures of numbered fields, each with the kind of its value. Names are those of
parquet.thrift.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_NUMBERS = (4, 5, 6)
_ROW_GROUPS = 4
_COLUMNS = 1
_META_DATA = 3
_TYPE, _STATISTICS = 1, 12
_NULL_COUNT, _MAX_VALUE, _MIN_VALUE = 3, 5, 6
_BYTES = {1: 4, 2: 8}
"""Of a value of INT32 and of INT64."""

Item = TypeVar("Item")
Extremes = tuple[bytes, bytes, int]
"""The least and the largest value as they are stored, and how many are NULL."""


def extremes(footer: bytes) -> list[list[Extremes | None]]:
    """Of each row group, of each column in order; None where the file does not tell, or not of whole numbers.

    Raises ValueError where the footer is damaged."""
    try:
        return _listed(_Reader(footer), _ROW_GROUPS, lambda group: _listed(group, _COLUMNS, _column))
    except (IndexError, RecursionError) as error:
        raise ValueError("its list of row groups is damaged") from error


def _listed(reader: _Reader, field: int, read: Callable[[_Reader], Item]) -> list[Item]:
    """The items of the list of structures in one field of a structure; empty without that field."""
    found: list[Item] = []
    for number, kind in reader.fields():
        if (number, kind) == (field, _LIST):
            found = [read(reader) for _ in reader.structures()]
        else:
            reader.skip(kind)
    return found


def _column(reader: _Reader) -> Extremes | None:
    found = None
    for number, kind in reader.fields():
        if (number, kind) == (_META_DATA, _STRUCT):
            found = _column_metadata(reader)
        else:
            reader.skip(kind)
    return found


def _column_metadata(reader: _Reader) -> Extremes | None:
    size, found = 0, None
    for number, kind in reader.fields():
        if number == _TYPE and kind in _NUMBERS:
            size = _BYTES.get(reader.signed(), 0)
        elif (number, kind) == (_STATISTICS, _STRUCT):
            found = _statistics(reader)
        else:
            reader.skip(kind)
    return found if found is not None and 0 < size == len(found[0]) == len(found[1]) else None


def _statistics(reader: _Reader) -> Extremes | None:
    low = high = nulls = None
    for number, kind in reader.fields():
        if (number, kind) == (_MIN_VALUE, _BINARY):
            low = reader.binary()
        elif (number, kind) == (_MAX_VALUE, _BINARY):
            high = reader.binary()
        elif number == _NULL_COUNT and kind in _NUMBERS:
            nulls = reader.signed()
        else:
            reader.skip(kind)
    return None if low is None or high is None or nulls is None else (low, high, nulls)


class _Reader:
    """Reads values one after the other. Raises IndexError at the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._data[self._at]) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            self._at += 1
        self._at += 1
        return value | byte << shift

    def signed(self) -> int:
        """A whole number."""
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        """Bytes with their length before them."""
        size = self._unsigned()
        self._pass(size)
        return self._data[self._at - size : self._at]

    def _pass(self, size: int) -> None:
        self._at += size
        if self._at > len(self._data):
            raise IndexError

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and kind of each field of a structure; the caller reads or skips each."""
        number = 0
        while head := self._data[self._at]:
            self._at += 1
            number = number + (head >> 4) if head >> 4 else self.signed()
            yield number, head & 0xF
        self._at += 1

    def _items(self) -> tuple[int, int]:
        """Kind and number of the items of a list."""
        head = self._data[self._at]
        self._at += 1
        return head & 0xF, head >> 4 if head >> 4 < 0xF else self._unsigned()

    def structures(self) -> range:
        """The items of a list of structures, each of which the caller reads."""
        kind, count = self._items()
        if kind != _STRUCT:
            raise IndexError
        return range(count)

    def skip(self, kind: int) -> None:
        """Pass over a value."""
        data = self._data
        if kind in _NUMBERS:
            while data[self._at] & 0x80:
                self._at += 1
            self._at += 1
        elif kind == _BINARY:
            self.binary()
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind in (_LIST, _SET):
            inner, count = self._items()
            for _ in range(count):
                self._skip_item(inner)
        elif kind == _MAP:
            count = self._unsigned()
            kinds = data[self._at] if count else 0
            self._at += count > 0
            for _ in range(count):
                self._skip_item(kinds >> 4)
                self._skip_item(kinds & 0xF)
        elif kind in (_BYTE, _DOUBLE):
            self._pass(1 if kind == _BYTE else 8)
        elif kind not in (_TRUE, _FALSE):
            raise IndexError

    def _skip_item(self, kind: int) -> None:
        """A truth takes a byte in a list; as a field it is its kind."""
        self.skip(_BYTE if kind in (_TRUE, _FALSE) else kind)
