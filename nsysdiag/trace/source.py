"""The file of a trace: found, recognized, and made readable without writing next to it."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import struct
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from nsysdiag import typed
from nsysdiag.fields import Sentence
from nsysdiag.messages import InputError, OutputError, printable
from nsysdiag.process import private_folder
from nsysdiag.trace.capabilities import add_ends, has_changed, sha256_of
from nsysdiag.trace.catalog import Connections, immutable_uri
from nsysdiag.trace.format import EXPORT_HINT, Conversion, refused
from nsysdiag.trace.formats import check_regular_file, format_of
from nsysdiag.trace.parquet.folder import ParquetFolder
from nsysdiag.trace.parquet.reader import ParquetDatabase
from nsysdiag.trace.reader import SqliteDatabase
from nsysdiag.typed import joined, say
from nsysdiag.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import FileIO

    from nsysdiag.trace.query import LongTexts


class TraceSource:
    """A trace file for as long as it is read.

    `path` is the user's path. `readable` is what is read: the same file, a private copy with its journal applied, or
    the tables that were made of it. Private files and `connections` are removed when the source is closed.
    """

    def __init__(self, path: Path, *, export_timeout_s: float, nsys: str | None = None) -> None:
        self.path = path
        self.warnings: list[Sentence] = []
        self._journals: list[Journal] = []
        self._cleanup = ExitStack()
        self._status = check_regular_file(path)
        self.size_bytes: int = self._status.st_size
        self._real = Path(os.path.realpath(path))  # journals are next to the file, not next to a link to it
        with ExitStack() as on_error:
            on_error.callback(self._cleanup.close)
            self.readable: Path = self._make_readable(export_timeout_s, nsys)
            self._folder = ParquetFolder(self.readable) if self.readable.is_dir() else None
            # No more rows fit into an SQLite file, at four bytes each.
            self.most_rows: int = self._folder.most_rows if self._folder else self.readable.stat().st_size // 4
            self._cleanup.callback(self._folder.close if self._folder else self.connections.close)
            on_error.pop_all()

    @cached_property
    def connections(self) -> Connections:
        """SQLite connections to `readable`, opened on first use."""
        return Connections(self.uri)

    @property
    def noun(self) -> str:
        """What it is, for messages."""
        return self._folder.noun if self._folder else "an SQLite file"

    def database(self, reader: str, warn: Callable[[str], None], long: LongTexts) -> SqliteDatabase | ParquetDatabase:
        """What reads it. `reader` is "adbc" or "sqlite3"."""
        if self._folder is not None:
            return self._folder.database(reader, warn, long)
        return SqliteDatabase(self.path, self.connections, reader, warn, long)

    @property
    def uri(self) -> str:
        """The URI that opens the readable database immutably."""
        return self._folder.uri if self._folder else immutable_uri(self.readable)

    def _make_readable(self, timeout_s: float, nsys: str | None) -> Path:
        converted = format_of(self.path).converted
        if converted is not None:
            return converted(self.path, Conversion(self._private_folder(), timeout_s, nsys, self.warnings.append))
        try:
            self._journals = journals_of(self._real)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return self._fold(self._journals) if self._journals else self._real

    def _private_folder(self) -> Path:
        return self._cleanup.enter_context(private_folder())

    def _fold(self, journals: list[Journal]) -> Path:
        """Copy the database with its journals, and let SQLite apply them to the copy."""
        copy = self._private_folder() / "trace.sqlite"
        names = joined(
            " and ", (say("'{}{}'", typed.file(printable(self.path.name)), each.suffix) for each in journals)
        )
        try:
            copied(self._real, journals, copy)
            with closing(sqlite3.connect(copy)) as connection:
                connection.execute("PRAGMA trusted_schema=0")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # rolls a hot journal back
                connection.execute("PRAGMA journal_mode=DELETE").fetchall()  # moves a write-ahead log over
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
            failed = f"which could not be applied to a copy: {printable(error)}"
            what = f"has unfinished changes in {typed.plain(names)}, {failed}"
            raise refused(self.path, what, f"close the program that has it open, or {EXPORT_HINT}") from error
        self.warnings.append(
            say("unfinished changes in {}: read from a private copy with those changes applied", names)
        )
        return copy

    def fingerprint(self, schema: str) -> str:
        """32 hex digits over the size, the first and last MiB of the file (and of a journal) and the schema
        SQL."""
        digest = hashlib.sha256()
        try:
            files = [
                (self._real, self._real.stat().st_size),
                *((each.path, each.used_bytes) for each in self._journals),
            ]
            for file, size in files:
                digest.update(f"{size}\n".encode())
                add_ends(digest, file, size)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        digest.update(schema.encode("utf-8", errors="surrogatepass"))
        return digest.hexdigest()[:32]

    def sha256(self) -> str:
        """The SHA-256 of the whole file as the user named it."""
        try:
            return sha256_of(self._real)
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def changed(self) -> bool:
        """Whether the file is another one than when it was opened: its size, time or existence."""
        return has_changed(self._real, self._status.st_size, self._status.st_mtime_ns)

    def close(self) -> None:
        """Close the connections, then remove the private files."""
        self._cleanup.close()


def _unreadable(path: Path, error: OSError) -> InputError:
    return refused(path, f"cannot be read: {error.strerror}", "check the disk")


# The journals of an SQLite database: a rollback journal or a write-ahead log, and their valid part.
#
# Only headers are read, up to the first invalid one, as SQLite does: a sparse file of 3 GB costs as little as an empty
# one. Offsets are those of SQLite's file format (https://www.sqlite.org/fileformat2.html).
#
# ```
# -journal   [magic, records, nonce, pages before, sector, page size | .. sector] [page number, page, checksum] ...
# -wal       [magic, version, page size, .., salts, checksum] [page number, pages after commit, salts, ..; page] ...
# ```

JOURNAL, LOG = "-journal", "-wal"
DELETE_HINT = f"delete the journal if you do not know it, or {EXPORT_HINT}"
_MAGIC = bytes.fromhex("d9d505f920a163d7")
_HEADER, _RECORD_BYTES = struct.Struct(">8sIIIII"), 8
"""Of a rollback journal; of each record its page number and checksum."""
_UNKNOWN_COUNT = 0xFFFFFFFF
"""The count of records of a journal that was never synchronized: as many as follow."""
_LOG_MAGICS, _LOG_VERSION = (0x377F0682, 0x377F0683), 3007000
_LOG_HEADER, _FRAME = struct.Struct(">IIII8s8s"), struct.Struct(">II8s8s")
_SMALLEST_PAGE, _LARGEST_PAGE, _SMALLEST_SECTOR = 512, 65536, 32
_SPARE_RECORDS = 16
_CHUNK = 1 << 20


class Journal(Struct, frozen=True):
    """A journal file with changes that SQLite would apply. Only its first `used_bytes` count."""

    path: Path
    suffix: str
    used_bytes: int


def journals_of(database: Path) -> list[Journal]:
    """The journals of a database that hold something to apply. Raises InputError for one that cannot belong to it, or
    that names another file."""
    found = []
    for suffix, used_bytes in ((LOG, _end_of_commits), (JOURNAL, _end_of_rollback)):
        path = Path(f"{database}{suffix}")
        if path.is_file() and path.stat().st_size:
            with path.open("rb", buffering=0) as file:
                if used := used_bytes(file, database):
                    found.append(Journal(path, suffix, used))
    return found


def copied(database: Path, journals: list[Journal], target: Path) -> None:
    """Copy the database and the valid parts of its journals to `target`. Raises OutputError if the disk is full, and
    OSError."""
    parts = [(database, target, database.stat().st_size)]
    parts += [(each.path, Path(f"{target}{each.suffix}"), each.used_bytes) for each in journals]
    needed = sum(end - start for source, _, size in parts for start, end in _stretches(source, size))
    free = shutil.disk_usage(target.parent).free
    if needed > free:
        raise OutputError(
            f"no room for a private copy of '{printable(database.name)}' and its journal in {target.parent}: "
            f"it takes {format_bytes(needed)}, and {format_bytes(free)} are free",
            hint="set TMPDIR to a folder with more room",
        )
    for source, copy, size in parts:
        _copy(source, copy, size)


def _copy(source: Path, target: Path, size: int) -> None:
    """The first `size` bytes; what is a hole in the source is one in the copy."""
    with source.open("rb") as reader, target.open("xb") as writer:
        for start, end in _stretches(source, size):
            reader.seek(start)
            writer.seek(start)
            for at in range(start, end, _CHUNK):
                writer.write(reader.read(min(_CHUNK, end - at)))
        writer.truncate(size)


def _stretches(path: Path, size: int) -> Iterator[tuple[int, int]]:
    """The parts of the first `size` bytes that hold data; all of them if the system does not know holes."""
    if not hasattr(os, "SEEK_DATA"):
        yield 0, size
        return
    with path.open("rb") as file:
        end = 0
        while end < size:
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError:  # ENXIO: nothing but a hole from here on
                return
            end = min(os.lseek(file.fileno(), start, os.SEEK_HOLE), size)
            if start < end:
                yield start, end


def _end_of_commits(file: FileIO, _: Path) -> int:
    """Where the committed frames of a write-ahead log end; 0 without any."""
    head = file.read(_LOG_HEADER.size)
    if len(head) < _LOG_HEADER.size:
        return 0
    magic, version, page, _, salts, _ = _LOG_HEADER.unpack(head)
    if magic not in _LOG_MAGICS or version != _LOG_VERSION or not _is_power(page, _SMALLEST_PAGE):
        return 0
    at, committed = _LOG_HEADER.size, 0
    while len(frame := _read_at(file, at, _FRAME.size)) == _FRAME.size:
        number, pages_after, of_frame, _ = _FRAME.unpack(frame)
        if not number or of_frame != salts:
            break
        at += _FRAME.size + page
        committed = at if pages_after else committed
    return committed


def _end_of_rollback(file: FileIO, database: Path) -> int:
    """Where the records of a rollback journal end. One whose header is not valid, as after a commit with PRAGMA
    journal_mode=PERSIST, holds nothing to roll back: 0."""
    if (head := _header_at(file, 0)) is None:
        return 0
    used = _end_of_records(file, head, database)
    _refuse_other_files(f"{database.name}{JOURNAL}", file, used)
    return used


def _end_of_records(file: FileIO, head: tuple[int, int, int] | None, database: Path) -> int:
    """Raises InputError for more records than the file can have pages: a journal holds each page once; twice the number
    is allowed, as the file may have been shortened since."""
    at = end = left = 0
    while head is not None:
        count, sector, page = head
        if not at:
            left = 2 * database.stat().st_size // page + _SPARE_RECORDS
        end = at + sector
        for _ in range(count):
            if (number := _read_at(file, end, 4)) == bytes(4) or len(number) < 4:
                return end
            if not left:
                size = format_bytes(database.stat().st_size)
                what = f"cannot belong to the file: it holds more pages than a file of {size} can have had"
                raise refused(f"{database.name}{JOURNAL}", what, DELETE_HINT)
            left -= 1
            end += page + _RECORD_BYTES
        at = -(-end // sector) * sector
        head = _header_at(file, at)
    return end


def _header_at(file: FileIO, at: int) -> tuple[int, int, int] | None:
    """The number of records, the size of a sector and of a page; None without a valid header."""
    head = _read_at(file, at, _HEADER.size)
    if len(head) < _HEADER.size:
        return None
    magic, count, _, _, sector, page = _HEADER.unpack(head)
    if magic != _MAGIC or not _is_power(page, _SMALLEST_PAGE) or not _is_power(sector, _SMALLEST_SECTOR):
        return None
    return (1 << 62 if count == _UNKNOWN_COUNT else count), sector, page


def _refuse_other_files(name: str, file: FileIO, used: int) -> None:
    """Raise InputError if the journal names another file, which SQLite would delete after a rollback.

    Such a journal belongs to a transaction over several databases, which no export has. The name is at the end of the
    file, so the end of the copied part is checked too: the content of a page may imitate a name."""
    ends = (os.fstat(file.fileno()).st_size, used)
    if any(_read_at(file, max(end - len(_MAGIC), 1), len(_MAGIC)) == _MAGIC for end in ends):
        raise refused(name, "names another file to be deleted: it is not read", DELETE_HINT)


def _read_at(file: FileIO, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)


def _is_power(size: int, smallest: int) -> bool:
    return smallest <= size <= _LARGEST_PAGE and size & (size - 1) == 0
