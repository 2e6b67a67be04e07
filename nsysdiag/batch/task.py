"""What is done to one input, in whatever process it happens, and what is written down of it. Everything here can be
sent to another process."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from nsysdiag.batch.inputs import SAVED, Input
from nsysdiag.ci.budgets import Budget, Judgement, check, judge
from nsysdiag.ci.facts import FAIL, BatchEntry
from nsysdiag.config.settings import Settings
from nsysdiag.formats import FORMATS, RenderOptions, write
from nsysdiag.formats.batch.entries import ANALYZED, FAILED, RESUMED, entry_of
from nsysdiag.messages import InputError, MemoryShortError, NsysdiagError, OutputError, UsageError, printable
from nsysdiag.process import make_folder
from nsysdiag.record import UNREADABLE, Record, to_json
from nsysdiag.report import SCHEMA_VERSION, Report
from nsysdiag.saved import from_json
from nsysdiag.shortage import is_shortage, memory_short
from nsysdiag.trace.formats import REPORT, SQLITE, check_regular_file, folder_format, named_format
from nsysdiag.trace.source import journals_of
from nsysdiag.units import format_bytes
from nsysdiag.version import __version__

# The finished inputs of a batch, so that the next one can skip them: `resume.jsonl` in the folder of the reports. A
# line is added as soon as both files of an input are written. It has hashes of input, settings and outputs: a report
# that was changed, or made with other settings or another version, is made again.

JOURNAL = "resume.jsonl"
_CHUNK = 1 << 20


class Done(Record, frozen=True):
    """A finished input: the name of its outputs, the hash of everything they depend on, and the SHA-256 of both. `tool`
    marks the line as ours."""

    name: str
    key: str
    html: str
    json: str
    tool: str = "nsysdiag"


def sha256(data: bytes) -> str:
    """As hex digits."""
    return hashlib.sha256(data).hexdigest()


def key_of(path: Path, settings: Settings) -> str:
    """A hash of what decides the outputs: the content of the input, the settings, the version of the program and that
    of its reports."""
    changed = msgspec.json.encode(settings, order="sorted")
    return sha256(b"\n".join([content_of(path).encode(), __version__.encode(), SCHEMA_VERSION.encode(), changed]))


def content_of(path: Path) -> str:
    """The SHA-256 of the input: of a folder that of its files. A file counts with what its journals of SQLite hold:
    those next to the file itself, not next to a link to it."""
    folder = folder_format(path)
    try:
        if folder and folder.files:
            its = [each for each in folder.files(path) if each.is_file()]
            parts = [f"{each.name} {_hashed(each, each.stat().st_size)}" for each in its]
            return sha256("\n".join(parts).encode("utf-8", "surrogatepass"))
        check_regular_file(path)
        real = Path(os.path.realpath(path))
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


def is_journal(data: bytes) -> bool:
    """Whether this can be a file of ours: an empty one is one that was begun."""
    first, *_ = data.split(b"\n", 1)
    return not first or _line(first) is not None


def _line(line: bytes) -> Done | None:
    try:
        done = msgspec.json.decode(line, type=Done)
    except UNREADABLE:
        return None
    return done if done.tool == "nsysdiag" else None


class BatchJournal:
    """The lines of one folder. `begin` starts a new file, `add` appends to it."""

    def __init__(self, folder: Path) -> None:
        self.path: Path = folder / JOURNAL
        self._lines: dict[str, Done] = {}

    def read(self) -> dict[str, Done]:
        """What earlier batches finished, by name; nothing without a file. Damaged lines are skipped."""
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise OutputError(f"cannot read {self.path}: {error.strerror}") from error
        return {done.name: done for line in lines if (done := _line(line))}

    def begin(self, known: Iterable[Done], *, force: bool) -> None:
        """Write what is known already. Raises OutputError if the file is not ours or cannot be written."""
        self._lines = {done.name: done for done in known}
        write(self.path, self._content(), force=force, is_ours=is_journal)

    def add(self, done: Done) -> None:
        """Append a line."""
        self._lines[done.name] = done
        try:
            with self.path.open("ab") as file:
                file.write(msgspec.json.encode(done, order="sorted") + b"\n")
        except OSError as error:
            raise OutputError(f"cannot write {self.path}: {error.strerror}") from error

    def finish(self) -> None:
        """Write the file once more: sorted, each name once."""
        write(self.path, self._content(), force=False, is_ours=is_journal)

    def _content(self) -> bytes:
        lines = [msgspec.json.encode(self._lines[name], order="sorted") + b"\n" for name in sorted(self._lines)]
        return b"".join(lines)


# One input.

Load = Callable[[Path, Settings], Report]
Command = Callable[[Report], str]
LESS = "fewer --jobs or a --memory-limit leave each input more memory"
MARKS = (FORMATS["html"].is_ours, FORMATS["json"].is_ours)
"""What tells whether a page and a saved report are ours, whatever else their names end with."""
Check = Callable[[Report, str], Judgement]


class Shared(Struct, frozen=True):
    """What all tasks of a batch have in common. `load` makes the report of a path, `command` its command line, and
    `check` judges the report of an input by the budgets. All are module-level functions, so that they can be
    pickled."""

    folder: Path
    settings: Settings
    load: Load
    command: Command
    check: Check
    force: bool = False
    resume: bool = False


def check_budgets(report: Report, trace: str, budgets: Sequence[Budget], unjudged_does: str = FAIL) -> Judgement:
    """The budgets that are about this trace, judged."""
    return judge(budgets, lambda budget: check(report, [budget], trace), unjudged_does)


class Task(Struct, frozen=True):
    """One input; `before` is what an earlier batch says of it."""

    input: Input
    shared: Shared
    before: Done | None = None


class Outcome(Struct, frozen=True):
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
    step = error.message if isinstance(error, MemoryShortError) else ""
    short = MemoryShortError(step, hint=LESS) if step else memory_short(error, f"analyze '{each.shown}'", LESS)
    return failed(each, short)


def failed(each: Input, error: NsysdiagError) -> Outcome:
    """The outcome of an input without a report. Its sentences call the input what the batch calls it, wherever it
    is, and so its export."""
    names = [(each.path, each.shown)]
    if named_format(each.path) is REPORT:
        (export,) = SQLITE.suffixes
        names.append((each.path.with_suffix(export), str(PurePosixPath(each.shown).with_suffix(export))))

    def shown(sentence: str) -> str:
        for path, name in names:
            sentence = sentence.replace(printable(path), name).replace(str(path), name)
        return printable(sentence)

    entry = BatchEntry(
        input=each.shown,
        name=each.name,
        status=FAILED,
        fingerprint="",
        size_bytes=each.size_bytes,
        report="",
        devices=[],
        findings=[],
        budgets=[],
        warnings=[],
        error=shown(error.message),
        hint=shown(error.hint or ""),
        exit_code=error.exit_code,
    )
    return Outcome(entry)


def _reported(task: Task) -> Outcome:
    each, shared = task.input, task.shared
    if each.problem:
        raise InputError(f"'{each.shown}': {each.problem}", hint="ask for permission to read it")
    key = key_of(each.path, shared.settings)
    report = _before(task, key) if shared.resume else None
    if report:
        status, done = RESUMED, task.before
    else:
        report = shared.load(each.path, shared.settings)
        status, done = ANALYZED, _written(task, report, key)
    judged = shared.check(report, each.shown)
    page = f"{each.name}.html"
    return Outcome(entry_of(report, each.shown, each.name, status, page, judged.results, judged.unjudged), done)


def _before(task: Task, key: str) -> Report | None:
    """The report of an earlier batch if it was made of the same and was not changed since."""
    before = task.before
    if before is None or before.key != key:
        return None
    page, saved = targets(task.shared.folder, task.input.name)
    try:
        data = saved.read_bytes()
        if sha256(data) != before.json or sha256(page.read_bytes()) != before.html:
            return None
        return from_json(data, Report)
    except (OSError, *UNREADABLE):
        return None


def _written(task: Task, report: Report, key: str) -> Done:
    options = RenderOptions(command=task.shared.command(report))
    page, saved = FORMATS["html"].render(report, options), to_json(report)
    paths = targets(task.shared.folder, task.input.name)
    make_folder(paths[0].parent)
    for path, data, mark in zip(paths, (page, saved), MARKS, strict=True):
        write(path, data, force=task.shared.force, is_ours=mark)
    return Done(name=task.input.name, key=key, html=sha256(page), json=sha256(saved))


def targets(folder: Path, name: str) -> tuple[Path, Path]:
    """The page and the saved report of an input."""
    return folder / f"{name}.html", folder / f"{name}.json"


# How much may run at once: the CPUs of this process, and the memory that an input is expected to need.

MIB = 1 << 20
BASE_BYTES, BYTES_PER_BYTE = 150 * MIB, 3
"""Memory of a process for an empty trace, and for each byte of a trace. Measured peaks of `nsysdiag analyze -o x.json
-o x.html`: 107 MiB for a trace of 50 kernels, 631 MiB for 442 MB with 1,000,000 kernels, 1,168 MiB for 891 MB with
2,000,000. Traces without samples and call chains, of which only few are read, need more for each byte. So the limit is
more than twice the measured values."""
BYTES_PER_PACKED_BYTE = 30
"""For a report that must be exported first: the export is several times as large. An SQLite file is also larger than a
folder of Parquet files. Measured for 200,000 kernels: 411 MiB from a folder of 17 MB; 383 MiB from one of 29 MB without
compression; 300 MiB from an SQLite file of 86 MB."""
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def estimated_bytes(each: Input) -> int:
    """The memory that the analysis of an input takes at its peak, rather too much than too little."""
    found = named_format(each.path)
    return BASE_BYTES + each.size_bytes * (BYTES_PER_PACKED_BYTE if found and found.packed else BYTES_PER_BYTE)


def usable_cpus() -> int:
    """The CPUs that this process may use: fewer than there are if an affinity or a container's quota says so."""
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        quota, period = CPU_QUOTA.read_text("ascii").split()
        return max(1, min(cpus, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # `max` is not a number
        return max(1, cpus)


class Limits(Struct, frozen=True):
    """At most `jobs` tasks at once, and together `memory_bytes` if that is limited."""

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
        """Whether a task may run in addition to the running ones."""
        if len(running) >= self.jobs:
            return False
        limit = self.memory_bytes
        return limit is None or sum(min(estimated_bytes(each.input), limit) for each in (task, *running)) <= limit

    def fitted(self, task: Task) -> Task:
        """The task as it will run: with the limit for the analysis if it may need more."""
        if self.memory_bytes is None or estimated_bytes(task.input) <= self.memory_bytes:
            return task
        settings = replace(task.shared.settings, memory_limit=self.memory_bytes)
        return replace(task, shared=replace(task.shared, settings=settings))
