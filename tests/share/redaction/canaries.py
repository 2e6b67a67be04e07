"""Traces whose every foreign word carries a canary, and a look for canaries in what is written about them.

```
void step_kernel<float>(int)     voidzqxwvkj stepzqxwvkj_kernelzqxwvkj<floatzqxwvkj>(intzqxwvkj)
cudaLaunchKernel, read           as they are: API and OS calls stay
```
"""

from __future__ import annotations

import base64
import gzip
import re
import sqlite3
import zlib
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from nsysdiag.document.one_line import command_of
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.tables import tables
from nsysdiag.share.names import is_public_function

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nsysdiag.report import Report

CANARY = "zqxwvkj"  # long enough not to come about in base64
_WORD = re.compile(r"[A-Za-z]{2,}")
_PACKED = re.compile(rb"[A-Za-z0-9+/]{24,}={0,2}")
_CALLS = re.compile(
    r"CUPTI_ACTIVITY_KIND_(RUNTIME|DRIVER|OVERHEAD)|OSRT_API|PROFILER_OVERHEAD|MPI_\w+|CU(BLAS|DNN)_EVENTS"
)
_KEPT = re.compile(
    r"ENUM_\w+|META_\w+|EXPORT_\w+|TARGET_INFO_(GPU|CUDA_DEVICE|GPU_METRICS|NIC_INFO)|sqlite_\w+|StringIds"
)


def marked(text: str) -> str:
    """The text with a canary behind every word."""
    return _WORD.sub(lambda word: word[0] + CANARY, text)


def mark_names(path: Path, *, public: bool = True) -> None:
    """Put canaries into every text of a trace but the names of calls, enumerations and chips; without `public` into no
    function that everybody has, for many of these go by how they begin."""

    def changed(text: object) -> object:
        return text if not isinstance(text, str) or (not public and is_public_function(text)) else marked(text)

    with closing(sqlite3.connect(path)) as connection:
        connection.create_function("marked", 1, changed)
        every = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {table: _columns(connection, table) for table in every}
        for table in every:
            for column, kind in columns[table]:
                if not _KEPT.fullmatch(table) and kind.upper() == "TEXT":
                    connection.execute(f'UPDATE "{table}" SET "{column}" = marked("{column}")')
        kept = [
            f'SELECT "{column}" FROM "{table}" WHERE "{column}" IS NOT NULL'
            for table in every
            if _CALLS.fullmatch(table)
            for column, _ in columns[table]
            if column == "nameId"
        ]
        spared = f"WHERE id NOT IN ({' UNION '.join(kept)})" if kept else ""
        connection.execute(f"UPDATE StringIds SET value = marked(value) {spared}")
        connection.commit()


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    return [(row[1], row[2]) for row in connection.execute(f'PRAGMA table_info("{table}")')]


def everything_written(report: Report) -> Iterator[tuple[str, bytes]]:
    """Every format and table, by name, with the command in the footer."""
    options = RenderOptions(command=command_of(report))
    for name, each in FORMATS.items():
        yield name, each.render(report, options)
    for name, content in tables(report).items():
        yield f"{name}.csv", content


def found(canary: str, data: bytes) -> list[str]:
    """What stands around a canary, in the data itself or packed inside it."""
    return [around for part in (data, *_unpacked(data)) for around in _around(canary.lower().encode(), part)]


def _around(sign: bytes, data: bytes) -> Iterator[str]:
    lowered = data.lower()
    at = lowered.find(sign)
    while at >= 0:
        end = at + len(sign) + 60
        yield data[max(at - 60, 0) : end].decode(errors="replace")
        at = lowered.find(sign, end)


def _unpacked(data: bytes) -> Iterator[bytes]:
    for packed in set(_PACKED.findall(data)):
        with suppress(ValueError):
            raw = base64.b64decode(packed, validate=True)
            yield raw
            for unpack in (zlib.decompress, gzip.decompress):
                with suppress(zlib.error, OSError, EOFError):
                    yield unpack(raw)
