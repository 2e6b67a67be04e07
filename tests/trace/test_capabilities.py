"""What a trace says that it can and cannot tell, and what nsys itself said about the capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nsysdiag.messages import printable
from nsysdiag.trace.capabilities import KINDS, LIMIT, recapture_command, without_private_parts
from nsysdiag.trace.tables import TABLES
from nsysdiag.trace.trace import open_trace
from tests.trace.files import KERNEL_ROW, NVTX, execute, insert, small_trace

if TYPE_CHECKING:
    from pathlib import Path

DIAGNOSTICS = "CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, severity INTEGER, text TEXT)"


def test_every_kind_names_declared_tables() -> None:
    assert all(table in TABLES for kind in KINDS.values() for table in kind.tables)


def test_one_capability_a_kind(tmp_path: Path) -> None:
    path = execute(small_trace(tmp_path / "t.sqlite"), NVTX)
    insert(path, "CUPTI_ACTIVITY_KIND_KERNEL", [KERNEL_ROW] * 1311)
    with open_trace(path) as trace:
        trace.read("CUPTI_ACTIVITY_KIND_KERNEL", "start")
        found = {capability.id: capability for capability in trace.capabilities()}
    assert list(found) == list(KINDS)
    assert (found["kernels"].available, found["kernels"].why) == (True, "1,312 rows")
    assert found["kernels"].recapture is None
    assert found["nvtx"].why == "table NVTX_EVENTS exists but is empty"
    assert found["os-runtime"].why == "no table OSRT_API in this export"
    assert found["os-runtime"].recapture == "--trace=osrt"
    assert not found["copies"].available


def test_kinds_of_several_tables_say_which(tmp_path: Path) -> None:
    table = "CUPTI_ACTIVITY_KIND_MEMSET"
    path = execute(tmp_path / "t.sqlite", f'CREATE TABLE {table} (start INTEGER, "end" INTEGER, deviceId INTEGER)')
    insert(path, table, [(1, 2, 0)] * 5)
    with open_trace(path) as trace:
        (copies,) = [capability for capability in trace.capabilities() if capability.id == "copies"]
    assert (copies.available, copies.why) == (True, f"about 5 rows in {table}")


@pytest.mark.parametrize(
    ("missing", "command"),
    [
        (set(), None),
        ({"device-map", "diagnostics", "overhead"}, None),
        ({"os-runtime"}, "nsys profile --trace=cuda,nvtx,osrt --output=trace PROGRAM"),
        (
            {"scheduling", "cpu-samples", "mpi"},
            "nsys profile --trace=cuda,nvtx,osrt,mpi --cpuctxsw=process-tree --sample=process-tree"
            " --output=trace PROGRAM",
        ),
        (
            {"gpu-metrics", "cuda-graphs"},
            "nsys profile --trace=cuda,nvtx,osrt --cuda-graph-trace=node --gpu-metrics-devices=all"
            " --output=trace PROGRAM",
        ),
    ],
)
def test_recapture_command(missing: set[str], command: str | None) -> None:
    assert recapture_command(missing) == command


class TestDiagnostics:
    """DIAGNOSTIC_EVENT rows that speak of losses."""

    def warnings(self, folder: Path, *events: tuple[int, str | None]) -> list[str]:
        path = execute(folder / "t.sqlite", DIAGNOSTICS)
        insert(path, "DIAGNOSTIC_EVENT", [(1, *event) for event in events])
        with open_trace(path) as trace:
            return trace.warnings

    def test_losses_are_told_and_chatter_is_not(self, tmp_path: Path) -> None:
        assert self.warnings(
            tmp_path,
            (1, "Profiling has started, 3 events dropped"),
            (2, "No NVTX events collected. Does the process use NVTX?"),
            (2, "1,024 CUDA events were dropped"),
            (3, "Failed to trace\nthe GPU"),
            (2, None),
        ) == [
            "nsys reported an error while capturing: Failed to trace the GPU",
            "nsys reported a warning while capturing: 1,024 CUDA events were dropped",
        ]

    def test_private_parts_and_control_characters_go(self, tmp_path: Path) -> None:
        text = "Failed: /home/ann/run.sh 'C:\\Users\\ann' API_KEY=hunter2 \x1b[31mred\u202e IP/backtrace"
        (warning,) = self.warnings(tmp_path, (3, text))
        assert warning.endswith("Failed: <path> '<path>' API_KEY=<value> \\x1b[31mred\\u202e IP/backtrace")

    def test_repeats_are_counted_and_many_are_cut(self, tmp_path: Path) -> None:
        kinds = [(2, f"buffer {chr(97 + kind)} lost") for kind in range(26)]
        repeats = [(2, f"dropped {count} events") for count in range(5)]
        warnings = self.warnings(tmp_path, *kinds, *repeats)
        assert len(warnings) == LIMIT
        assert warnings[-1] == "nsys reported 8 more kinds of problems while capturing"
        (tmp_path / "t.sqlite").unlink()
        assert self.warnings(tmp_path, *repeats) == [
            "nsys reported a warning while capturing (5 times): dropped 0 events"
        ]

    def test_long_text_is_cut(self, tmp_path: Path) -> None:
        (warning,) = self.warnings(tmp_path, (3, "lost " * 1000))
        assert len(warning) < 400


def test_safe_text() -> None:
    assert printable("a\nb\ttab \ud800 ü") == "a\\nb\\ttab \\ud800 ü"
    assert without_private_parts("see ~/x and ../y, \\\\host\\share; 1/2 and/or") == (
        "see <path> and <path>, <path>; 1/2 and/or"
    )
