"""Idle time that waits made: how much of it, of which wait, and when none."""

from __future__ import annotations

import numpy as np
import pytest

from nsysdiag.account.bottlenecks import DeviceWaitCalls, Made, made_by_waits
from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.arrays.intervals import Intervals
from nsysdiag.causes.blocking_copy import LABELS, READS_BACK
from nsysdiag.causes.evidence import EvidenceLayer
from nsysdiag.events.rows import ThreadAxis

AXIS = ThreadAxis.over(np.array([7, 9]), 0, 1_000)
DEVICE = 3
Spans = list[tuple[int, int]]


def layer(
    *spans: tuple[int, int], lane: int = 0, device: int | None = None, label: EvidenceLabel | None = None
) -> EvidenceLayer:
    placed = AXIS.place(np.full(len(spans), lane), Intervals.of(list(spans)))
    return EvidenceLayer(placed, np.zeros(len(spans), dtype=np.int64), ["wait"], label, device)


def waits(
    *layers: EvidenceLayer, copies: tuple[EvidenceLayer, ...] = (), busy: Spans, launches: tuple[int, ...] = ()
) -> DeviceWaitCalls:
    begun = np.array(launches, dtype=np.int64)
    position = AXIS.position(np.zeros(len(begun), dtype=np.int64), begun)
    return DeviceWaitCalls.of(list(layers), list(copies), DEVICE, Intervals.of(busy), position, AXIS)


def made(found: DeviceWaitCalls, *slices: tuple[int, int], lane: int = 0, eligible: list[bool] | None = None) -> Made:
    able = np.array([True] * len(slices) if eligible is None else eligible)
    return made_by_waits(found, Intervals.of(list(slices)), np.full(len(slices), lane), able, AXIS)


def pairs(found: Made) -> Spans:
    return sorted(zip(found.spans.start.tolist(), found.spans.end.tolist(), strict=True))


def test_as_much_as_the_wait_had_the_device_at_work() -> None:
    """
    device   0 [== 100 ==)
    thread       40 [wait  ) 110 [host 90         ) 200          60 ns of the wait were of work
    """
    found = waits(layer((40, 110)), busy=[(0, 100)])
    assert found.credit_ns.tolist() == [60]
    assert pairs(made(found, (110, 200))) == [(110, 170)]


def test_no_more_than_there_is() -> None:
    assert pairs(made(waits(layer((40, 110)), busy=[(0, 100)]), (110, 130))) == [(110, 130)]


def test_slices_after_one_wait_use_its_credit_up_in_their_order() -> None:
    """60 ns: the first slice takes 25, the second 30, and 5 are left for the third, whatever the order of rows."""
    found = made(waits(layer((40, 110)), busy=[(0, 100)]), (300, 340), (110, 135), (200, 230))
    assert pairs(found) == [(110, 135), (200, 230), (300, 305)]
    assert sorted(found.slice.tolist()) == [0, 1, 2]


def test_credit_is_reset_at_each_new_wait() -> None:
    """
    device   0 [== 100 ==)            200 [=)203
    thread     [wait     )[host 30   ) 195 [w)205[host 95      )       70 of the first wait are left, and gone: 3 count
    """
    both = waits(layer((0, 100), (195, 205)), busy=[(0, 100), (200, 203)], launches=(150,))
    found = made(both, (100, 130), (205, 300))
    assert pairs(found) == [(100, 130), (205, 208)]
    assert found.wait.tolist() == [0, 1]


def test_a_wait_of_another_thread_makes_nothing() -> None:
    found = waits(layer((40, 110), lane=1), busy=[(0, 100)])
    assert pairs(made(found, (110, 200), lane=0)) == []
    assert pairs(made(found, (110, 200), lane=1)) == [(110, 170)]


@pytest.mark.parametrize(("device", "ns"), [(None, 60), (DEVICE, 60), (DEVICE + 1, 0)])
def test_a_wait_for_another_device_makes_nothing_on_this_one(device: int | None, ns: int) -> None:
    """Where the trace does not say for which, the device worked meanwhile: that is enough."""
    found = made(waits(layer((40, 110), device=device), busy=[(0, 100)]), (110, 200))
    assert int((found.spans.end - found.spans.start).sum()) == ns


@pytest.mark.parametrize("label", [label for label in LABELS if label is not READS_BACK])
def test_copies_of_data_make_nothing_and_end_the_credit_of_the_wait_before(label: EvidenceLabel) -> None:
    """
    device   0 [== 100 ==)[c)
    thread     [wait     )[copy 110)[host 50)
    """
    both = waits(layer((0, 100)), copies=(layer((100, 110), label=label),), busy=[(0, 110)])
    assert both.credit_ns.tolist() == [100, 0]
    assert both.copies.tolist() == [False, True]
    assert pairs(made(both, (110, 160))) == []


def test_reading_a_few_bytes_back_is_a_wait() -> None:
    found = waits(copies=(layer((40, 110), label=READS_BACK),), busy=[(0, 100)])
    assert pairs(made(found, (110, 200))) == [(110, 170)]


def test_a_slice_inside_a_wait_is_not_made_by_it() -> None:
    """The wait has to be over: what goes on inside it is the wait itself."""
    assert pairs(made(waits(layer((40, 300)), busy=[(0, 100)]), (110, 200))) == []


def test_only_eligible_slices_of_a_known_thread() -> None:
    found = waits(layer((40, 110)), busy=[(0, 100)])
    assert pairs(made(found, (110, 130), (130, 150), eligible=[False, True])) == [(130, 150)]
    assert pairs(made(found, (110, 130), lane=-1)) == []


def test_a_wait_for_an_idle_device_has_no_credit() -> None:
    assert pairs(made(waits(layer((40, 110)), busy=[(0, 40)]), (110, 200))) == []


@pytest.mark.parametrize("layers", [(), (layer((40, 110), device=DEVICE + 1),)])
def test_without_waits_nothing_is_made(layers: tuple[EvidenceLayer, ...]) -> None:
    assert pairs(made(waits(*layers, busy=[(0, 100)]), (110, 200))) == []


@pytest.mark.parametrize(("launches", "expected"), [((), [(112, 172)]), ((110,), [(112, 113)])])
def test_waits_in_a_row_are_one(launches: tuple[int, ...], expected: Spans) -> None:
    """
    device   0 [== 100 ==)                                  or more work, launched between the two
    thread       40 [read-back  ) 110  111 [synchronization) 112 [host      ) 172
    """
    busy = [(0, 100), (111, 112)] if launches else [(0, 100)]
    both = waits(layer((111, 112)), copies=(layer((40, 110), label=READS_BACK),), busy=busy, launches=launches)
    found = made(both, (112, 180))
    assert pairs(found) == expected
    assert both.copies[found.wait].tolist() == [not launches]


def test_copies_of_data_are_in_no_row() -> None:
    copy = layer((100, 110), label=LABELS[1])
    both = waits(layer((0, 100), (112, 113)), copies=(copy,), busy=[(0, 113)])
    assert both.leading.tolist() == [0, 1, 2]
    assert both.credit_ns.tolist() == [100, 0, 1]
