"""The inputs of a batch: files, folders with everything below them, patterns, and saved reports."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import field

from nsysdiag.batch.naming import expanded, fixed_part, is_pattern, output_names
from nsysdiag.errors import UsageError, printable
from nsysdiag.limits import SAVED_BYTES
from nsysdiag.record import UNREADABLE
from nsysdiag.trace.parquet.names import folder_size, is_parquet_folder, stem_of

TRACE, SAVED = ".sqlite", ".json"
REPORTS = (".nsys-rep", ".qdrep")
"""Reports of nsys, which it must export before they can be read."""


class Input(msgspec.Struct, frozen=True):
    """One input: its location, its path as given, the name of its outputs, its size in bytes, and why it cannot be
    used, if known already."""

    path: Path
    shown: str
    name: str
    size_bytes: int
    problem: str = ""


class Found(msgspec.Struct, frozen=True):
    """The inputs by their names, and what was named but holds nothing."""

    inputs: list[Input]
    notes: list[str]


class _Hit(msgspec.Struct, frozen=True):
    """A path as found; `anchor` is the folder that names its place where it is not below the current one. `searched`
    says that it was not named itself."""

    path: Path
    anchor: Path
    problem: str = ""
    searched: bool = False


class _InputSearch(msgspec.Struct):
    """`output` is the folder of the results: what is in it was made by an earlier batch."""

    output: str
    notes: list[str] = field(default_factory=list)

    def named(self, text: str) -> list[_Hit]:
        if not text:
            raise UsageError("an input without a name", hint="an empty variable, perhaps")
        path = Path(text)
        if is_parquet_folder(path):
            return [_Hit(path, _absolute(path).parent)]
        if _is_folder(path):
            if self._is_output(path):
                raise UsageError(
                    f"{printable(path)} is in the folder that the reports go to", hint="name another one with -o DIR"
                )
            hits = list(self._below(path, _absolute(path).parent))
        elif is_pattern(text) and not os.path.lexists(path):
            hits = list(self._fitting(text))
        else:
            return [_Hit(path, _absolute(path).parent)]
        if not hits:
            what = "fits" if is_pattern(text) else "is a trace or a saved report in"
            self.notes.append(f"nothing {what} {printable(text)}")
        return hits

    def _is_output(self, path: Path) -> bool:
        real = os.path.realpath(path)
        return real == self.output or real.startswith(self.output + os.sep)

    def _fitting(self, text: str) -> Iterator[_Hit]:
        anchor = _absolute(fixed_part(text))
        for path in expanded(text):
            if self._is_output(path):
                continue
            if _is_folder(path) and not is_parquet_folder(path):
                yield from self._below(path, anchor)
            else:
                yield _Hit(path, anchor, searched=True)

    def _below(self, folder: Path, anchor: Path) -> Iterator[_Hit]:
        unreadable: list[OSError] = []
        for place, folders, files in os.walk(folder, onerror=unreadable.append):
            folders[:] = sorted(each for each in folders if not self._is_output(Path(place, each)))
            traces = [each for each in folders if is_parquet_folder(Path(place, each))]
            folders[:] = [each for each in folders if each not in traces]
            yield from (_Hit(Path(place, name), anchor, searched=True) for name in traces)
            for name in sorted(files):
                if self._is_input(Path(place, name)):
                    yield _Hit(Path(place, name), anchor, searched=True)
        for error in unreadable:
            yield _Hit(Path(error.filename), anchor, f"the folder cannot be searched: {error.strerror}")

    def without_twins(self, hits: list[_Hit]) -> list[_Hit]:
        """Of a trace that was found in several forms side by side the one that is read soonest; what was named is
        kept."""
        asked = {_absolute(hit.path) for hit in hits if not hit.searched}
        paths = [_absolute(hit.path) for hit in hits]
        forms = {path: form for path in paths if (form := _form(path)) is not None}
        soonest: dict[tuple[Path, str], Path] = {}
        for path in sorted(forms, key=lambda each: forms[each]):
            soonest.setdefault((path.parent, stem_of(path)), path)
        kept = []
        for hit, path in zip(hits, paths, strict=True):
            same = soonest.get((path.parent, stem_of(path)), path)
            if path in asked or path not in forms or forms[same] == forms[path]:
                kept.append(hit)
            else:
                self.notes.append(f"{printable(hit.path)} is left out: {_beside(same, path)}")
        return kept

    def _is_input(self, path: Path) -> bool:
        suffix = path.suffix.lower()
        if suffix != SAVED:
            return suffix == TRACE or suffix in REPORTS
        try:
            return is_report_of_a_trace(path)
        except OSError as error:
            self.notes.append(f"{printable(path)} is left out: it cannot be read: {error.strerror}")
            return False


def find_inputs(named: Sequence[str], output: Path) -> Found:
    """All inputs, each once, however often and under however many names it was found.

    Raises UsageError where there is none, or where the folder of the outputs is to be searched.
    """
    search = _InputSearch(os.path.realpath(output))
    hits = search.without_twins([hit for text in named for hit in search.named(text)])
    if not any(os.path.lexists(hit.path) for hit in hits):
        raise UsageError(
            f"no input: {'; '.join(search.notes) or f'{printable(hits[0].path)} does not exist'}",
            hint="name traces, saved reports, or folders that hold some",
        )
    once = {os.path.realpath(hit.path): hit for hit in reversed(hits)}
    chosen = list(reversed(once.values()))
    shown = _shown(chosen)
    names = output_names(list(zip(shown, (str(_absolute(hit.path)) for hit in chosen), strict=True)))
    inputs = [
        Input(_absolute(hit.path), printable(text), name, _size(hit.path), hit.problem)
        for hit, text, name in zip(chosen, shown, names, strict=True)
    ]
    return Found(sorted(inputs, key=lambda each: each.name), list(dict.fromkeys(search.notes)))


def _shown(hits: list[_Hit]) -> list[str]:
    """The paths relative to the current folder; of what is outside of it, to the folder that all of that shares."""
    here = Path.cwd()
    outside = [str(hit.anchor) for hit in hits if here not in _absolute(hit.path).parents]
    shared = Path(os.path.commonpath(outside)) if outside else here
    paths = [_absolute(hit.path) for hit in hits]
    return [path.relative_to(here if here in path.parents else shared).as_posix() for path in paths]


def _form(path: Path) -> int | None:
    """How soon a trace is read: an SQLite file first, then a folder of Parquet files, then a report, which nsys must
    export. None for all else."""
    suffix = path.suffix.lower()
    try:
        if suffix == TRACE or suffix in REPORTS:
            return (0 if suffix == TRACE else 2) if path.is_file() else None
    except OSError:  # as in _is_folder
        return None
    return 1 if is_parquet_folder(path) else None


def _beside(same: Path, path: Path) -> str:
    what = f"{printable(same.name)} next to it is the same trace"
    try:
        older = path.is_file() and same.stat().st_mtime_ns < path.stat().st_mtime_ns
    except OSError:
        return what
    return f"{what}; it is the older of the two: remove it if the report has changed since" if older else what


def _absolute(path: Path) -> Path:
    """Without `.` and `..`, and with links as they are: a name to call the file by."""
    return Path(os.path.normpath(path.absolute()))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # above it is a folder that may not be entered: the analysis says so
        return False


def _size(path: Path) -> int:
    try:
        return folder_size(path) if is_parquet_folder(path) else path.stat().st_size
    except (OSError, ValueError):
        return 0


MARK = b'"nsysdiag"'
START_BYTES = 64


class _ReportTool(msgspec.Struct):
    name: str


class _Head(msgspec.Struct):
    """What distinguishes a report of one trace from those of ranks, comparisons and batches, which have a kind."""

    schema_version: str
    tool: _ReportTool
    trace: dict[str, msgspec.Raw]
    kind: str | None = None


def is_report_of_a_trace(path: Path) -> bool:
    """Whether the file is a report of ours of one trace, of whatever version. Raises OSError where it cannot be read;
    a pipe is not opened, for that could block."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        if not file.read(START_BYTES).lstrip().startswith(b"{"):
            return False
    if path.stat().st_size > SAVED_BYTES:
        raise OSError(errno.EFBIG, "it is larger than any saved report")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content.find(MARK) < 0:
            return False
    try:
        head = msgspec.json.decode(path.read_bytes(), type=_Head)
    except UNREADABLE:
        return False
    return head.tool.name == "nsysdiag" and head.kind is None
