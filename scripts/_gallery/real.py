"""Reports about real exports that others have published: made where a folder of them is given, and never kept here.

The folder has a README.md with a table: what the names of the files begin with, then any columns, then where they are
from and their licence. A file without a row is left out, as nobody could be named for it.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scripts._gallery.build import nsysdiag

if TYPE_CHECKING:
    from collections.abc import Iterable

SECTION = """
## Real exports

Exports of real captures on real GPUs, published by others under the licences named here, and analyzed as they are.

| report | headline | from, licence |
| --- | --- | --- |
"""
TABLE_ROW = re.compile(r"^\| (.+) \|$", re.MULTILINE)
MARKUP = re.compile(r"([\\`*_\[\]<>#|])")


class Export(NamedTuple):
    """A real export, and whom to name for it."""

    path: Path
    source: str

    @property
    def name(self) -> str:
        """Of its report."""
        return f"real-{self.path.stem}"


def exports(folder: Path) -> list[Export]:
    """Those of a folder that its README.md names a source of; others are said on stderr."""
    readme = folder / "README.md"
    sources = attributions(readme.read_text(encoding="utf-8")) if readme.is_file() else {}
    found = []
    for path in sorted(folder.glob("*.sqlite")):
        named = [source for start, source in sources.items() if path.name.startswith(start)]
        if named:
            found.append(Export(path, named[-1]))
        else:
            print(f"{path.name}: no source in README.md, left out", file=sys.stderr)
    return found


def attributions(readme: str) -> dict[str, str]:
    """The last cell by the beginnings in the first one; `same` is what the row before says. `a-x / -y` are `a-x` and
    `a-y`."""
    named: dict[str, str] = {}
    last = ""
    for line in TABLE_ROW.findall(readme):
        first, *_, source = line.split(" | ")
        last = last if source == "same" else source
        named |= dict.fromkeys(beginnings(first), last)
    return named


def beginnings(cell: str) -> Iterable[str]:
    """Of the names in a cell."""
    name, *endings = cell.rstrip("/").split(" / ")
    stem = name.rpartition("-")[0]
    return [name, *(stem + ending for ending in endings)]


def row(export: Export, folder: Path, work: Path) -> str:
    """Write the page of an export, and return its row in the section."""
    page, saved = folder / f"{export.name}.html", work / f"{export.name}.json"
    nsysdiag(["analyze", str(export.path)], work, page, saved)
    headline = json.loads(saved.read_bytes())["diagnosis"]["headline"]
    told = MARKUP.sub(r"\\\1", headline)
    return f"| [{export.path.stem}](gallery/{page.name}){{.external}} | {told} | {export.source} |"
