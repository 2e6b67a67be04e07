"""Several devices judged at once: wrong as rarely as one, and no blinder where all changed alike."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from nsysdiag.comparison.facts import Change, Unit
from nsysdiag.comparison.headline import device_sentence, interval_text
from nsysdiag.comparison.waterfall import DeviceChanges, corrected

WIDE = 8.0


def changed(low: int, high: int, verdict: str = "") -> Change:
    ns = (low + high) // 2
    told = verdict or ("same" if low <= 0 <= high else "regressed" if ns > 0 else "improved")
    return Change(before_ns=1000, after_ns=1000 + ns, change_ns=ns, low_ns=low, high_ns=high, least_ns=20, verdict=told)


def device(length: Change, *, freedom: float | None = WIDE, **parts: Change) -> DeviceChanges:
    return DeviceChanges({"length": length, **parts}, {}, 0.0, freedom)


def judged(*lengths: Change) -> list[str]:
    return [each.length.verdict for each in corrected([device(length) for length in lengths])]


UNIT = Unit(kind="iterations", name_before="", name_after="", count_before=9, count_after=9, scale=1.0)
NEAR, EDGE, FAR, BETTER, NOTHING = (
    changed(40, 180),
    changed(10, 210),
    changed(150, 210),
    changed(-210, -150),
    changed(-100, 100),
)


def test_the_length_of_one_device_is_judged_at_99_percent() -> None:
    assert judged(NEAR) == ["regressed"]
    assert judged(EDGE) == ["same"]


def test_one_of_several_must_be_further_off() -> None:
    assert judged(NEAR, *[NOTHING] * 7) == ["same"] * 8
    assert judged(FAR, *[NOTHING] * 7) == ["regressed", *["same"] * 7]


def test_devices_that_changed_alike_count_all() -> None:
    assert judged(*[NEAR] * 8) == ["regressed"] * 8
    assert judged(*[NEAR] * 7, NOTHING) == ["same"] * 8


def test_better_and_worse_count_for_each_other() -> None:
    assert judged(BETTER, NEAR) == ["improved", "regressed"]


def test_what_cannot_be_told_stands_beside() -> None:
    unknown = msgspec.structs.replace(NEAR, low_ns=None, high_ns=None, verdict="unknown")
    found = corrected([device(NEAR), device(unknown, freedom=None)])
    assert [each.length.verdict for each in found] == ["regressed", "unknown"]


def test_parts_are_judged_beside_those_of_their_name() -> None:
    found = corrected([device(NOTHING, idle=EDGE, own_0=EDGE), device(NOTHING, idle=NOTHING, own_1=EDGE)])
    verdicts = [[change.verdict for name, change in each.times.items() if name != "length"] for each in found]
    assert verdicts == [["same", "regressed"]] * 2


def test_intervals_stay_and_the_sentence_says_why() -> None:
    first, *_others = corrected([device(NEAR), device(NOTHING)])
    assert (first.length.low_ns, first.length.high_ns) == (40, 180)
    assert device_sentence(UNIT, first.length).endswith("That may be chance: a verdict takes 99%.")


@pytest.mark.slow
@pytest.mark.parametrize("common", [0.0, 0.5, 0.9, 1.0])
def test_one_comparison_in_a_hundred_is_wrong(common: float) -> None:
    """Eight devices on which nothing changed, which share so much of what chance does to them."""
    random = np.random.default_rng(0)
    wrong = 0
    for _trial in range(2000):
        off = common**0.5 * random.normal() + (1 - common) ** 0.5 * random.normal(size=8)
        lengths = [changed(round(1e5 * (each - 1.96)), round(1e5 * (each + 1.96))) for each in off]
        found = corrected([device(length, freedom=1e3) for length in lengths])
        wrong += any(each.length.verdict != "same" for each in found)
    assert wrong <= 0.013 * 2000


def test_a_change_without_an_interval_is_nothing_beside_others() -> None:
    point = msgspec.structs.replace(FAR, low_ns=None, high_ns=None)
    assert judged(point, NOTHING) == ["same", "same"]
    assert interval_text(point) == "no interval"
