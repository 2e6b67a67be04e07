"""What the text, Markdown and HTML outputs say about the kinds of bottleneck of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.units import format_share

if TYPE_CHECKING:
    from nsysdiag.diagnosis.facts import Triage, TriageKind

TITLE = "What to repair first"
BURSTS = "bursts"
WITHOUT_FINDINGS = frozenset(("batch", "kernels", "sizing"))


def holds_word(kind: TriageKind) -> str:
    """Whether it holds, in a word or two."""
    if kind.holds is None:
        return "cannot tell"
    return "yes" if kind.holds else "no"


def share_label(kind: TriageKind) -> str:
    """Its share of the judged time."""
    return "–" if kind.share is None else format_share(kind.share, 1)


def workload_sentence(triage: Triage) -> str:
    """How work comes to the device."""
    why = triage.workload.why
    return f"{why[:1].upper()}{why[1:]}."


def also_sentence(triage: Triage) -> str | None:
    """The other kinds that hold, in the order of repair; None where there are none."""
    others = [kind for kind in triage.kinds if kind.holds and kind.id != triage.id]
    if not others:
        return None
    return "Then: " + "; ".join(_also(kind) for kind in others) + "."


def _also(kind: TriageKind) -> str:
    title = f"{kind.title[:1].lower()}{kind.title[1:]}"
    return title if kind.share is None else f"{title} ({share_label(kind)})"


def triage_sentences(triage: Triage) -> list[str]:
    """The kind that comes first, how work comes where that is in bursts, what comes after; and what to do, where no
    finding says it."""
    first = next((kind for kind in triage.kinds if kind.id == triage.id), None)
    also = also_sentence(triage)
    return [
        triage.sentence,
        *([workload_sentence(triage)] if triage.workload.kind == BURSTS else []),
        *([also] if also else []),
        *(first.advice if first and first.id in WITHOUT_FINDINGS else []),
    ]
