"""What belongs to one run of the program: a folder for its private files, and the moment that its outputs bear.

Outputs bear one only where they must, so that the same input gives the same bytes."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nsysdiag.messages import OutputError, printable

PREFIX = "nsysdiag-"


@contextmanager
def private_folder() -> Iterator[Path]:
    """An empty folder (mode 0700) for as long as the context lasts. Raises OSError if it cannot be made."""
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def make_folder(folder: Path) -> None:
    """Make a folder with those above it, if there is none. Raises OutputError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {printable(folder)}: {error.strerror}") from error


VARIABLE = "SOURCE_DATE_EPOCH"
_MOST_DIGITS = 11


def now(environment: Mapping[str, str] = os.environ) -> int:
    """The time of the run, in UTC seconds since 1970: SOURCE_DATE_EPOCH if that is set."""
    known = source_date_epoch(environment)
    return int(time.time()) if known is None else known


def source_date_epoch(environment: Mapping[str, str] = os.environ) -> int | None:
    """UTC seconds since 1970 as SOURCE_DATE_EPOCH says; None if it is not set, or holds no such number."""
    text = environment.get(VARIABLE, "")
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None
