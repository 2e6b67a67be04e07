"""Folders of Parquet files through the command line: each command says of one what it says of the SQLite file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag.batch import pool
from nsysdiag.batch.inputs import Input
from nsysdiag.batch.task import Outcome, Task, estimated_bytes, work
from nsysdiag.ci.facts import BatchSummary
from nsysdiag.saved import from_json
from tests.builder import TraceBuilder
from tests.ranks.run import MS, files
from tests.share.bundle.bundling import contents_of
from tests.share.bundle.test_slicing import steps
from tests.trace.parquet_folders import to_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from nsysdiag.batch.task import Limits
    from tests.cli.conftest import Result

    Cli = Callable[..., Result]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("analyzed_once")]


def write(path: Path, gap: int = 700) -> Path:
    """A tiny trace: two kernels, and between them the GPU is idle."""
    builder = TraceBuilder().kernel(100, 200, name="gemm", launch=(50, 60))
    return builder.kernel(200 + gap, 1000 + gap, name="gemm", launch=(70, 80)).write(path)


@pytest.fixture
def train(folder: Path) -> Path:
    """Forty like steps as `train.sqlite` and `train_pqtdir`, which is returned, in the current folder."""
    return to_folder(steps(40, 8 * MS).write(folder / "train.sqlite"), folder / "train_pqtdir").relative_to(folder)


def text(result: Result) -> str:
    """The summary without what names the trace: its first line, and the command behind it."""
    assert result.code == 0, result.stderr
    return "\n".join(result.stdout.decode().splitlines()[1:-1])


def saved(path: Path) -> dict[str, Any]:
    """A saved report without what the files of the trace are called and how large they are."""
    report: dict[str, Any] = json.loads(path.read_bytes())
    for name in ("file", "fingerprint", "size_bytes"):
        assert report["trace"].pop(name)
    assert report["trace"]["tables"].pop("StringIds")  # of the largest id, or of the rows
    return report


class TestOneTrace:
    @pytest.mark.parametrize("named", ["train_pqtdir", "train_pqtdir/", "./train_pqtdir/.", "."])
    def test_analyze(self, cli: Cli, folder: Path, train: Path, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
        expected = text(cli("analyze", "train.sqlite", "-o", "own.html"))
        if named == ".":
            monkeypatch.chdir(train)
        result = cli("analyze", named)
        assert text(result) == expected
        assert result.stderr == "wrote train.nsysdiag.html\n"
        assert result.stdout.startswith(b"nsysdiag 0.1.0 \xc2\xb7 train_pqtdir \xc2\xb7 ")
        assert result.stdout.splitlines()[-1].strip() == b"nsysdiag analyze train_pqtdir"

    def test_a_name_with_a_dot_is_kept_whole(self, cli: Cli, folder: Path, train: Path) -> None:
        for name in ("run.0", "run.1"):
            shutil.copytree(train, name)
            assert cli("analyze", name).stderr == f"wrote {name}.nsysdiag.html\n"

    def test_a_part_of_the_time(self, cli: Cli, folder: Path, train: Path) -> None:
        for trace in ("train.sqlite", "train_pqtdir"):
            cli("analyze", trace, "--from", "100ms", "--to", "200ms", "--quiet", "-o", f"{trace}.json")
        found = [saved(folder / f"{trace}.json") for trace in ("train.sqlite", "train_pqtdir")]
        assert found[0] == found[1]
        assert found[0]["devices"][0]["ops"]["kernel"] == 10

    def test_info(self, cli: Cli, train: Path) -> None:
        found = [cli("info", trace).stdout.decode().splitlines() for trace in ("train.sqlite", "train_pqtdir")]
        assert found[1][0].split() == ["file", "train_pqtdir"]
        one, other = ([line for line in lines[2:] if not line.startswith("StringIds")] for lines in found)
        assert one == other

    def test_compare(self, cli: Cli, folder: Path, train: Path) -> None:
        cli("analyze", train, "--quiet", "-o", "saved.json")
        for other in ("train_pqtdir", "saved.json"):
            result = cli("compare", "train.sqlite", other, "-o", "-", "--format", "json")
            made = json.loads(result.stdout)
            assert (made["verdict"], made["not_compared"]) == ("same", [])
            assert "no difference" in made["headline"]
            assert {kernel["change"]["change_ns"] for kernel in made["devices"][0]["kernels"]} == {0}
            assert [side[0]["file"] for side in (made["before"], made["after"])] == ["train.sqlite", "train_pqtdir"]

    def test_whatif(self, cli: Cli, train: Path) -> None:
        one, other = (cli("whatif", trace, "--without", "io_wait") for trace in ("train.sqlite", train))
        assert "Step time 10.0" in text(one)
        assert text(one) == text(other)
        assert other.stdout.splitlines()[-1].strip() == b"nsysdiag whatif train_pqtdir --without io_wait"

    @pytest.mark.thorough
    def test_bundle(self, cli: Cli, folder: Path, train: Path) -> None:
        """The slice is an SQLite file; its report is that of the slice of the SQLite file."""
        assert cli("bundle", train, "--quiet").stderr == ""
        cli("bundle", "train.sqlite", "--quiet", "-o", "own.zip")
        slices = []
        for name in ("train.nsysdiag.zip", "own.zip"):
            (folder / "part.sqlite").write_bytes(contents_of(folder / name)["trace.sqlite"])
            assert cli("analyze", "part.sqlite", "--quiet", "-o", "part.json").code == 0
            slices.append(saved(folder / "part.json"))
            del slices[-1]["trace"]["tables"]  # of enumerations the largest id, or about as many as there are rows
        assert slices[0] == slices[1]
        assert slices[0]["devices"][0]["verdict"]["id"] == "input-bound"

    def test_ranks(self, cli: Cli, folder: Path) -> None:
        traces = files(folder, [[4 * MS, 7 * MS]] * 5, [0, 40 * MS], utc=[0, -40 * MS])
        folders = [to_folder(trace, trace.with_name(f"{trace.stem}_pqtdir")).name for trace in traces]
        one, other = (cli("ranks", *named) for named in ([trace.name for trace in traces], folders))
        assert "rank1 is late for 5 of 5 collectives" in " ".join(one.stdout.decode().split())
        assert text(one) == text(other)
        assert other.stdout.split()[-2:] == [b"rank0_pqtdir", b"rank1_pqtdir"]

    @pytest.mark.parametrize("name", ["any_pqtdir", "."])
    def test_other_folders(self, cli: Cli, folder: Path, name: str) -> None:
        Path("any_pqtdir").mkdir()
        Path("any_pqtdir", "CUPTI_ACTIVITY_KIND_KERNEL.parquet").write_bytes(b"PAR1")
        result = cli("analyze", name)
        assert (result.code, result.stdout) == (3, b"")
        assert result.stderr.splitlines() == [
            f"nsysdiag: '{name}' is a folder",
            "  hint: name a .sqlite file in it, or a folder that nsys export --type parquetdir wrote",
        ]


@pytest.fixture
def runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`runs` with a.sqlite, a_pqtdir and b_pqtdir, in the current folder. All work is done in this process."""

    def run(tasks: list[Task], limits: Limits, watch: pool.Watch) -> Generator[Outcome, None, None]:
        yield from map(work, tasks)

    monkeypatch.setattr(pool, "run_locally", run)
    (folder / "runs").mkdir()
    to_folder(write(folder / "runs" / "a.sqlite"), folder / "runs" / "a_pqtdir")
    other = write(folder / "b.sqlite", 300)
    to_folder(other, folder / "runs" / "b_pqtdir")
    other.unlink()
    return folder / "runs"


