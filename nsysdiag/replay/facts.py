"""What a fix would bring, as plain data: predicted by replay, saved as JSON and read back unchanged."""

from __future__ import annotations

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
from nsysdiag.phrases import Phrases
from nsysdiag.record import Record, Result
from nsysdiag.report import CauseInfo, Tool, TraceInfo

WHATIF_SCHEMA_VERSION = "2"
KIND = "whatif"
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
    where several are fixed, whose ids are in `findings`; `title` is that of the one finding. With `cannot_tell` the
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
    anything. `paced_ns` is the time of a step that the loop waits for, None where it waits for none that is known.
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
