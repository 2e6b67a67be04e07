"""Gauges: read by both official parsers, with the numbers of the report, whatever the names."""

from __future__ import annotations

import math
import re

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as prometheus_families

import nsysdiag
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.openmetrics import GAUGES, _of_window, clean, family, seconds
from nsysdiag.report import Report
from nsysdiag.utilization.facts import Utilization
from tests.output.rendered import EVERY_SAMPLE
from tests.output.samples import HOSTILE, MS, SAMPLES, device, finding, report

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
every_sample = pytest.mark.parametrize("sample", EVERY_SAMPLE)


def rendered(made: Report) -> str:
    return FORMATS["prom"].render(made, RenderOptions()).decode()


def read(text: str) -> Samples:
    """Every sample by name and labels; each is there once, and both parsers read the same."""
    found: list[Samples] = []
    for families in (openmetrics_families(text), prometheus_families(text)):
        every = [each for family in families for each in family.samples]
        samples = {(each.name, frozenset(each.labels.items())): each.value for each in every}
        assert len(samples) == len(every)
        found.append(samples)
    assert found[0] == found[1]
    return found[0]


def of_device(made: Report, key: str) -> dict[str, float]:
    """The values of one device as `name` or `name{label=value}`, without the labels that all have."""
    values = {}
    for (name, labels), value in read(rendered(made)).items():
        told = dict(labels)
        if told.get("device") == key:
            own = [f"{label}={told[label]}" for label in sorted(told) if label not in ("device", "gpu", "trace")]
            values[f"{name}{{{','.join(own)}}}" if own else name] = value
    return values


@every_sample
def test_both_parsers_read_it(sample: str) -> None:
    values = read(rendered(SAMPLES[sample]()))
    assert all(math.isfinite(value) for value in values.values())
    assert [name for name, _labels in values if not re.fullmatch(r"nsysdiag_[a-z0-9_]+", name)] == []


@every_sample
def test_every_family_has_its_lines(sample: str) -> None:
    """HELP, TYPE, the unit that its name ends in, samples of that name alone; the end is marked."""
    lines = rendered(SAMPLES[sample]()).split("\n")
    assert lines[-2:] == ["# EOF", ""]
    name = unit = ""
    for line in lines[:-2]:
        kind, *rest = line.split(" ")
        if kind != "#":
            assert line.startswith(f"{name}{{")
        elif rest[0] == "HELP":
            name, unit = rest[1], ""
        elif rest[0] == "TYPE":
            assert rest[1:] == [name, "gauge"]
        else:
            unit = rest[2]
            assert rest[:2] == ["UNIT", name]
            assert name.endswith(f"_{unit}")
        assert unit in ("", "seconds", "ratio", "bytes")


@pytest.mark.slow
def test_numbers_of_the_demo(demo: nsysdiag.Report) -> None:
    for each in demo.devices:
        values = of_device(demo, each.key)
        ledger = [value for name, value in values.items() if name.startswith("nsysdiag_ledger_seconds")]
        assert round(sum(ledger) * 1e9) == each.idle_ns
        assert values["nsysdiag_idle_ratio"] == each.idle_ns / each.window_ns
        assert each.iterations is not None
        assert round(values["nsysdiag_iteration_p95_seconds"] * 1e9) == each.iterations.p95_ns


def test_the_cost_of_an_hour() -> None:
    values = of_device(SAMPLES["priced"](), "gpu1")
    assert values["nsysdiag_cost_per_hour{currency=USD}"] == 2.5
    assert values["nsysdiag_lost_cost_per_hour{currency=USD,part=idle}"] == 1.0
    assert values["nsysdiag_lost_cost_per_hour{currency=USD,part=exposed_communication}"] == 0.25
    assert not [name for name in of_device(SAMPLES["priced"](), "gpu2") if "cost" in name]


def test_a_finding_counts_for_its_own_device() -> None:
    findings = [finding(), finding("f-2", device="gpu1", severity="low", lost_ns=3 * MS)]
    values = of_device(report([device(), device(1)], findings), "gpu1")
    assert values["nsysdiag_findings{severity=high}"] == 0
    assert values["nsysdiag_findings{severity=low}"] == 1
    assert values["nsysdiag_findings_lost_seconds"] == 0.003


