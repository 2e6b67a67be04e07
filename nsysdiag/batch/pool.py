"""Runs tasks in local processes, which import nothing from the current folder, or on the workers of a Dask cluster.

Each worker has its own pipe, which shows the input of a worker that died: that input failed, and a new worker takes the
next. Workers are spawned, not forked: a fork copies locks that some thread holds."""

from __future__ import annotations

import contextlib
import errno
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from msgspec import Struct, field

from nsysdiag.batch.task import BASE_BYTES, LESS, Limits, Outcome, Task, estimated_bytes, failed, out_of_memory, work
from nsysdiag.batch.worker import OUT_OF_MEMORY
from nsysdiag.messages import InputError, MemoryShortError, NsysdiagError, UsageError
from nsysdiag.process import private_folder
from nsysdiag.shortage import is_shortage
from nsysdiag.version import __version__

Watch = Callable[[int, list[str]], None]
"""Called with how many inputs are left, and which are in hand, whenever that changes."""
PATIENCE_S = 5.0
"""How long the workers that are to stop may tidy up."""

RETIRE_BYTES = 2 * BASE_BYTES
"""A worker that had this much in hand is replaced: it keeps most of the memory, which the next input may need."""


class _Worker(Struct):
    """A process, our end of its pipe, and the task that it has in hand."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    task: Task | None = None


def run_locally(tasks: list[Task], limits: Limits, watch: Watch) -> Generator[Outcome, None, None]:
    """The outcomes as they come, the largest inputs first. Closing the iterator stops the work that is in hand, and so
    does an interrupt, after the outcomes that are there already."""
    waiting = sorted(tasks, key=lambda task: (-task.input.size_bytes, task.input.name))
    with private_folder() as scratch:
        pool = _WorkerPool(str(scratch))
        try:
            yield from _run(waiting, limits, pool, watch)
        except KeyboardInterrupt:
            yield from pool.finished(timeout=0)
            raise
        finally:
            pool.stop()


def _run(waiting: list[Task], limits: Limits, pool: _WorkerPool, watch: Watch) -> Iterator[Outcome]:
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


class _WorkerPool(Struct):
    """The workers that are alive. `scratch` is where they put their private files: it goes even if they are killed."""

    scratch: str
    workers: list[_Worker] = field(default_factory=list)

    def running(self) -> list[Task]:
        return [worker.task for worker in self.workers if worker.task]

    def start(self, task: Task) -> Outcome | None:
        """Give a task to an idle worker, or to a new one: an idle one may have died unseen. The outcome if the
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

    def _hired(self) -> _Worker:
        self.workers.append(_Worker(*start_worker(self.scratch)))
        return self.workers[-1]

    def finished(self, timeout: float | None = None) -> list[Outcome]:
        """Wait until some task has come to an end, `timeout` seconds at most if that is limited. A worker that dies
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
            f"the process that analyzed '{shown}' was killed, as happens if memory runs out",
            hint="fewer --jobs or a --memory-limit leave each more memory",
        )
    if code == OUT_OF_MEMORY:
        return MemoryShortError(f"not enough memory for the process that analyses '{shown}'", hint=LESS)
    how = f"ended with code {code}"
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            how = f"crashed ({signal.Signals(-code).name})"
    return NsysdiagError(f"the process that analyzed '{shown}' {how}", hint="try it alone: nsysdiag analyze")


_CODE = "import sys; sys.path[:] = {path!r}; from nsysdiag.batch.worker import main; main({pipe}, {scratch!r})"
_FLAGS = {"isolated": "-I", "ignore_environment": "-E", "no_user_site": "-s"}
"""What keeps this process from settings and modules of the user keeps its workers from them too."""


def start_worker(scratch: str) -> tuple[subprocess.Popen[bytes], Connection]:
    """A new worker, and the parent's end of its pipe. It has the module path of this process without the current
    folder, plus the folder of this package. Raises OSError if the system starts no more processes."""
    home = str(Path(__file__).parents[2])
    path = [*(each for each in sys.path if each), *([] if home in sys.path else [home])]
    flags = [option for name, option in _FLAGS.items() if getattr(sys.flags, name)]
    ours, theirs = Pipe()
    code = _CODE.format(path=path, pipe=theirs.fileno(), scratch=scratch)
    with theirs, _signals_kept_away():
        command = [sys.executable, "-P", "-X", "utf8", *flags, "-c", code]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **_inheriting(theirs))
    return process, ours


def _inheriting(pipe: Connection) -> dict[str, Any]:
    """The options of Popen with which a process inherits this end of a pipe, and no other."""
    if sys.platform != "win32":
        return {"pass_fds": (pipe.fileno(),)}
    import os

    os.set_handle_inheritable(pipe.fileno(), True)
    return {"startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": [pipe.fileno()]})}


@contextmanager
def _signals_kept_away() -> Iterator[None]:
    """A process that is started within never gets the interrupt of a terminal, nor its end: the parent ends its work.
    SIGTERM waits until the process can tidy up."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# Runs the same tasks on the workers of a Dask cluster that exists already.

