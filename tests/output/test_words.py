"""The sentences, at the places where they change."""

from __future__ import annotations

import msgspec
import pytest

from nsysdiag.output import words
from tests.output.samples import device


@pytest.mark.parametrize(
    ("coverage", "word"),
    [(0.0, "unresolved"), (0.199, "unresolved"), (0.2, "likely"), (0.499, "likely"), (0.5, "supported")],
)
def test_confidence(coverage: float, word: str) -> None:
    assert words.confidence_word(coverage) == word
    if word != "supported":
        assert word in words.coverage_sentence(coverage)


def test_coverage_of_nothing() -> None:
    assert "No idle time" in words.coverage_sentence(None)


def test_instant_has_microseconds() -> None:
    assert words.instant(1_234_567_890) == "1.234568 s"


def test_drained_counts_one_gap_and_many() -> None:
    one = msgspec.structs.replace(device(), sync_drained={"gaps": 1, "ns": 4_000_000})
    assert "1 gap, 4.00 ms or 10.0% of the idle time, follows" in str(words.drained_sentence(one))
    assert "33 gaps" in str(words.drained_sentence(device()))
    assert words.drained_sentence(msgspec.structs.replace(device(), sync_drained={})) is None


def test_window_of_several_parts() -> None:
    window = msgspec.structs.replace(device().window, parts=[(0, 1), (2, 3)])
    assert " in 2 parts" in words.window_sentence(msgspec.structs.replace(device(), window=window))
