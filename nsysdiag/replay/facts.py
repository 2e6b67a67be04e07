"""What a fix would bring, as plain data: predicted by replay, saved as JSON and read back unchanged. The changes as
options of the command, too."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Literal

from nsysdiag.fields import (
    CauseId,
    Count,
    GpuName,
    HashedId,
    Ns,
    NsByCause,
    OwnText,
    Ratio,
    Sentence,
    Share,
    TextKind,
    ValueBySetting,
)
from nsysdiag.messages import UsageError
from nsysdiag.phrases import Phrases
from nsysdiag.record import Record, Result
from nsysdiag.report import CauseInfo, Tool, TraceInfo

WHATIF_SCHEMA_VERSION = "2"
KIND = "whatif"
CAVEAT = (
    "Not predicted: contention for clocks, memory bandwidth and SMs; data dependencies that the trace does not show."
)
Per = Literal["step", "window"]


class Transform(Record, frozen=True):
    """One change, in the words of the command line: `option` is `without`, `finding`, `kernel`, `host`, `async-copies`,
    `overlap`, `graphs`, `rank-like`, `merge`, `stream`, `workers`, `ahead` or `batch`; `of` its name or pattern, empty
    if the option needs none; `factor` the new length of matches, relative to the recorded one, or the number of the
    last three."""

    option: OwnText
    of: Annotated[str, TextKind.TRANSFORM] = ""
    factor: Ratio = 0.0


class Identity(Record, frozen=True):
    """How well the model reproduces the trace. `exact`: with nothing changed, every start and end is as recorded.
    `length_error`: the relative error of the length if operations start as early as the model allows. That is with the
    calibrated latency and shortest gap, not the recorded ones."""

    exact: bool
    length_error: Share


class FourParts(Record, frozen=True):
    """A length by what the device did: the four add up to it."""

    compute_ns: Ns
    exposed_comm_ns: Ns
    exposed_copy_ns: Ns
    idle_ns: Ns


class WhatIfDevice(Record, frozen=True):
    """One device, per step or window: its recorded and predicted length by kind of work, and its idle time by cause:
    `ledger` sums to that of `predicted`, `ledger_now` to that of `now`. Older predictions have no `ledger_now`."""

    key: OwnText
    now_ns: Ns
    predicted_ns: Ns
    now: FourParts
    predicted: FourParts
    ledger: NsByCause
    name: GpuName = ""
    ledger_now: NsByCause = {}


class CauseChange(Record, frozen=True):
    """Idle time by one cause, per step or window, over all devices."""

    cause: CauseId
    from_ns: Ns
    to_ns: Ns


class Saving(Record, frozen=True):
    """What one finding, or several together, would bring: the length that is predicted without them. `finding` is None
    if several are fixed, whose ids are in `findings`; `title` is that of the one finding. With `cannot_tell` the
    bounds are too far apart for `predicted_ns` to say anything."""

    finding: HashedId | None
    transforms: list[Transform]
    predicted_ns: Ns
    low_ns: Ns
    high_ns: Ns
    refused: Sentence | None = None
    findings: list[HashedId] = []
    title: Sentence = ""
    cannot_tell: bool = False


class WhatIf(Result, frozen=True):
    """A prediction. Lengths are those of one step of the judged time, or of the window (`per`); `steps` is how many
    were replayed. low_ns <= predicted_ns <= high_ns. Without `transforms` predicted_ns is now_ns and `savings` lists
    what each finding would bring; `floor_ns` is what stays when all are fixed. `refused` says why nothing is
    predicted; lengths are those of now then. With `cannot_tell` the bounds are too far apart for `predicted_ns` to say
    anything. `paced_ns` is the time of a step that the loop waits for, None if it waits for none that is known.
    `caveats` says what the prediction leaves out, `reasons` why its bounds are apart. `causes` and `settings` are those
    of the analysis, `phrases` the names in sentences, as in a report."""

    schema_version: OwnText
    kind: OwnText
    tool: Tool
    trace: TraceInfo
    per: Per
    steps: Count
    now_ns: Ns
    predicted_ns: Ns
    low_ns: Ns
    high_ns: Ns
    identity: Identity | None
    refused: Sentence | None
    transforms: list[Transform]
    devices: list[WhatIfDevice]
    waterfall: list[CauseChange]
    savings: list[Saving]
    floor_ns: Ns | None = None
    caveats: list[Sentence] = []
    causes: list[CauseInfo] = []
    settings: ValueBySetting = {}
    phrases: Phrases | None = None
    cannot_tell: bool = False
    paced_ns: Ns | None = None
    reasons: list[Sentence] = []


# Changes of a prediction as options of the command line, both ways: `--kernel 'gemm*0.5'`, `--without sync`.

NUMBERED = ("workers", "ahead", "batch")
"""Options of a number."""
SCALED = ("kernel", "host")
"""Options that make what matches a pattern longer or shorter."""
CHOICES: dict[str, tuple[str, ...]] = {"overlap": ("copies", "communication"), "rank-like": ("median",)}
OPTIONS = ("without", "finding", "graphs", "merge", "stream", *SCALED, *CHOICES, *NUMBERED, "async-copies")
MOST_FACTOR = 1000
"""The largest factor of `--kernel` and `--host`: a larger one is an error. A round number: no rule depends on it."""
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def scaled(option: str, text: str) -> Transform:
    """The change for `PATTERN*FACTOR`; the pattern may contain `*` itself. Raises UsageError for another text, and for
    a factor below 0 or above 1,000."""
    pattern, star, number = text.rpartition("*")
    pattern, number = pattern.strip(), number.strip()
    hint = f"write --{option} '{'gemm' if option == 'kernel' else 'load*'}*0.5' for half the time, *0 for none"
    if not star or not pattern:
        what = "name" if star else "factor"
        raise UsageError(f"--{option} '{text}' has no {what}: it is PATTERN*FACTOR", hint=hint)
    factor = float(number) if _NUMBER.fullmatch(number) else math.nan
    if not 0 <= factor <= MOST_FACTOR:
        said = f"'{number}' behind its last * is not a factor" if number else "it ends without a factor"
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


def change_of(option: str, value: str) -> Transform | None:
    """The change of an option with its value; None if there is no such option, or no such value of it. Raises what
    `scaled` and `chosen` do."""
    if option in SCALED:
        return scaled(option, value)
    if option in CHOICES:
        return chosen(option, value)
    if option in NUMBERED:
        return Transform(option=option, factor=float(value)) if _NUMBER.fullmatch(value) else None
    fits = option in OPTIONS and bool(value) == (option != "async-copies")
    return Transform(option=option, of=value) if fits else None


def read(text: str) -> Transform:
    """The change for `without sync`, `kernel gemm*0.5` or `async-copies`: as on the command line, the dashes are left
    out or not. Raises UsageError for another text."""
    option, _, value = text.strip().removeprefix("--").partition(" ")
    if (found := change_of(option, value.strip().strip("'\""))) is not None:
        return found
    near = get_close_matches(option, OPTIONS, n=1)
    suggestion = f"; did you mean '{near[0]}'?" if near and near[0] != option else ""
    raise UsageError(
        f"'{text}' is not a change{suggestion}", hint=f"write 'without sync'; changes: {', '.join(OPTIONS)}"
    )
