"""What a baseline accepts, in a file that people read, edit and review: `accepted.toml` in its folder.

```toml
# Regressions that this baseline accepts, written by nsysdiag.

[[accepted]]
what = "length:+9%"
reason = "larger vocabulary, see the release notes"
until = 2026-03-01
before_ns = { "gpu0" = 1070000 }
```

`before_ns` is what the change was accepted from, by GPU; entries of people may lack it. Entries are only ever added, so
that what people wrote in the file stays, until the baseline restarts.
"""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

from nsysdiag.ci.acceptances import Acceptance, acceptance
from nsysdiag.formats.documents import write
from nsysdiag.messages import OutputError, UsageError, printable

FILE = "accepted.toml"
TABLE = "accepted"
HEAD = b"# Regressions that this baseline accepts, written by nsysdiag.\n"
MOST_BYTES = 1 << 20
_KEYS = {"what": str, "reason": str, "until": date}
_ANCHOR = "before_ns"
_HINT = f'each [[{TABLE}]] has what = "length:+9%", reason = "WHY" and until = 2026-03-01'


def read_accepted(folder: Path) -> list[Acceptance]:
    """The entries in their order; none where there is no file. Raises UsageError with the file and the entry."""
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
    """No other process adds an entry meanwhile, where the system has locks of folders."""
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
