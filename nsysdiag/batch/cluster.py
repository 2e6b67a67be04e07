"""Runs the same tasks on the workers of a Dask cluster that exists already."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from nsysdiag.batch.task import Outcome, Task, failed, work
from nsysdiag.messages import InputError, NsysdiagError, UsageError
from nsysdiag.version import __version__

if TYPE_CHECKING:
    from nsysdiag.batch.pool import Watch

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
                    f"every Dask worker that analysed '{task.input.shown}' died, as happens where memory runs out",
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
    """What came of each task as it comes, None where its workers died. What is left at the end is withdrawn."""
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
            yield task, failed(task.input, NsysdiagError(f"no Dask worker was left to analyse '{task.input.shown}'"))
    except KeyboardInterrupt:  # what has come to an end is reported first
        while not done.empty():
            yield _taken(left, done.get())
        raise
    finally:
        client.cancel(list(left), force=True)


def _taken(left: dict[Any, Task], future: Any) -> tuple[Task, Outcome | None]:
    """The task of a future that is done, and its outcome: None where its workers died."""
    from distributed import KilledWorker

    task = left.pop(future)
    try:
        return task, future.result()
    except KilledWorker:
        return task, None
    except Exception as error:
        why = f"Dask could not have '{task.input.shown}' analysed: {type(error).__name__}: {error}"
        return task, failed(task.input, NsysdiagError(why))
