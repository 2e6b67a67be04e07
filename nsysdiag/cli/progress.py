"""A progress bar on stderr, on a terminal only."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[str, float], None] | None]:
    """Yields what the pipeline reports its steps to, or None where nobody watches."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("opening the trace", total=1.0)
        yield lambda step, share: bar.update(task, description=step, completed=share)
