"""Caps on everything that an input controls: each with its reason and the mark of a cut.

A text longer than its cap keeps its beginning; a hash of the whole distinguishes it from texts with the same beginning:

```
void cutlass::Kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<…#5f0c1d9a72be
```
"""

from __future__ import annotations

import hashlib
import re

TEXT_BYTES = 32_768
"""Bytes that are read of one text. The longest text in the traces known to us has 3,434; names of CUTLASS and CuTe
kernels reach 5,000 to 20,000. Reached: the text is cut and `trace.warnings` counts it."""
CELL_BYTES = 1 << 20
"""Bytes that SQLite may load for one cell, or for one statement of the schema. A larger text is read in pieces of this
size. Reached if no text is read (the schema, a table without rowids): the input is refused."""
BLOB_BYTES = 1 << 17
"""Bytes of a blob (an NVTX payload). The deepest Python stack that is decoded has 4,096 frames, 98,360 bytes. Reached:
the blob reads as NULL and `trace.warnings` counts it."""
TABLES = 1_000
"""Tables of a file that are looked at, those of nsys first; an export has up to 250. Reached: `trace.warnings` counts
the rest."""
COLUMNS = 100_000
"""Columns of all tables together that are looked at; an export has up to 4,000. Reached: as for TABLES."""
NAME_CHARACTERS = 4_000
"""Characters of a name where it is not listed but mentioned: in a gap, a path, a sentence. Longer ones are cut to
HEAD_CHARACTERS; the full name of a kernel is stored once, in `kernels[].name`. Above all names in the traces known to
us, and about PATH_MAX of Linux."""
HEAD_CHARACTERS = 200
"""The part kept of a longer name: enough to recognize it."""
KEPT_NAMES = 1 << 17
"""Names whose normal form or family is kept: each is asked for about five times. Traces known to us have under 1,000
names of kernels. Reached: those asked for longest ago are made again."""
PATH_CHARACTERS = 4_000
"""Characters of the names of one NVTX path together: a path has up to 64 names and is stored in every gap. The longest
in the traces known to us has under 1,000. Reached: every name of the path is cut to 64 characters with its mark."""
MOST_GPUS = 128
"""GPUs of a trace that are analyzed, those with most operations; no machine has more. Reached: the report says so."""
MOST_SEEN = 4_000_000
"""Pairs of a moment and a thread examined at once. If all threads of a trace seem to run all the time, there would be
(moments × threads) pairs. Moments with the fewest threads, the best evidence, come first."""
MOST_DEEP = 4_096
"""Frames of a Python stack in an NVTX payload. Reached: the payload is not read as a stack."""
KINETO_BYTES, KINETO_RATIO = 1 << 31, 50
"""Bytes of JSON that are read of a trace of the PyTorch profiler, and how many for each byte of the file; gzip makes
such a trace about 20 times smaller. Reached: the input is refused."""
STACK_FRAMES = 32
"""Frames of a Python stack that are kept of such a trace, the innermost."""
SAVED_BYTES = 1 << 29
"""Size of a saved document. Real reports of traces of 1 to 16 MB have 0.06 to 1.3 MB. Gaps take most of a large one, 5
to 7 bytes each: this is enough for 60 million."""
SAVED_VALUES = 1 << 24
"""Values in a document, counted by their commas. Real reports have 37 to 63 bytes per value, so this many take more
than SAVED_BYTES. At 2 bytes per value, SAVED_BYTES would hold 16 times as many. This many take up to 2.3 GB of
memory."""
UNPACKED_BYTES, UNPACKED_FOR_EACH = 1 << 28, 4
"""Most bytes of all packed columns of a document: a constant, plus this many for each byte of the document. Real
reports hold 0.4 to 3 times their size. A gap takes 20 to 23 bytes, so the first is enough for 11 million gaps that
compress to nearly nothing."""
PLACES_CHARACTERS = 1 << 22
"""Characters of the different NVTX paths of the gaps of a device, each written out; a report holds the names that they
share once. Those of real traces have under 10,000. Reached: the report holds none of them, and says so by that."""
MOST_BUCKETS = 1 << 16
"""Of a series or a level of a timeline in a saved report: 32 times as many as the finest level has."""
MOST_NAMES_BYTES = 1 << 24
"""Most bytes of the unpacked names of a timeline in a saved report: 1.5 million characters (NAME_ROOM in timeline),
which take at most 6 bytes each in JSON."""
_IN_PATH = 50

_DIGITS = 12
_MARK_CHARACTERS = _DIGITS + len("…#")
_MARK = re.compile(rf"…#[0-9a-f]{{{_DIGITS}}}\Z")


def marked(head: str, digest: str) -> str:
    """The beginning of a text with the mark of a cut; `digest` is a hash of the whole text in hexadecimal digits."""
    return f"{head}…#{digest[:_DIGITS]}"


def mark_of(text: str) -> str:
    """The mark at the end of a text that was cut; empty if there is none."""
    found = _MARK.search(text, max(len(text) - _MARK_CHARACTERS, 0))
    return found[0] if found else ""


def short_name(name: str) -> str:
    """A name as it is mentioned: itself up to NAME_CHARACTERS, else its first HEAD_CHARACTERS with the mark of a cut.

    Names that differ have short names that differ, and the short name of a short name is itself.
    """
    return name if len(name) <= NAME_CHARACTERS else _cut(name, HEAD_CHARACTERS)


def short_path(path: list[str]) -> list[str]:
    """The names of an NVTX path as they are mentioned together: themselves up to PATH_CHARACTERS in all."""
    if sum(map(len, path)) <= PATH_CHARACTERS:
        return path
    return [name if len(name) <= _IN_PATH + _MARK_CHARACTERS else _cut(name, _IN_PATH) for name in path]


def _cut(name: str, characters: int) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return marked(name[:characters], digest)
