"""A batch on a Dask cluster: a real one, with worker processes that can die."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from msgspec.structs import replace

from nsysdiag.batch import pool as clusters
from nsysdiag.batch.pool import run_on_cluster
from nsysdiag.batch.results import run_all
from nsysdiag.batch.task import BatchJournal, Task, work
from nsysdiag.cli.app import app
from nsysdiag.cli.console import run
from nsysdiag.formats.batch.entries import summary_of
from nsysdiag.messages import UsageError
from nsysdiag.record import to_json
from tests.batch.loads import dying_once, loading, many_runs, tasks_of
from tests.levels import THOROUGH

needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="Dask is not installed")

RUNS = 64 if THOROUGH else 12


def silent(_left: int, _running: list[str]) -> None:
    pass


def test_without_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match="--scheduler needs Dask, which is not installed") as caught:
        list(run_on_cluster(tasks_of(tmp_path, "a"), "tcp://127.0.0.1:1", silent))
    assert caught.value.hint == "install nsysdiag with its extra: nsysdiag[dask]"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes, and a nanny that replaces one that dies; a task may take one of them with it."""
    import dask
    from distributed import LocalCluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONSAFEPATH", "1")  # as docs/batches.md has it
        with (
            dask.config.set({"distributed.scheduler.allowed-failures": 1}),
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=60) as made,
        ):
            yield made


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # what Dask warns of is its own
class TestCluster:
    @pytest.mark.thorough
    def test_same_bytes_as_without_although_a_worker_is_killed(self, cluster: Any, tmp_path: Path) -> None:
        made = {}
        for way in ("alone", "cluster"):
            (tmp_path / way).mkdir()
            names = ("a", "b", "once", "c", "wrong", "d") if way == "cluster" else ("a", "b", "c", "d", "once", "wrong")
            tasks = tasks_of(tmp_path / way, *names)
            tasks = [*loading([each for each in tasks if each.input.name != "wrong"], dying_once), *wrong(tasks)]
            if way == "alone":
                (tmp_path / way / "once.mark").touch()
                outcomes = [work(task) for task in tasks]
            else:
                outcomes = list(run_on_cluster(tasks, cluster.scheduler_address, silent))
            entries = sorted((outcome.entry for outcome in outcomes), key=lambda entry: entry.name)
            made[way] = (to_json(summary_of(entries)), contents(tmp_path / way / "out"))
        assert (tmp_path / "cluster" / "once.mark").exists()  # so it did die
        assert made["cluster"] == made["alone"]
        assert made["alone"][0].count(b'"status": "analysed"') == 5

    @pytest.mark.thorough
    def test_what_kills_every_worker_fails_alone(self, cluster: Any, tmp_path: Path) -> None:
        """Dask first gives up the good ones too, which lay on the workers that died."""
        tasks = tasks_of(tmp_path, "killed", *(f"good{number}" for number in range(6)))
        made = [outcome.entry for outcome in run_on_cluster(tasks, cluster.scheduler_address, silent)]
        assert len(made) == len(tasks)
        assert [entry.error for entry in made if entry.status == "failed"] == [
            "every Dask worker that analyzed 'killed.json' died, as happens if memory runs out"
        ]

    @pytest.mark.thorough
    def test_the_command(self, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        bad = many_runs(tmp_path / "runs", RUNS)
        assert run(app, ["batch", "runs", "-o", "alone", "--jobs", "1"]) == 4
        assert run(app, ["batch", "runs", "-o", "cluster", "--scheduler", cluster.scheduler_address]) == 4
        assert contents(tmp_path / "cluster") == contents(tmp_path / "alone")
        assert len([name for name in contents(tmp_path / "alone") if name.endswith("/report.html")]) == RUNS - bad

    def test_what_has_come_to_an_end_is_told_before_an_interrupt(
        self, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(clusters, "SimpleQueue", Interrupted)
        journal = BatchJournal(tmp_path / "out")
        tasks = tasks_of(tmp_path, "a", "b")
        with pytest.raises(KeyboardInterrupt):
            run_all(tasks, lambda each: run_on_cluster(each, cluster.scheduler_address, silent), journal)
        assert sorted(journal.read()) == ["a", "b"]

    def test_another_version(self, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clusters, "__version__", "999")
        with pytest.raises(UsageError, match=r"the worker tcp://\S+ has nsysdiag 0\.\d+\.\d+, not 999"):
            list(run_on_cluster(tasks_of(tmp_path, "a"), cluster.scheduler_address, silent))

    @pytest.mark.thorough
    def test_a_cluster_that_goes_away(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from distributed import LocalCluster

        monkeypatch.setattr(clusters, "CHECK_EVERY_S", 0.2)
        monkeypatch.setattr(clusters, "CHECKS_WITHOUT_WORKERS", 3)
        tasks = tasks_of(tmp_path, "good", "slow")
        with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=":0", silence_logs=60) as short:
            made = run_on_cluster(tasks, short.scheduler_address, silent)
            assert next(made).entry.status == "analysed"
            short.close()
            (lost,) = list(made)
        assert lost.entry.status == "failed"
        assert "'slow.json'" in lost.entry.error

    def test_paths_that_workers_do_not_see(self, cluster: Any, tmp_path: Path) -> None:
        (task,) = tasks_of(tmp_path, "a")
        task = replace(task, shared=replace(task.shared, folder=tmp_path / "nowhere"))
        with pytest.raises(UsageError, match=r"the worker tcp://\S+ does not see .*nowhere"):
            list(run_on_cluster([task], cluster.scheduler_address, silent))

    def test_a_scheduler_without_workers(self, tmp_path: Path) -> None:
        from distributed import LocalCluster

        with (
            LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=60) as empty,
            pytest.raises(UsageError, match="has no workers"),
        ):
            list(run_on_cluster(tasks_of(tmp_path, "a"), empty.scheduler_address, silent))

    @pytest.mark.thorough
    @pytest.mark.parametrize("address", [pytest.param("tcp://127.0.0.1:1", marks=pytest.mark.thorough), "nonsense://x"])
    def test_no_scheduler(self, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clusters, "CONNECT_S", 1.0)
        with pytest.raises(UsageError, match="cannot be reached"):
            list(run_on_cluster(tasks_of(tmp_path, "a"), address, silent))


class Interrupted(Queue[Any]):
    """The interrupt comes when two tasks have come to an end."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if timeout is not None:
            while self.qsize() < 2:
                time.sleep(0.01)
            raise KeyboardInterrupt
        return super().get(block)


def wrong(tasks: list[Task]) -> list[Task]:
    return [task for task in tasks if task.input.name == "wrong"]


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
