"""Changes of a prediction as options of the command line, both ways: `--kernel 'gemm*0.5'`, `--without sync`."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable
from difflib import get_close_matches

from nsysdiag.messages import UsageError
from nsysdiag.replay.facts import Transform

KERNEL, HOST, OVERLAP, RANK_LIKE = "kernel", "host", "overlap", "rank-like"
NUMBERED = ("workers", "ahead", "batch")
"""Options of a number."""
SCALED = (KERNEL, HOST)
"""Options that make what matches a pattern longer or shorter."""
CHOICES: dict[str, tuple[str, ...]] = {OVERLAP: ("copies", "communication"), RANK_LIKE: ("median",)}
MOST_FACTOR = 1000
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def scaled(option: str, text: str) -> Transform:
    """The change for `PATTERN*FACTOR`; the pattern may contain `*` itself. Raises UsageError for another text, and for
    a factor below 0 or above 1,000."""
    pattern, star, number = text.rpartition("*")
    pattern, number = pattern.strip(), number.strip()
    hint = f"write --{option} '{'gemm' if option == KERNEL else 'load*'}*0.5' for half the time, *0 for none"
    if not star or not pattern:
        what = "name" if star else "factor"
        raise UsageError(f"--{option} '{text}' has no {what}: it is PATTERN*FACTOR", hint=hint)
    factor = float(number) if _NUMBER.fullmatch(number) else math.nan
    if not 0 <= factor <= MOST_FACTOR:
        said = f"'{number}' behind its last * is no factor" if number else "it ends without a factor"
        raise UsageError(f"--{option} '{text}': {said} from 0 to {MOST_FACTOR:,}", hint=hint)
    return Transform(option=option, of=pattern, factor=factor)


def chosen(option: str, text: str) -> Transform:
    """The change of an option with a few values. Raises UsageError with the nearest for another one."""
    known = CHOICES[option]
    if text not in known:
        nearest = get_close_matches(text, known, n=1)
        suggestion = f"; did you mean '{nearest[0]}'?" if nearest else ""
        raise UsageError(f"unknown --{option} '{text}'{suggestion}", hint=f"values: {', '.join(known)}")
    return Transform(option=option, of=text)


def words_of(transform: Transform) -> list[str]:
    """The option and its value, as they are given to the command."""
    if transform.option in SCALED:
        return [f"--{transform.option}", f"{transform.of}*{_number(transform.factor)}"]
    if transform.option in NUMBERED:
        return [f"--{transform.option}", _number(transform.factor)]
    return [f"--{transform.option}", *([transform.of] if transform.of else [])]


def text_of(transforms: Iterable[Transform]) -> str:
    """All of them as one would type them: `--without sync --kernel 'gemm*0.5'`."""
    return shlex.join(word for transform in transforms for word in words_of(transform))


def _number(factor: float) -> str:
    """With all its digits: reading it gives the same factor."""
    return repr(float(factor)).removesuffix(".0")


_OF_NAMES = ("without", "finding", "graphs", "merge", "stream")
"""Options of a name or a pattern."""
_ALONE = "async-copies"
_EVERY = (*_OF_NAMES, *SCALED, *CHOICES, *NUMBERED, _ALONE)


def read(text: str) -> Transform:
    """The change for `without sync`, `kernel gemm*0.5` or `async-copies`: as on the command line, the dashes are left
    out or not. Raises UsageError for another text."""
    option, _, value = text.strip().removeprefix("--").partition(" ")
    value = value.strip().strip("'\"")
    if option in SCALED:
        return scaled(option, value)
    if option in CHOICES:
        return chosen(option, value)
    if option in NUMBERED and _NUMBER.fullmatch(value):
        return Transform(option=option, factor=float(value))
    if (option in _OF_NAMES and value) or (option == _ALONE and not value):
        return Transform(option=option, of=value)
    near = get_close_matches(option, _EVERY, n=1)
    suggestion = f"; did you mean '{near[0]}'?" if near and near[0] != option else ""
    raise UsageError(f"'{text}' is no change{suggestion}", hint=f"write 'without sync'; changes: {', '.join(_EVERY)}")
