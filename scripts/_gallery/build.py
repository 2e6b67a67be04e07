"""Runs nsysdiag for each entry of the gallery, as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scripts._gallery.entries import Entry

T = TypeVar("T")
U = TypeVar("U")


def build(entries: Iterable[Entry], folder: Path) -> None:
    """The page of each entry, in `folder`."""
    at_once(partial(_page, folder.resolve()), entries)


def at_once(make: Callable[[T], U], these: Iterable[T]) -> list[U]:
    """What `make` makes of each, side by side: most of the work is in processes of its own."""
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        return list(workers.map(make, these))


def _page(folder: Path, entry: Entry) -> None:
    with tempfile.TemporaryDirectory() as work:
        run(entry, Path(work), folder / f"{entry.name}.html")


def run(entry: Entry, work: Path, *outputs: Path) -> str:
    """Write the traces of an entry into `work`, and what nsysdiag makes of them to `outputs`. What it prints."""
    return nsysdiag(entry.arguments(entry.traces(work)), work, *outputs)


def nsysdiag(arguments: list[str], work: Path, *outputs: Path) -> str:
    """Run it in the folder `work`, so that names of traces have no path. Raises where it fails."""
    written = [word for path in outputs for word in ("-o", str(path))]
    command = [sys.executable, "-P", "-m", "nsysdiag", *arguments, *written]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout
