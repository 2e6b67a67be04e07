"""An input format that is added as CONTRIBUTING.md says is found, read, named, cut and explained everywhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from nsysdiag.trace.formats import INPUT_FORMATS
from tests.additions import copied_package, edited, not_yet_added, printed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, not_yet_added("kernel-list" in {each.id for each in INPUT_FORMATS})]

SOURCE = '''"""Lists of kernels, as a simulator of GPUs writes them: lines of `start_ns,end_ns,kernel`."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from nsysdiag.trace.format import InputFormat

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.trace.format import Conversion

HEADER, MARK = b"start_ns,end_ns,kernel", "NSYSDIAG_KERNEL_LIST"
TABLES = """
    CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
    CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, shortName INTEGER, deviceId INTEGER);
"""


def converted(path: Path, how: Conversion) -> Path:
    """The kernels as the table of an export, all of one device."""
    target = how.folder / "trace.sqlite"
    with path.open(newline="") as file, closing(sqlite3.connect(target)) as database, database:
        rows = list(csv.DictReader(file))
        ids = {name: number for number, name in enumerate(sorted({row["kernel"] for row in rows}), 1)}
        database.executescript(TABLES)
        database.execute("INSERT INTO META_DATA_EXPORT VALUES (?, '1')", (MARK,))
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, name) for name, number in ids.items()])
        database.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, 0)",
            [(int(row["start_ns"]), int(row["end_ns"]), ids[row["kernel"]]) for row in rows],
        )
    return target


FORMAT = InputFormat(
    id="kernel-list",
    noun="a list of kernels",
    suffixes=(".kernels.csv",),
    is_one=lambda path, head: head.startswith(HEADER),
    converted=converted,
    mark=MARK,
    kinds=("kernels",),
    lacks="not in lists of kernels",
)
'''
TRACE = "run/train.kernels.csv"
LINES: dict[str, list[str]] = {
    "analyze": ["analyze", TRACE, "-o", "plain.json"],
    "info": ["info", TRACE],
    "bundle": ["bundle", TRACE, "-o", "train.zip"],
    "batch": ["batch", "run", "-o", "reports"],
    "compare": ["compare", TRACE, TRACE, "-o", "-", "--format", "txt"],
    "help": ["analyze", "--help"],
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[int, str]]]:
    """The folder, and what each of LINES printed with the format: its file, and its place in the registry."""
    folder = tmp_path_factory.mktemp("format")
    package = copied_package(folder)
    (package / "trace" / "kernel_list.py").write_text(SOURCE)
    registry = package / "trace" / "formats.py"
    imports = "from nsysdiag.plugins import READERS, plugins\n"
    edited(registry, imports, f"{imports}from nsysdiag.trace import kernel_list\n")
    edited(registry, "REPORT, KINETO)", "REPORT, kernel_list.FORMAT, KINETO)")
    (folder / "run").mkdir()
    lines = [f"{at * 100_000},{at * 100_000 + 60_000},gemm{at % 3}" for at in range(10, 210)]
    (folder / TRACE).write_text("\n".join(["start_ns,end_ns,kernel", *lines, ""]))
    return folder, printed(package, folder, LINES)


def test_every_command_takes_it(ran: tuple[Path, dict[str, tuple[int, str]]]) -> None:
    assert {name: code for name, (code, _) in ran[1].items()} == dict.fromkeys(LINES, 0), ran[1]
    assert "a list of kernels" in " ".join(ran[1]["help"][1].split())


def test_its_kernels_are_analyzed(ran: tuple[Path, dict[str, tuple[int, str]]]) -> None:
    report = json.loads((ran[0] / "plain.json").read_text(encoding="utf-8"))
    (device,) = report["devices"]
    assert (device["busy_ns"], device["ops"]["kernel"]) == (200 * 60_000, 200)


def test_what_it_cannot_show_is_said(ran: tuple[Path, dict[str, tuple[int, str]]]) -> None:
    lines = ran[1]["info"][1].splitlines()
    (kernels,), (calls,) = ([line for line in lines if line.startswith(name)] for name in ("kernels", "cuda-api"))
    assert "200 rows" in kernels
    assert "not in lists of kernels" in calls


def test_a_bundle_has_a_slice_of_it(ran: tuple[Path, dict[str, tuple[int, str]]]) -> None:
    assert "trace.sqlite holds" in ran[1]["bundle"][1]


def test_a_batch_finds_it(ran: tuple[Path, dict[str, tuple[int, str]]]) -> None:
    assert "1 analyzed" in ran[1]["batch"][1]
    assert (ran[0] / "reports" / "run" / "train.kernels.json").is_file()
