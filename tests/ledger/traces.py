"""Helpers of the tests that look at whole reports of tiny traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import analyze

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import DeviceReport, Report
    from tests.builder import TraceBuilder

PLAIN = Settings(replay=False, timeline=False)
DRAWN = Settings(replay=False)
"""With a timeline."""


def report_of(trace: TraceBuilder, folder: Path, settings: Settings | None = None) -> Report:
    """The report of a trace that is written to `trace.sqlite` in `folder`; a second call reads the same file. Without
    settings it has neither a timeline nor predictions."""
    path = folder / "trace.sqlite"
    return analyze(path if path.exists() else trace.write(path), settings or PLAIN)


def only_device(trace: TraceBuilder, folder: Path, settings: Settings | None = None) -> DeviceReport:
    """The one device of a trace."""
    (device,) = report_of(trace, folder, settings).devices
    return device


def devices(trace: TraceBuilder, folder: Path, settings: Settings | None = None) -> dict[str, DeviceReport]:
    """The devices of a trace by key."""
    return {device.key: device for device in report_of(trace, folder, settings).devices}
