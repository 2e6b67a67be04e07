"""The inputs of a batch: files, folders with everything below them, patterns, and saved reports."""

from __future__ import annotations

import errno
import fnmatch
import glob
import mmap
import os
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import field

from nsysdiag.document.names import visible
from nsysdiag.limits import SAVED_BYTES
from nsysdiag.messages import UsageError, printable
from nsysdiag.record import UNREADABLE
from nsysdiag.trace.formats import INPUT_FORMATS, folder_format, looked_into, named_format, stem_of

# The names of outputs, and patterns of paths: `*` and `?` within a name, `**` for folders of any depth.

RESERVED = frozenset({"index", "summary", "trend", "junit", "nsysdiag", "github", "resume"})
"""What the batch itself calls its files, without their suffixes."""
LONGEST = 180
"""Bytes of a part of a name: file systems take 255, and there must be room for a number and a suffix."""
_UNFIT = str.maketrans(dict.fromkeys('\\/:*?"<>|', "_"))
_SUFFIXES = (".html", ".json")


def output_names(inputs: Sequence[tuple[str, str]]) -> list[str]:
    """For each input the path of its outputs, without a suffix. An input is what it is shown as, by `/`, and a path
    that distinguishes it from others; the order of the inputs changes nothing."""
    taken = set(RESERVED)
    names: dict[tuple[str, str], str] = {}
    for wanted, each in sorted((_wanted(*each), each) for each in inputs):
        numbered = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
        names[each] = next(name for name in numbered if name.casefold() not in taken)
        taken.add(names[each].casefold())
    return [names[each] for each in inputs]


def _wanted(shown: str, path: str) -> str:
    """The name if no other input has it. A folder must not bear the name that a report could have."""
    whole, place = PurePosixPath(shown), Path(path)
    stem = stem_of(place) if folder_format(place) else whole.stem
    *folders, file = [_safe(part) for part in whole.with_name(stem).parts]
    return "/".join([*(f"{name}_" if name.lower().endswith(_SUFFIXES) else name for name in folders), file])


def _safe(part: str) -> str:
    """A part of a path that is not `..` and not hidden, without control characters and characters that some file
    systems refuse."""
    name = visible(part).translate(_UNFIT).rstrip(". ")
    name = name.encode()[:LONGEST].decode(errors="ignore")
    return f"_{name.removeprefix('.')}" if name.startswith(".") or not name else name


def is_pattern(text: str) -> bool:
    """Whether any part of the path stands for several names."""
    return glob.has_magic(text)


def fixed_part(text: str) -> Path:
    """The folder that a pattern starts from: all before its first part with a wildcard."""
    parts = Path(text).parts
    first = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:first])


def expanded(text: str) -> list[Path]:
    """What exists and fits the pattern, in the order of names. Links to folders are not followed, and a name that
    starts with a dot fits only what starts with one too. What is in a trace that is a folder fits only if the
    pattern names that folder."""
    start = fixed_part(text)
    rest = Path(text).parts[len(start.parts) :]
    return list(dict.fromkeys(_within(start, rest)))


def _within(folder: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    if not parts:
        yield folder
        return
    first, *rest = parts
    if first == "**":
        yield from _within(folder, tuple(rest))
        for child in _children(folder, "*", folders=True):
            yield from _within_found(child, parts)
    elif glob.has_magic(first):
        for child in _children(folder, first, folders=bool(rest)):
            yield from _within_found(child, tuple(rest))
    elif os.path.lexists(folder / first):
        yield from _within(folder / first, tuple(rest))


def _within_found(path: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """As _within, for what a wildcard found: a folder that is a trace is taken or left whole."""
    if not folder_format(path):
        yield from _within(path, parts)
    elif set(parts) <= {"**"}:
        yield path


def _children(folder: Path, pattern: str, *, folders: bool) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return  # as in a shell: what cannot be listed fits nothing
    for entry in found:
        hidden = entry.name.startswith(".") and not pattern.startswith(".")
        fits = fnmatch.fnmatchcase(entry.name, pattern) and not hidden
        if fits and (entry.is_dir(follow_symlinks=False) or not folders):
            yield folder / entry.name


SAVED = ".json"


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
        if folder_format(path):
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
            if _is_folder(path) and not folder_format(path):
                yield from self._below(path, anchor)
            else:
                yield _Hit(path, anchor, searched=True)

    def _below(self, folder: Path, anchor: Path) -> Iterator[_Hit]:
        unreadable: list[OSError] = []
        for place, folders, files in os.walk(folder, onerror=unreadable.append):
            folders[:] = sorted(each for each in folders if not self._is_output(Path(place, each)))
            traces = [each for each in folders if folder_format(Path(place, each))]
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
        if named_format(path):
            return True
        try:
            return looked_into(path) is not None or (path.suffix.lower() == SAVED and is_report_of_a_trace(path))
        except OSError as error:
            self.notes.append(f"{printable(path)} is left out: it cannot be read: {error.strerror}")
            return False


def find_inputs(named: Sequence[str], output: Path) -> Found:
    """All inputs, each once, however often and under however many names it was found.

    Raises UsageError if there is none, or if the folder of the outputs is to be searched.
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
    found = named_format(path)
    try:
        return INPUT_FORMATS.index(found) if found and (found.files or path.is_file()) else None
    except OSError:  # as in _is_folder
        return None


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
        folder = folder_format(path)
        return sum(each.stat().st_size for each in (folder.files(path) if folder and folder.files else [path]))
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
    """Whether the file is a report of ours of one trace, of whatever version. Raises OSError if it cannot be read;
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
