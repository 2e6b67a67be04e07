"""Cut an nsys SQLite export down to what may be published.

The capture's scope must be process-tree: then scheduling and samples are the captured program's and its children's
alone. Kept is what `nsysdiag.share.cut` keeps of a whole trace. Same input, same bytes out.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from nsysdiag import open_trace
from nsysdiag.share.cut import PROCESS_TREE_TABLES, SliceCut, write_cut


def trimmed(source: Path) -> bytes:
    """The whole of an export without what is private, gzipped without a time stamp."""
    with tempfile.TemporaryDirectory() as folder, open_trace(source) as trace:
        path = Path(folder) / "trimmed.sqlite"
        write_cut(trace, path, SliceCut(owners=PROCESS_TREE_TABLES))
        return gzip.compress(path.read_bytes(), compresslevel=9, mtime=0)
