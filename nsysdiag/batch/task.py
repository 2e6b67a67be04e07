"""What is done to one input, in whatever process it happens. Everything here can be sent to another process."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nsysdiag.batch.entry import ANALYSED, RESUMED, entry_of, failed_entry
from nsysdiag.batch.inputs import Input
from nsysdiag.batch.journal import Done, sha256
from nsysdiag.ci.budgets import Budget, Judgement, check, judge
from nsysdiag.ci.facts import BatchEntry
from nsysdiag.config.settings import Settings
from nsysdiag.errors import InputError, MemoryShortError, NsysdiagError, OutputError
from nsysdiag.formats.format import RenderOptions
from nsysdiag.formats.registry import FORMATS
from nsysdiag.formats.write import write
from nsysdiag.record import UNREADABLE
from nsysdiag.report import Report, from_json, to_json
from nsysdiag.shortage import is_shortage, memory_short, released
from nsysdiag.trace.journals import journals_of
from nsysdiag.trace.sniff import check_regular_file
from nsysdiag.version import __version__

Load = Callable[[Path, Settings], Report]
Command = Callable[[Report], str]
_CHUNK = 1 << 20
LESS = "fewer --jobs or a --memory-limit leave each input more memory"
MARKS = (FORMATS["html"].is_ours, FORMATS["json"].is_ours)
"""What tells whether a page and a saved report are ours, whatever else their names end with."""
Check = Callable[[Report, str], Judgement]


@dataclass(frozen=True, slots=True)
class Shared:
    """What all tasks of a batch have in common. `load` makes the report of a path, `command` its command line, `check`
    judges the report of an input by the budgets: functions of modules, so that a process can find them by name."""

    folder: Path
    settings: Settings
    load: Load
    command: Command
    check: Check
    force: bool = False
    resume: bool = False


def check_budgets(report: Report, trace: str, budgets: Sequence[Budget]) -> Judgement:
    """What becomes of the budgets that are about this trace."""
    return judge(budgets, lambda budget: check(report, [budget], trace))


@dataclass(frozen=True, slots=True)
class Task:
    """One input; `before` is what an earlier batch says of it."""

    input: Input
    shared: Shared
    before: Done | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The entry, and for the next batch what was finished."""

    entry: BatchEntry
    done: Done | None = None


def work(task: Task) -> Outcome:
    """Do it all, and whatever goes wrong is an entry: one bad input must not end the others."""
    try:
        return _reported(task)
    except Exception as error:
        if is_shortage(error):
            return out_of_memory(task.input, error)
        if isinstance(error, NsysdiagError):
            return failed(task.input, error)
        return failed(task.input, NsysdiagError(f"this is a bug in nsysdiag: {type(error).__name__}: {error}"))


def out_of_memory(each: Input, error: Exception) -> Outcome:
    """The outcome of an input for which memory ran out, or no process could be started."""
    released(error)
    step = error.message if isinstance(error, MemoryShortError) else ""
    told = MemoryShortError(step, hint=LESS) if step else memory_short(error, f"analyse '{each.shown}'", LESS)
    return failed(each, told)


def failed(each: Input, error: NsysdiagError) -> Outcome:
    """The outcome of an input that came to nothing."""
    return Outcome(failed_entry(each, error))


def _reported(task: Task) -> Outcome:
    each, shared = task.input, task.shared
    if each.problem:
        raise InputError(f"'{each.shown}': {each.problem}", hint="ask for permission to read it")
    key = _key(each.path, shared.settings)
    if shared.resume and task.before and (report := _before(task, task.before, key)):
        return Outcome(entry_of(each, report, shared.check(report, each.shown), RESUMED), task.before)
    report = shared.load(each.path, shared.settings)
    done = _written(task, report, key)
    return Outcome(entry_of(each, report, shared.check(report, each.shown), ANALYSED), done)


def _before(task: Task, before: Done, key: str) -> Report | None:
    """The report of an earlier batch where it was made of the same and nobody has touched it since."""
    if before.key != key:
        return None
    page, saved = targets(task.shared.folder, task.input.name)
    try:
        data = saved.read_bytes()
        if sha256(data) != before.json or sha256(page.read_bytes()) != before.html:
            return None
        return from_json(data)
    except (OSError, *UNREADABLE):
        return None


def _key(path: Path, settings: Settings) -> str:
    """A hash of what decides the outputs: the content of the input, the settings and the version of the program."""
    changed = msgspec.json.encode(settings, order="sorted")
    return sha256(b"\n".join([_content(path).encode(), __version__.encode(), changed]))


def _content(path: Path) -> str:
    """The SHA-256 of the input, and of what counts in the journals of SQLite that are read with it: those beside the
    file itself, not beside a link to it."""
    check_regular_file(path)
    real = Path(os.path.realpath(path))
    try:
        files = [(real, real.stat().st_size), *((each.path, each.used_bytes) for each in journals_of(real))]
        return "".join(_hashed(file, size) for file, size in files)
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}") from error


def _hashed(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (data := file.read(min(size, _CHUNK))):
            digest.update(data)
            size -= len(data)
    return digest.hexdigest()


def _written(task: Task, report: Report, key: str) -> Done:
    options = RenderOptions(command=task.shared.command(report))
    page, saved = FORMATS["html"].render(report, options), to_json(report)
    paths = targets(task.shared.folder, task.input.name)
    _make_folder(paths[0].parent)
    for path, data, mark in zip(paths, (page, saved), MARKS, strict=True):
        write(path, data, force=task.shared.force, is_ours=mark)
    return Done(name=task.input.name, key=key, html=sha256(page), json=sha256(saved))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {error.strerror}") from error


def targets(folder: Path, name: str) -> tuple[Path, Path]:
    """The page and the saved report of an input."""
    return folder / f"{name}.html", folder / f"{name}.json"
