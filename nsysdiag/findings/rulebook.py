"""What `nsysdiag rules` says of a rule beside its words: its thresholds, with the values in force, and its sources."""

from __future__ import annotations

from nsysdiag.causes import CAUSES
from nsysdiag.causes.sources import SOURCES, Source
from nsysdiag.causes.threshold import Threshold, setting
from nsysdiag.findings.rules import FINDING_RULES


def thresholds_of(rule: str) -> tuple[Threshold, ...]:
    """The thresholds of a cause or a rule of findings: its own, then those that make it a finding."""
    if rule in FINDING_RULES:
        return tuple(setting(name) for name in FINDING_RULES[rule].thresholds)
    common = () if CAUSES[rule].unresolved else ("smallest", "places")
    return (*CAUSES[rule].thresholds, *(setting(name) for name in common or ("smallest",)))


def sources_of(rule: str) -> tuple[Source, ...]:
    """The documents that a cause or a rule of findings rests on."""
    names = FINDING_RULES[rule].sources if rule in FINDING_RULES else CAUSES[rule].sources
    return tuple(SOURCES[name] for name in names)
