"""The phases and the diagnosis of reports made by hand."""

from __future__ import annotations

from msgspec import structs

from nsysdiag.causes import CAUSES
from nsysdiag.diagnosis.facts import Diagnosis, Part, Saves
from nsysdiag.diagnosis.focus import job_account
from nsysdiag.diagnosis.judge import leading
from nsysdiag.findings.facts import Finding
from nsysdiag.phases.facts import Phase, PhaseDevice, PhaseSteps
from nsysdiag.report import DeviceReport
from nsysdiag.typed import has_names, plain, say

STARTING, STEADY = "start-up", "steady"
STARTS_FOR = 5
"""A fifth of everything is start-up."""


def sample_phases(devices: list[DeviceReport], name: str = "") -> list[Phase]:
    """A start-up and a steady phase, which add up to the devices; `name` goes into every text that may come from a
    trace."""
    if not devices:
        return []
    window = devices[0].window
    border = window.start_ns + (window.end_ns - window.start_ns) // STARTS_FOR
    wholes = [_whole(device) for device in devices]
    starts = [_first(whole) for whole in wholes]
    rests = [_rest(whole, start) for whole, start in zip(wholes, starts, strict=True)]
    return [
        _phase(STARTING, window.start_ns, border, starts, None, name),
        _phase(STEADY, border, window.end_ns, rests, PhaseSteps(count=16, median_ns=5_000_000, source="nvtx"), name),
    ]


def sample_diagnosis(phases: list[Phase], findings: list[Finding], name: str = "") -> Diagnosis:
    """What is judged is the steady phase, the second one; `name` goes into every text that may come from a trace."""
    if not phases:
        return Diagnosis(
            headline="No GPU activity was recorded, so what the GPU did is unknown.",
            bottleneck="unknown",
            share=0.0,
            basis="none",
            phase=None,
            second=None,
            action=None,
            saves=None,
            unknown_share=0.0,
            frameworks=[],
            findings=[],
            gpus_present=None,
            gpus_used=0,
        )
    found = leading(job_account(phases[1].devices))
    saves = findings[0].saves if findings else None
    return Diagnosis(
        headline=f"Kernels take {100 * found.share:.0f}% of each 5.00 ms step.{name}",
        bottleneck=found.bottleneck,
        share=found.share,
        basis=STEADY,
        phase=1,
        second=found.second or Part("sync", 0.18),
        action=_action(findings[0], saves) if saves else None,
        saves=saves,
        unknown_share=found.unknown,
        frameworks=["pytorch"],
        findings=[each.id for each in findings],
        gpus_present=8,
        gpus_used=len(phases[1].devices),
    )


def _action(finding: Finding, saves: Saves) -> str:
    text = say("{}: saves {}. {}", finding.title, saves.words, finding.advice[0] if finding.advice else finding.title)
    return text if has_names(text) else plain(text)


def _whole(device: DeviceReport) -> PhaseDevice:
    account = {
        "kernels": device.compute_ns,
        "communication": device.exposed_comm_ns,
        "copies": device.exposed_copy_ns,
    }
    for cause, ns in device.root_ledger.items():
        bottleneck = CAUSES[cause].bottleneck if cause in CAUSES else "unknown"
        account[bottleneck] = account.get(bottleneck, 0) + ns
    return PhaseDevice(
        key=device.key,
        compute_ns=device.compute_ns,
        exposed_comm_ns=device.exposed_comm_ns,
        exposed_copy_ns=device.exposed_copy_ns,
        idle_ns=device.idle_ns,
        outside_ns=0,
        ledger=dict(device.ledger),
        account={name: ns for name, ns in account.items() if ns},
    )


def _first(whole: PhaseDevice) -> PhaseDevice:
    """The start-up: of each cause and kind of work a fifth, rounded down."""
    account = {name: ns // STARTS_FOR for name, ns in whole.account.items()}
    ledger = {name: ns // STARTS_FOR for name, ns in whole.ledger.items()}
    idle = sum(ledger.values())
    parts = [ns // STARTS_FOR for ns in (whole.compute_ns, whole.exposed_comm_ns, whole.exposed_copy_ns)]
    account["unknown"] = account.get("unknown", 0) + sum(parts) + idle - sum(account.values())
    return structs.replace(
        whole,
        compute_ns=parts[0],
        exposed_comm_ns=parts[1],
        exposed_copy_ns=parts[2],
        idle_ns=idle,
        ledger={name: ns for name, ns in ledger.items() if ns},
        account={name: ns for name, ns in account.items() if ns},
    )


def _rest(whole: PhaseDevice, first: PhaseDevice) -> PhaseDevice:
    def less(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        found = {name: one.get(name, 0) - other.get(name, 0) for name in {**one, **other}}
        return {name: ns for name, ns in found.items() if ns}

    return structs.replace(
        whole,
        compute_ns=whole.compute_ns - first.compute_ns,
        exposed_comm_ns=whole.exposed_comm_ns - first.exposed_comm_ns,
        exposed_copy_ns=whole.exposed_copy_ns - first.exposed_copy_ns,
        idle_ns=whole.idle_ns - first.idle_ns,
        ledger=less(whole.ledger, first.ledger),
        account=less(whole.account, first.account),
    )


def _phase(phase: str, start: int, end: int, devices: list[PhaseDevice], steps: PhaseSteps | None, name: str) -> Phase:
    found = leading(job_account(devices))
    return Phase(
        name=phase,
        start_ns=start,
        end_ns=end,
        judged=phase == STEADY,
        bottleneck=found.bottleneck,
        share=found.share,
        sentence=f"{phase.capitalize()}: {found.bottleneck} {100 * found.share:.0f}%.{name}",
        steps=steps,
        devices=devices,
    )
