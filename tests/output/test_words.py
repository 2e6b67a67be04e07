"""The sentences, at the places where they change."""

from __future__ import annotations

import msgspec
import pytest

from nsysdiag.document import words
from tests.output.samples import MS, device, iteration, iterations


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


class TestLeftOut:
    def test_reasons_are_counted(self) -> None:
        rows = [iteration(0, 5 * MS), iteration(7, 5 * MS, steady=False, graph_build=MS), iteration(19, MS)]
        found = iterations(left_out=[0, 7, 19], rows=rows)
        assert words.left_out_sentence(found) == "3 left out (1 warm-up, 1 graph capture, 1 cut short at the end)"

    def test_the_last_one_may_be_too_long_as_well(self) -> None:
        found = iterations(left_out=[19], rows=[iteration(19, 9 * MS)])
        assert words.left_out_sentence(found) == "1 left out (the last, with what follows it)"

    def test_one_reason_is_not_counted_twice(self) -> None:
        assert words.left_out_sentence(iterations(left_out=[0, 1])) == "2 left out (warm-up)"

    def test_none(self) -> None:
        assert words.iterations_sentence(iterations(left_out=[])).endswith("worst 5.00 ms")


def test_an_anchor_is_named_briefly() -> None:
    found = iterations(source="anchor", name="void at::native::fill<4, float>(float*, int)")
    assert words.iterations_found(found) == "20 iterations by one start of “at::native::fill” in each"


class TestLoops:
    def test_layers_are_not_called_iterations(self) -> None:
        found = iterations(kind="layer", closed=False, count=15, name="blocks.#")
        assert words.iterations_found(found) == "15 layers by NVTX range “blocks.#”"

    def test_what_is_known_to_be_layers_is_not_in_doubt(self) -> None:
        """A slice may hold layers of two passes. That these are no steps is known."""
        doubted = [iterations(kind=kind, closed=False, certain=False) for kind in ("layer", "repeat")]
        assert [bool(words.doubt_sentence(each)) for each in doubted] == [False, True]

    def test_the_shorter_period(self) -> None:
        assert words.inner_sentence(iterations()) == (
            "NVTX range “micro batch #” comes 4 times in each iteration, 900 µs apart"
        )
        assert words.inner_sentence(iterations(inner=None)) == ""

    def test_slow_ones_together(self) -> None:
        found = iterations(slow_count=12, slow_extra_ns=30 * MS, slow_period=10)
        assert words.slow_sum(found) == "12 slow iterations, every 10th: 30.0 ms more in all"
        assert words.slow_sum(iterations(slow_count=1, slow_extra_ns=MS)) == "1 slow iteration: 1.00 ms more in all"
        assert words.slow_sum(iterations(slow_count=0)) == ""

    def test_the_last_before_a_pause(self) -> None:
        found = iterations(left_out=[12], rows=[iteration(12, 4 * MS)])
        assert words.left_out_sentence(found) == "1 left out (the last before a pause)"
