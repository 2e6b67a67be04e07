"""Runs tasks in processes of this machine.

Each worker has a pipe of its own, so that it is known which input a worker had in hand when it died: that one failed,
and a new worker takes the next. Workers are started afresh, not forked: a fork copies locks that some thread holds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

import msgspec

from nsysdiag.batch.inputs import SAVED
from nsysdiag.batch.limits import BASE_BYTES, estimated_bytes
from nsysdiag.batch.start import start_worker
from nsysdiag.batch.task import LESS, Outcome, Task, failed, out_of_memory
from nsysdiag.batch.worker import OUT_OF_MEMORY
from nsysdiag.errors import InputError, MemoryShortError, NsysdiagError, UsageError
from nsysdiag.private import private_folder
from nsysdiag.shortage import is_shortage
from nsysdiag.signals import undisturbed
from nsysdiag.units import format_bytes

Watch = Callable[[int, list[str]], None]
"""Told how many inputs are left, and which are in hand, whenever that changes."""
PATIENCE_S = 5.0
"""How long the workers that are told to stop may tidy up."""

RETIRE_BYTES = 2 * BASE_BYTES
"""A worker that had this much in hand is replaced: it keeps most of the memory, which the next input may need."""


@dataclass(slots=True)
class _Worker:
    """A process, our end of its pipe, and the task that it has in hand."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    task: Task | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """At most `jobs` tasks at once, and together `memory_bytes` where that is limited."""

    jobs: int
    memory_bytes: int | None = None

    def too_large(self, task: Task) -> UsageError | None:
        """Why a task cannot run at all: not even a part of a trace fits, or a saved report, which has no parts."""
        needed = estimated_bytes(task.input)
        if self.memory_bytes is None or needed <= self.memory_bytes:
            return None
        if self.memory_bytes > BASE_BYTES and task.input.path.suffix.lower() != SAVED:
            return None
        return UsageError(
            f"'{task.input.shown}' needs about {format_bytes(needed)} of memory, more than the limit of "
            f"{format_bytes(self.memory_bytes)}",
            hint="raise --memory-limit",
        )

    def admit(self, task: Task, running: list[Task]) -> bool:
        """Whether a task may run beside those that run."""
        if len(running) >= self.jobs:
            return False
        if self.memory_bytes is None:
            return True
        return sum(self._needed(each) for each in (task, *running)) <= self.memory_bytes

    def fitted(self, task: Task) -> Task:
        """The task as it will run: with the limit for the analysis where it may need more."""
        if self.memory_bytes is None or estimated_bytes(task.input) <= self.memory_bytes:
            return task
        settings = msgspec.structs.replace(task.shared.settings, memory_limit=self.memory_bytes)
        return dataclasses.replace(task, shared=dataclasses.replace(task.shared, settings=settings))

    def _needed(self, task: Task) -> int:
        assert self.memory_bytes is not None
        return min(estimated_bytes(task.input), self.memory_bytes)


def run_locally(tasks: list[Task], limits: Limits, watch: Watch) -> Generator[Outcome, None, None]:
    """The outcomes as they come, the largest inputs first. Closing the iterator stops the work that is in hand, and so
    does an interrupt, after the outcomes that are there already."""
    waiting = sorted(tasks, key=lambda task: (-task.input.size_bytes, task.input.name))
    with private_folder() as scratch:
        pool = _Pool(str(scratch))
        try:
            yield from _run(waiting, limits, pool, watch)
        except KeyboardInterrupt:
            yield from pool.finished(timeout=0)
            raise
        finally:
            pool.stop()


def _run(waiting: list[Task], limits: Limits, pool: _Pool, watch: Watch) -> Iterator[Outcome]:
    for task in list(waiting):
        if error := limits.too_large(task):
            waiting.remove(task)
            yield failed(task.input, error)
    while waiting or pool.running():
        while admitted := [each for each in waiting if limits.admit(each, pool.running())]:
            waiting.remove(admitted[0])
            if unstarted := pool.start(limits.fitted(admitted[0])):
                yield unstarted
        running = pool.running()
        watch(len(waiting) + len(running), [each.input.shown for each in running])
        if running:  # else none could be started, and to wait would take forever
            yield from pool.finished()


@dataclass(slots=True)
class _Pool:
    """The workers that are alive. `scratch` is where they put their private files: it goes even if they are killed."""

    scratch: str
    workers: list[_Worker] = field(default_factory=list)

    def running(self) -> list[Task]:
        return [worker.task for worker in self.workers if worker.task]

    def start(self, task: Task) -> Outcome | None:
        """Give a task to an idle worker, or to a new one: an idle one may have died unseen. The outcome where the
        system starts no more processes."""
        for worker in [each for each in self.workers if each.task is None]:
            if _sent(worker, task):
                return None
            self._drop(worker)
        try:
            worker = self._hired()
        except (OSError, MemoryError, RuntimeError) as error:
            if not is_shortage(error) and getattr(error, "errno", None) != errno.EAGAIN:
                raise
            return out_of_memory(task.input, error)
        if not _sent(worker, task):
            worker.task = task  # it died at once, and is found dead with the task in hand
        return None

    @undisturbed
    def _hired(self) -> _Worker:
        self.workers.append(_Worker(*start_worker(self.scratch)))
        return self.workers[-1]

    def finished(self, timeout: float | None = None) -> list[Outcome]:
        """Wait until some task has come to an end, `timeout` seconds at most where that is limited. A worker that dies
        closes its pipe, which ends the wait too."""
        busy = {worker.pipe: worker for worker in self.workers if worker.task}
        ready = [busy[pipe] for pipe in wait(list(busy), timeout) if isinstance(pipe, Connection)]
        return [self._result(worker) for worker in ready]

    def _result(self, worker: _Worker) -> Outcome:
        assert worker.task is not None
        task, worker.task = worker.task, None
        try:
            outcome: Outcome = worker.pipe.recv()
        except (EOFError, OSError):
            self._drop(worker)
            return failed(task.input, _death(task, worker.process.returncode))
        if estimated_bytes(task.input) > RETIRE_BYTES:
            self._drop(worker)
        return outcome

    def _drop(self, worker: _Worker) -> None:
        worker.pipe.close()
        if not _ended(worker, PATIENCE_S):
            worker.process.kill()
            worker.process.wait()
        self.workers.remove(worker)

    def stop(self) -> None:
        """End all workers: the idle ones by closing their pipes, the others by a signal that lets them tidy up. Another
        interrupt meanwhile ends that patience."""
        for worker in self.workers:
            worker.pipe.close()
            if worker.task:
                worker.process.terminate()
        end = time.monotonic() + PATIENCE_S
        try:
            for worker in self.workers:
                _ended(worker, max(0.0, end - time.monotonic()))
        finally:
            for worker in self.workers:
                worker.process.kill()  # does nothing to one that has ended
                worker.process.wait()


def _ended(worker: _Worker, timeout: float) -> bool:
    """Whether the process has ended; waits for that, `timeout` seconds at most."""
    try:
        worker.process.wait(timeout)
    except subprocess.TimeoutExpired:
        return False
    return True


def _sent(worker: _Worker, task: Task) -> bool:
    try:
        worker.pipe.send(task)
    except OSError:
        return False
    worker.task = task
    return True


def _death(task: Task, code: int | None) -> NsysdiagError:
    shown = task.input.shown
    if code is not None and code < 0 and -code == getattr(signal, "SIGKILL", 9):
        return InputError(
            f"the process that analysed '{shown}' was killed, as happens where memory runs out",
            hint="fewer --jobs or a --memory-limit leave each more memory",
        )
    if code == OUT_OF_MEMORY:
        return MemoryShortError(f"not enough memory for the process that analyses '{shown}'", hint=LESS)
    how = f"ended with code {code}"
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            how = f"crashed ({signal.Signals(-code).name})"
    return NsysdiagError(f"the process that analysed '{shown}' {how}", hint="try it alone: nsysdiag analyze")
