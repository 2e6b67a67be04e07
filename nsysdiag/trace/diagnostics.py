"""What nsys itself reported, without paths and settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsysdiag import typed
from nsysdiag.errors import printable
from nsysdiag.fields import TextKind
from nsysdiag.trace.enums import Severity

if TYPE_CHECKING:
    from nsysdiag.trace.columns import Columns

LIMIT = 20
LENGTH = 300
COLUMNS = ("severity", "text")
SEVERITIES = (Severity.WARNING, Severity.ERROR)
_LOSS = re.compile(
    r"\b(drop\w*|lost|loss|lose|fail\w*|unable|cannot|could not|incomplete\w*|overflow\w*|overrun\w*"
    r"|discard\w*|truncat\w*|missing|exceed\w*|skipp\w*|not supported|unsupported"
    r"|not (?:been )?(?:collected|recorded|traced)"
    r"|corrupt\w*|errors?|timed out)\b",
    re.IGNORECASE,
)
_DROPPED = re.compile(r"\b(drop\w*|lost|discard\w*|overflow\w*|overrun\w*|truncat\w*|incomplete\w*)\b", re.IGNORECASE)
_NUMBERS = re.compile(r"\d+")


def capture_warnings(events: Columns) -> list[str]:
    """What the warnings and errors (DIAGNOSTIC_EVENT rows of SEVERITIES) say about lost or failed collection.

    Safe text. Repeated messages, numbers aside, are counted; errors come first; of more than LIMIT lines the last
    one counts the rest.
    """
    alike: dict[tuple[int, str], list[str]] = {}
    for severity, text in zip(events.integers("severity").tolist(), events.text("text").texts(), strict=True):
        if text is not None and tells_of_loss(text):
            message = without_private_parts(text)[:LENGTH]
            alike.setdefault((-severity, _NUMBERS.sub("#", message)), []).append(message)
    lines = []
    for (severity, _), messages in sorted(alike.items()):
        kind = "an error" if -severity == Severity.ERROR else "a warning"
        times = f" ({len(messages)} times)" if len(messages) > 1 else ""
        lines.append(f"nsys reported {kind} while capturing{times}: {typed.name(TextKind.MESSAGE, messages[0])}")
    if len(lines) > LIMIT:
        lines[LIMIT - 1 :] = [f"nsys reported {len(lines) - LIMIT + 1} more kinds of problems while capturing"]
    return lines


def tells_of_loss(text: str) -> bool:
    """Whether a message says that something was not collected."""
    return _LOSS.search(text) is not None


def tells_of_dropped(text: str) -> bool:
    """Whether a message says that events which had been collected are not in the trace."""
    return _DROPPED.search(text) is not None


_PATH = re.compile(r"(?<![\w.)])(?:[A-Za-z]:[\\/]|\\\\|~?/|\.{1,2}/)[^\s'\"<>|:;,]*")
_SETTING = re.compile(r"\b([A-Z_][A-Z0-9_]{2,})=\S+")


def without_private_parts(text: str) -> str:
    """One line without paths and without the values of environment variables."""
    text = _PATH.sub("<path>", " ".join(text.split()))
    return printable(_SETTING.sub(r"\1=<value>", text))
