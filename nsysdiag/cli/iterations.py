"""The value of `--iterations`: A:B as Python slices, or one number."""

from __future__ import annotations

import re

from nsysdiag.errors import UsageError

_SPAN = re.compile(r"\s*([+-]?\d{1,18})?\s*(?:(:)\s*([+-]?\d{1,18})?\s*)?", re.ASCII)
_HINT = "write 3:10 for 3 to 9, 3: from 3 on, :10 before 10, -5: for the last five, or 7 alone; the first one is 0"


def parse_iterations(text: str) -> tuple[int | None, int | None]:
    """From the first, up to but not including the second; None is open, negative counts from the end.

    Raises UsageError for anything else, and where no iteration can be in it.
    """
    match = _SPAN.fullmatch(text)
    if match is None or not (match.group(1) or match.group(2)):
        raise UsageError(f"'{text}' does not say which iterations", hint=_HINT)
    first, colon, behind = match.groups()
    low = int(first) if first else None
    if not colon and low is not None:
        # One behind the last is no 0: that would be the first.
        return low, (low + 1 if low != -1 else None)
    high = int(behind) if behind else None
    if high == 0 or (low is not None and high is not None and high <= low and (low < 0) == (high < 0)):
        raise UsageError(f"no iteration lies in '{text}'", hint=_HINT)
    return low, high
