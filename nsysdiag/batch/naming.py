"""The names of outputs, and patterns of paths: `*` and `?` within a name, `**` for folders of any depth."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path, PurePosixPath

from nsysdiag.document.names import visible
from nsysdiag.trace.parquet.names import is_parquet_folder, stem_of

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
    """The name where no other input has it. A folder must not bear the name that a report could have."""
    whole, place = PurePosixPath(shown), Path(path)
    stem = stem_of(place) if is_parquet_folder(place) else whole.stem
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
    starts with a dot fits only what starts with one too. What is in a trace that is a folder fits only where the
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
    if not is_parquet_folder(path):
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
