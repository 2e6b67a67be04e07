"""`scripts/capture` and its programs: with a stand-in for nsys, with a stand-in for PyTorch, and with the real nsys."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.levels import some

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "tests" / "fixtures"
WORKLOADS = ROOT / "scripts" / "workloads"
sys.path.insert(0, str(ROOT / "scripts" / "capturing"))

from mapping import anchor_starts, clock_offset, mapped  # noqa: E402
from nsys import Nsys  # noqa: E402
from programs import PROGRAMS  # noqa: E402
from readme import rewritten  # noqa: E402

INJECTING = [name for name, program in PROGRAMS.items() if program.injects]
AHEAD_NS = 7_000_000_000
"""By how much the programs' clock is ahead of the trace's in these tests."""


def test_there_is_a_program_of_every_name() -> None:
    helpers = {"device", "loader", "meeting", "server", "waitlog"}
    assert {path.stem for path in WORKLOADS.glob("*.py")} - helpers == set(PROGRAMS)


def test_the_readme_of_the_fixtures_is_today_s() -> None:
    text = (FIXTURES / "README.md").read_text()
    assert rewritten(text, FIXTURES) == text
    assert all(f"| `{path.stem}` |" in text for path in FIXTURES.glob("real_host_*.json"))


def test_a_readme_without_a_place_for_them_is_refused() -> None:
    with pytest.raises(ValueError, match="no lines"):
        rewritten("# Fixtures\n", FIXTURES)


def test_a_clock_is_mapped_from_both_sides() -> None:
    anchors = [{"before": 110, "after": 130}, {"before": 205, "after": 240}]
    assert clock_offset(anchors[::-1], [10, 120]) == (110, 10)


def test_a_clock_of_another_run_is_refused() -> None:
    anchors = [{"before": 110, "after": 130}, {"before": 1_205, "after": 1_240}]
    with pytest.raises(ValueError, match="of different runs"):
        clock_offset(anchors, [10, 300_120])


class TestPrograms:
    """Each runs anywhere, and logs its steps, what it injects and what its device would have done."""

    @pytest.mark.sampled(normal=5)
    @pytest.mark.parametrize("name", some(INJECTING, 3))
    def test_without_a_gpu(self, name: str, tmp_path: Path) -> None:
        log = logged(name, tmp_path)
        main = next(role["pid"] for role in log["role"] if role["role"] == "main")
        operations = [each for each in log["operation"] if each["pid"] == main]
        assert len(log["anchor"]) % 16 == 0
        assert log["step"]
        for stream in {each.get("stream") for each in operations}:
            following = pairwise(each for each in operations if each.get("stream") == stream)
            assert all(before["end"] <= after["start"] for before, after in following)
        assert {each["call"] for each in operations} <= {each["call"] for each in log["call"]}
        if not PROGRAMS[name].injects.startswith("nothing"):
            steps = [each for each in log["step"] if each["pid"] == main]
            assert len([each for each in log["injected"] if each["pid"] == main]) == len(steps)

    @pytest.mark.thorough
    @pytest.mark.parametrize("name", some(INJECTING, 3, 1))
    def test_with_pytorch(self, name: str, tmp_path: Path) -> None:
        """A stand-in that knows the names and arguments that are asked for, and nothing else."""
        with_pytorch(tmp_path)
        log = logged(name, tmp_path, PYTHONPATH=str(tmp_path))
        assert log["step"]
        assert "operation" not in log


def with_pytorch(folder: Path) -> None:
    """A stand-in for PyTorch in a folder that Python is to look into."""
    for place, text in TORCH.items():
        path = folder / "torch" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def logged(name: str, folder: Path, **environment: str) -> dict[str, list[dict[str, Any]]]:
    """Run a program; its records by kind."""
    log = folder / "log"
    subprocess.run(
        [sys.executable, str(WORKLOADS / f"{name}.py"), str(log)],
        check=True,
        timeout=120,
        env=os.environ | environment,
    )
    records: dict[str, list[dict[str, Any]]] = {}
    for line in log.read_text().splitlines():
        record = json.loads(line)
        records.setdefault(record["record"], []).append(record)
    return records


NSYS = """#!{python}
import gzip, json, pathlib, sys
command, *arguments = sys.argv[1:]
said = [after for before, after in zip(arguments, arguments[1:]) if before in ("-o", "--output")]
output = pathlib.Path(*said)
if command == "profile":
    program = pathlib.Path(arguments[-2])
    if program.stem in {failing!r}:
        sys.exit("it broke")
    output.with_suffix(".nsys-rep").write_text(" ".join(arguments))
    pathlib.Path(arguments[-1]).write_text({log!r})
elif command == "stats":
    if "cuda_api_sum" in arguments:
        print("Time (%),Total Time (ns),Num Calls,Name\\n100.0,70,7,cudaLaunchKernel")
