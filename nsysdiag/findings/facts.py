"""Findings as plain data, and which of them come first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, UnsetType

from nsysdiag import typed
from nsysdiag.causes.ids import HOST_CODE
from nsysdiag.diagnosis.facts import KERNELS, Diagnosis, Saves
from nsysdiag.fields import (
    CallName,
    CauseId,
    Count,
    HashedId,
    Moment,
    Ns,
    Number,
    OwnText,
    RangeName,
    RowName,
    Sentence,
    Share,
    TotalCount,
    TotalNs,
)
from nsysdiag.record import Record, Shown, in_a_cell
from nsysdiag.typed import joined

_NO_NAME = re.compile(r"(main|0x[0-9a-f]+)?")


EvidenceOf = Literal["label", "call", "gap", "idle_behind", "kernel", "copy", "migration", "samples"]
FindingKind = Literal["operators", "unseen"]
"""A host that runs operators one by one; time that nothing explains, as the trace shows nothing of the host."""


class EvidenceRow(Record, frozen=True):
    """A row of the trace that a claim rests on, enough to SELECT it: `table`, and the values of its columns start,
    globalTid (`thread`), correlationId (`correlation`) and globalPid (`process`); None if that says nothing.

    `name` says what it is, `ns` how much of the time it stands for."""

    table: OwnText
    name: RowName
    start_ns: Moment
    ns: TotalNs
    thread: Number | None = None
    correlation: Number | None = None
    process: Number | None = None


class Joined(Record, frozen=True):
    """A finding that was joined with another one, as both are the same problem."""

    cause: CauseId
    variant: OwnText
    nvtx: list[RangeName]


class Named(Record, frozen=True):
    """A part of a finding's time with its name: a function, a place, or a function at a place; of kernels their kind.
    `share` is its part of the judged time; `short` is the name without details, empty if `text` has none. `which`
    says which kernels of the kind run, empty if `text` does. `graphs` is the number of launches of CUDA graphs that
    were recorded without their kernels, if the part is that."""

    text: Sentence
    share: Share
    short: Sentence = ""
    which: Sentence = ""
    graphs: Count = 0


class Evidence(Record, frozen=True):
    """A fact that a finding rests on, as data. `kind` says what was counted, `name` what it is about: a label of the
    cause, a CUDA or OS call, a kernel, a kind of copy; empty for the longest gap, for idle time behind a wait, and for
    CPU samples in host code.
    `count` is how many there were, `ns` how long they took in all; None if that was not measured."""

    kind: EvidenceOf
    name: Sentence
    count: Count | None = None
    ns: Ns | None = None


class Finding(Shown, frozen=True):
    """A performance problem that can be fixed.

    All times but `saves` are of the judged time. `lost_ns` is what the ledger holds, over all `devices`, and
    `lost_share` its fraction of their judged time. Findings do not overlap there: their sum is at most the time that
    the devices lost. `share` is the fraction that the account charges to `bottleneck`. It is less if a part is
    charged to something else, and more if a wait caused idle time behind it. `ceiling_ns` is the upper bound of
    the saving on one device; upper bounds overlap and must not be added. `saves` is of a step or of the window, as its
    `per` says; None if unknown.

    `confidence`, 0 to 1, is the fraction of its time with evidence in the trace. `summary` is a short description;
    `variant` is the id of the variant of its cause, empty if none. `part_of` is the id of the finding on the same
    problem that reports the saving of both. `note` explains this, or why the saving exceeds the share; `joined` are the
    findings that were merged into this one. `named` are the functions, NVTX ranges or kernels with most of the time,
    the most specific first. `measured` is the evidence as data. `counted_before`: time that the fix saves is charged to
    synchronization before it. `shown_by` is the profiler of kernels that shows more, `ncu` or `rocprof`.
    `kind` sets findings of a cause apart: those of `operators` that the host runs one by one, and of `unseen` host
    activity. Others have none.

    Location: the `devices`, and the `device` with the most lost time; the NVTX range path `nvtx`; the number of `gaps`
    and the `signature` of most of them; the `call`, an API or OS function, or a description. `chain` lists the steps
    from the root cause to the fix; `rows` are the rows of the trace with the most of this time, longest first."""

    id: HashedId
    cause: CauseId
    device: OwnText
    severity: OwnText
    title: Sentence
    lost_ns: TotalNs
    lost_share: Share
    ceiling_ns: Ns
    confidence: Share
    nvtx: list[RangeName]
    evidence: list[Sentence]
    advice: list[Sentence]
    signature: HashedId | None = None
    call: CallName | None = None
    gaps: TotalCount = 0
    chain: list[Sentence] = []
    rows: list[EvidenceRow] = []
    devices: list[OwnText] = []
    bottleneck: OwnText = ""
    share: Share = 0.0
    saves: Saves | None = None
    summary: Sentence = ""
    part_of: HashedId | None = None
    note: Sentence = ""
    variant: OwnText = ""
    joined: list[Joined] = []
    named: list[Named] = []
    measured: list[Evidence] = []
    counted_before: bool = False
    shown_by: OwnText = ""
    kind: FindingKind | UnsetType = UNSET

    @property
    def unnamed(self) -> bool:
        """Whether it is about host code that neither CPU samples nor ranges of the program name."""
        return self.cause == HOST_CODE and not self.nvtx and names_nothing(self.call)

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        return in_a_cell(self)


def names_nothing(call: Sentence | None) -> bool:
    """All of a program is in main, and an address is not a name."""
    return _NO_NAME.fullmatch(typed.plain(call or "")) is not None


# Which findings a reader sees first, and which of them says what to do first.


BRIEF = 3
"""The number of findings on the first screen."""
KERNELS_LEAD, NOTABLE = 0.8, 0.1
"""If kernels take this share of the time, and no fix saves this share, look at the kernels first."""
LITTLE = 0.05
"""Share of the time: a smaller finding without a known saving is not on the first screen."""
SAME_KERNELS = "same_kernels"
"""The variant of slow iterations that run the same kernels, which take longer in them."""
OTHER_GPU, LATE_RANK, SINGLE_PRECISION = "other_gpu", "late_rank", "single_precision"
TOLD_TWICE = frozenset(("slow_iterations", "empty_iterations", "unfused", SINGLE_PRECISION))
"""Causes of findings whose time is charged to other findings."""
TWO_SENTENCES = (LATE_RANK, SINGLE_PRECISION)
"""Causes whose second advice belongs to the first: what the late GPU waits for, and what bounds the saving."""


def kernels_first(bottleneck: str, share: float, saving: Finding | None) -> bool:
    """Whether to look at kernels first, rather than at the finding that saves most."""
    most = saving.saves.most if saving is not None and saving.saves else 0.0
    return bottleneck in KERNELS and share >= KERNELS_LEAD and most < NOTABLE


def action_of(found: Diagnosis, findings: Sequence[Finding]) -> Finding | None:
    """The finding that the diagnosis's action is about; in reports of older versions the first with its saving."""
    first = found.fix_first
    same = (each for each in findings if (each.saves == found.saves if first is None else each.id == first))
    return next(same, None) if found.action else None


