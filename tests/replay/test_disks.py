"""For how long threads read files at once, as far as changes leave the reads."""

from __future__ import annotations

import pytest

from nsysdiag.replay.changes import Changes
from nsysdiag.replay.fixes import reads_ns
from nsysdiag.replay.reshaped import mostly_read
from tests.replay.making import model_of_pair

DISK, ONE = "decoding halved of workers that share a disk", "worker process that reads"


@pytest.mark.slow
def test_a_disk_that_workers_share_is_busy_all_the_time() -> None:
    changes = Changes.none(model_of_pair(DISK))
    stretch = changes.model.stretch
    step = (stretch.end - stretch.begin) / stretch.count
    assert reads_ns(changes) == pytest.approx(step, rel=0.05)
    changes.time[:] = 0.5
    assert reads_ns(changes) == pytest.approx(step / 2, rel=0.05)
    changes.time[:] = 0
    assert reads_ns(changes) == 0


@pytest.mark.slow
def test_one_worker_alone_never_waits_for_another() -> None:
    assert reads_ns(Changes.none(model_of_pair(ONE))) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "reads"), [(DISK, True), (ONE, True), ("worker that decodes", False)])
def test_what_workers_mostly_do(name: str, reads: bool) -> None:
    assert mostly_read(model_of_pair(name)) is reads
