"""Worker processes: whatever happens to one, its input is told of and the others are done."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from nsysdiag.batch import pool
from nsysdiag.batch.pool import run_locally, start_worker
from nsysdiag.batch.results import run_all
from nsysdiag.batch.task import BatchJournal, Limits, Task, work
from nsysdiag.ci.facts import BatchEntry
from tests.batch.loads import deaf, half_written, loading, tasks_of, telling_its_process

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills processes by signals")


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The worker processes that are started."""
    started: list[subprocess.Popen[bytes]] = []

    def start(scratch: str) -> tuple[subprocess.Popen[bytes], Connection]:
        process, pipe = start_worker(scratch)
        started.append(process)
        return process, pipe

    monkeypatch.setattr(pool, "start_worker", start)
    return started


def silent(_left: int, _running: list[str]) -> None:
    pass


def run(tasks: list[Task], jobs: int = 1) -> dict[str, BatchEntry]:
    return {outcome.entry.name: outcome.entry for outcome in run_locally(tasks, Limits(jobs), silent)}


def interrupt_when(mark: Path) -> None:
    """As from a terminal, twice: when the file exists, and a little later."""

    def watch() -> None:
        while not mark.exists():
            time.sleep(0.01)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)

    threading.Thread(target=watch, daemon=True).start()


@pytest.mark.slow
class TestDeaths:
    @pytest.mark.thorough
    def test_each_is_told_and_the_others_are_done(self, tmp_path: Path) -> None:
        entries = run(tasks_of(tmp_path, "good1", "killed", "crashed", "ended", "good2"), jobs=2)
        assert {name: entry.error for name, entry in entries.items()} == {
            "good1": "",
            "good2": "",
            "killed": "the process that analyzed 'killed.json' was killed, as happens if memory runs out",
            "crashed": "the process that analyzed 'crashed.json' crashed (SIGSEGV)",
            "ended": "the process that analyzed 'ended.json' ended with code 3",
        }
        assert [name for name, entry in entries.items() if entry.exit_code] == [
            name for name, entry in entries.items() if entry.status == "failed"
        ]
        assert {path.name for path in (tmp_path / "out").iterdir()} == {
            f"good{number}.{suffix}" for number in (1, 2) for suffix in ("html", "json")
        }

    def test_a_half_written_file_goes(self, tmp_path: Path) -> None:
        tasks = loading(tasks_of(tmp_path, "x"), half_written)
        (entry,) = run_all(tasks, lambda each: run_locally(each, Limits(1), silent), BatchJournal(tmp_path / "out"))
        assert entry.status == "failed"
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["resume.jsonl"]

    @pytest.mark.thorough
    def test_what_is_in_hand_is_stopped(self, tmp_path: Path, workers: list[subprocess.Popen[bytes]]) -> None:
        """With two workers, one input takes ten minutes; the other one is done."""
        tasks = tasks_of(tmp_path, "slow", "good")
        with contextlib.closing(run_locally(tasks, Limits(2), silent)) as outcomes:
            assert next(outcomes).entry.name == "good"
        assert workers
        assert None not in [worker.poll() for worker in workers]

    @pytest.mark.thorough
    def test_what_has_come_to_an_end_is_told_before_an_interrupt(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: list[subprocess.Popen[bytes]]
    ) -> None:
        original, interrupts = pool.wait, [KeyboardInterrupt]

        def interrupted(pipes: list[Connection], timeout: float | None = None) -> list[object]:
            ready = original(pipes, timeout)
            if interrupts:
                raise interrupts.pop()
            return list(ready)

        monkeypatch.setattr(pool, "wait", interrupted)
        journal = BatchJournal(tmp_path / "out")
        with pytest.raises(KeyboardInterrupt):
            run_all(tasks_of(tmp_path, "slow", "good"), lambda each: run_locally(each, Limits(2), silent), journal)
        assert list(journal.read()) == ["good"]
        assert workers
        assert None not in [worker.poll() for worker in workers]

    @pytest.mark.thorough
    def test_an_interrupt_while_workers_stop_ends_them_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: list[subprocess.Popen[bytes]]
    ) -> None:
        """One that does not listen would have a minute."""
        monkeypatch.setattr(pool, "PATIENCE_S", 60.0)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
        (task,) = loading(tasks_of(tmp_path, "slow"), deaf)
        outcomes = run_locally([task], Limits(1), lambda _left, _running: None)
        interrupt_when(tmp_path / "slow.deaf")
        with pytest.raises(KeyboardInterrupt):
            next(outcomes)
        assert workers
        assert None not in [worker.poll() for worker in workers]

    def test_private_files_of_workers_go(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        run(tasks_of(tmp_path, "killed"))
        assert list((tmp_path / "temporary").iterdir()) == []

    @pytest.mark.thorough
    def test_workers_do_several_inputs_unless_they_were_large(self, tmp_path: Path) -> None:
        """A large one leaves its memory with the worker."""
        small = tasks_of(tmp_path, "pid-1", "pid-2", "pid-3")
        large = tasks_of(tmp_path, "pid-4", "pid-5", sizes=(100 << 20, 100 << 20))
        for tasks, processes in ((small, 1), (large, 2)):
            run(loading(tasks, telling_its_process))
            told = {(tmp_path / f"{task.input.name}.told").read_text() for task in tasks}
            assert len(told) == processes

    def test_who_watches_is_told(self, tmp_path: Path) -> None:
        told: list[tuple[int, list[str]]] = []
        list(run_locally(tasks_of(tmp_path, "a", "b"), Limits(1), lambda left, running: told.append((left, running))))
        assert told == [(2, ["a.json"]), (1, ["b.json"])]


def test_too_large_ones_need_no_process(tmp_path: Path) -> None:
    tasks = tasks_of(tmp_path, "a", "b")
    outcomes = list(run_locally(tasks, Limits(1, memory_bytes=1000), silent))
    assert [outcome.entry.exit_code for outcome in outcomes] == [2, 2]
    assert "needs about 150 MiB of memory, more than the limit of 1000 B" in outcomes[0].entry.error


class TestErrorsAreEntries:
    def test_their_sentences_call_the_input_by_its_name(self, tmp_path: Path) -> None:
        (task,) = tasks_of(tmp_path, "wrong")
        entry = work(task).entry
        assert (entry.status, entry.error, entry.hint) == ("failed", "'wrong.json' is no trace", "look at wrong.json")
        assert (entry.exit_code, entry.report, entry.devices) == (3, "", [])

    def test_bugs_and_too_little_memory(self, tmp_path: Path) -> None:
        bug, full = (work(task).entry for task in tasks_of(tmp_path, "bug", "full"))
        assert (bug.exit_code, bug.error) == (70, "this is a bug in nsysdiag: ZeroDivisionError: division by zero")
        assert full.error == "not enough memory to analyze 'full.json'"

    def test_a_report_that_cannot_be_written(self, tmp_path: Path) -> None:
        (task,) = tasks_of(tmp_path, "x")
        (tmp_path / "out" / "x.html").write_text("mine")
        entry = work(task).entry
        assert entry.exit_code == 2
        assert "was not written by nsysdiag" in entry.error


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (None, "ended with code None"),
        (3, "ended with code 3"),
        (-signal.SIGSEGV, "crashed (SIGSEGV)"),
        (-signal.SIGKILL, "was killed, as happens if memory runs out"),
        (-999, "ended with code -999"),
    ],
)
def test_how_a_process_ended_is_told(tmp_path: Path, code: int | None, told: str) -> None:
    (task,) = tasks_of(tmp_path, "x")
    assert pool._death(task, code).message == f"the process that analyzed 'x.json' {told}"
