"""The part of plotly.js that a page carries: packed as text, and unpacked for the hash by which the page allows it."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cache

from nsysdiag.formats.html.assets import templates_folder
from nsysdiag.formats.html.carried import to_carried


@dataclass(frozen=True, slots=True)
class Bundle:
    """`source` is the script as it runs, `packed` the same with gzip as text, `licence` what must go with it:
    its licence, and the notices of the libraries in it."""

    version: str
    source: str
    packed: str
    licence: str


@cache
def plotly() -> Bundle:
    """The bundle that scripts/vendor_plotly fetched."""
    folder = templates_folder() / "assets" / "vendor"
    facts = dict(line.split(" ", 1) for line in (folder / "VERSION").read_text(encoding="utf-8").splitlines())
    data = (folder / "plotly-basic.min.js.gz").read_bytes()
    return Bundle(
        version=facts["version"],
        source=gzip.decompress(data).decode(),
        packed=to_carried(data),
        licence="\n".join((folder / name).read_text(encoding="utf-8") for name in ("LICENSE", "NOTICES")),
    )
