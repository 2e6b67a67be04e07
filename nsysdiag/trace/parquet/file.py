"""One Parquet file: checked by its first and last bytes before anything parses it, then its columns and row groups.

```
file    PAR1 | row groups ........................ | footer | length of the footer | PAR1
```
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from nsysdiag.messages import InputError, printable
from nsysdiag.shortage import is_shortage, memory_short
from nsysdiag.trace.capabilities import has_changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


# The least and the largest number of each column of a row group, from the footer of a Parquet file.
#
# pyarrow tells them too, but ends the process where one is damaged, or where columns are encrypted. The footer is in
# the compact protocol of Thrift: structures of numbered fields, each with the kind of its value. Names are those of
# parquet.thrift.

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


MAGIC, ENCRYPTED = b"PAR1", b"PARE"
_END_BYTES = 8
LEAST_BYTES = 12
"""The magic at both ends, and the length of the footer."""
FOOTER_BYTES = 64 << 20
"""Bytes of all footers of a folder; parsed, they take about ten times as much memory. A footer of nsys has 100 to 200
bytes for each column of each row group: for 100 million rows in groups of 1,000,000 it has 300 KB."""
INSTALL_HINT = "pip install '.[parquet]' in a copy of the repository, or export it again: nsys export --type sqlite"
AGAIN_HINT = "copy it again, or export it again: nsys export --type parquetdir"


class Statistics(Struct, frozen=True):
    """Of an integer column in a row group: the least and the largest value, and how many are NULL."""

    low: int
    high: int
    nulls: int

    @classmethod
    def of(cls, stored: Extremes, *, signed: bool) -> Statistics:
        """From the values as they are stored."""
        low, high = (int.from_bytes(each, "little", signed=signed) for each in stored[:2])
        return cls(low, high, stored[2])


class TableFile(Struct, frozen=True, dict=True):
    """A table: the file, its size and time when it was opened, and what its footer says (pyarrow's FileMetaData)."""

    path: Path
    size_bytes: int
    modified_ns: int
    metadata: Any

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self.metadata.num_rows)

    @cached_property
    def schema(self) -> Any:
        """The columns and their types, as pyarrow's Schema."""
        return self.metadata.schema.to_arrow_schema()

    @cached_property
    def leaves(self) -> list[str]:
        """The paths of the columns as row groups have them; that of one which is not nested is its name."""
        return [self.metadata.schema.column(at).path for at in range(len(self.metadata.schema))]

    @cached_property
    def _extremes(self) -> list[list[Extremes | None]]:
        with self.path.open("rb") as stream:
            stream.seek(self.size_bytes - _END_BYTES)
            size = _footer_size(stream.read(_END_BYTES))
            stream.seek(self.size_bytes - _END_BYTES - size)
            found = extremes(stream.read(size))
        if len(found) != self.metadata.num_row_groups:
            raise ValueError("its list of row groups is damaged")
        return found

    def statistics(self, name: str) -> list[Statistics | None]:
        """Those of a column in each row group; None where the file has none, or the column holds no integers. Raises
        ValueError and OSError."""
        import pyarrow as pa

        kind = self.schema.field(name).type
        if not pa.types.is_integer(kind):
            return [None] * self.metadata.num_row_groups
        at, signed = self.leaves.index(name), pa.types.is_signed_integer(kind)
        found = (columns[at] if at < len(columns) else None for columns in self._extremes)
        return [None if each is None else Statistics.of(each, signed=signed) for each in found]

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """pyarrow's ParquetFile. Raises InputError where the file is damaged."""
        import pyarrow.parquet as pq

        with errors(self.path), self.path.open("rb") as stream:
            yield pq.ParquetFile(stream, metadata=self.metadata, page_checksum_verification=True)

    def changed(self) -> bool:
        """Whether the file is another one than when it was opened."""
        return has_changed(self.path, self.size_bytes, self.modified_ns)


@contextmanager
def errors(path: Path) -> Iterator[None]:
    """Whatever pyarrow says of a damaged file is an InputError."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, LookupError, OverflowError, MemoryError) as error:
        if is_shortage(error):
            raise memory_short(error, f"read '{printable(path)}'") from error
        raise InputError(
            f"'{printable(path)}' cannot be read, it may be corrupt: {_first_line(error)}", hint=AGAIN_HINT
        ) from error


def _first_line(error: BaseException) -> str:
    return printable(str(error).strip().split("\n")[0])[:200]


def table_file(path: Path, most: int) -> TableFile:
    """The table in a file with a footer of at most `most` bytes. Raises InputError for other files, and if pyarrow is
    missing."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            f"'{printable(path.parent)}' is a folder of Parquet files, and pyarrow, which reads them, is not installed",
            hint=INSTALL_HINT,
        ) from error
    status = _checked(path, most)
    with errors(path), path.open("rb") as stream:  # pyarrow takes paths in UTF-8 only
        found = TableFile(path, status.st_size, status.st_mtime_ns, pq.read_metadata(stream))
        names = [name.casefold() for name in found.schema.names]
        rows = [found.metadata.row_group(place).num_rows for place in range(found.metadata.num_row_groups)]
        if min(rows, default=0) < 0 or sum(rows) != found.rows:
            raise ValueError("the row counts of its row groups do not add up to that of its footer")
    if len(set(names)) < len(names):
        raise InputError(f"'{printable(path)}' has two columns of one name", hint=AGAIN_HINT)
    return found


def _footer_size(tail: bytes) -> int:
    return int.from_bytes(tail[:4], "little")


def _checked(path: Path, most: int) -> os.stat_result:
    """The status of a file that begins and ends as a Parquet file does."""
    name = printable(path)
    try:
        status = path.stat()  # before it is opened: a pipe would block
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"'{name}' is not an ordinary file", hint=AGAIN_HINT)
        with path.open("rb") as stream:
            head = stream.read(len(MAGIC))
            stream.seek(max(status.st_size - _END_BYTES, 0))
            tail = stream.read(_END_BYTES)
    except OSError as error:
        raise InputError(
            f"'{name}' cannot be read: {error.strerror}", hint="check the permissions and the disk"
        ) from error
    if ENCRYPTED in (head, tail[4:]):
        raise InputError(f"'{name}' is an encrypted Parquet file", hint="nsys writes none: export it again")
    if head != MAGIC:
        raise InputError(f"'{name}' is not a Parquet file", hint=AGAIN_HINT)
    if status.st_size < LEAST_BYTES or tail[4:] != MAGIC:
        raise InputError(f"'{name}' is a truncated Parquet file ({status.st_size:,} bytes)", hint=AGAIN_HINT)
    footer = _footer_size(tail)
    if footer > status.st_size - LEAST_BYTES:
        raise InputError(f"'{name}' is a damaged Parquet file: its footer is longer than the file", hint=AGAIN_HINT)
    if footer > most:
        raise InputError(
            f"'{name}' is not read: its list of row groups takes {footer:,} bytes, more than {most:,}",
            hint="write it again with larger row groups",
        )
    return status
