"""Build the gallery. Usage, as in scripts/gallery and scripts/docs: python -m scripts._gallery FOLDER [DOCS]

The reports go into FOLDER. DOCS is a copy of docs/, whose gallery.md gets links to them. Where NSYSDIAG_TRACES names a
folder of real exports, there are reports about these too.
"""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from scripts._gallery.build import at_once, build
from scripts._gallery.entries import ENTRIES
from scripts._gallery.page import linked
from scripts._gallery.real import SECTION, exports, row


def main(folder: Path, docs: Path | None) -> None:
    """All of it."""
    folder.mkdir(parents=True, exist_ok=True)
    build(ENTRIES, folder)
    real = real_exports(folder)
    if docs is not None:
        page = docs / "gallery.md"
        page.write_text(linked(page.read_text(encoding="utf-8")) + real, encoding="utf-8")


def real_exports(folder: Path) -> str:
    """The section about them, empty where none are given."""
    given = os.environ.get("NSYSDIAG_TRACES")
    if not given:
        return ""
    with tempfile.TemporaryDirectory() as work:
        rows = at_once(partial(row, folder=folder.resolve(), work=Path(work)), exports(Path(given).resolve()))
    return "\n".join([SECTION.rstrip("\n"), *rows, ""])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
