"""What the search for wakers holds is let go of once the last device was asked about."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsysdiag import analyze
from nsysdiag.wakeups.host_trace import HostTrace
from nsysdiag.wakeups.search import RootSearch

if TYPE_CHECKING:
    import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_after_the_last_device_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def logged(kind: type, name: str) -> None:
        method = getattr(kind, name)

        def call(self: Any, *arguments: Any) -> Any:
            done.append(name)
            return method(self, *arguments)

        monkeypatch.setattr(kind, name, call)

    logged(RootSearch, "roots")
    logged(HostTrace, "forget_finder")
    trace = tmp_path / "trace.sqlite"
    trace.write_bytes(gzip.decompress((FIXTURES / "sim_two_gpus.sqlite.gz").read_bytes()))
    report = analyze(trace)
    assert len(report.devices) == 2
    assert done == ["roots", "roots", "forget_finder"]
