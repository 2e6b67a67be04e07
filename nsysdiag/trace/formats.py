"""The input formats: what a file is, and what a trace is called. A new format is a record and its place in the list.
Imports hardly anything, as every command uses it."""

from __future__ import annotations

import os
import re
import stat
import struct
import zlib
from typing import TYPE_CHECKING

from nsysdiag.messages import InputError
from nsysdiag.plugins import READERS, plugins
from nsysdiag.trace.format import EXPORT_HINT, GZIP_MAGIC, MARK, InputFormat, refused

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

    from nsysdiag.trace.format import Conversion

# The files of nsys: SQLite files and folders of Parquet files that it exported, and its reports.

SQLITE_MAGIC = b"SQLite format 3\x00"
REPORT_MAGIC = b"NVIDIA Tegra Profiler Report"
REPORTS = (".nsys-rep", ".qdrep")


def _is_sqlite(path: Path, head: bytes) -> bool:
    if head.startswith(SQLITE_MAGIC):
        _check_complete(path, head)
    return head.startswith(SQLITE_MAGIC)


def _check_complete(path: Path, head: bytes) -> None:
    """The header of a database holds its length in pages, unless a very old program wrote it last."""
    if len(head) < 100:
        raise refused(path, f"is a truncated SQLite file ({len(head)} bytes)")
    (page_size,) = struct.unpack(">H", head[16:18])
    changes, pages = struct.unpack(">II", head[24:32])
    (valid_for,) = struct.unpack(">I", head[92:96])
    expected = (65536 if page_size == 1 else page_size) * pages
    size = path.stat().st_size
    if changes == valid_for and size < expected:
        what = f"is a truncated SQLite file: {size:,} of {expected:,} bytes"
        raise refused(path, what, f"copy it again, or {EXPORT_HINT}")


def _is_report(path: Path, head: bytes) -> bool:
    named = path.suffix.lower() in REPORTS and not head.lstrip().startswith(b"{")
    return head.startswith(REPORT_MAGIC) or (bool(head) and named)


def _exported(path: Path, how: Conversion) -> Path:
    from nsysdiag.trace.export import exported

    return exported(path, how, _is_parquet_folder)


SUFFIX = ".parquet"
HABIT = "_pqtdir"
"""The recipes of nsys end the names of such folders so."""
MARKS = ("StringIds", "META_DATA_EXPORT")
"""Tables of every export: a folder that holds one of them is a trace."""


def _is_parquet_folder(path: Path) -> bool:
    """Whether the path is a folder that `nsys export --type parquetdir` wrote."""
    try:
        return path.is_dir() and any((path / f"{name}{SUFFIX}").is_file() for name in MARKS)
    except (OSError, ValueError):
        return False


def table_paths(path: Path) -> list[Path]:
    """The tables in a folder, by name. Raises OSError."""
    return sorted(each for each in path.iterdir() if each.name.endswith(SUFFIX))


# Traces of the PyTorch profiler (Kineto): JSON with `traceEvents`, wherever they are, or bare events; packed by gzip or
# not. They become the tables of an export.

KINETO_HEAD_BYTES = 1 << 20
SEARCHED_BYTES = 1 << 24
"""What may come before the events, such as what another program wrote about the run."""
_FIRST = re.compile(rb'\s*\{\s*"schemaVersion"')
"""How the profiler itself begins."""
_KEY, _PHASE = re.compile(rb'"traceEvents"\s*:'), re.compile(rb'"ph"\s*:\s*"')
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def is_kineto_trace(path: Path) -> bool:
    """Whether the file is JSON of the profiler, packed by gzip or not. A pipe is none: to read it could wait for ever.
    Raises OSError."""
    if not path.is_file():
        return False
    head = json_of(path, KINETO_HEAD_BYTES)
    if not head or _FIRST.match(head) or _has_events(head):
        return bool(head)
    return len(head) == KINETO_HEAD_BYTES and _has_events(json_of(path, SEARCHED_BYTES))


