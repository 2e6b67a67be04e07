"""The settings file that a project checked in, found by itself.

```
repository/.git                 the search ends here
repository/pyproject.toml       with [tool.nsysdiag]: found, unless a nearer folder has one
repository/runs/                the current folder
```
"""

from __future__ import annotations

import tomllib
from pathlib import Path

OWN_FILE, SHARED_FILE = "nsysdiag.toml", "pyproject.toml"


def find_settings(start: Path) -> Path | None:
    """`nsysdiag.toml`, or else a pyproject.toml with our table, in the nearest folder that has one: from `start`, up to
    the root of its repository. Outside of a repository only `start` itself is looked into: folders above it may be
    those of others."""
    folders = [start, *start.parents]
    root = next((at for at, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return next((found for folder in folders[: root + 1] if (found := _in(folder))), None)


def _in(folder: Path) -> Path | None:
    if (folder / OWN_FILE).is_file():
        return folder / OWN_FILE
    return folder / SHARED_FILE if _is_ours(folder / SHARED_FILE) else None


def _is_ours(path: Path) -> bool:
    """Does it hold our table? One that cannot be read and says nothing of us is a matter of others."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False
    try:
        tools = tomllib.loads(text).get("tool") if "nsysdiag" in text else None
    except (tomllib.TOMLDecodeError, RecursionError):
        return "[tool.nsysdiag" in text
    return isinstance(tools, dict) and "nsysdiag" in tools
