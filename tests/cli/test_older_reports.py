"""Reports that an older version saved: compared, batched and shown as today's are."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag.saved import as_version_2

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Result

FIXTURES = Path(__file__).parents[1] / "fixtures"
pytestmark = [pytest.mark.slow, pytest.mark.fixtures]


@pytest.fixture
def old(folder: Path) -> Path:
    """A report of version 1, made of the trace beside it."""
    for name, target in (("report_v1.json.gz", "old.json"), ("sim_starved_training.sqlite.gz", "trace.sqlite")):
        (folder / target).write_bytes(gzip.decompress((FIXTURES / name).read_bytes()))
    assert json.loads((folder / "old.json").read_bytes())["schema_version"] == "1"
    return Path("old.json")


@pytest.mark.thorough
def test_it_is_compared_with_the_trace_it_was_made_of(cli: Callable[..., Result], old: Path) -> None:
    result = cli("compare", old, "trace.sqlite", "-o", "-", "--format", "json")
    assert result.code == 0, result.stderr
    made = json.loads(result.stdout)
    assert [device["verdict"] for device in made["devices"]] == ["same", "same"]


@pytest.mark.thorough
def test_it_is_batched_into_a_history(cli: Callable[..., Result], old: Path, folder: Path) -> None:
    result = cli("batch", old, "-o", "out", "--history", "h.jsonl", "--fail-on", "idle_ns > 100s")
    assert result.code == 0, result.stderr
    lines = [json.loads(line) for line in (folder / "h.jsonl").read_text().splitlines()]
    assert {line["device"] for line in lines} == {"gpu0", "gpu1"}
    assert json.loads((folder / "out" / "summary.json").read_bytes())["entries"][0]["devices"]


def test_it_is_shown_and_saved_again_as_version_2(cli: Callable[..., Result], old: Path, folder: Path) -> None:
    assert cli("render", old, "-o", "new.json", "-o", "new.html", "-o", "new.md").code == 0
    before, after = (json.loads((folder / name).read_bytes()) for name in ("old.json", "new.json"))
    assert after["schema_version"] == "2"
    for name in ("trace", "causes", "ranks", "findings", "recapture"):
        assert _as_in(before[name], after[name]) == before[name]
    renamed = {"untold": "not_recorded"}
    assert after.keys() - NEW == {renamed.get(name, name) for name in before}
    assert (after["diagnosis"], after["phases"]) == (None, [])
    assert {cause["bottleneck"] for cause in after["causes"]} == {""}
    for device in before["devices"]:
        device.pop("trouble")  # what the diagnosis of a device was then
    for device in after["devices"]:
        assert not device.pop("sliced")
        iterations = device["iterations"]
        slow = [each["extra_ns"] for each in iterations["slow"]]
        assert slow
        new = [iterations.pop(name) for name in ("slow_count", "slow_extra_ns", "closed")]
        assert new == [len(slow), sum(slow), True]
        assert (iterations.pop("certain"), iterations.pop("levels", [])) == (True, [])
        assert not any(row.pop("sized") + row.pop("in_switch") for row in device["communication"]["kinds"])
        assert not any(row.pop("copies") for row in device["copies"]["rows"])
        assert [device["launch"].pop(name) for name in ("in_a_row", "in_a_row_ns")] == [0, 0]
        assert not any(row.pop("is_call") for row in device["launch"]["queue_depth"]["drains"])
    assert _numbers(after["devices"]) == _numbers(before["devices"])
    assert after["settings"] == {"gaps": 20, "timeline": False}
    assert after["host"]["change_points"] == before["host"]["beginnings"]


NEW = {"phrases", "diagnosis", "phases", "outlooks", "step_reference", "host_stacks", "critical_path"}
"""What reports of version 1 did not have."""


def _as_in(before: object, after: object) -> object:
    """What stands after in the fields that there were before."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {name: _as_in(each, after.get(name)) for name, each in before.items()}
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [_as_in(*pair) for pair in zip(before, after, strict=True)]
    return after


def _numbers(value: object) -> list[object]:
    """All numbers, whatever the names of their fields."""
    if isinstance(value, dict):
        return sorted((number for each in value.values() for number in _numbers(each)), key=str)
    if isinstance(value, list):
        return [number for each in value for number in _numbers(each)]
    return [value] if isinstance(value, int | float) else []


def test_it_cannot_be_redacted(cli: Callable[..., Result], old: Path, folder: Path) -> None:
    """Names cannot be told from words in its sentences."""
    result = cli("render", old, "-o", "new.html", "--redact")
    assert (result.code, "older version" in result.stderr, (folder / "new.html").exists()) == (3, True, False)


def test_settings_that_were_texts_are_values() -> None:
    old = {
        "gaps": "10",
        "same_gpu": "True",
        "iterations": "3:",
        "disabled": "sync, sleep",
        "nvtx": "step 1, 2",
        "findings": "smallest 0.1, most 30",
        "cost": "gpu_hour_cost 2.5, currency EUR, gpus.RTX 4090 0.4",
        "thresholds": "busy 0.25, bubble_gap_ns 7, collapse_depth 2",
        "trouble": "feed 0.2",
        "memory": "inner (a 0.5)",
        "redacted": "keyed",
    }
    assert json.loads(as_version_2(json.dumps({"settings": old}).encode()))["settings"] == {
        "gaps": 10,
        "same_gpu": True,
        "iterations": [3, None],
        "disabled": ["sync", "sleep"],
        "nvtx": "step 1, 2",
        "findings": {"smallest": 0.1, "most": 30},
        "cost": {"gpu_hour_cost": 2.5, "currency": "EUR", "gpus": {"RTX 4090": 0.4}},
        "thresholds": {"busy": 0.25, "launch_bound_gap_ns": 7, "drain_depth": 2},
        "memory": "inner (a 0.5)",
        "redacted": "keyed",
    }


@pytest.mark.parametrize("data", [b"[]", b"1", b'{"devices": {"launch": 1}, "host": [], "settings": 3}', b"{}"])
def test_what_is_no_report_is_left_to_the_reader(data: bytes) -> None:
    before, after = json.loads(data), json.loads(as_version_2(data))
    assert after == ({**before, "schema_version": "2"} if isinstance(before, dict) else before)
