"""What the search for wakers holds is freed once the roots of the last device are known."""

from __future__ import annotations

import gzip
import weakref
from pathlib import Path
from typing import Any

import pytest

from nsysdiag import analyze
from nsysdiag.wakeups.batches import RootSlices, attribute_roots
from nsysdiag.wakeups.levels import Chains, follow
from nsysdiag.wakeups.wakers import WakeFinder

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.slow
@pytest.mark.fixtures
def test_after_the_last_device_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finders: list[weakref.ref[WakeFinder]] = []
    alive: list[bool] = []

    def made(*arguments: Any) -> WakeFinder:
        found = WakeFinder(*arguments)
        finders.append(weakref.ref(found))
        return found

    def followed(*arguments: Any) -> Chains:
        (finder,) = (each for each in arguments if callable(each))
        finder()  # made even where nothing waits
        return follow(*arguments)

    def attributed(*arguments: Any) -> RootSlices:
        alive.append(finders[0]() is not None)
        return attribute_roots(*arguments)

    monkeypatch.setattr("nsysdiag.pipeline.reading.WakeFinder", made)
    monkeypatch.setattr("nsysdiag.pipeline.device_time.follow", followed)
    monkeypatch.setattr("nsysdiag.pipeline.device_time.attribute_roots", attributed)
    trace = tmp_path / "trace.sqlite"
    trace.write_bytes(gzip.decompress((FIXTURES / "sim_two_gpus.sqlite.gz").read_bytes()))
    assert len(analyze(trace).devices) == 2
    assert len(finders) == 1, "one for all devices"
    assert alive == [True, True], "batches of loaders are read with it, too"
    assert finders[0]() is None
