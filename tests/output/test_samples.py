"""The samples are true to the model: what is tested on them is tested on reports that can be."""

from __future__ import annotations

import pytest

from nsysdiag.document.view import window_parts
from nsysdiag.record import to_json
from nsysdiag.report import Report
from nsysdiag.saved import from_json, unpack
from tests.output.samples import SAMPLES


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_sums_hold(sample: str) -> None:
    for device in SAMPLES[sample]().devices:
        assert sum(part.ns for part in window_parts(device)) == device.window_ns
        assert sum(device.ledger.values()) == sum(device.root_ledger.values()) == device.idle_ns
        assert all(sum(part.ns for part in gap.slices) == gap.end_ns - gap.start_ns for gap in device.gaps)
        assert len(unpack(device.gaps_packed)[0]) == device.gap_count
        for row in device.iterations.rows if device.iterations else ():
            work = row.compute_ns + row.exposed_comm_ns + row.exposed_copy_ns
            assert work + sum(row.ledger.values()) == row.end_ns - row.start_ns
        if device.launch.queue_depth is not None:
            assert device.launch.queue_depth.observed_ns == device.window_ns
        for name in ("kernel", "call", "interval", "to_start", "queue_delay"):
            each = getattr(device.launch, name)
            assert each is None or sum(count for _, count in each.bins) == each.count


@pytest.mark.parametrize("sample", SAMPLES)
def test_survives_being_saved(sample: str) -> None:
    report = SAMPLES[sample]()
    assert from_json(to_json(report), Report) == report