else:
    output.write_bytes(gzip.decompress(pathlib.Path({fixture!r}).read_bytes()))
"""


def stand_in(folder: Path, failing: tuple[str, ...] = ()) -> Path:
    """A program that takes nsys's commands: whatever it profiles is the committed capture of `sleep`."""
    fixture = FIXTURES / "real_host_sleep.sqlite.gz"
    export = folder / "sleep.sqlite"
    export.write_bytes(gzip.decompress(fixture.read_bytes()))
    with closing(sqlite3.connect(export)) as connection:
        starts = anchor_starts(connection)
    me = {"pid": 1, "tid": 1}
    records: list[dict[str, object]] = [{"record": "role", "role": "main", "does": None, **me}]
    records += [
        {"record": "anchor", "before": start + AHEAD_NS - 100, "after": start + AHEAD_NS + 100, **me}
        for start in starts
    ]
    times = {"start": AHEAD_NS + 5, "end": AHEAD_NS + 1_000_005}
    records.append({"record": "injected", "what": "sleep", **times, **me})
    records.append({"record": "wait", "kind": "batch", "wakers": ["feeder", "worker"], **times, **me})
    log = "".join(json.dumps(record) + "\n" for record in records)
    nsys = folder / "nsys"
    nsys.write_text(NSYS.format(python=sys.executable, failing=failing, log=log, fixture=str(fixture)))
    nsys.chmod(0o755)
    return nsys


def capture(nsys: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "capturing"), *arguments]
    environment = os.environ | {"NSYS": str(nsys), "PYTHON": sys.executable}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)


class TestCapture:
    @pytest.mark.slow
    def test_a_fixture_its_log_and_the_readme(self, tmp_path: Path) -> None:
        out = tmp_path / "fixtures"
        out.mkdir()
        (out / "README.md").write_text("before\n<!-- captures -->\nold\n<!-- end of captures -->\nafter\n")
        done = capture(stand_in(tmp_path), "sleep", "--into", str(out), "--suffix", "_x")
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(path.name for path in out.iterdir()) == [
            "README.md",
            "real_host_sleep_x.json",
            "real_host_sleep_x.sqlite.gz",
        ]
        log = json.loads((out / "real_host_sleep_x.json").read_text())
        assert (log["program"], log["schema"], log["clock_error_ns"]) == ("sleep", "3.7.2", 100)
        assert log["injected"] == [{"pid": 1, "tid": 1, "what": "sleep", "start": 5, "end": 1_000_005}]
        # A waker that cannot log itself ends the chain.
        assert log["waits"] == [{"pid": 1, "tid": 1, "kind": "batch", "start": 5, "end": 1_000_005, "wakers": []}]
        assert log["options"].startswith("-t osrt,nvtx --sample=process-tree --cpuctxsw=process-tree")
        text = (out / "README.md").read_text()
        assert "sleep: 1 times, 1.0 ms" in text
        assert text.startswith("before\n")
        assert text.endswith("after\n")
        assert "old" not in text

    @pytest.mark.slow
    def test_one_that_fails_is_told_and_the_others_are_made(self, tmp_path: Path) -> None:
        done = capture(stand_in(tmp_path, ("healthy",)), "healthy", "sleep", "--into", str(tmp_path))
        assert done.returncode == 1
        assert done.stderr == "  healthy: it broke\n"
        assert (tmp_path / "real_host_sleep.sqlite.gz").exists()
        assert not (tmp_path / "real_host_healthy.sqlite.gz").exists()

    @pytest.mark.thorough
    def test_two_steps_on_two_machines(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        nsys, there = stand_in(tmp_path), tmp_path / "there"
        with_pytorch(tmp_path / "python")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "python"))
        assert capture(nsys, "two_processes", "--gpu", "--only-profile", str(there)).returncode == 0
        profiled = (there / "two_processes.nsys-rep").read_text()
        assert profiled.startswith("-t cuda,osrt,nvtx --cuda-graph-trace=node")
        (there / "healthy.facts.json").write_text("{}")
        done = capture(nsys, "sleep", "--gpu", "--from", str(there), "--into", str(tmp_path))
        assert done.returncode == 1
        assert "sleep: " in done.stderr
        assert capture(nsys, "two_processes", "--gpu", "--from", str(there), "--into", str(tmp_path)).returncode == 0
        log = json.loads((tmp_path / "real_gpu_two_processes.json").read_text())
        assert log["nsys_stats"] == {"kernels": [], "api": [["cudaLaunchKernel", 7]], "ranges": []}

    def test_without_a_gpu_nothing_is_captured_as_if_there_were_one(self, tmp_path: Path) -> None:
        done = capture(stand_in(tmp_path), "sleep", "--gpu", "--only-profile", str(tmp_path / "there"))
        assert done.returncode == 1
        assert "has no PyTorch that finds a GPU" in done.stderr
        assert not (tmp_path / "there").exists()

    def test_what_an_earlier_run_left_is_not_taken(self, tmp_path: Path) -> None:
        for suffix in ("nsys-rep", "qdstrm", "log"):
            (tmp_path / f"sleep.{suffix}").write_text("old")
        (tmp_path / "nsys").write_text("#!/bin/sh\n")
        (tmp_path / "nsys").chmod(0o755)
        done = capture(tmp_path / "nsys", "sleep", "--only-profile", str(tmp_path))
        assert done.returncode == 1
        assert "neither a report nor a stream came" in done.stderr

    def test_an_unknown_program(self, tmp_path: Path) -> None:
        done = capture(stand_in(tmp_path), "slep")
        assert done.returncode == 2
        assert "there is no program 'slep'" in done.stderr

    def test_no_nsys(self, tmp_path: Path) -> None:
        done = capture(tmp_path / "none", "sleep", "--into", str(tmp_path))
        assert done.returncode == 1
        assert "No such file" in done.stderr

    def test_the_importer_is_found_beside_a_script_that_starts_nsys(self, tmp_path: Path) -> None:
        importer = tmp_path / "nsight" / "host-linux-x64" / "QdstrmImporter"
        target = tmp_path / "nsight" / "target-linux-x64" / "nsys"
        for each in (importer, target):
            each.parent.mkdir(parents=True)
            each.write_text("")
        starter = tmp_path / "nsys"
        starter.write_text(f'#!/bin/bash\nexec "{target}" "$@"\n')
        for program in (starter, target):
            assert Nsys(str(program), sys.executable).importer() == importer

    @pytest.mark.thorough
    @pytest.mark.nsys
    def test_with_the_real_one(self, tmp_path: Path) -> None:
        """Without NVTX, which the tests' own Python lacks, there are no anchors to map the clock with."""
        nsys = Nsys(os.environ["NSYSDIAG_NSYS"], sys.executable)
        nsys.profile(PROGRAMS["sleep"], tmp_path, gpu=False)
        with closing(sqlite3.connect(nsys.export(tmp_path, "sleep"))) as connection:
            named = "SELECT id FROM StringIds WHERE value = 'clock_nanosleep'"
            (count,) = connection.execute(f"SELECT count(*) FROM OSRT_API WHERE nameId IN ({named})").fetchone()
        assert count >= 20
        with pytest.raises(ValueError, match="anchors"):
            mapped(tmp_path / "sleep.sqlite", nsys.log(tmp_path, "sleep"), {})


