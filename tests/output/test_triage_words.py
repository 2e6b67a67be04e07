"""What is said of the kinds of bottleneck: each kind's word, what comes after the first, and what to do about it."""

from __future__ import annotations

from msgspec import structs

from nsysdiag.diagnosis.facts import Triage, TriageKind, Workload
from nsysdiag.diagnosis.words import also_sentence, holds_word, share_label, triage_sentences


def kind(name: str, holds: bool | None, share: float | None, advice: list[str] | None = None) -> TriageKind:
    return TriageKind(id=name, title=f"The {name}", holds=holds, share=share, evidence=["?"], advice=advice or [])


def triage(first: str, *kinds: TriageKind) -> Triage:
    return Triage(
        id=first,
        sentence="A sentence.",
        workload=Workload(kind="unclear", why="no steps repeat", judged_ns=1),
        kinds=list(kinds),
    )


def test_a_kind_in_a_word() -> None:
    assert [holds_word(kind("feed", holds, None)) for holds in (True, False, None)] == ["yes", "no", "cannot tell"]
    assert [share_label(kind("feed", True, share)) for share in (None, 0.25)] == ["–", "25.0%"]


def test_what_comes_after_the_first() -> None:
    feed, batch, kernels = kind("feed", True, 0.2), kind("batch", True, None), kind("kernels", True, 0.6)
    assert also_sentence(triage("feed", feed, batch, kernels)) == "Then: the batch; the kernels (60.0%)."
    assert also_sentence(triage("feed", feed, kind("kernels", False, 0.1))) is None


def test_advice_is_given_where_no_finding_gives_it() -> None:
    feed = triage("feed", kind("feed", True, 0.2, ["Read faster."]))
    assert triage_sentences(feed) == ["A sentence."]
    sizing = triage("sizing", kind("sizing", True, None, ["A smaller GPU."]))
    assert triage_sentences(sizing) == ["A sentence.", "A smaller GPU."]


def test_bursts_are_told() -> None:
    served = structs.replace(
        triage("none"), workload=Workload(kind="bursts", why="work comes in 9 bursts", judged_ns=1)
    )
    assert triage_sentences(served) == ["A sentence.", "Work comes in 9 bursts."]
