"""The folder of a baseline: one saved report a run, of which the last ones are kept, and what the baseline accepts.

```
.nsysdiag/baselines/main/20260107T091500000000Z-5f3c0a9be1d24c77.json      one file a run, named by when it was added
                         20260108T091612000000Z-91be03f7d0a8c512.json      and by its trace, in the order of their names
                         accepted.toml                                     what it accepts
```

A run is a file of its own that is written in one step, so that jobs may add runs at the same time. Each removes only
runs that have as many newer ones as are kept, whatever the others do meanwhile.

People read, edit and review `accepted.toml`:

```toml
# Regressions that this baseline accepts, written by nsysdiag.

[[accepted]]
what = "length:+9%"
reason = "larger vocabulary, see the release notes"
until = 2026-03-01
before_ns = { "gpu0" = 1070000 }
```

`before_ns` is what the change was accepted from, by GPU; entries of people may lack it. Entries are only ever added, so
that what people wrote in the file stays, until the baseline restarts."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from msgspec import UNSET, Struct
from msgspec.structs import replace

from nsysdiag.ci.acceptances import Acceptance, acceptance
from nsysdiag.formats import is_json, write
from nsysdiag.messages import InputError, OutputError, UsageError, printable
from nsysdiag.process import make_folder
from nsysdiag.record import to_json
from nsysdiag.report import Report
from nsysdiag.saved import read_report

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_RUN = re.compile(r"(\d{8}T\d{12}Z)-([0-9a-f]{16})\.json")
_MOMENT = "%Y%m%dT%H%M%S%fZ"


class BaselineRun(Struct, frozen=True):
    """A saved report of a baseline. `added` is None for one that was not added by `nsysdiag baseline add`."""

    path: Path
    added: datetime | None


class Held(Struct, frozen=True):
    """The reports of a baseline, the oldest first, each with its run, and the names of files that cannot be read."""

    runs: list[tuple[BaselineRun, Report]]
    damaged: list[str]


def folder_of(baselines: Path, name: str) -> Path:
    """The folder of the baseline `name` among all `baselines`. Raises UsageError for what cannot be a name."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"'{printable(name)}' is not a name of a baseline",
            hint="use letters, digits, '.', '_' and '-', 100 at most, the first one a letter or a digit",
        )
    return baselines / name