CONNECT_S = 15.0
CHECK_EVERY_S = 5.0
"""How often to see whether there are workers left, while nothing comes back."""
CHECKS_WITHOUT_WORKERS = 12


def run_on_cluster(tasks: list[Task], address: str, watch: Watch) -> Generator[Outcome, None, None]:
    """The outcomes as they finish.

    Closing the iterator cancels the rest. Raises UsageError if Dask is not installed, or the scheduler cannot be
    reached or has no workers. Also if a worker has another version or does not see the folders.
    """
    with _client(address) as client:
        if not tasks:
            return
        _check_workers(client, tasks)
        suspects = []
        for task, outcome in _round(client, tasks, watch):
            if outcome is None:
                suspects.append(task)
            else:
                yield outcome
        # Dask gives up all that a worker held which died too often. Alone, each shows whether it was the one.
        for suspect in suspects:
            for task, outcome in _round(client, [suspect], watch):
                died = InputError(
                    f"every Dask worker that analyzed '{task.input.shown}' died, as happens if memory runs out",
                    hint="give the workers more memory, and one thread each",
                )
                yield outcome or failed(task.input, died)


@contextmanager
def _client(address: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError(
            "--scheduler needs Dask, which is not installed", hint="install nsysdiag with its extra: nsysdiag[dask]"
        ) from error
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"the Dask scheduler '{address}' cannot be reached: {error}", hint="it looks like tcp://host:8786"
        ) from error
    try:
        yield client
    finally:
        client.close(timeout=CONNECT_S)


def _check_workers(client: Any, tasks: list[Task]) -> None:
    """Every worker must be able to do every task: it has this program, and sees the inputs and the outputs."""
    places = sorted({str(task.shared.folder) for task in tasks} | {str(task.input.path.parent) for task in tasks})
    try:
        answers: dict[str, tuple[str, list[str]]] = client.run(_unseen, places)
    except Exception as error:
        raise UsageError(
            f"the workers cannot run nsysdiag: {type(error).__name__}: {error}",
            hint=f"nsysdiag {__version__} must be installed where they run",
        ) from error
    if not answers:
        raise UsageError(
            "the Dask scheduler has no workers", hint="start some: PYTHONSAFEPATH=1 dask worker ADDRESS --nthreads 1"
        )
    for worker, (version, unseen) in sorted(answers.items()):
        if version != __version__:
            raise UsageError(f"the worker {worker} has nsysdiag {version}, not {__version__}")
        if unseen:
            raise UsageError(
                f"the worker {worker} does not see {unseen[0]}",
                hint="traces and the output folder must have the same paths on every worker, as on a shared disk",
            )


def _unseen(places: list[str]) -> tuple[str, list[str]]:
    return __version__, [place for place in places if not Path(place).is_dir()]


def _round(client: Any, tasks: list[Task], watch: Watch) -> Iterator[tuple[Task, Outcome | None]]:
    """What came of each task as it comes, None if its workers died. What is left at the end is withdrawn."""
    left = {client.submit(work, task, pure=False): task for task in tasks}
    done: SimpleQueue[Any] = SimpleQueue()
    for future in left:
        future.add_done_callback(done.put)
    try:
        watch(len(left), [])
        checks = 0
        while left and checks < CHECKS_WITHOUT_WORKERS:
            try:
                future = done.get(timeout=CHECK_EVERY_S)
            except Empty:
                checks = 0 if client.scheduler_info(n_workers=-1)["workers"] else checks + 1
                continue
            yield _taken(left, future)
            watch(len(left), [])
        for task in left.values():
            yield task, failed(task.input, NsysdiagError(f"no Dask worker was left to analyze '{task.input.shown}'"))
    except KeyboardInterrupt:  # what has come to an end is reported first
        while not done.empty():
            yield _taken(left, done.get())
        raise
    finally:
        client.cancel(list(left), force=True)


def _taken(left: dict[Any, Task], future: Any) -> tuple[Task, Outcome | None]:
    """The task of a future that is done, and its outcome: None if its workers died."""
    from distributed import KilledWorker

    task = left.pop(future)
    try:
        return task, future.result()
    except KilledWorker:
        return task, None
    except Exception as error:
        why = f"Dask could not have '{task.input.shown}' analyzed: {type(error).__name__}: {error}"
        return task, failed(task.input, NsysdiagError(why))
