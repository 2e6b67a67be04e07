"""What the search for wakers holds is freed once the roots of the last device are known."""

from __future__ import annotations

import gzip
import weakref
from pathlib import Path
from typing import Any

import pytest

from nsysdiag import analyze
from nsysdiag.wakeups.host_trace import Finder, HostTrace, wake_finder
from nsysdiag.wakeups.root_attribution import RootSlices, attribute_roots

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.fixtures
def test_after_the_last_device_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finders: list[weakref.ref[Finder]] = []
    alive: list[bool] = []

    def made(host_trace: HostTrace) -> Finder:
        found = wake_finder(host_trace)
        finders.append(weakref.ref(found))
        return found

    def attributed(*arguments: Any) -> RootSlices:
        alive.append(finders[0]() is not None)
        return attribute_roots(*arguments)

    monkeypatch.setattr("nsysdiag.pipeline.reading.wake_finder", made)
    monkeypatch.setattr("nsysdiag.pipeline.device_roots.attribute_roots", attributed)
    trace = tmp_path / "trace.sqlite"
    trace.write_bytes(gzip.decompress((FIXTURES / "sim_two_gpus.sqlite.gz").read_bytes()))
    assert len(analyze(trace).devices) == 2
    assert alive == [True, False]