def json_of(path: Path, most: int) -> bytes:
    """The first `most` bytes of JSON, packed by gzip or not; none of another file. Raises OSError."""
    with path.open("rb") as file:
        data = file.read(most)
    if data.startswith(GZIP_MAGIC):
        try:
            data = zlib.decompressobj(wbits=31).decompress(data, most)
        except zlib.error:
            return b""
    return data if data[:KINETO_HEAD_BYTES].lstrip()[:1] in (b"{", b"[") else b""


def _has_events(data: bytes) -> bool:
    """Whether a key of the whole object is `traceEvents`, or elements of an array of objects have a phase."""
    key, wanted = (_KEY, 1) if data.lstrip()[:1] == b"{" else (_PHASE, 2)
    at = level = 0
    for found in key.finditer(data):
        level += _opened(data[at : found.start()])
        if level == wanted:
            return True
        at = found.start()
    return False


def _opened(data: bytes) -> int:
    """How many more brackets are open at the end than at the beginning."""
    left = _STRING.sub(b"", data)
    return sum(left.count(each) for each in (b"{", b"[")) - sum(left.count(each) for each in (b"}", b"]"))


def _converted(path: Path, how: Conversion) -> Path:
    from nsysdiag.trace.kineto.tables import convert

    target = how.folder / "trace.sqlite"
    for warning in convert(path, target):
        how.warn(warning)
    how.warn(
        "traces of the PyTorch profiler have no OS calls, scheduling or CPU samples: what the host waited for "
        "is not in them"
    )
    return target


SQLITE = InputFormat(id="sqlite", noun="a .sqlite", suffixes=(".sqlite",), is_one=_is_sqlite)
PARQUET = InputFormat(
    id="parquet",
    noun="a folder of Parquet files",
    suffixes=(HABIT,),
    is_one=lambda path, _: _is_parquet_folder(path),
    packed=True,
    files=table_paths,
)
REPORT = InputFormat(
    id="nsys-rep", noun="a .nsys-rep", suffixes=REPORTS, is_one=_is_report, converted=_exported, packed=True
)
KINETO = InputFormat(
    id="kineto",
    noun="JSON of the PyTorch profiler",
    suffixes=(".pt.trace.json.gz", ".pt.trace.json", ".trace.json.gz", ".trace.json", ".json.gz", ".json"),
    is_one=lambda path, head: head.lstrip().startswith((b"{", b"[", GZIP_MAGIC)) and is_kineto_trace(path),
    by_name=False,
    converted=_converted,
    mark=MARK,
    kinds=("kernels", "copies", "cuda-api", "synchronization", "nvtx", "overhead", "device-map"),
    lacks="not in traces of the PyTorch profiler",
    amid_run=True,
)
_KNOWN = (SQLITE, PARQUET, REPORT, KINETO)


def _refused(added: InputFormat) -> str:
    taken = {each.id for each in _KNOWN} | {suffix for each in _KNOWN for suffix in each.suffixes}
    return "its id or a suffix is that of another format" if taken & {added.id, *added.suffixes} else ""


INPUT_FORMATS: tuple[InputFormat, ...] = (*_KNOWN, *plugins(READERS, InputFormat, _refused))
"""All input formats. Of a trace that is found in several of them side by side, a batch reads the first."""
HEAD_BYTES = 100


def format_of(path: Path) -> InputFormat:
    """The format of a trace. Raises InputError for everything that has none."""
    if found := folder_format(path):
        return found
    check_regular_file(path)
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise refused(path, f"cannot be read: {error.strerror}", _permission_hint(error)) from error
    found = begun(path, head)
    if found is None:
        raise _not_a_trace(path, head)
    return found


def begun(path: Path, head: bytes) -> InputFormat | None:
    """The format of a file that begins so; None if it has none. Raises OSError, and InputError for half a file."""
    return next((each for each in INPUT_FORMATS if each.files is None and each.is_one(path, head)), None)


def folder_format(path: Path) -> InputFormat | None:
    """The format of a folder that is one trace; None of others."""
    return next((each for each in INPUT_FORMATS if each.files is not None and each.is_one(path, b"")), None)


def named_format(path: Path) -> InputFormat | None:
    """The format that the name of a file, or what is in a folder, is enough to tell; None of others."""
    name = path.name.lower()
    named = (each for each in INPUT_FORMATS if each.files is None and each.by_name and name.endswith(each.suffixes))
    return next(named, None) or folder_format(path)


