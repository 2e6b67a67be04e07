"""What a subject's presentation may use in addition to its own records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec import Struct

from nsysdiag.document.view import Causes
from nsysdiag.fields import TextKind
from nsysdiag.phrases import Phrases
from nsysdiag.record import Record, rewritten

if TYPE_CHECKING:
    from nsysdiag.report import Report


# Ranges whose names had counters removed, as readers see them.
#
# ```
# saved, and matched by     step #          layers.#
# read                      step N          layers.N
# ```

_RANGES = TextKind.RANGE.name.lower()
_UNCHANGED = (TextKind.PACKED, TextKind.SETTINGS, TextKind.PHRASES, TextKind.TABLE)
_DIGIT = re.compile(r"\d")
# Not that of `C#`.
_COUNTER = re.compile(r"(?<!\b[A-Z])#+")
R = TypeVar("R", bound=Record)


def read_name(name: str) -> str:
    """A range as readers see it. One with a digit is the name that the program gave it."""
    return name if "#" not in name or _DIGIT.search(name) else _COUNTER.sub("N", name)


def as_read(report: R) -> R:
    """The report with ranges as readers see them, in fields with ranges and in sentences."""
    sentences = _sentences(getattr(report, "phrases", None))

    def visit(text: TextKind, record: Record, value: Any) -> Any:
        is_range = text is TextKind.RANGE or (text is TextKind.ITERATION and getattr(record, "source", "") == "nvtx")
        if text in _UNCHANGED or isinstance(value, dict):
            return value
        changed = read_name if is_range else lambda each: sentences.get(each, each)
        return [changed(each) for each in value] if isinstance(value, list) else changed(value)

    return rewritten(report, visit)


def _sentences(phrases: Phrases | None) -> dict[str, str]:
    """For each sentence with such a range the text that readers see; empty for a report without the names in its
    sentences."""
    ranges = phrases.names.get(_RANGES, []) if phrases is not None else []
    shown = [read_name(name) for name in ranges]
    if phrases is None or shown == ranges:
        return {}
    try:
        read = Phrases(names={**phrases.names, _RANGES: shown}, sentences=phrases.sentences)
        return dict(zip(phrases.finished(), read.finished(), strict=True))
    except ValueError:
        return {}


DEVICES_IN_FULL, FEWEST_ROWS, FEWEST_LARGE_ROWS = 1.5, 20, 10


class Context(Struct, frozen=True):
    """The whole report, as readers see it, and its causes by id."""

    report: Report
    causes: Causes

    @classmethod
    def of(cls, report: Report) -> Self:
        """That of a report."""
        return cls(as_read(report), Causes(report.causes))

    def rows(self, most: int) -> int:
        """How many rows a table of a device may have on the page: fewer where many devices share it."""
        devices = max(DEVICES_IN_FULL, len(self.report.devices))
        return max(FEWEST_ROWS, int(most * DEVICES_IN_FULL / devices))

    def shared_rows(self, most: int) -> int:
        """How many rows a table of a device may have whose rows are large: the devices share them."""
        return max(FEWEST_LARGE_ROWS, most // max(len(self.report.devices), 1))
