"""A progress bar on stderr, on a terminal only."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nsysdiag.printable import printable
from nsysdiag.workflow_commands import without_workflow_commands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[str, float], None] | None]:
    """Yields what the pipeline reports its steps to, or None where stderr is no terminal."""
    if not _watched(quiet=quiet):
        yield None
        return
    with _bar() as bar:
        task = bar.add_task("opening the trace", total=1.0)
        yield lambda step, share: bar.update(task, description=_shown(step), completed=share)


@contextmanager
def batch_bar(total: int, *, quiet: bool) -> Iterator[Callable[[int, list[str]], None]]:
    """Yields what a batch reports to how many inputs are left, and which are in hand."""
    if not _watched(quiet=quiet):
        yield lambda _left, _running: None
        return
    with _bar() as bar:
        task = bar.add_task("starting", total=total)

        def show(left: int, running: list[str]) -> None:
            more = f" and {len(running) - 1} more" if len(running) > 1 else ""
            text = f"{left} left{f'; {running[0]}{more}' if running else ''}"
            bar.update(task, description=_shown(text), completed=total - left)

        yield show


def _shown(text: str) -> str:
    return without_workflow_commands(printable(text))


def _watched(*, quiet: bool) -> bool:
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    return Progress(*columns, console=Console(stderr=True), transient=True)