TORCH = {
    "__init__.py": """
from torch import cuda, distributed
uint8 = 'uint8'

class Tensor:
    def __init__(self, size=1, pinned=False): self.size, self.pinned = size, pinned
    def __len__(self): return self.size
    def __getitem__(self, at): return self
    def add_(self, other): return self
    def item(self): return 1.0
    def is_pinned(self): return self.pinned
    def copy_(self, other, *, non_blocking): assert non_blocking == (self.pinned or other.pinned)

def randn(rows, columns, *, device): return Tensor()
def zeros(size, *, device): return Tensor(size)
def empty_like(other): return Tensor()
def empty(size, *, dtype=None, device=None, pin_memory=False): return Tensor(size, pin_memory)
def ones(size, *, dtype, pin_memory): return Tensor(size, pin_memory)
def mm(left, right, *, out): return out
""",
    "cuda/__init__.py": """
from contextlib import nullcontext
from torch.cuda import nvtx
def init(): pass
def device_count(): return 2
def set_device(number): assert number in (0, 1)
def is_available(): return True
def synchronize(): pass
def empty_cache(): pass
def graph(graph): return nullcontext()
class CUDAGraph:
    def replay(self): pass
class Event:
    def __init__(self, *, enable_timing=False): pass
    def record(self): pass
    def synchronize(self): pass
    def elapsed_time(self, other): return 10.0
""",
    "cuda/nvtx.py": """
from contextlib import nullcontext
def range(message): return nullcontext()
""",
    "distributed.py": """
def init_process_group(backend, *, init_method, rank, world_size):
    assert (backend, world_size) == ("nccl", 2) and rank in (0, 1) and init_method.startswith("file:///")
class Work:
    def wait(self): pass
def all_reduce(tensor, *, async_op): return Work()
""",
    "utils/__init__.py": "",
    "utils/data.py": """
class DataLoader:
    def __init__(self, dataset, *, batch_size, num_workers, prefetch_factor, multiprocessing_context):
        self.dataset = dataset
    def __iter__(self): return map(self.dataset.__getitem__, range(len(self.dataset)))
""",
}