def statuses(folder: Path) -> dict[str, tuple[str, str]]:
    """Of each input its name and what became of it."""
    found = from_json((folder / "summary.json").read_bytes(), BatchSummary)
    return {entry.input: (entry.name, entry.status) for entry in found.entries}


LEFT_OUT = "runs/a_pqtdir is left out: a.sqlite next to it is the same trace\n"


@pytest.mark.usefixtures("runs")
class TestBatch:
    @pytest.mark.sampled(normal=3)
    @pytest.mark.parametrize("named", ["runs", "runs/*", "runs/**", "runs/**/*", "r*/*", "."])
    def test_each_trace_once_and_none_searched(self, cli: Cli, folder: Path, named: str) -> None:
        result = cli("batch", named, "-o", "out")
        assert (result.code, result.stderr) == (0, f"{LEFT_OUT}wrote out: 2 analyzed\n")
        expected = {"runs/a.sqlite": ("runs/a", "analysed"), "runs/b_pqtdir": ("runs/b", "analysed")}
        assert statuses(folder / "out") == expected

    @pytest.mark.parametrize("named", [["runs/*_pqtdir"], ["runs/a_pqtdir/", "runs/b_pqtdir"]])
    def test_folders_that_are_asked_for(self, cli: Cli, folder: Path, named: list[str]) -> None:
        assert cli("batch", *named, "-o", "out").stderr == "wrote out: 2 analyzed\n"
        assert [*statuses(folder / "out")] == ["runs/a_pqtdir", "runs/b_pqtdir"]
        assert cli("batch", "runs", "runs/a_pqtdir", "-o", "all").stderr == "wrote all: 3 analyzed\n"

    @pytest.mark.parametrize("named", [".", "../b_pqtdir"])
    def test_the_current_folder(self, cli: Cli, folder: Path, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir("runs/b_pqtdir")
        assert cli("batch", named, "-o", folder / "out").code == 0
        assert statuses(folder / "out") == {"b_pqtdir": ("b", "analysed")}

    def test_a_name_with_a_dot_is_no_twin(self, cli: Cli, folder: Path, runs: Path) -> None:
        (runs / "a_pqtdir").rename(runs / "a.0")
        (runs / "b_pqtdir").rename(runs / "a.1")
        assert cli("batch", "runs", "-o", "out").stderr == "wrote out: 3 analyzed\n"
        assert [name for name, _ in statuses(folder / "out").values()] == ["runs/a", "runs/a.0", "runs/a.1"]

    def test_resume(self, cli: Cli, folder: Path, runs: Path) -> None:
        cli("batch", "runs", "-o", "out")
        assert cli("batch", "runs", "-o", "out", "--resume").stderr == f"{LEFT_OUT}wrote out: 2 resumed\n"
        to_folder(write(folder / "other.sqlite", 400), folder / "other")
        table = "CUPTI_ACTIVITY_KIND_KERNEL.parquet"
        shutil.copy(folder / "other" / table, runs / "b_pqtdir" / table)
        cli("batch", "runs", "-o", "out", "--resume")
        assert [status for _, status in statuses(folder / "out").values()] == ["resumed", "analysed"]

    def test_memory(self, runs: Path) -> None:
        """The peak of a folder of 17 MB was 411 MiB, of one of 29 MB that was not compressed 383 MiB."""
        for size, peak in ((17_169_824, 411 << 20), (29_214_441, 383 << 20)):
            assert peak < estimated_bytes(Input(runs / "b_pqtdir", "b_pqtdir", "b", size)) < 3 * peak
