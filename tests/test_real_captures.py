"""Captures of our own with the real nsys: what is in them is known, since the captured program measured itself."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nsysdiag import open_trace
from nsysdiag.cli.app import app
from nsysdiag.cli.console import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsysdiag.trace.trace import Trace

pytestmark = pytest.mark.fixtures

LIBRARY = re.compile(r"/(lib|lib/python[\d.]+|site-packages|lib-dynload)/[^/]+")
"""A path as far as it tells code of libraries from a program's own."""
FIXTURES = Path(__file__).parent / "fixtures"
NO_GPU_WORK = "no gpu activity"

ROWS = {
    "OSRT_API": 10_391,
    "OSRT_CALLCHAINS": 3_345,
    "SCHED_EVENTS": 1_114,
    "COMPOSITE_EVENTS": 182,
    "SAMPLING_CALLCHAINS": 1_042,
    "NVTX_EVENTS": 141,
    "PROFILER_OVERHEAD": 46,
}
MEASURED_NS = {
    "compute": 16_047_774,
    "contended_lock": 102_894_085,
    "next_piece": 227_374_341,
    "sleep": 82_486_212,
    "step": 441_180_699,
}
"""What the program printed: the total of each part of its 20 steps by its own clock."""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("captures") / "real_cpu_threads.sqlite"
    path.write_bytes(gzip.decompress((FIXTURES / f"{path.name}.gz").read_bytes()))
    return path


@pytest.fixture
def trace(capture: Path) -> Iterator[Trace]:
    with open_trace(capture) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(FIXTURES.glob("real_*")), ids=lambda path: path.name)
class TestEveryCapture:
    PRIVATE = (b"/home/", b"/usr/", b"/tmp/", b"/root", b"PATH=", b"EXPORT_HOST", b"EXPORT_USER")

    def test_holds_nothing_private(self, path: Path) -> None:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert [word for word in self.PRIVATE if word in content] == []

    def test_paths_are_names_and_what_tells_libraries(self, path: Path, tmp_path: Path) -> None:
        if path.suffix == ".json":
            assert "/" not in json.loads(path.read_text()).get("options", "")
            assert not re.search(r"[\"=](/|\./|~)", path.read_text())
            return
        (tmp_path / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        with closing(sqlite3.connect(tmp_path / path.stem)) as connection:
            names = connection.execute("SELECT value FROM StringIds UNION SELECT name FROM PROCESSES").fetchall()
        paths = [name for (name,) in names if name and name.startswith("/")]
        assert [path for path in paths if not LIBRARY.fullmatch(path)] == []

    def test_is_small(self, path: Path) -> None:
        # That of the demo has thousands of calls of two ranks, and its log each of them.
        assert path.stat().st_size < (1_500_000 if "starved_training" in path.name else 300_000)


def test_all_captures_together_are_small() -> None:
    assert sum(path.stat().st_size for path in FIXTURES.glob("real_*")) < 12_000_000


class TestThreadsWithoutGpu:
    @pytest.mark.parametrize("table", ROWS)
    def test_rows_are_those_that_nsys_recorded(self, trace: Trace, table: str) -> None:
        column = "id" if table.endswith("CALLCHAINS") else "start"
        assert len(trace.read(table, column)) == ROWS[table]

    def test_ranges_last_as_long_as_the_program_says(self, trace: Trace) -> None:
        rows = trace.read("NVTX_EVENTS", "start", "end", "eventType", "textId")
        names = np.array(trace.strings.texts(rows["textId"]))
        for name, measured in MEASURED_NS.items():
            chosen = (names == name) & (rows["eventType"] == 59)
            total = int((rows["end"] - rows["start"])[chosen].sum())
            assert np.count_nonzero(chosen) == 20
            # The program's clock also sees the two calls of its own that open and close the range.
            assert 0.98 * measured < total < measured

    @pytest.mark.slow
    def test_analysis_says_that_there_is_no_gpu_work(
        self, capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        report = tmp_path / "report.json"
        assert run(app, ["analyze", str(capture), "-o", str(report)]) == 0
        assert NO_GPU_WORK in capsys.readouterr().out.lower()
        saved = json.loads(report.read_bytes())
        assert saved["devices"] == []
        assert saved["trace"]["tables"]["OSRT_API"] in (ROWS["OSRT_API"], f"~{ROWS['OSRT_API']}")
