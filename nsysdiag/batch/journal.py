"""The finished inputs of a batch, so that the next one can skip them:

`resume.jsonl` in the folder of the reports. A line is added as soon as both files of an input are written. It has
hashes of input, settings and outputs: a report that was changed, or made with other settings or another version, is
made again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from nsysdiag.config.settings import Settings
from nsysdiag.formats.documents import write
from nsysdiag.messages import InputError, OutputError
from nsysdiag.record import UNREADABLE, Record
from nsysdiag.report import SCHEMA_VERSION
from nsysdiag.trace.formats import check_regular_file, folder_format
from nsysdiag.trace.source import journals_of
from nsysdiag.version import __version__

FILE = "resume.jsonl"
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
    """The SHA-256 of the input, and of what counts in the journals of SQLite that are read with it: those next to the
    file itself, not next to a link to it."""
    folder = folder_format(path)
    if folder and folder.files:
        return _content_of_folder(path, folder.files)
    check_regular_file(path)
    real = Path(os.path.realpath(path))
    try:
        files = [(real, real.stat().st_size), *((each.path, each.used_bytes) for each in journals_of(real))]
        return "".join(_hashed(file, size) for file, size in files)
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}") from error


def _content_of_folder(path: Path, files: Callable[[Path], list[Path]]) -> str:
    try:
        parts = [f"{each.name} {_hashed(each, each.stat().st_size)}" for each in files(path) if each.is_file()]
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}") from error
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass"))


def _hashed(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (data := file.read(min(size, _CHUNK))):
            digest.update(data)
            size -= len(data)
    return digest.hexdigest()


def is_ours(data: bytes) -> bool:
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
        self.path: Path = folder / FILE
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
        """Write what is known already. Raises OutputError where the file is not ours or cannot be written."""
        self._lines = {done.name: done for done in known}
        write(self.path, self._content(), force=force, is_ours=is_ours)

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
        write(self.path, self._content(), force=False, is_ours=is_ours)

    def _content(self) -> bytes:
        lines = [msgspec.json.encode(self._lines[name], order="sorted") + b"\n" for name in sorted(self._lines)]
        return b"".join(lines)
