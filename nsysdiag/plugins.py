"""Causes, input formats and output formats that other installed packages bring, by their entry points.

A package that has a plug-in names it in its `pyproject.toml`:

```toml
[project.entry-points."nsysdiag.causes"]
read_ahead = "acme_nsysdiag:CAUSE"
```

Where no installed package has one, nothing is imported for this. A plug-in that cannot be loaded is left out, and a
sentence says why: a report never depends on whether foreign code works.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import TypeVar

Plugin = TypeVar("Plugin")

CAUSES, READERS, FORMATS = "nsysdiag.causes", "nsysdiag.readers", "nsysdiag.formats"
"""The groups of entry points: what is in them is an `AddedCause`, an `InputFormat` and a `Format`."""
PROBLEMS: list[str] = []
"""A sentence for each plug-in that was left out, in this process."""
_SECTION = b"[nsysdiag."


def plugins(group: str, kind: type[Plugin], refused: Callable[[Plugin], str]) -> Iterator[Plugin]:
    """The plug-ins of a group, by name. `refused` says why one cannot be used, and nothing for others."""
    if not _declared():
        return
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=group), key=lambda each: (each.name, each.value)):
        try:
            plugin = point.load()
            wrong = refused(plugin) if isinstance(plugin, kind) else f"it is not of the type {kind.__name__}"
        except (Exception, SystemExit) as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            PROBLEMS.append(f"the plug-in '{point.name}' ({point.value}) of {group} is left out: {wrong}")
        else:
            yield plugin


@cache
def _declared() -> bool:
    """Whether an installed package declares any: what it declares is one small file, and `importlib.metadata` takes
    longer to import than all of them to read."""
    return any(_SECTION in text for folder in sys.path for text in _entry_points(folder))


def _entry_points(folder: str) -> Iterator[bytes]:
    """The files of entry points of the packages that are installed in a folder."""
    with suppress(OSError):
        for name in os.listdir(folder or os.curdir):  # noqa: PTH208, strings are enough
            if name.endswith((".dist-info", ".egg-info")):
                with suppress(OSError), open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123
                    yield file.read()
