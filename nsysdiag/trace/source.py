"""The file of a trace: found, recognised, and made readable without writing next to it."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
from contextlib import ExitStack, closing
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from nsysdiag import typed
from nsysdiag.fields import Sentence
from nsysdiag.messages import InputError, printable
from nsysdiag.pseudonyms import private_folder
from nsysdiag.trace.capabilities import add_ends, has_changed, sha256_of
from nsysdiag.trace.catalog import Connections, immutable_uri
from nsysdiag.trace.database import EXPORT_HINT, Database, FileKind, SqliteDatabase, check_regular_file, sniff
from nsysdiag.trace.journals import Journal, copied, journals_of
from nsysdiag.trace.parquet.folder import ParquetFolder
from nsysdiag.trace.parquet.names import is_parquet_folder
from nsysdiag.typed import joined, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.trace.query import LongTexts


# Exporting an nsys report with the nsys program, where there is one: to Parquet files, or to SQLite.


def export_report(report: Path, folder: Path, timeout_s: float, *, columnar: bool, nsys: str | None = None) -> Path:
    """Export a .nsys-rep into `folder`, which the caller removes: to an SQLite file, or if `columnar` and supported by
    nsys, to a folder of Parquet files. A report of 50 MB took 4.1 s, and 1.4 s more to read its four largest tables
    from SQLite; from Parquet files 2.7 s and 0.6 s. `nsys` is the program, by default the one on the PATH.

    Raises InputError, with the command as a hint, if nsys is missing, fails, or takes too long.
    """
    program = nsys or nsys_on_path()
    shown = f"'{printable(report)}'"
    if program is None:
        message = f"{shown} is an Nsight Systems report, and there is no `nsys` on the PATH to export it"
        raise InputError(message, hint=_command(report))
    target, tables = folder / "trace.sqlite", folder / "trace_pqtdir"

    def exported(kind: str, target: Path) -> int:
        command = [program, "export", "--type", kind, *blobs, "--output", str(target), str(report.absolute())]
        return _run(command, folder, timeout_s)

    try:
        # Stacks of Python and what NCCL says of its calls are blobs.
        blobs = ["--include-blobs=true"] if _exports_blobs(program, folder, timeout_s) else []
        # An nsys that does not know this type fails, and is asked for the other.
        if columnar and exported("parquetdir", tables) == 0 and is_parquet_folder(tables):
            return tables
        status = exported("sqlite", target)
    except subprocess.TimeoutExpired as error:
        message = f"exporting {shown} took longer than {timeout_s:g} s and was stopped"
        raise InputError(message, hint=_command(report)) from error
    except OSError as error:
        raise InputError(f"'{printable(program)}' cannot be run: {error}", hint=_command(report)) from error
    if status != 0 or not target.is_file():
        message = f"`nsys export` could not export {shown} (exit code {status})"
        raise InputError(message, hint=_command(report))
    return target


def nsys_on_path() -> str | None:
    """The program nsys, never of the current folder: an empty or relative entry of the PATH means that one, and Windows
    looks there first."""
    folders = [each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(each).is_absolute()]
    program = shutil.which("nsys", path=os.pathsep.join(folders))
    return program if program and Path(program).is_absolute() else None


def _exports_blobs(program: str, folder: Path, timeout_s: float) -> bool:
    """Whether this version can, by its help."""
    said = folder / "help.txt"
    with said.open("wb") as file:
        _run([program, "export", "--help"], folder, timeout_s, file)
    return b"--include-blobs" in said.read_bytes()


def _run(command: list[str], folder: Path, timeout_s: float, output: BinaryIO | int = subprocess.DEVNULL) -> int:
    """The exit code. Whatever ends the wait early ends the program's helpers too: they share its session."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONSAFEPATH": "1"},  # a Python in it imports nothing from its current folder
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(timeout=timeout_s)
    except BaseException:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        raise


def _command(report: Path) -> str:
    output, name = (shlex.quote(printable(path)) for path in (report.with_suffix(".sqlite"), report))
    return f"nsys export --type sqlite --output {output} {name}"


class TraceSource:
    """A trace file for as long as it is read.

    `path` is the user's path; `readable` is the database to read: the same file, a private copy with its journal
    applied, or the export of a report, which may be a folder of Parquet files. Private files and `connections` are
    removed when the source is closed.
    """

    def __init__(self, path: Path, *, export_timeout_s: float, nsys: str | None = None) -> None:
        self.path = path
        self._nsys = nsys
        self.warnings: list[Sentence] = []
        self._journals: list[Journal] = []
        self._cleanup = ExitStack()
        self._status = check_regular_file(path)
        self.size_bytes: int = self._status.st_size
        kind = sniff(path)
        self._real = Path(os.path.realpath(path))  # journals are next to the file, not next to a link to it
        with ExitStack() as on_error:
            on_error.callback(self._cleanup.close)
            self.readable: Path = self._make_readable(kind, export_timeout_s)
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

    def database(self, reader: str, warn: Callable[[str], None], long: LongTexts) -> Database:
        """What reads it. `reader` is "adbc" or "sqlite3"."""
        if self._folder is not None:
            return self._folder.database(reader, warn, long)
        return SqliteDatabase(self.path, self.connections, reader, warn, long)

    @property
    def uri(self) -> str:
        """The URI that opens the readable database immutably."""
        return self._folder.uri if self._folder else immutable_uri(self.readable)

    def _make_readable(self, kind: FileKind, export_timeout_s: float) -> Path:
        if kind is FileKind.REPORT:
            columnar = find_spec("pyarrow") is not None
            folder = self._private_folder()
            return export_report(self.path, folder, export_timeout_s, columnar=columnar, nsys=self._nsys)
        if kind is FileKind.PROFILER:
            from nsysdiag.trace.profiler.tables import convert

            target = self._private_folder() / "trace.sqlite"
            self.warnings += convert(self.path, target)
            self.warnings.append(
                "traces of the PyTorch profiler have no OS calls, scheduling or CPU samples: what the host waited for "
                "is not in them"
            )
            return target
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
