"""Saved reports with one value changed: every field in turn, each to what no report of ours would hold. And all that
is done with a saved report."""

from __future__ import annotations

import base64
import json
import random
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nsysdiag import all_gaps, compare, frames
from nsysdiag.arrays.groups import to_text
from nsysdiag.batch.results import lines_of, write_all
from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.show.registry import RENDERERS as OF_COMPARISONS
from nsysdiag.document.one_line import command_of
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.batch.entries import entry_of, summary_of
from nsysdiag.messages import InputError, NotComparableError, UsageError
from nsysdiag.ranks.report import RanksReport
from nsysdiag.ranks.show.registry import RENDERERS as OF_RANKS
from nsysdiag.replay.facts import WhatIf
from nsysdiag.replay.show.blocks import RENDERERS as OF_PREDICTIONS
from nsysdiag.report import Report
from nsysdiag.share.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Place = tuple[str | int, ...]
INTEGERS = (10**400, 2**64, 2**63, 2**63 - 1, -(2**63), -1, 0, 1, 10**12)
FLOATS = (1.7e308, -1.7e308, 5e-324, -1.0, 0.0, 3)
TEXTS = ("", "a" * 5000, "\x1b[31m\ud7ff", "1e999", "eNoDAAAAAAE=")
"""The last is what zlib makes of no bytes at all."""


def places(document: Any, path: Place = ()) -> Iterator[Place]:
    """The way to every value; of the entries of a list to the first and the last."""
    yield path
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*path, key))
    elif isinstance(document, list) and document:
        for at in sorted({0, len(document) - 1}):
            yield from places(document[at], (*path, at))


def kind_of_place(path: Place) -> tuple[str, ...]:
    """The same for all entries of a list."""
    return tuple("*" if isinstance(step, int) else step for step in path)


def replacements(value: Any) -> list[Any]:
    """What to put in the place of a value: of its own type, so that decoding alone does not refuse it."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [number for number in (INTEGERS if isinstance(value, int) else FLOATS) if number != value]
    if isinstance(value, str):
        return [*_repacked(value), *TEXTS, value[:-1], value[: len(value) // 2], value + value]
    if isinstance(value, list):
        return [[], value[:1], value + value, value[::-1]]
    return [{}, dict(list(value.items())[:1])] if isinstance(value, dict) else [0, "text", []]


def _repacked(text: str) -> list[str]:
    """Other content of the same length, where the text is a packed column: largest and least numbers, and noise."""
    try:
        size = len(zlib.decompress(base64.b64decode(text, validate=True)))
    except (ValueError, zlib.error):
        return []
    fills = (b"\xff", b"\x7f", b"\x80", b"\0" * 7 + b"\x80", b"\xff" * 7 + b"\x7f", b"\1\0\0\0\0\0\0\x40")
    noise = random.Random(size).randbytes(size)
    return [to_text(each, 1) for each in (noise, *((fill * size)[:size] for fill in fills))]


def get(document: Any, path: Place) -> Any:
    """The value at the end of a way."""
    for step in path:
        document = document[step]
    return document


def changed(document: Any, path: Place, value: Any) -> bytes:
    """The document as JSON with one value replaced; it stays as it was itself."""
    if not path:
        return json.dumps(value).encode()
    holder, before = get(document, path[:-1]), get(document, path)
    holder[path[-1]] = value
    try:
        return json.dumps(document).encode()
    finally:
        holder[path[-1]] = before


def uses(found: Report | RanksReport | Comparison | WhatIf, other: Report) -> None:
    """Everything that commands and the Python API do with a saved report, which may be damaged: each is done or is an
    error of the input. Anything else is raised."""
    options = RenderOptions()
    steps: list[Callable[[], object]]
    if isinstance(found, Comparison):
        steps = [lambda draw=draw: draw(found, options) for draw in OF_COMPARISONS.values()]
    elif isinstance(found, RanksReport):
        steps = [lambda draw=draw: draw(found, options) for draw in OF_RANKS.values()]
        steps += [lambda: redacted(found)]
    elif isinstance(found, WhatIf):
        steps = [lambda draw=draw: draw(found, options) for draw in OF_PREDICTIONS.values()]
        steps += [lambda: redacted(found), lambda: command_of(found)]
        steps += [lambda: _compared(found, other), lambda: _compared(other, found)]
    else:
        steps = [lambda known=known: known.render(found, options) for known in FORMATS.values()]
        steps += [lambda: redacted(found), lambda: frames(found), lambda: all_gaps(found), lambda: _summed_up(found)]
        steps += [lambda: _compared(found, other), lambda: _compared(other, found)]
    for step in steps:
        with suppress(InputError, NotComparableError, UsageError):
            step()


def _compared(before: Report | WhatIf, after: Report | WhatIf) -> None:
    comparison = compare(before, after, across_gpus=True)
    for draw in OF_COMPARISONS.values():
        draw(comparison, RenderOptions())


def _summed_up(report: Report) -> None:
    entry = entry_of(report, "x.json", "x", "analysed", "x.html", [], [])
    summary = summary_of([entry])
    write_all(summary, lines_of(summary, "run", 1))
