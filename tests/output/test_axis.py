"""Labels of an axis differ wherever its values do, in Python and in the scripts of the timeline."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nsysdiag.comparison.show.views import length_ticks
from nsysdiag.document.axis import EDGES, count_levels, round_steps, time_label, time_levels, time_ticks, unit_of
from nsysdiag.formats.batch.summary import share_levels
from nsysdiag.formats.html.assets import asset
from nsysdiag.memory.show import byte_levels
from nsysdiag.units import NS_PER
from tests.output.browser import Browser, Chromium

times = st.integers(0, 2**63 - 1)
SECOND = NS_PER["s"]


def test_unit_of_an_axis() -> None:
    assert [unit_of(ns)[1] for ns in (0, 999, 1_000, 59_142_466, 3 * SECOND)] == ["ns", "ns", "µs", "ms", "s"]


def test_times_keep_their_digits() -> None:
    assert [time_label(ns) for ns in (0, 200, 50_000, 2_000_000, 1_500_000_000)] == [
        *("0 ns", "200 ns", "50 µs", "2 ms", "1.5 s"),
    ]
    assert time_label(3_600 * SECOND + 1) == "3,600.000000001 s"


def test_labels_of_an_axis_share_a_unit() -> None:
    assert list(time_levels(2_300_000_000, 3)) == ["1 s", "2 s"]
    assert [label for _x, label in time_ticks(2_300_000_000)] == ["0.5 s", "1 s", "1.5 s", "2 s"]
    assert list(count_levels(1_234)) == ["500", "1,000"]
    assert list(count_levels(1)) == ["1"]


def test_round_steps() -> None:
    assert round_steps(59, 5) == [10, 20, 30, 40, 50]
    assert round_steps(60, 5) == [20, 40, 60]
    assert round_steps(1_000, 5) == [200, 400, 600, 800, 1_000]
    assert round_steps(3, 4) == [1, 2, 3]


@given(times, times)
@example(1, 2)
@example(999_999_999, SECOND)
def test_different_times_have_different_labels(first: int, second: int) -> None:
    assert (time_label(first) == time_label(second)) == (first == second)
    longest = max(first, second)
    assert (time_label(first, longest) == time_label(second, longest)) == (first == second)


@given(times, st.integers(1, 12))
def test_levels_up_to_any_time_differ_and_are_few(top: int, most: int) -> None:
    for levels in (time_levels(top, most), count_levels(top, most)):
        assert list(levels.values()) == round_steps(top, most)
        assert len(levels) <= most


@given(times, st.integers(0, 10**12), st.lists(st.floats(0, 1), max_size=5))
@example(10 * SECOND, 2_000_000, [])
def test_labels_of_lengths_far_from_0_differ(low: int, span: int, between: list[float]) -> None:
    """An axis from 10 s to 10.002 s has labels of its own for each of its ticks."""
    lengths = [low, low + span, *(low + round(span * share) for share in between)]
    labels = [time_label(ns, max(*lengths, 1)) for ns in length_ticks(lengths)]
    assert len(set(labels)) == len(labels)


@given(st.integers(1, 2**62))
def test_labels_of_sizes_differ(top: int) -> None:
    """Or one would be lost."""
    first, *_others = values = list(byte_levels(top).values())
    assert values == [first * at for at in range(1, len(values) + 1)]
    assert len(values) <= 6
    assert top < values[-1] + first


@given(st.integers(1, 10_000))
def test_labels_of_shares_differ(top: int) -> None:
    levels = share_levels(top, 10_000)
    assert len(set(levels.values())) == len(levels)


CASES = [
    (origin, start, span, pixels)
    for origin in (0, 1, 1_234_567_891, 12 * SECOND, -5 * SECOND - 1, 1_700_000_000 * SECOND)
    for start in (0, 17, 1_500_000_003)
    for span in (1, 10, 999, 1_000, 2_300, 123_456_789, SECOND, 2_300_000_000, 3_600 * SECOND)
    for pixels in (300, 1_440)
]


@pytest.mark.browser
@pytest.mark.slow
def test_the_timeline_follows_the_same_rules(chromium: Chromium) -> None:
    """Every tick is a multiple of a round step of the trace's clock, and its label is the time with all its digits."""
    cases = [(str(origin), start, start + span, 110 * span / pixels) for origin, start, span, pixels in CASES]
    code = f"""(() => {{ {asset("timeline/scale.js")}
        return {json.dumps(cases)}.map(([origin, from, to, least]) => {{
            const clock = makeClock(BigInt(origin));
            return [roundStep(least), axisTicks(clock, from, to, least).map(({{ time, label }}) => [time, label])];
        }});
    }})()"""
    with Browser(chromium) as browser:
        answers = browser.value(code)
    for (origin, start, span, pixels), (step, ticks) in zip(CASES, answers, strict=True):
        assert step == next(edge for edge in EDGES if edge >= 110 * span / pixels)
        first = -(-(origin + start) // step) * step
        assert [origin + time for time, _label in ticks] == list(range(first, origin + start + span, step))
        assert [bare(label) for _time, label in ticks] == [signed(origin + time) for time, _label in ticks]
        assert len({label for _time, label in ticks}) == len(ticks)


def bare(label: str) -> str:
    """A label without zeros that end it."""
    number = label.removesuffix(" s")
    return (number.rstrip("0").rstrip(".") if "." in number else number) + " s"


def signed(ns: int) -> str:
    return ("-" if ns < 0 else "") + time_label(abs(ns), SECOND)
