"""The folder behind a trace: its Parquet files, checked when it is opened and again at the end."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nsysdiag.errors import InputError
from nsysdiag.limits import TABLES
from nsysdiag.printable import printable
from nsysdiag.private import private_folder
from nsysdiag.shortage import is_shortage, memory_short
from nsysdiag.trace.connect import decode, immutable_uri
from nsysdiag.trace.identity import add_ends, sha256_of
from nsysdiag.trace.parquet.as_sqlite import write_sqlite
from nsysdiag.trace.parquet.file import AGAIN_HINT, FOOTER_BYTES, TableFile, errors, table_file
from nsysdiag.trace.parquet.names import SUFFIX, named, table_paths
from nsysdiag.trace.parquet.reader import ParquetDatabase, found_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.trace.database import Database
    from nsysdiag.trace.long_texts import LongTexts


class ParquetFolder:
    """See Source: a trace of Parquet files for as long as it is read."""

    noun = "a folder of Parquet files"

    def __init__(self, path: Path) -> None:
        self.path: Path = named(path)
        self.warnings: list[str] = []
        self._cleanup = ExitStack()
        self._files = self._opened()
        self.size_bytes: int = sum(each.size_bytes for each in self._files.values())
        self.most_rows: int = max((each.rows for each in self._files.values()), default=0)

    def _opened(self) -> dict[str, TableFile]:
        try:
            found = table_paths(self.path)
        except OSError as error:
            raise InputError(f"'{printable(self.path)}' cannot be read: {error.strerror}", hint=AGAIN_HINT) from error
        if len(found) > TABLES:
            raise InputError(
                f"'{printable(self.path)}' holds {len(found):,} tables, more than {TABLES:,}", hint=AGAIN_HINT
            )
        files, room = {}, FOOTER_BYTES
        for each in found:
            file = files[decode(os.fsencode(each.name.removesuffix(SUFFIX)))] = table_file(each, room)
            room -= file.metadata.serialized_size
        return files

    def database(self, reader: str, warn: Callable[[str], None], long: LongTexts) -> Database:
        """What reads it; `reader` is that of SQLite files."""
        return ParquetDatabase(self._files, warn, long)

    @cached_property
    def uri(self) -> str:
        """The URI that opens a private SQLite copy immutably. It is made at the first call."""
        copy = self._cleanup.enter_context(private_folder()) / "trace.sqlite"
        try:
            with errors(self.path):
                write_sqlite(self._files, found_tables(self._files), copy)
        except sqlite3.Error as error:
            if is_shortage(error):
                raise memory_short(error, f"copy '{printable(self.path)}'") from error
            raise InputError(
                f"'{printable(self.path)}' could not be copied to a private SQLite file: {printable(error)}",
                hint="make room for temporary files, or export it again: nsys export --type sqlite",
            ) from error
        return immutable_uri(copy)

    def fingerprint(self, schema: str) -> str:
        """32 hex digits over the names and sizes of the files, and the first and last MiB of each."""
        digest = hashlib.sha256(schema.encode())
        for name, file in self._files.items():
            digest.update(f"{name}\n{file.size_bytes}\n".encode())
            with errors(file.path):
                add_ends(digest, file.path, file.size_bytes)
        return digest.hexdigest()[:32]

    def sha256(self) -> str:
        """The SHA-256 over the names and the SHA-256 of each file."""
        digest = hashlib.sha256()
        for name, file in self._files.items():
            with errors(file.path):
                digest.update(f"{name} {sha256_of(file.path)}\n".encode())
        return digest.hexdigest()

    def changed(self) -> bool:
        """Whether any file is another one than when the folder was opened, or one came or went."""
        try:
            now = len(table_paths(self.path))
        except OSError:
            return True
        return now != len(self._files) or any(each.changed() for each in self._files.values())

    def close(self) -> None:
        """Remove private files."""
        self._cleanup.close()
