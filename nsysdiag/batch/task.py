"""What is done to one input, in whatever process it happens. Everything here can be sent to another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from nsysdiag.batch.inputs import REPORTS, TRACE, Input
from nsysdiag.batch.journal import Done, key_of, sha256
from nsysdiag.ci.budgets import Budget, Judgement, check, judge
from nsysdiag.ci.facts import FAIL, BatchEntry
from nsysdiag.config.settings import Settings
from nsysdiag.errors import InputError, MemoryShortError, NsysdiagError, OutputError, printable
from nsysdiag.formats.batch.entries import ANALYSED, FAILED, RESUMED, entry_of
from nsysdiag.formats.format import FORMATS, RenderOptions
from nsysdiag.formats.write import write
from nsysdiag.record import UNREADABLE, to_json
from nsysdiag.report import Report
from nsysdiag.saved import from_json
from nsysdiag.shortage import is_shortage, memory_short

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
    short = MemoryShortError(step, hint=LESS) if step else memory_short(error, f"analyse '{each.shown}'", LESS)
    return failed(each, short)


def failed(each: Input, error: NsysdiagError) -> Outcome:
    """The outcome of an input without a report. Its sentences call the input what the batch calls it, wherever it
    is, and so its export."""
    names = [(each.path, each.shown)]
    if each.path.suffix.lower() in REPORTS:
        names.append((each.path.with_suffix(TRACE), str(PurePosixPath(each.shown).with_suffix(TRACE))))

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
        status, done = ANALYSED, _written(task, report, key)
    judged = shared.check(report, each.shown)
    page = f"{each.name}.html"
    return Outcome(entry_of(report, each.shown, each.name, status, page, judged.results, judged.unjudged), done)


def _before(task: Task, key: str) -> Report | None:
    """The report of an earlier batch where it was made of the same and was not changed since."""
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
    folder = paths[0].parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {error.strerror}") from error
    for path, data, mark in zip(paths, (page, saved), MARKS, strict=True):
        write(path, data, force=task.shared.force, is_ours=mark)
    return Done(name=task.input.name, key=key, html=sha256(page), json=sha256(saved))


def targets(folder: Path, name: str) -> tuple[Path, Path]:
    """The page and the saved report of an input."""
    return folder / f"{name}.html", folder / f"{name}.json"
