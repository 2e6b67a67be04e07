"""Which findings a reader sees first, and which of them says what to do first."""

from __future__ import annotations

from collections.abc import Sequence

from nsysdiag.diagnosis.facts import KERNELS, Diagnosis
from nsysdiag.fields import Sentence
from nsysdiag.findings.facts import Finding
from nsysdiag.typed import joined

BRIEF = 3
"""The number of findings on the first screen."""
KERNELS_LEAD, NOTABLE = 0.8, 0.1
"""If kernels take this share of the time, and no fix saves this share, look at the kernels first."""
LITTLE = 0.05
"""Share of the time: a smaller finding without a known saving is not on the first screen."""
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
