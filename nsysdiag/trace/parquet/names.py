"""Recognizes folders that are traces, and their names. Imports nothing, as every command uses it."""

from __future__ import annotations

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


def named(path: Path) -> Path:
    """The path with a name at its end, which `.` has not: a trace is called what its folder is called."""
    return path.resolve() if path.name in ("", "..") and is_parquet_folder(path) else path


_OF_PROFILER = (".pt.trace.json.gz", ".pt.trace.json", ".trace.json.gz", ".trace.json", ".json.gz")
"""The suffixes of traces of the PyTorch profiler."""


def stem_of(path: Path) -> str:
    """The name of a trace without its suffix: `train` for `train.sqlite` and for `train_pqtdir`. Other folders keep
    their names, such as `run.1`."""
    shorter = path.name.removesuffix(next(filter(path.name.endswith, (HABIT, *_OF_PROFILER)), HABIT))
    if shorter and shorter != path.name:
        return shorter
    return path.name if is_parquet_folder(path) else path.stem


def table_paths(path: Path) -> list[Path]:
    """The tables in a folder, by name. Raises OSError."""
    return sorted(each for each in path.iterdir() if each.name.endswith(SUFFIX))


def folder_size(path: Path) -> int:
    """The bytes of the tables in a folder. Raises OSError."""
    return sum(each.stat().st_size for each in table_paths(path))