def test_an_unknown_severity_is_info() -> None:
    values = of_device(report([device()], [finding(severity="dire"), finding("f-2", severity="info")]), "gpu0")
    assert values["nsysdiag_findings{severity=info}"] == 2
    assert not [name for name in values if "dire" in name]


def test_what_was_not_measurable_is_left_out() -> None:
    """No evidence needed, nothing that comes round, no window: no zero and no NaN for it."""
    odd = device(coverage=None, iterations=None, window_ns=0, utilization=Utilization(util_time_share=math.nan))
    text = rendered(report([odd], []))
    for name in ("coverage_ratio", "iteration_p50_seconds", "iterations", "idle_ratio", "utilization_ratio"):
        assert f"nsysdiag_{name}" not in text
    assert "nan" not in text.casefold()
    assert read(text)


def test_utilization_of_every_kind() -> None:
    found = Utilization(util_time_share=0.97, util_period_share=None, sm_active_share=0.31)
    values = of_device(report([device(utilization=found)], []), "gpu0")
    shares = {name: value for name, value in values.items() if name.startswith("nsysdiag_utilization_ratio")}
    assert shares == {
        "nsysdiag_utilization_ratio{kind=time}": 0.97,
        "nsysdiag_utilization_ratio{kind=sm_active}": 0.31,
    }


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_come_back_as_labels(name: str) -> None:
    """As they were, but for what does not print; a line end is escaped and comes back."""
    made = report([device(name=name)], [], file=f'{name}\\"\n')
    labels = [dict(labels) for metric, labels in read(rendered(made)) if metric == "nsysdiag_idle_seconds"]
    assert labels == [{"device": "gpu0", "gpu": clean(name), "trace": f'{clean(name)}\\"\n'}]


def test_what_does_not_print_is_removed() -> None:
    assert clean("\x1b[31mred\r\u202e\0\udcff é\n") == "[31mred é\n"
    for line in rendered(SAMPLES["hostile"]()).split("\n"):
        assert line.isprintable()


def test_names_that_look_alike_are_one_label() -> None:
    """Two causes of 3 and 4 ms whose names differ in a control character alone."""
    made = report([device(ledger={"a\x01": 3 * MS, "a\x02": 4 * MS, "b": MS})], [])
    values = of_device(made, "gpu0")
    assert values["nsysdiag_ledger_seconds{cause=a}"] == 0.007
    assert values["nsysdiag_ledger_seconds{cause=b}"] == 0.001


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0.000000000"), (1, "0.000000001"), (1_500_000_000, "1.500000000"), (-1, "-0.000000001")],
)
def test_seconds_are_exact(ns: int, text: str) -> None:
    assert seconds(ns) == text


def test_a_family_in_full() -> None:
    samples = [((("x", "1\\"),), "0.5"), ((), None)]
    assert family("idle_seconds", 'a "b"\n', "seconds", samples) == [
        '# HELP nsysdiag_idle_seconds a \\"b\\"\\n',
        "# TYPE nsysdiag_idle_seconds gauge",
        "# UNIT nsysdiag_idle_seconds seconds",
        'nsysdiag_idle_seconds{x="1\\\\"} 0.5',
    ]
    assert family("empty", "", "", []) == []


def test_the_unit_of_a_field_is_the_base_unit_of_its_gauge() -> None:
    units = {gauge.name: gauge.unit for gauge in GAUGES}
    assert {name: units[name] for name in ("busy_seconds", "coverage_ratio", "copied_bytes", "launches")} == {
        "busy_seconds": "seconds",
        "coverage_ratio": "ratio",
        "copied_bytes": "bytes",
        "launches": "",
    }


def test_only_what_adds_up_has_a_share_of_the_window() -> None:
    with pytest.raises(TypeError, match="floor_ns is not a time that adds up"):
        _of_window("floor_ns", "", "floor_ratio")
