"""What an input format is. `nsysdiag/trace/formats.py` has all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nsysdiag.messages import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsysdiag.fields import Sentence

GZIP_MAGIC = b"\x1f\x8b"
MARK = "NSYSDIAG_PROFILER"
"""The row of META_DATA_EXPORT by which tables say that they were made of a trace of the PyTorch profiler; its value is
OF_ROCM if with ROCm."""
OF_ROCM = "2"
RECORDER = "NSYSDIAG_RECORDER"
"""The row that says who wrote the trace."""
RANK = "NSYSDIAG_RANK"
"""The row that says which rank a distributed program's trace is of, and of how many, as in `0/8`."""
EXPORT_HINT = "export it from the report: nsys export --type sqlite --output trace.sqlite trace.nsys-rep"


def refused(path: Path | str, what: str, hint: str | None = EXPORT_HINT) -> InputError:
    """The error that a file is not read, because of what it is or has."""
    return InputError(f"'{path}' {what}", hint=hint)


class Conversion(NamedTuple):
    """Where and how tables are made of a file: in `folder`, which is private, in at most `timeout_s`; `nsys` is the
    program, by default the one on the PATH. `warn` takes what a reader must know of the file."""

    folder: Path
    timeout_s: float
    nsys: str | None
    warn: Callable[[Sentence], None]


class InputFormat(NamedTuple):
    """An input format.

    Recognized: `is_one` gets a path and the first 100 bytes of the file, none of a folder. Where `by_name`, a file with
    one of the `suffixes` is an input of a batch whatever it holds; others are looked into. A folder that is one trace
    has `files`, which lists them.
    Opened: `converted` makes an SQLite file or a folder of Parquet files of it; None if it is read as it is. The
    tables of a `packed` one are much larger than its file.
    Shown: `mark` is the name in META_DATA_EXPORT by which tables, and slices of them, say that they were made of this
    format. `kinds` are the kinds of evidence that it can hold, None for all, and `lacks` says why others are missing.
    `amid_run`: it begins and ends in the middle of a run.
    """

    id: str
    noun: str
    suffixes: tuple[str, ...]
    is_one: Callable[[Path, bytes], bool]
    by_name: bool = True
    converted: Callable[[Path, Conversion], Path] | None = None
    packed: bool = False
    files: Callable[[Path], list[Path]] | None = None
    mark: str = ""
    kinds: tuple[str, ...] | None = None
    lacks: str = ""
    amid_run: bool = False
