"""Where every gap lay: packed, read back, and missing where the report does not hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from msgspec.structs import replace

from nsysdiag import all_gaps
from nsysdiag.arrays.groups import to_planes, to_text
from nsysdiag.document import packed as packed_places
from nsysdiag.gap_groups import groups as packing
from nsysdiag.messages import InputError
from nsysdiag.record import to_json
from nsysdiag.saved import from_json
from tests.builder import TraceBuilder
from tests.ledger.traces import report_of

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report
    from nsysdiag.time.facts import GapPlaces

PLACES = ["nvtx", "previous_op", "next_op"]
US = 1_000


def steps() -> TraceBuilder:
    """The last launch is not in the trace; the range `forward` of step 1 is around the launch of B.

    ```
    NVTX    [step 1  [forward)    )   [step 2     )
    device  [==A==)......[==B==).......[memcpy)......[==C==)
    ```
    """
    trace = TraceBuilder().kernel(100 * US, 110 * US, name="A", launch=(20 * US, 25 * US))
    trace.kernel(150 * US, 160 * US, name="B", launch=(130 * US, 132 * US))
    trace.memcpy(250 * US, 260 * US, launch=(230 * US, 232 * US))
    trace.kernel(300 * US, 310 * US, name="C")
    trace.nvtx("step 1", 10 * US, 180 * US).nvtx("forward", 115 * US, 140 * US).nvtx("step 2", 170 * US, 290 * US)
    return trace


def rows(report: Report) -> list[list[object]]:
    """The places of all gaps by time; None for what is missing."""
    found = all_gaps(report)[PLACES].astype("object")
    return found.where(found.notna(), None).to_numpy().tolist()


EXPECTED = [
    ["step # › forward", "A", "B"],
    ["step #", "B", "memcpy HtoD"],
    [None, "memcpy HtoD", "C"],
]


def test_each_gap_has_its_path_and_neighbours(tmp_path: Path) -> None:
    report = report_of(steps(), tmp_path)
    assert rows(report) == EXPECTED
    assert rows(from_json(to_json(report), type(report))) == EXPECTED


def test_a_gap_that_no_range_is_open_in(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(100 * US, 110 * US, name="A", launch=(1, 2))
    trace.kernel(150 * US, 160 * US, name="B", launch=(130 * US, 132 * US)).nvtx("load", 5, 10)
    assert rows(report_of(trace, tmp_path)) == [["", "A", "B"]]


def test_ranges_that_were_not_captured_are_missing(tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(100 * US, 110 * US, name="A", launch=(1, 2))
    trace.kernel(150 * US, 160 * US, name="B", launch=(130 * US, 132 * US))
    assert rows(report_of(trace, tmp_path)) == [[None, "A", "B"]]


def test_older_reports_hold_none(tmp_path: Path) -> None:
    report = report_of(steps(), tmp_path)
    assert rows(changed(report, None)) == [[None] * 3] * 3


def changed(report: Report, places: GapPlaces | None) -> Report:
    devices = [replace(each, gaps_packed=replace(each.gaps_packed, places=places)) for each in report.devices]
    return replace(report, devices=devices)


def places_of(report: Report) -> GapPlaces:
    (device,) = report.devices
    assert device.gaps_packed.places is not None
    return device.gaps_packed.places


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("long", "missing"),
    [("none", []), ("kernel", ["previous_op", "next_op"]), ("range", ["nvtx"]), ("both", PLACES)],
)
def test_names_that_would_take_too_much(
    long: str, missing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "a_long_name_" * 5
    trace = steps().kernel(400 * US, 410 * US, name=name if long in ("kernel", "both") else "D")
    trace.nvtx(name if long in ("range", "both") else "step 3", 1 * US, 390 * US)
    monkeypatch.setattr(packing, "ROOM", 40)
    found = all_gaps(report_of(trace, tmp_path))
    assert [column for column in PLACES if found[column].isna().all()] == missing
    assert len(found) == 4


def numbers(*values: int) -> str:
    return to_text(to_planes(pd.Series(values).to_numpy()), 1)


@pytest.mark.sampled(quick=5)
@pytest.mark.parametrize(
    "changes",
    [
        {"count": 2},
        {"previous_op": numbers(0, 1)},
        {"next_op": numbers(0, 1, 4)},
        {"next_op": "x"},
        {"nvtx": numbers(0, 1, 4)},
        {"nvtx": numbers(0, 1, 300)},
        {"path_lengths": numbers(0, 1, 1)},
        {"path_lengths": numbers(0, 1, 300)},
        {"path_ranges": numbers(0, 0, 2)},
        {"elements": 2},
        {"paths": 2},
        {"operations": []},
        {"ranges": []},
    ],
)
def test_damage_is_an_input_error(changes: dict[str, Any], tmp_path: Path) -> None:
    report = report_of(steps(), tmp_path)
    places = places_of(report)
    assert (places.operations, places.ranges, places.paths, places.elements) == (
        ["A", "B", "memcpy HtoD", "C"],
        ["step #", "forward"],
        3,
        3,
    )
    with pytest.raises(InputError, match="damaged"):
        all_gaps(changed(report, replace(places, **changes)))


def test_paths_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of(steps(), tmp_path)
    monkeypatch.setattr(packed_places, "PLACES_CHARACTERS", 18)
    with pytest.raises(InputError, match="damaged"):
        all_gaps(report)
