"""Patterns of paths that the shell left: `*` and `?` within a name, `**` for folders of any depth."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterator
from pathlib import Path


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
    starts with a dot fits only what starts with one too."""
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
            yield from _within(child, parts)
    elif glob.has_magic(first):
        for child in _children(folder, first, folders=bool(rest)):
            yield from _within(child, tuple(rest))
    elif os.path.lexists(folder / first):
        yield from _within(folder / first, tuple(rest))


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
