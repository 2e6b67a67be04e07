"""What the tests of damaged and odd folders of Parquet files share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsysdiag.messages import InputError
from nsysdiag.report import Report
from nsysdiag.trace.trace import open_trace
from tests.hostile.checks import CONTROL, outcome
from tests.trace.files import NVTX, execute, insert, small_trace
from tests.trace.parquet_folders import to_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.trace.columns import Columns
    from nsysdiag.trace.trace import Trace
    from tests.hostile.conftest import Told

    Command = Callable[..., Told]

KERNELS, RUNTIME, EVENTS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
STRINGS, META = "StringIds", "META_DATA_EXPORT"
MAGIC = b"PAR1"
CONVERTED = "column '{}' of {}: {} values are not integers and were converted"


def table_of(folder: Path, table: str) -> Path:
    return folder / f"{table}.parquet"


def refused(folder: Path, *parts: str) -> None:
    """An InputError that says all of this, with a hint."""
    error = outcome(folder)
    assert isinstance(error, InputError), error
    for part in parts:
        assert part in error.message


def told(command: Command, folder: Path) -> str:
    """The sentence with which the command line refuses the folder."""
    for words in (("analyze", "--no-config"), ("info",), ("bundle",)):
        done = command(*words, folder)
        assert done.code == 3, done
        sentence, hint = done.stderr.splitlines()
        assert hint.startswith("  hint: ")
        assert not CONTROL.search(done.stderr)
    return sentence


def told_of(folder: Path) -> list[str]:
    """What the report warns of."""
    report = outcome(folder)
    assert isinstance(report, Report)
    return report.trace.warnings


def read(trace: Trace, *, table: str, names: list[str]) -> tuple[Columns, list[str]]:
    return trace.read(table, *names), trace.warnings


def column(folder: Path, table: str, name: str) -> Any:
    with open_trace(folder) as trace:
        return trace.read(table, name)[name]


def events(place: Path, rows: list[tuple[str, int | None, float | None]]) -> Path:
    """A folder of a kernel and NVTX ranges of these texts, threads and values."""
    path = execute(small_trace(place / "t.sqlite"), NVTX)
    insert(path, EVENTS, [(at, at + 1, 59, *row) for at, row in enumerate(rows)])
    return to_folder(path, place / "t_pqtdir", compression="snappy")