def names_in(baselines: Path) -> list[str]:
    """The names of all baselines, sorted; none if the folder does not exist. Raises OutputError."""
    try:
        return sorted(each.name for each in baselines.iterdir() if each.is_dir() and _NAME.fullmatch(each.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OutputError(f"cannot read the folder {printable(baselines)}: {error.strerror}") from error


def runs_in(folder: Path) -> list[BaselineRun]:
    """The runs of a baseline by their names, so the oldest first; none if the folder does not exist."""
    try:
        files = sorted(each for each in folder.iterdir() if each.suffix == ".json" and each.is_file())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OutputError(f"cannot read the baseline {printable(folder)}: {error.strerror}") from error
    return [BaselineRun(each, _added(each.name)) for each in files]


def _added(file: str) -> datetime | None:
    found = _RUN.fullmatch(file)
    try:
        return datetime.strptime(found[1], _MOMENT).replace(tzinfo=UTC) if found else None
    except ValueError:  # no such day
        return None


def held_in(folder: Path) -> Held:
    """The reports of all runs. What is damaged or no report is named; what another job removed meanwhile is not."""
    runs, damaged = [], []
    for run in runs_in(folder):
        try:
            runs.append((run, read_report(run.path)))
        except InputError:
            if run.path.exists():
                damaged.append(run.path.name)
    return Held(runs, damaged)


def add(folder: Path, reports: Sequence[Report], keep: int, *, anew: bool = False) -> tuple[list[Path], int]:
    """Write the reports as runs, without their timelines, and remove the oldest runs beyond the last `keep`; `anew`
    removes all runs of other traces.

    Returns the new files, and how many were removed. A trace that a run is about already is not a further run. Raises
    OutputError if a file cannot be written.
    """
    make_folder(folder)
    known = {found[2] for run in runs_in(folder) if (found := _RUN.fullmatch(run.path.name))}
    given = {_hash(report): report for report in reports}
    new = [(hash, report) for hash, report in given.items() if hash not in known]
    files = []
    for (hash, report), moment in zip(new, _moments(folder), strict=False):
        files.append(folder / f"{moment.strftime(_MOMENT)}-{hash}.json")
        write(files[-1], to_json(replace(report, timeline=UNSET)), force=False, is_ours=is_json)
    ours = [run for run in runs_in(folder) if run.added]
    others = [run for run in ours if anew and run.path.stem.rpartition("-")[2] not in given]
    rest = [run for run in ours if run not in others]
    return files, _removed([*others, *rest[:-keep]])


def _hash(report: Report) -> str:
    """What the run is known by: its trace, so that one that was analyzed again is the same."""
    content = report.trace.fingerprint.encode("utf-8", "backslashreplace") or to_json(replace(report, timeline=UNSET))
    return hashlib.sha256(content).hexdigest()[:16]


def _moments(folder: Path) -> Iterator[datetime]:
    """The current time in µs, but always after the existing runs, whatever the clock says."""
    latest = max((run.added for run in runs_in(folder) if run.added), default=None)
    moment = datetime.fromtimestamp(time.time(), UTC)
    if latest is not None:
        moment = max(moment, latest + timedelta(microseconds=1))
    while True:
        yield moment
        moment += timedelta(microseconds=1)


def _removed(runs: Sequence[BaselineRun]) -> int:
    """How many of these runs were removed: files of ours that no other job removed meanwhile."""
    count = 0
    for run in runs:
        try:
            if is_json(run.path.read_bytes()):
                run.path.unlink()
                count += 1
        except FileNotFoundError:
            continue
        except OSError as error:
            raise OutputError(f"cannot remove {printable(run.path)}: {error.strerror}") from error
    return count


FILE = "accepted.toml"
TABLE = "accepted"
HEAD = b"# Regressions that this baseline accepts, written by nsysdiag.\n"
MOST_BYTES = 1 << 20
_KEYS = {"what": str, "reason": str, "until": date}
_ANCHOR = "before_ns"
_HINT = f'each [[{TABLE}]] has what = "length:+9%", reason = "WHY" and until = 2026-03-01'


def read_accepted(folder: Path) -> list[Acceptance]:
    """The entries in their order; none if there is no file. Raises UsageError with the file and the entry."""
    path = folder / FILE
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"cannot read {printable(path)}: {error.strerror}") from error
    return _parsed(data, printable(path))


def _parsed(data: bytes, shown: str) -> list[Acceptance]:
    if len(data) > MOST_BYTES:
        raise UsageError(f"{shown} is larger than {MOST_BYTES:,} bytes")
    try:
        document = tomllib.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{shown} cannot be read: {error}", hint="the file must be TOML") from error
    entries = document.get(TABLE, [])
    if document.keys() - {TABLE} or not isinstance(entries, list):
        raise UsageError(f"{shown} holds something else than [[{TABLE}]]", hint=_HINT)
    return [_entry(each, f"{shown}: {TABLE}[{at}]") for at, each in enumerate(entries)]


def _entry(entry: object, where: str) -> Acceptance:
    if not isinstance(entry, dict) or entry.keys() - {_ANCHOR} != _KEYS.keys():
        raise UsageError(f"{where} does not have what, reason and until alone", hint=_HINT)
    for key, kind in _KEYS.items():
        if not isinstance(entry[key], kind) or isinstance(entry[key], datetime):
            wanted = "a day, as 2026-03-01" if kind is date else "text"
            raise UsageError(f"{where}.{key} must be {wanted}", hint=_HINT)
    anchor = entry.get(_ANCHOR, {})
    if not isinstance(anchor, dict) or not all(type(ns) is int and ns >= 0 for ns in anchor.values()):
        raise UsageError(f"{where}.{_ANCHOR} must have ns by GPU, as {{ gpu0 = 1070000 }}", hint=_HINT)
    return acceptance(entry["what"], entry["reason"], entry["until"], f"{where}.what", anchor)


def add_accepted(folder: Path, new: Acceptance) -> Path:
    """Append an entry; what the file holds already stays. Raises UsageError for a file that cannot be read, OutputError
    for one that cannot be written or is not ours."""
    path = folder / FILE
    with _alone(folder):
        read_accepted(folder)  # or it is not ours, and nothing is added to it
        before = path.read_bytes() if path.exists() else HEAD
        end = b"" if before.endswith(b"\n") else b"\n"
        write(path, before + end + b"\n" + _text(new).encode(), force=False, is_ours=lambda _data: True)
    return path


def drop_accepted(folder: Path) -> int:
    """Remove all entries; how many there were. Raises UsageError for a file that cannot be read, OutputError for one
    that cannot be removed."""
    path = folder / FILE
    if not path.exists():
        return 0
    with _alone(folder):
        count = len(read_accepted(folder))
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"cannot remove {printable(path)}: {error.strerror}") from error
    return count


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other process adds an entry meanwhile, if the system has locks of folders."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise OutputError(f"cannot open {printable(folder)}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _text(accepted: Acceptance) -> str:
    fields = {"what": accepted.expression.text, "reason": accepted.reason}
    lines = [f"[[{TABLE}]]", *(f"{key} = {_quoted(text)}" for key, text in fields.items())]
    lines.append(f"until = {accepted.until.isoformat()}")
    if accepted.before_ns:
        told = ", ".join(f"{_quoted(key)} = {ns}" for key, ns in sorted(accepted.before_ns.items()))
        lines.append(f"{_ANCHOR} = {{ {told} }}")
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    """A basic string: JSON escapes the same characters, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
