"""The saved report: the same bytes both ways, the keys that scripts rely on, and the schema that ships."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from nsysdiag.causes import CAUSES
from nsysdiag.ci.facts import BatchSummary
from nsysdiag.comparison.facts import Comparison
from nsysdiag.config.settings import Settings
from nsysdiag.fields import NumberUnit
from nsysdiag.pipeline import analyze
from nsysdiag.ranks.report import RanksReport
from nsysdiag.record import Record, json_schema, to_json
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import Report
from nsysdiag.saved import from_json
from tests.output.compare_samples import COMPARISONS
from tests.output.rank_samples import ranks_report
from tests.output.whatif_samples import WHATIFS
from tests.shared import Shared

FIXTURES = Path(__file__).parent / "fixtures"

REPORT_KEYS = {"schema_version", "tool", "trace", "devices", "timeline", "findings", "recapture"}
TRACE_KEYS = {
    *("file", "size_bytes", "fingerprint", "nsys_version", "export_schema_version", "tables", "capabilities"),
    "warnings",
}
DEVICE_KEYS = {
    *("key", "name", "sm_count", "ids", "window", "window_ns", "busy_ns", "idle_ns", "compute_ns"),
    *("exposed_comm_ns", "exposed_copy_ns", "overlapped_comm_ns", "ops", "ledger", "root_ledger", "coverage"),
    *("floor_ns", "launch_latency_ns", "verdict", "gap_count", "gaps", "gaps_packed", "signatures", "iterations"),
    *("launch", "kernels", "copies", "communication", "utilization"),
}
GAP_KEYS = {
    *("start_ns", "end_ns", "slices", "thread", "previous_op", "next_op", "nvtx", "sync_drained", "root"),
    "confidence",
}
FINDING_KEYS = {
    *("id", "cause", "device", "severity", "title", "lost_ns", "lost_share", "ceiling_ns", "confidence", "nvtx"),
    *("evidence", "advice"),
}


@pytest.fixture(scope="module")
def report(shared: Shared) -> Report:
    return shared.report(shared.fixture("sim_starved_training.sqlite"))


@pytest.fixture(scope="module")
def saved(report: Report) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(to_json(report))
    return loaded


@pytest.mark.slow
def test_a_report_survives_saving(report: Report) -> None:
    data = to_json(report)
    assert from_json(data, Report) == report
    assert to_json(from_json(data, Report)) == data


def test_the_keys_that_scripts_rely_on(saved: dict[str, Any]) -> None:
    assert saved.keys() >= REPORT_KEYS
    assert saved["trace"].keys() >= TRACE_KEYS
    for device in saved["devices"]:
        assert device.keys() >= DEVICE_KEYS
        assert device["window"].keys() >= {"start_ns", "end_ns", "parts", "reason"}
        assert device["ops"].keys() >= {"kernel", "memcpy", "memset", "graph"}
        assert device["verdict"].keys() == {"id", "sentence"}
        assert all(gap.keys() >= GAP_KEYS for gap in device["gaps"])
        assert all(part.keys() == {"cause", "ns", "evidence"} for gap in device["gaps"] for part in gap["slices"])
    assert all(finding.keys() >= FINDING_KEYS for finding in saved["findings"])


def test_keys_are_sorted(report: Report) -> None:
    def check(value: object) -> None:
        if isinstance(value, dict):
            assert list(value) == sorted(value)
        for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            check(child)

    check(json.loads(to_json(report)))


def test_times_are_integers_and_add_up(saved: dict[str, Any]) -> None:
    for device in saved["devices"]:
        parts = [device[name] for name in ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")]
        assert all(type(ns) is int for ns in [*parts, *device["ledger"].values(), *device["root_ledger"].values()])
        assert sum(parts) == device["window_ns"] == sum(end - start for start, end in device["window"]["parts"])
        assert sum(device["ledger"].values()) == sum(device["root_ledger"].values()) == device["idle_ns"]
        assert device["ledger"].keys() <= CAUSES.keys()


@pytest.mark.thorough
def test_the_number_of_gaps_is_a_setting(tmp_path: Path) -> None:
    path = tmp_path / "demo.sqlite"
    path.write_bytes(gzip.decompress((FIXTURES / "sim_starved_training.sqlite.gz").read_bytes()))
    for device in analyze(path, Settings(gaps=0)).devices:
        assert len(device.gaps) == device.gap_count
        assert sum(gap.end_ns - gap.start_ns for gap in device.gaps) == device.idle_ns
    for device in analyze(path, Settings(gaps=3)).devices:
        assert len(device.gaps) == 3


@pytest.mark.thorough
def test_the_timeline_can_be_left_out(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "demo.sqlite"
    path.write_bytes(gzip.decompress((FIXTURES / "sim_starved_training.sqlite.gz").read_bytes()))
    without = analyze(path, Settings(timeline=False))
    assert without.timeline is msgspec.UNSET
    assert "timeline" not in json.loads(to_json(without))
    assert report.timeline is not msgspec.UNSET
    assert report.timeline.keys() == {device.key for device in report.devices}
    assert len(msgspec.json.encode(report.timeline)) < 4 << 20


DOCUMENTS: dict[str, type[Record]] = {
    "report": Report,
    "ranks": RanksReport,
    "comparison": Comparison,
    "batch": BatchSummary,
    "whatif": WhatIf,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_schemas_that_ship_are_those_of_the_model(name: str) -> None:
    file = resources.files("nsysdiag") / "data" / f"{name}.schema.json"
    if os.environ.get("NSYSDIAG_UPDATE_GOLDENS"):
        Path(str(file)).write_bytes(json_schema(DOCUMENTS[name]))
    assert file.read_bytes() == json_schema(DOCUMENTS[name])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_number_in_a_schema_has_its_unit(name: str) -> None:
    schema = json.loads(json_schema(DOCUMENTS[name]))
    numbers = [each for each in parts_of(schema) if each.get("type") in ("integer", "number")]
    assert len(numbers) > 15
    assert {each.get("x-unit") for each in numbers} <= set(NumberUnit)


def parts_of(schema: Any) -> Iterator[dict[str, Any]]:
    """The schema and all schemas in it."""
    if isinstance(schema, dict):
        yield schema
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from parts_of(each)


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_survive_saving_and_fit_their_schema(name: str) -> None:
    made = COMPARISONS[name]()
    data = to_json(made)
    assert from_json(data, Comparison) == made
    assert to_json(from_json(data, Comparison)) == data
    jsonschema.validate(json.loads(data), json.loads(json_schema(Comparison)))


def test_ranks_survive_saving() -> None:
    data = to_json(ranks_report())
    assert from_json(data, RanksReport) == ranks_report()
    assert to_json(from_json(data, RanksReport)) == data


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", WHATIFS)
def test_predictions_survive_saving_and_fit_their_schema(name: str) -> None:
    made = WHATIFS[name]()
    data = to_json(made)
    assert from_json(data, WhatIf) == made
    assert to_json(from_json(data, WhatIf)) == data
    jsonschema.validate(json.loads(data), json.loads(json_schema(WhatIf)))


def test_the_keys_of_a_prediction_that_scripts_rely_on() -> None:
    saved = json.loads(to_json(WHATIFS["one"]()))
    assert (saved["kind"], saved["schema_version"], saved["per"]) == ("whatif", "2", "step")
    times = {"now_ns", "predicted_ns", "low_ns", "high_ns"}
    assert saved.keys() >= {*times, "steps", "identity", "refused", "transforms", "devices", "waterfall", "savings"}
    assert saved["identity"].keys() == {"exact", "length_error"}
    (device,) = saved["devices"]
    assert device.keys() >= {"key", "now_ns", "predicted_ns", "now", "predicted", "ledger"}
    assert sum(device["now"].values()) == device["now_ns"]
    assert saved["waterfall"][0].keys() == {"cause", "from_ns", "to_ns"}
    (listed, *_) = json.loads(to_json(WHATIFS["listing"]()))["savings"]
    assert listed.keys() >= {"finding", "transforms", "predicted_ns", "low_ns", "high_ns", "title"}


def test_what_is_no_report_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        from_json(b'{"schema_version": "1"}', Report)
    with pytest.raises(msgspec.DecodeError):
        from_json(b"not json", Report)
