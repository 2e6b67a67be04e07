"""What must hold whatever a trace holds: an exact report that every format can draw, or one plain sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsysdiag import Report, Settings, analyze
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.messages import InputError
from nsysdiag.saved import from_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsysdiag.report import DeviceReport

QUICK = ("json", "txt")
ALL = tuple(FORMATS)
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069]")
"""What no terminal may be sent; line ends are ours."""


def outcome(path: Path, formats: Sequence[str] = QUICK, settings: Settings | None = None) -> Report | InputError:
    """Analyze a trace and draw it: the report, which is exact, or the error, which says what to do. Anything else that
    is raised is a bug."""
    try:
        report = analyze(path, settings or Settings())
    except InputError as error:
        return _plain(error)
    for device in report.devices:
        assert_exact(device)
    drawn = {name: FORMATS[name].render(report, RenderOptions()) for name in formats}
    if "json" in drawn:
        assert from_json(drawn["json"], Report) == report
    if "txt" in drawn:
        assert not CONTROL.search(drawn["txt"].decode())
    return report


def _plain(error: InputError) -> InputError:
    assert error.message
    assert error.hint
    return error


def assert_exact(device: DeviceReport) -> None:
    """No time is lost, made up or counted twice."""
    assert device.compute_ns + device.exposed_comm_ns + device.exposed_copy_ns + device.idle_ns == device.window_ns
    assert device.window_ns == sum(end - start for start, end in device.window.parts)
    assert device.window_ns >= 0
    assert sum(device.ledger.values()) == sum(device.root_ledger.values()) == device.idle_ns
    assert all(ns > 0 for ns in device.ledger.values())
    for gap in device.gaps:
        assert sum(part.ns for part in gap.slices) == gap.end_ns - gap.start_ns
