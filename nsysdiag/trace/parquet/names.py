"""Recognizes folders of Parquet files that are traces. Imports hardly anything, as every command uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.trace.format import InputFormat

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = ".parquet"
HABIT = "_pqtdir"
"""The recipes of nsys end the names of such folders so."""
MARKS = ("StringIds", "META_DATA_EXPORT")
"""Tables of every export: a folder that holds one of them is a trace."""


def is_parquet_folder(path: Path) -> bool:
    """Whether the path is a folder that `nsys export --type parquetdir` wrote."""
    try:
        return path.is_dir() and any((path / f"{name}{SUFFIX}").is_file() for name in MARKS)
    except (OSError, ValueError):
        return False


def table_paths(path: Path) -> list[Path]:
    """The tables in a folder, by name. Raises OSError."""
    return sorted(each for each in path.iterdir() if each.name.endswith(SUFFIX))


FORMAT = InputFormat(
    id="parquet",
    noun="a folder of Parquet files",
    suffixes=(HABIT,),
    is_one=lambda path, _: is_parquet_folder(path),
    packed=True,
    files=table_paths,
)