def looked_into(path: Path) -> InputFormat | None:
    """The format that a file holds whose name leaves it open; None of others, and of a pipe: to read it could wait for
    ever. Raises OSError."""
    name = path.name.lower()
    possible = [each for each in INPUT_FORMATS if not each.by_name and name.endswith(each.suffixes)]
    if not possible or not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    return next((each for each in possible if each.is_one(path, head)), None)


def marked(names: Container[str | None]) -> InputFormat:
    """The format of which tables were made that have these names in META_DATA_EXPORT; SQLite without a mark."""
    return next((each for each in INPUT_FORMATS if each.mark and each.mark in names), SQLITE)


def stem_of(path: Path) -> str:
    """The name of a trace without its suffix: `train` for `train.sqlite` and for `train_pqtdir`. Other folders keep
    their names, such as `run.1`."""
    folder = folder_format(path)
    endings = (suffix for each in ([folder] if folder else INPUT_FORMATS) for suffix in each.suffixes)
    shorter = path.name.removesuffix(next(filter(path.name.endswith, endings), ""))
    if shorter and shorter != path.name:
        return shorter
    return path.name if folder else path.stem


def named(path: Path) -> Path:
    """The path with a name at its end, which `.` has not: a trace is called what its folder is called."""
    return path.resolve() if path.name in ("", "..") and folder_format(path) else path


def check_regular_file(path: Path) -> os.stat_result:
    """The status of an existing ordinary file. Raises InputError; a pipe is not opened, for that could
    block."""
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise refused(path, "does not exist", "check the path") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise refused(path, f"cannot be read: {reason}", _permission_hint(error)) from error
    if stat.S_ISDIR(status.st_mode):
        hint = "name a .sqlite file in it, or a folder that nsys export --type parquetdir wrote"
        raise refused(path, "is a folder", hint)
    if not stat.S_ISREG(status.st_mode):
        raise refused(path, "is not an ordinary file", "save the export to a file and name that")
    return status


def _permission_hint(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "ask for read permission on the file and on the folders above it"
    return "check the path and the disk"


# What is not a trace, by its first bytes or its name, and what to do about it.

_MAGICS = (
    (b"\x1f\x8b", "a gzip archive", "unpack it first: gunzip"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "unpack it first: unzstd"),
    (b"\xfd7zXZ\x00", "an xz archive", "unpack it first: unxz"),
    (b"BZh", "a bzip2 archive", "unpack it first: bunzip2"),
    (b"PK\x03\x04", "a zip archive", "unpack it first: unzip"),
    (b"\x89HDF", "an HDF5 file", "export to SQLite instead: nsys export --type sqlite"),
    (b"PAR1", "a Parquet file", "pass the folder that contains it, which nsys export --type parquetdir wrote"),
    (b"ARROW1", "an Arrow file", "export to SQLite instead: nsys export --type sqlite"),
    (b"SQLite format", "an SQLite database with a damaged header", EXPORT_HINT),
)
_SUFFIXES = {
    ".qdstrm": ("a raw event stream (.qdstrm)", "turn it into a report first: QdstrmImporter -i"),
    ".ncu-rep": ("a Nsight Compute report", "this program reads Nsight Systems traces"),
}


def _not_a_trace(path: Path, head: bytes) -> InputError:
    if not head:
        return refused(path, "is empty")
    if path.suffix.lower() in _SUFFIXES:
        what, hint = _SUFFIXES[path.suffix.lower()]
        return refused(path, f"is {what}, not an exported trace", hint)
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["} or (head.startswith(GZIP_MAGIC) and json_of(path, 64)):
        hint = "for a saved report use `nsysdiag render`; otherwise " + EXPORT_HINT
        return refused(path, "is JSON, but no trace of the PyTorch profiler: it has no `traceEvents`", hint)
    for magic, what, hint in _MAGICS:
        if head.startswith(magic):
            return refused(path, f"is {what}, not an exported trace", hint)
    return refused(path, "is not an SQLite file")
