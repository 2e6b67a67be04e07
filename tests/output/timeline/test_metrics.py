"""Curves of the GPU's own counters, where a report has any."""

from __future__ import annotations

import zlib
from types import SimpleNamespace
from typing import Any

import numpy as np

from nsysdiag.formats.html.assets import Blob
from nsysdiag.formats.html.timeline_data import MOST_CURVES, metric_curves
from tests.output.carrying import from_carried
from tests.output.samples import device
from tests.output.timeline.samples import packed


def counted(*values: int, title: str = "SM active", unit: str = "share", samples: int = 3) -> SimpleNamespace:
    return SimpleNamespace(
        title=title, unit=unit, samples=samples, series=packed(np.array(values, dtype="<i2").tobytes())
    )


def curves(*metrics: SimpleNamespace) -> tuple[list[dict[str, Any]], list[list[int]]]:
    """The curves of a device with these metrics, and their values."""
    counters = SimpleNamespace(metrics=list(metrics), start_ns=100, end_ns=400, buckets=3)
    blob = Blob()
    found: list[dict[str, Any]] = metric_curves(SimpleNamespace(gpu_metrics=counters), blob, 100)  # type: ignore[arg-type]
    block = zlib.decompress(from_carried(blob.text()))
    places = [curve["series"] for curve in found]
    return found, [np.frombuffer(block[offset : offset + size], "<i2").tolist() for offset, size in places]


def test_a_device_without_counters_has_none() -> None:
    assert metric_curves(device(), Blob(), 0) == []


def test_shares_and_clocks() -> None:
    found, values = curves(counted(0, 500, -1), counted(1410, 1410, 1200, title="GPC clock", unit="Hz"))
    assert [(curve["title"], curve["share"]) for curve in found] == [("SM active", True), ("GPC clock", False)]
    assert (found[0]["start"], found[0]["end"], found[0]["buckets"]) == (0, 300, 3)
    assert values == [[0, 500, -1], [1410, 1410, 1200]]


def test_a_metric_that_was_never_sampled_has_no_curve() -> None:
    assert curves(counted(-1, -1, -1, samples=0)) == ([], [])


def test_only_the_first_few_are_drawn() -> None:
    assert len(curves(*(counted(1, 2, 3) for _ in range(9)))[0]) == MOST_CURVES
