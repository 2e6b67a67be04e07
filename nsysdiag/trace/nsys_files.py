"""The formats of nsys: SQLite files that it exported, and its reports, which it must export first."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from nsysdiag.messages import InputError, printable
from nsysdiag.trace.format import EXPORT_HINT, InputFormat

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.trace.format import Conversion

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
        raise InputError(f"'{printable(path)}' is a truncated SQLite file ({len(head)} bytes)", hint=EXPORT_HINT)
    (page_size,) = struct.unpack(">H", head[16:18])
    changes, pages = struct.unpack(">II", head[24:32])
    (valid_for,) = struct.unpack(">I", head[92:96])
    expected = (65536 if page_size == 1 else page_size) * pages
    size = path.stat().st_size
    if changes == valid_for and size < expected:
        raise InputError(
            f"'{printable(path)}' is a truncated SQLite file: {size:,} of {expected:,} bytes",
            hint="copy it again, or " + EXPORT_HINT,
        )


def _is_report(path: Path, head: bytes) -> bool:
    named = path.suffix.lower() in REPORTS and not head.lstrip().startswith(b"{")
    return head.startswith(REPORT_MAGIC) or (bool(head) and named)


def _exported(path: Path, how: Conversion) -> Path:
    from nsysdiag.trace.export import exported

    return exported(path, how)


SQLITE = InputFormat(id="sqlite", noun="a .sqlite", suffixes=(".sqlite",), is_one=_is_sqlite)
REPORT = InputFormat(
    id="nsys-rep", noun="a .nsys-rep", suffixes=REPORTS, is_one=_is_report, converted=_exported, packed=True
)
