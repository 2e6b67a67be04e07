"""The thresholds of a rule with their current values, and its sources, for `nsysdiag rules`."""

from __future__ import annotations

from nsysdiag.causes import CAUSES
from nsysdiag.causes.advice import Advice
from nsysdiag.causes.sources import SOURCES, Source
from nsysdiag.causes.threshold import Threshold, setting
from nsysdiag.findings.exposed import PINNING, SETS
from nsysdiag.findings.rules import (
    DIVIDE_EVENLY,
    EXPOSED_COPY,
    FINDING_RULES,
    KERNELS,
    OTHER_GPU,
    SEE_THE_OTHER,
    SINGLE_PRECISION,
)
from nsysdiag.kernels.advice import HALF_PRECISION, KERNEL_ADVICE


def thresholds_of(rule: str) -> tuple[Threshold, ...]:
    """The thresholds of a cause or a rule of findings: its own, then those that make it a finding."""
    if rule in FINDING_RULES:
        return tuple(setting(name) for name in FINDING_RULES[rule].thresholds)
    common = () if CAUSES[rule].unresolved else ("smallest", "places")
    return (*CAUSES[rule].thresholds, *(setting(name) for name in common or ("smallest",)))


def sources_of(rule: str) -> tuple[Source, ...]:
    """The documents that a cause or a rule of findings rests on, then those of its advice for frameworks."""
    known = FINDING_RULES[rule] if rule in FINDING_RULES else CAUSES[rule]
    words = [words.source for advice in advice_of(rule) for _, words in advice.others()]
    return tuple(SOURCES[name] for name in dict.fromkeys((*known.sources, *words)))


def advice_of(rule: str) -> tuple[Advice, ...]:
    """The advice of a rule of findings; of a cause its own, then that of its variants."""
    if rule in FINDING_RULES:
        special = {
            EXPOSED_COPY.id: (SETS, PINNING),
            KERNELS.id: KERNEL_ADVICE,
            SINGLE_PRECISION.id: (HALF_PRECISION,),
            OTHER_GPU.id: (DIVIDE_EVENLY, SEE_THE_OTHER),
        }
        return (FINDING_RULES[rule].advice, *special.get(rule, ()))
    cause = CAUSES[rule]
    return (cause.advice, *(kind.advice for kind in cause.variants if kind.advice))
