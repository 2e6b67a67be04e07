"""What the user says a step is: `--step`, and `step` in a settings file."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nsysdiag.errors import UsageError

MOST_STEPS = 10**9
_HINT = "name an NVTX range, or write kernel=NAME, count=N or every=N"


class StepChoice(Struct, frozen=True):
    """Steps are the ranges named `name` (`nvtx`), or begin at each kernel of that name (`kernel`). Or there are
    `number` equal ones (`count`), or `number` of the steps that were found are one (`every`)."""

    kind: Literal["nvtx", "kernel", "count", "every"]
    name: str = ""
    number: int = 0


def parse_step(text: str) -> StepChoice:
    """The choice that a text makes. Raises UsageError for one that makes none."""
    kind, equals, value = (part.strip() for part in text.partition("="))
    if equals and kind == "kernel":
        return StepChoice("kernel", _not_empty(value, text))
    if equals and kind == "count":
        return StepChoice("count", number=_number(value, text, 1))
    if equals and kind == "every":
        return StepChoice("every", number=_number(value, text, 2))
    return StepChoice("nvtx", _not_empty(text, text))


def _not_empty(name: str, text: str) -> str:
    if not name.strip():
        raise UsageError(f"--step {text} names nothing".replace("  ", " "), hint=_HINT)
    return name


def _number(value: str, text: str, least: int) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) < len(str(MOST_STEPS)) and int(value) >= least):
        raise UsageError(f"--step {text} needs a whole number from {least} on", hint=_HINT)
    return int(value)
