"""Idle time that a wait does not cost, by replay: it is charged to what the thread did behind the wait.

The account counts idle time behind a synchronization to it, as the thread could have launched while it waited. But
without it the thread may wait all the same, in cudaFree or for its next copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from nsysdiag.account.bottlenecks import WAITING_FOR_A_SYNC
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.diagnosis.facts import REPLAY, WAITS
from nsysdiag.diagnosis.one_problem import ABOUT, replayed_note
from nsysdiag.findings.facts import Finding
from nsysdiag.findings.hotspots import place_of
from nsysdiag.phases.facts import BehindWait, PhaseDevice, Place

Behind = Mapping[str, Sequence[BehindWait]]
"""By device."""


class _Moved(BehindWait, frozen=True):
    """The part of it that is returned; `of` is the finding on the wait."""

    device: str
    of: str


def returned(
    judged: Sequence[PhaseDevice], findings: Sequence[Finding], behind: Behind, limits: FindingThresholds
) -> tuple[list[PhaseDevice], list[Finding]]:
    """The accounts of devices and the findings on them with this time where it belongs. Of a wait that saves less than
    its share, even at most, the difference is returned. What a thread did behind waits that keep the time is a finding
    where its fix saves something, too."""
    total = sum(sum(each.account.values()) for each in judged)
    moved = [part for finding in findings for part in _of_wait(finding, behind, total)]
    accounts = [_account(each, [part for part in moved if part.device == each.key]) for each in judged]
    told = [_with_time(each, moved, total, limits.smallest) for each in findings]
    lost = {each.of for each in moved}
    little = [each.id for each in told if is_behind(each, limits) or (each.id in lost and each.share < limits.smallest)]
    kept = [each for each in told if each.id not in little or _saves(each) >= limits.smallest]
    return accounts, _parts_of_known([each for each in kept if not _costs_nothing(each, limits)])


def _parts_of_known(findings: Sequence[Finding]) -> list[Finding]:
    """The findings; one that was a part of a finding that is left out stands for itself, without a saving."""
    known = {each.id for each in findings}
    return [
        replace(each, part_of=None, note="") if each.part_of is not None and each.part_of not in known else each
        for each in findings
    ]


def _costs_nothing(finding: Finding, limits: FindingThresholds) -> bool:
    """Whether a wait without time of its own saves nothing, by replay: what may have been behind it costs the time."""
    saves = finding.saves
    if finding.bottleneck != WAITS or saves is None or saves.method != REPLAY:
        return False
    return max(finding.share, saves.most) < limits.smallest


def is_behind(finding: Finding, limits: FindingThresholds) -> bool:
    """Whether its time is charged to waits before it, but for little."""
    return counts_before(finding) and finding.share < limits.smallest


def counts_before(finding: Finding) -> bool:
    """Whether most of its time is charged to waits before it."""
    return finding.bottleneck in WAITING_FOR_A_SYNC and 2 * finding.share < finding.lost_share


def _saves(finding: Finding) -> float:
    saves = finding.saves
    return saves.ns / max(saves.of_ns, 1) if saves is not None and saves.has_bounds else 0.0


def _of_wait(finding: Finding, behind: Behind, total: int) -> Iterable[_Moved]:
    saves = finding.saves
    if finding.bottleneck != WAITS or saves is None or saves.method != REPLAY:
        return []
    too_much = finding.share - (saves.most if saves.most > ABOUT else 0.0)
    if too_much <= ABOUT:
        return []
    places = _places(finding)
    mine = [(key, each) for key in finding.devices for each in behind.get(key, ()) if each.wait in places]
    part = min(too_much * total / max(sum(each.ns for _, each in mine), 1), 1.0)
    return [
        _Moved(each.wait, each.bottleneck, each.other, round(part * each.ns), key, finding.id) for key, each in mine
    ]


def _places(finding: Finding) -> set[Place]:
    return {place_of(finding), *((each.cause, each.variant, tuple(each.nvtx)) for each in finding.joined)}


def _account(device: PhaseDevice, moved: Sequence[_Moved]) -> PhaseDevice:
    account, returned_ns = dict(device.account), 0
    for each in moved:
        ns = min(each.ns, account.get(WAITS, 0))
        returned_ns += ns
        account[WAITS] = account.get(WAITS, 0) - ns
        account[each.bottleneck] = account.get(each.bottleneck, 0) + ns
    left = {name: ns for name, ns in account.items() if ns}
    return replace(device, account=left, returned_ns=returned_ns) if moved else device


def _with_time(finding: Finding, moved: Sequence[_Moved], total: int, smallest: float) -> Finding:
    """Without the time that is returned of it, or with what is returned to it. Its named parts change alike: those of a
    finding that had no time of its own are parts of its lost time."""
    gone = sum(each.ns for each in moved if each.of == finding.id) / max(total, 1)
    places = _places(finding)
    mine = (each.ns for each in moved if each.other in places and each.bottleneck == finding.bottleneck)
    come = sum(mine) / max(total, 1)
    if not gone and not come:
        return finding
    share = round(min(max(finding.share - gone + come, 0.0), 1.0), 6)
    part = share / (finding.share if finding.share >= smallest else max(finding.lost_share, share))
    named = [replace(each, share=round(min(each.share * part, 1.0), 6)) for each in finding.named]
    told = replace(finding, share=share, named=named)
    if not come:
        return told
    saves = _saves(told)
    before, note = replayed_note(finding, saves), replayed_note(told, saves)
    if before.text or note.text:
        return replace(told, note=note.text, counted_before=note.counted_before)
    return told
