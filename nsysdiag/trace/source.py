"""The file of a trace: found, recognized, and made readable without writing next to it."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct

from nsysdiag import typed
from nsysdiag.fields import Sentence
from nsysdiag.messages import InputError, OutputError, printable
from nsysdiag.process import private_folder
from nsysdiag.trace.capabilities import add_ends, has_changed, sha256_of
from nsysdiag.trace.catalog import Connections, immutable_uri
from nsysdiag.trace.format import EXPORT_HINT, Conversion
from nsysdiag.trace.formats import check_regular_file, format_of
from nsysdiag.trace.parquet.folder import ParquetFolder
from nsysdiag.trace.parquet.reader import ParquetDatabase
from nsysdiag.trace.reader import SqliteDatabase
from nsysdiag.typed import joined, say
from nsysdiag.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
            raise InputError(
                f"'{printable(self.path)}' has unfinished changes in {typed.plain(names)}, "
                f"which could not be applied to a copy: {printable(error)}",
                hint="close the program that has it open, or " + EXPORT_HINT,
            ) from error
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
    return InputError(f"'{printable(path)}' cannot be read: {error.strerror}", hint="check the disk")


# The journals of an SQLite database: a rollback journal or a write-ahead log. SQLite itself finds in a copy what of
# them counts, by headers and checksums. Holes are not copied: a sparse file of 3 GB costs as little as an empty one.

JOURNAL, LOG = "-journal", "-wal"
_MAGIC = bytes.fromhex("d9d505f920a163d7")
_HEADERS = {LOG: (tuple(map(bytes.fromhex, ("377f0682", "377f0683"))), 32), JOURNAL: ((_MAGIC,), 28)}
"""How each begins if it holds anything, and the length of its header: https://www.sqlite.org/fileformat2.html."""
_CHUNK = 1 << 20


class Journal(Struct, frozen=True):
    """A journal file with changes that SQLite may apply. Nothing but a hole is behind its first `used_bytes`."""

    path: Path
    suffix: str
    used_bytes: int


def journals_of(database: Path) -> list[Journal]:
    """The journals of a database that hold something to apply. One whose header is not valid, as after a commit with
    PRAGMA journal_mode=PERSIST, holds nothing. Raises InputError for one that names another file."""
    found = []
    for suffix, (magics, length) in _HEADERS.items():
        path = Path(f"{database}{suffix}")
        if not path.is_file():
            continue
        with path.open("rb") as file:
            head = file.read(length + 1)
            if len(head) > length and head.startswith(magics):
                size = path.stat().st_size
                used = max((end for _, end in _stretches(path, size)), default=0)
                _refuse_other_files(path, file, {size, used})
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


def _refuse_other_files(path: Path, file: BinaryIO, ends: Iterable[int]) -> None:
    """Raise InputError if the journal names another file, which SQLite would delete after a rollback.

    Such a journal belongs to a transaction over several databases, which no export has. The name is at the end of the
    file, or of the copied part."""
    for end in ends:
        file.seek(max(end - len(_MAGIC), 1))
        if file.read(len(_MAGIC)) == _MAGIC:
            raise InputError(
                f"'{printable(path.name)}' names another file to be deleted: it is not read",
                hint=f"delete the journal if you do not know it, or {EXPORT_HINT}",
            )
