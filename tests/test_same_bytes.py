"""Same in, same out: the bytes of every output, whatever the order of rows in the trace, the reader, what ran before in
the process, the hash seed of Python and the number of jobs.

What the file itself is, its size and the sum over its bytes, depends on the order of its rows, and is left out there.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from nsysdiag import Report, Settings, analyze
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.tables import tables
from tests.levels import some
from tests.simulator.scenarios import SCENARIOS, scenario

ROOT = Path(__file__).parent.parent
FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
SMALL_BYTES = 3 << 20
REAL = [path for path in sorted(FOLDER.glob("*.sqlite")) if path.stat().st_size <= SMALL_BYTES]

RICHEST = "counted_training"
"""Two GPUs, NVTX, samples, scheduling and metrics at once."""
SIMULATED = (
    "starved_data_parallel",
    "slow_rank",
    "renumbered_devices",
    "second_context",
    "four_hops",
    "queue_between_processes",
    "unified_memory",
    "whole_graphs",
    "many_causes",
)

every_trace = pytest.mark.parametrize(
    "name",
    [
        pytest.param(RICHEST, marks=pytest.mark.slow),
        *(pytest.param(name, marks=pytest.mark.slow) for name in some(SIMULATED, 4)),
        *(pytest.param(path.name, marks=[pytest.mark.slow, pytest.mark.real]) for path in some(REAL, 4)),
    ],
)


def written(name: str, folder: Path) -> Path:
    """The trace of that name, in a folder of its own."""
    path = folder / "trace.sqlite"
    folder.mkdir(exist_ok=True)
    if name in SCENARIOS:
        return scenario(name).write(path, SCENARIOS[name].capture)
    path.write_bytes((FOLDER / name).read_bytes())
    return path


def shuffled(trace: Path, folder: Path) -> Path:
    """A copy of a trace in which the rows of every table lie in another order, but for tables that are sorted by their
    key."""
    path = folder / trace.name
    folder.mkdir()
    with closing(sqlite3.connect(path, uri=True)) as connection:
        connection.create_function("anywhere", 0, random.Random(7).random)
        connection.execute("ATTACH ? AS source", (f"{trace.as_uri()}?mode=ro",))
        found = "SELECT name, sql FROM source.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        for name, sql in connection.execute(found).fetchall():
            connection.execute(sql)
            connection.execute(f'INSERT INTO main."{name}" SELECT * FROM source."{name}" ORDER BY anywhere()')
        connection.commit()
    return path


def outputs(report: Report) -> dict[str, bytes]:
    """Every format, and every table that stands beside the CSV file."""
    made = {name: known.render(report, RenderOptions()) for name, known in FORMATS.items()}
    return made | {f"csv of {name}": data for name, data in tables(report).items()}


def differing(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """The names of what is not the same: the bytes themselves would fill screens."""
    assert one.keys() == other.keys()
    return [name for name, data in one.items() if data != other[name]]


def without_the_file(report: Report) -> Report:
    """The report as of a file without size and fingerprint."""
    return replace(report, trace=replace(report.trace, size_bytes=0, fingerprint=""))


@pytest.mark.sampled(normal=7)
@every_trace
def test_order_of_rows(name: str, tmp_path: Path) -> None:
    trace = written(name, tmp_path / "plain")
    other = shuffled(trace, tmp_path / "shuffled")
    assert trace.read_bytes() != other.read_bytes()
    one, two = (outputs(without_the_file(analyze(path))) for path in (trace, other))
    assert differing(one, two) == []


@pytest.mark.sampled(normal=7)
@every_trace
def test_reader_and_what_ran_before(name: str, tmp_path: Path) -> None:
    trace = written(name, tmp_path)
    one, again, by_rows = (outputs(analyze(trace, Settings(reader=reader))) for reader in ("adbc", "adbc", "sqlite3"))
    assert (differing(one, again), differing(one, by_rows)) == ([], [])


@pytest.mark.sampled(normal=7)
@every_trace
def test_few_rows_at_a_time(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is worked out stretch by stretch is the same with borders of stretches everywhere."""
    trace = written(name, tmp_path)
    one = outputs(analyze(trace))
    for module in ("intervals", "groups", "distinct", "buckets"):
        monkeypatch.setattr(f"nsysdiag.arrays.{module}.AT_ONCE", 7)
    assert differing(one, outputs(analyze(trace))) == []


def test_shuffled_is_shuffled(tmp_path: Path) -> None:
    trace = written(RICHEST, tmp_path / "plain")
    orders = []
    for path in (trace, shuffled(trace, tmp_path / "shuffled")):
        with closing(sqlite3.connect(path)) as connection:
            kernels = "SELECT start, correlationId FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY rowid"
            orders.append(connection.execute(kernels).fetchall())
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def ran(folder: Path, *lines: list[object], seed: int) -> None:
    """Run command lines in `folder`, in a process of their own with that hash seed, at a fixed moment."""
    words = [[str(word) for word in line] for line in lines]
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from nsysdiag.cli.app import app
from nsysdiag.cli.console import run
if __name__ == "__main__":
    sys.exit(max(run(app, line) for line in {words!r}))
"""
    environment = os.environ | {"PYTHONHASHSEED": str(seed), "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
class TestProcesses:
    @pytest.mark.thorough
    @pytest.mark.parametrize(
        "name",
        [
            RICHEST,
            *some(["four_hops"], 2, 1),
            *(pytest.param(path.name, marks=pytest.mark.real) for path in some(REAL[-3:], 3, 2)),
        ],
    )
    def test_hash_seed(self, name: str, tmp_path: Path) -> None:
        trace = written(name, tmp_path)
        made = []
        for seed in (0, 1):
            folder = tmp_path / f"seed{seed}"
            folder.mkdir()
            files = [word for known in FORMATS.values() for word in ("-o", f"report{known.suffix}")]
            ran(folder, ["analyze", trace, *files], seed=seed)
            made.append(tree(folder))
        assert len(made[0]) > len(FORMATS)
        assert differing(*made) == []

    @pytest.mark.thorough
    def test_hash_seed_of_the_other_commands(self, tmp_path: Path) -> None:
        one = written("starved_data_parallel", tmp_path / "one")
        other = written("starved_data_parallel", tmp_path / "other")
        made = []
        for seed in (0, 1):
            folder = tmp_path / f"seed{seed}"
            folder.mkdir()
            ran(
                folder,
                ["compare", one, other, "-o", "c.html", "-o", "c.json", "-o", "c.md"],
                ["ranks", one, other, "-o", "r.html", "-o", "r.json"],
                ["bundle", one, "-o", "b.zip"],
                seed=seed,
            )
            made.append(tree(folder))
        assert len(made[0]) == 6
        assert differing(*made) == []

    @pytest.mark.thorough
    def test_jobs_of_a_batch(self, tmp_path: Path) -> None:
        for name in (RICHEST, "starved_data_parallel", "four_hops"):
            (tmp_path / "runs").mkdir(exist_ok=True)
            written(name, tmp_path / "runs" / name)
        made = []
        for jobs in (1, 2):
            options = ["--jobs", jobs, "--history", "history.jsonl", "--run", "r"]
            folder = tmp_path / f"jobs{jobs}"
            folder.mkdir()
            ran(folder, ["batch", tmp_path / "runs", "-o", "out", *options], seed=jobs)
            made.append(tree(folder))
        assert "history.jsonl" in made[0]
        assert sum(name.endswith(".html") for name in made[0]) >= 4
        assert differing(*made) == []
