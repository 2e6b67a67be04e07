"""A temporary folder for files of this process alone."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "nsysdiag-"


@contextmanager
def private_folder() -> Iterator[Path]:
    """An empty folder (mode 0700) for as long as the context lasts. Raises OSError where it cannot be made."""
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
