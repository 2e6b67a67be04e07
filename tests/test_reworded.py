"""Other words change no advice, no group and no number: nothing reads them back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nsysdiag.account import outside
from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence
from nsysdiag.config.settings import Settings
from nsysdiag.findings.facts import Finding
from nsysdiag.ledger.classify import LayeredEvidence, layer_evidence
from nsysdiag.pipeline import analyze, reading, replaying
from nsysdiag.replay import build
from nsysdiag.report import DeviceReport, Report
from tests.shared import Shared
from tests.simulator.scenarios import SCENARIOS

OTHERS = "mostly MPI reads, waits and cudaMalloc in the garbage collector"
"""Words of which each was of a rule, once."""


def reworded(layer: EvidenceLayer) -> EvidenceLayer:
    return layer if layer.are_calls else replace(layer, names=[f"{OTHERS}, {name[::-1]}" for name in layer.names])


def in_other_words(evidence: HostEvidence) -> LayeredEvidence:
    """The layers of the rules with other descriptions; calls keep their names."""
    made = layer_evidence(evidence)
    before, inside = (
        {cause: [reworded(layer) for layer in layers] for cause, layers in each.items()}
        for each in (made.before, made.inside)
    )
    return replace(made, before=before, inside=inside)


def decided(finding: Finding) -> dict[str, Any]:
    """What a finding decides, without the sentences that labels are in."""
    kept = "id cause device severity lost_ns lost_share ceiling_ns confidence nvtx advice gaps devices bottleneck share"
    kept += " saves part_of variant joined signature"
    return {name: getattr(finding, name) for name in kept.split()} | {"fix": finding.chain[-1]}


def figures(device: DeviceReport) -> dict[str, Any]:
    labels = {
        name: {cause: sorted(kinds.values()) for cause, kinds in getattr(device, name).items()}
        for name in ("labels", "root_labels")
    }
    groups = [(each.count, each.total_ns, each.cause) for each in device.signatures]
    kept = "ledger root_ledger idle_ns coverage iterations verdict"
    return {name: getattr(device, name) for name in kept.split()} | labels | {"groups": groups}


def all_decided(report: Report) -> dict[str, Any]:
    assert report.diagnosis is not None
    phases = [(each.bottleneck, each.share, [device.account for device in each.devices]) for each in report.phases]
    found = report.diagnosis
    return {
        "findings": [decided(each) for each in report.findings],
        "devices": [figures(each) for each in report.devices],
        "phases": phases,
        "diagnosis": (found.bottleneck, found.share, found.second, found.saves, found.fix_first, found.frameworks),
    }


@pytest.mark.sampled(normal=22)
@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_depends_on_words(name: str, shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    path: Path = shared.trace(name)
    plain = shared.report(path, Settings(timeline=False))
    monkeypatch.setattr(EvidenceLabel, "words", property(lambda self: f"{OTHERS}, {self.text[::-1]}"))
    for module in (reading, replaying, outside, build):
        monkeypatch.setattr(module, "layer_evidence", in_other_words)
    other = analyze(path, Settings(timeline=False))
    told = [label for device in other.devices for labels in device.labels.values() for label in labels]
    assert all(label.startswith(OTHERS) for label in told)
    assert all_decided(other) == all_decided(plain)
