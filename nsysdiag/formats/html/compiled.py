"""Templates as compiled ahead of time: to compile them takes longer than to fill those of a small page.

`nsysdiag/data/templates.json.gz` holds the Python that jinja2 makes of each template. What is not in it, as a template
that was changed since, is compiled when it is used. Nothing is written at run time.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import jinja2
import msgspec
from jinja2.bccache import Bucket, BytecodeCache

FILE = Path(__file__).parents[2] / "data" / "templates.json.gz"


class Compiled(msgspec.Struct, frozen=True):
    """Python source by the checksum that jinja2 makes of a template's source, and which version of jinja2 made it."""

    version: str
    sources: dict[str, str]


class AheadOfTime(BytecodeCache):
    """Gives jinja2 what was compiled ahead, from the same source by the same version."""

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The file of the template, which tracebacks name."""
        return filename or name

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket where its template was compiled ahead."""
        source = sources().get(bucket.checksum)
        if source is not None:
            bucket.code = compile(source, bucket.key, "exec")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep nothing."""


@cache
def sources() -> dict[str, str]:
    """What was compiled ahead; nothing where another version of jinja2 runs."""
    known = msgspec.json.decode(gzip.decompress(FILE.read_bytes()), type=Compiled)
    return known.sources if known.version == jinja2.__version__ else {}
