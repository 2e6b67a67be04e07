"""Replaces each packed column of a saved report by one that unpacks to 512 MiB, and uses the report.

Runs as a program of its own, `python -m tests.hostile.bombs REPORT.json`, in as much address space as it holds after
the first use and 256 MiB more. Prints how many columns there were.
"""

from __future__ import annotations

import base64
import json
import resource
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsysdiag.messages import InputError
from nsysdiag.record import UNREADABLE, to_json
from nsysdiag.report import Report
from nsysdiag.saved import from_json
from tests.hostile.reports import changed, get, kind_of_place, places, uses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hostile.reports import Place

MORE_BYTES = 1 << 28
BOMB = base64.b64encode(zlib.compress(bytes(1 << 29), 1)).decode()
DEFLATED = ("eA", "eF", "eJ", "eN")
"""How a packed column begins, at any level of zlib."""
COUNTS = ("count", "buckets", "each")


def main() -> None:
    """Detonate them all."""
    document = json.loads(Path(sys.argv[1]).read_bytes())
    report = from_json(to_json(from_json(Path(sys.argv[1]).read_bytes(), Report)), Report)
    uses(report, report)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MORE_BYTES, held + MORE_BYTES))
    columns = list(_packed(document))
    for place in columns:
        _use(changed(document, place, BOMB), report)
        holder = get(document, place[:-1])
        for count in (name for name in COUNTS if isinstance(holder, dict) and name in holder):
            before, holder[count] = holder[count], 1 << 26
            _use(changed(document, place, BOMB), report)
            holder[count] = before
    print(len(columns))


def _packed(document: Any) -> Iterator[Place]:
    """The first column of each kind."""
    seen = set()
    for place in places(document):
        value = get(document, place)
        if isinstance(value, str) and value.startswith(DEFLATED) and kind_of_place(place) not in seen:
            seen.add(kind_of_place(place))
            yield place


def _use(data: bytes, other: Report) -> None:
    try:
        uses(from_json(data, Report), other)
    except (InputError, *UNREADABLE):
        return


if __name__ == "__main__":
    main()