def first_of(found: Diagnosis, findings: Sequence[Finding]) -> Finding | None:
    """What to do first: the action, or the kernels if these lead and the action saves little."""
    action = action_of(found, findings)
    kernels = leading_of(found, findings)
    return kernels if kernels and kernels_first(found.bottleneck, found.share, action) else action


def leading_of(found: Diagnosis, findings: Sequence[Finding]) -> Finding | None:
    """The finding with most of the bottleneck's time."""
    own = of_bottleneck(found, findings)
    own = [each for each in own if each.cause != OTHER_GPU] if found.bottleneck in KERNELS else own
    return max(own, key=lambda each: each.share, default=None)


def of_bottleneck(found: Diagnosis, findings: Sequence[Finding]) -> list[Finding]:
    """The findings whose time the bottleneck is made of; kernels are one, whether they fill the GPU or not."""
    names = KERNELS if found.bottleneck in KERNELS else (found.bottleneck,)
    return [each for each in findings if each.bottleneck in names and each.cause not in TOLD_TWICE]


def what_to_do(finding: Finding) -> Sentence:
    """Its first advice. For kernels also the last, the ncu command."""
    first, last = finding.advice[:1], finding.advice[-1:]
    if finding.cause in TWO_SENTENCES:
        return joined(" ", finding.advice[:2])
    looks = finding.bottleneck in KERNELS and finding.saves is None
    return joined(" ", dict.fromkeys([*first, *(last if looks else [])]))


def brief_of(found: Diagnosis | None, findings: Sequence[Finding]) -> list[Finding]:
    """The findings of the first screen: what to do first, then those that save most. One is about the bottleneck, even
    if its saving is unknown."""
    top = [each for each in findings if each.saves is not None or each.share >= LITTLE][:BRIEF]
    if found is None:
        return top
    first, leading = first_of(found, findings), leading_of(found, findings)
    if leading is not None and leading_of(found, top) is None:
        top = [*top[: BRIEF - 1], leading]
    return sorted(top, key=lambda each: each is not first) if first in top else top
