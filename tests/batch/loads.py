"""Stand-ins for the analysis that other processes can find by name: what is done depends on the name of the input."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nsysdiag.batch.inputs import Input
from nsysdiag.batch.task import Shared, Task
from nsysdiag.ci.budgets import Judgement
from nsysdiag.config.settings import Settings
from nsysdiag.messages import InputError
from tests.builder import TraceBuilder
from tests.output import samples

if TYPE_CHECKING:
    from nsysdiag.report import Report


def load(path: Path, _settings: Settings) -> Report:
    """A report; or an end of the process, or an error."""
    if "killed" in path.name:
        os.kill(os.getpid(), signal.SIGKILL)
    if "crashed" in path.name:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "ended" in path.name:
        os._exit(3)
    if "bug" in path.name:
        raise ZeroDivisionError("division by zero")
    if "full" in path.name:
        raise MemoryError
    if "wrong" in path.name:
        raise InputError(f"'{path}' is no trace", hint=f"look at {path}")
    if "slow" in path.name:
        time.sleep(600)
    return samples.one_device()


def half_written(path: Path, _settings: Settings) -> Report:
    """What a process leaves that is killed while it writes: a file that was begun, in the folder `out`."""
    (path.parent / "out" / ".nsysdiag-0123456789abcdef.tmp").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def telling_its_process(path: Path, _settings: Settings) -> Report:
    """Leaves the number of the process beside the input."""
    path.with_suffix(".told").write_text(str(os.getpid()))
    return samples.one_device()


def deaf(path: Path, _settings: Settings) -> Report:
    """Takes ten minutes, and cannot be asked to stop."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    path.with_suffix(".deaf").touch()
    time.sleep(600)
    raise AssertionError


def dying_once(path: Path, _settings: Settings) -> Report:
    """The first process that gets this input dies; a mark beside it tells the next one."""
    mark = path.with_suffix(".mark")
    if "once" in path.name and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return samples.one_device()


def command(_report: Report) -> str:
    return "nsysdiag analyze x"


def no_budgets(_report: Report, _trace: str) -> Judgement:
    return Judgement()


def tasks_of(folder: Path, *names: str, sizes: tuple[int, ...] = ()) -> list[Task]:
    """Tasks for inputs of these names, which exist in the folder and hold their own name; outputs go to `out`."""
    shared = Shared(folder / "out", Settings(), load, command, no_budgets)
    (folder / "out").mkdir(exist_ok=True)
    tasks = []
    for at, name in enumerate(names):
        path = folder / f"{name}.json"
        path.write_text(f'{{"name": "{name}"}}')
        tasks.append(Task(Input(path, path.name, name, sizes[at] if sizes else 10), shared))
    return tasks


def loading(tasks: list[Task], by: object) -> list[Task]:
    """The same tasks with another way to load."""
    return [replace(task, shared=replace(task.shared, load=by)) for task in tasks]


def many_runs(folder: Path, count: int = 64) -> int:
    """So many runs, of which one is empty, one torn and one may not be read; how many of them cannot be analyzed:
    whoever may read everything can read the last one too."""
    for rank in range(count):
        path = folder / f"rank{rank}" / "report.sqlite"
        path.parent.mkdir(parents=True)
        TraceBuilder().kernel(100, 200 + rank, name="gemm", launch=(50, 60)).write(path)
    (folder / "rank7" / "report.sqlite").write_bytes(b"")
    torn = folder / "rank8" / "report.sqlite"
    torn.write_bytes(torn.read_bytes()[:5000])
    secret = folder / "rank9" / "report.sqlite"
    secret.chmod(0)
    return 2 if os.access(secret, os.R_OK) else 3
