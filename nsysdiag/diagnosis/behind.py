"""Time that is charged to what stands behind it.

Waits for a late device are charged to why that one was late. Idle time that a wait does not cost, by replay, is charged
to what the thread did behind the wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.account.bottlenecks import WAITING_FOR_A_SYNC
from nsysdiag.arrays.groups import summed
from nsysdiag.bottlenecks import BOTTLENECKS, OF_WORK, UNKNOWN
from nsysdiag.causes import CAUSES, IN_MPI, INPUT_WAIT, PREEMPTION
from nsysdiag.causes.cause import Advice
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.diagnosis.facts import OVERHEAD, REPLAY, WAITS
from nsysdiag.diagnosis.one_problem import ABOUT, replayed_note
from nsysdiag.diagnosis.sentences import NO_DETAIL, detail_of
from nsysdiag.fields import Sentence
from nsysdiag.findings.facts import Finding
from nsysdiag.findings.hotspots import place_of
from nsysdiag.findings.rules import EXPOSED_COMM, LATE_RANK, severity
from nsysdiag.host.facts import HostReport
from nsysdiag.host.report import advice
from nsysdiag.phases.facts import BehindWait, PhaseDevice, Place
from nsysdiag.ranks.facts import RankComparison, RankWait
from nsysdiag.report import DeviceReport
from nsysdiag.typed import say
from nsysdiag.units import format_ns, format_share, uncapitalized

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
    if its fix saves something, too."""
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


COMMUNICATION, COMPUTE = "communication", "compute"
MOST_WAITED = 3
"""Reasons of being late, and sentences of evidence of the late device, that a finding on it shows. It changes how long
the finding is, not what is found."""


class LateShare(Struct, frozen=True):
    """The `share` of one device's communication that is waiting for late devices, divided by why these were late:
    shares by cause or kind of work. `ranks` are the late ones with the time that it waited for each in ns, longest wait
    first."""

    share: float
    reasons: dict[str, float]
    ranks: dict[str, int]

    def part(self, bottleneck: str) -> float:
        """How much of the waiting is charged to a bottleneck; waits without a reason stay with communication."""
        unexplained = max(1 - sum(self.reasons.values()), 0.0) if bottleneck == COMMUNICATION else 0.0
        return unexplained + self.reason(bottleneck)

    def reason(self, bottleneck: str) -> float:
        """How much of the waiting has a reason that is charged to a bottleneck."""
        return sum(part for reason, part in self.reasons.items() if bottleneck_of_reason(reason) == bottleneck)


def followed(phases: list[PhaseDevice], late: LateShare | None) -> list[PhaseDevice]:
    """The phases of a device with what it waited for others charged to why these were late."""
    return phases if late is None else [_followed(each, late) for each in phases]


def _followed(device: PhaseDevice, late: LateShare) -> PhaseDevice:
    account = dict(device.account)
    ns = account.get(COMMUNICATION, 0)
    for reason, part in late.reasons.items() if ns else ():
        moved, bottleneck = int(ns * late.share * part), bottleneck_of_reason(reason)
        account[COMMUNICATION] -= moved
        account[bottleneck] = account.get(bottleneck, 0) + moved
    left = {name: value for name, value in account.items() if value}
    late_ns = ns - left.get(COMMUNICATION, 0)
    return replace(device, account=left, late_ns=late_ns, late_kept_ns=max(int(ns * late.share) - late_ns, 0))


def bottleneck_of_reason(reason: str) -> str:
    """The bottleneck to which a cause, or a kind of work, counts."""
    return CAUSES[reason].bottleneck if reason in CAUSES else OF_WORK.get(reason, COMMUNICATION)


def lateness(devices: list[DeviceReport], ranks: RankComparison | None) -> dict[str, LateShare]:
    """By device, for those that waited for late ones in collectives or in MPI calls."""
    found = {}
    for device in devices:
        waits = [each for each in (ranks.waits if ranks else []) if each.rank == device.key and each.late_rank]
        exposed = device.exposed_comm_ns + sum(row.idle_ns for row in device.communication.mpi)
        waited = sum(each.wait_ns for each in waits)
        if waited and exposed:
            found[device.key] = LateShare(min(waited / exposed, 1.0), _reasons(waits, waited), _late(waits))
    return found


def _reasons(waits: list[RankWait], waited: int) -> dict[str, float]:
    total = summed(wait.causes for wait in waits)
    return {reason: ns / waited for reason, ns in sorted(total.items(), key=lambda item: (-item[1], item[0]))}


def _late(waits: list[RankWait]) -> dict[str, int]:
    longest = sorted(waits, key=lambda each: -each.wait_ns)
    return summed({wait.late_rank: wait.wait_ns} for wait in longest if wait.late_rank)


def with_late(findings: list[Finding], late: dict[str, LateShare], limits: FindingThresholds) -> list[Finding]:
    """The findings. Those on communication exclude waiting for late devices, which becomes a separate finding. The one
    that most are waiting for waits for others now and then: that is no wait for itself."""
    found: list[Finding] = []
    first = _most_late(late)
    for finding in findings:
        mine = late.get(finding.device)
        if mine is None or finding.cause not in (EXPOSED_COMM.id, IN_MPI):
            found.append(finding)
            continue
        found += [_waiting(finding, mine, findings, first, limits)] if finding.device != first else []
        rest = _rest(finding, mine, limits)
        found += [rest] if rest.share >= limits.smallest else []
    return found


def _rest(finding: Finding, mine: LateShare, limits: FindingThresholds) -> Finding:
    left = 1 - mine.share
    share = finding.share * left
    return replace(
        finding,
        lost_ns=finding.lost_ns - round(finding.lost_ns * mine.share),
        lost_share=round(finding.lost_share * left, 6),
        ceiling_ns=min(finding.ceiling_ns, finding.lost_ns - round(finding.lost_ns * mine.share)),
        share=round(share, 6),
        severity=severity(share, limits),
        named=[replace(each, share=round(each.share * left, 6)) for each in finding.named],
    )


def _most_late(late: dict[str, LateShare]) -> str | None:
    """The one device that most of the others wait for first, and for more than half of all such time; None if they
    wait for each other, as those of which another one is late in each step."""
    first = [next(iter(each.ranks)) for each in late.values()]
    most = max(sorted(set(first)), key=first.count, default=None)
    if most is None or (most in late and first.count(most) == 1):
        return None
    waited = summed(each.ranks for each in late.values())
    return most if 2 * waited[most] > sum(waited.values()) else None


def _waiting(
    finding: Finding, mine: LateShare, others: list[Finding], first: str | None, limits: FindingThresholds
) -> Finding:
    """The finding on a device's waits for late ones, with the advice of the finding that made the `first` of them late.
    Delays by the profiler are excluded from the saving."""
    lost = round(finding.lost_ns * mine.share)
    bottleneck = bottleneck_of_reason(next(iter(mine.reasons), "")) if first else COMMUNICATION
    share = finding.share * mine.share * mine.part(bottleneck)
    behind = [each for each in others if each.device == first and each.bottleneck == bottleneck]
    root = max(behind, key=lambda each: (each.cause in mine.reasons, each.share), default=None)
    name: Sentence = typed.rank(first) if first else "the others"
    return replace(
        finding,
        id=f"f-{LATE_RANK.id}-{bottleneck}" if first else f"f-{LATE_RANK.id}",
        cause=LATE_RANK.id,
        severity=severity(share, limits, unresolved=bottleneck == UNKNOWN),
        title=say("{} is late, and others wait for it", name) if first else "GPUs wait for each other",
        lost_ns=lost,
        lost_share=round(finding.lost_share * mine.share, 6),
        ceiling_ns=round(lost * (1 - mine.reason(OVERHEAD))),
        evidence=[
            say(
                "{} of waiting in collectives or MPI calls until {} {}",
                format_ns(lost),
                name,
                "comes" if first else "come",
            ),
            *(f"late because of {_name(each)}: {format_share(part, 1)}" for each, part in _most(mine.reasons)),
            *(root.evidence[:MOST_WAITED] if root else []),
        ],
        advice=_advice(name, bottleneck, root, mine) if first else list(_steadier(mine).plain),
        chain=[
            *(root.chain[:1] if root else []),
            say("{} {} late", name, "comes" if first else "come"),
            f"others wait {format_ns(lost)}",
            LATE_RANK.fix,
        ],
        call=root.call if root else None,
        nvtx=root.nvtx if root else [],
        rows=root.rows if root else finding.rows,
        bottleneck=bottleneck,
        share=round(share, 6),
        summary=_summary(name, root) if first else "",
        part_of=root.id if root is not None and root.cause in mine.reasons else None,
        named=[],
    )


def _advice(name: Sentence, bottleneck: str, root: Finding | None, mine: LateShare) -> list[Sentence]:
    """What may differ from its peers; before that the advice on what made it late, if the cause is known."""
    compare = say("Compare {} with its peers: {}.", name, BOTTLENECKS[bottleneck].differs)
    if root is None:
        return [compare, *LATE_RANK.advice.plain]
    return [*root.advice, compare] if root.cause in mine.reasons else [compare, *root.advice]


def _steadier(mine: LateShare) -> Advice:
    """If no single device is late: even work, or hosts that run ahead if work is not what makes them late."""
    even = next(iter(mine.reasons), COMPUTE) == COMPUTE
    return LATE_RANK.words.advice_for("balance" if even else "jitter")


def _summary(name: Sentence, root: Finding | None) -> Sentence:
    """The late device, and with what or where: `gpu3 is late (read in next(dataloader))`."""
    detail = detail_of(root, root.share) if root is not None else NO_DETAIL
    if root is None or not detail.words:
        return say("{} is late", name)
    if root.cause == INPUT_WAIT and not root.named:
        return say("{} is late, as {}", name, detail.words)
    return say("{} is late ({})", name, detail.most.text if detail.most else detail.words)


def _most(reasons: dict[str, float]) -> list[tuple[str, float]]:
    return list(reasons.items())[:MOST_WAITED]


def _name(reason: str) -> str:
    if reason in CAUSES:
        return uncapitalized(CAUSES[reason].title)
    return {"compute": "more compute", "exposed_comm": "other communication"}.get(reason, "copies")


def with_shortage(findings: list[Finding], host: HostReport | None) -> list[Finding]:
    """The same findings; those on lost CPU time also describe the CPUs, with advice on that first."""
    if host is None or not host.shortage:
        return findings
    first = advice(host)
    return [
        replace(each, evidence=[*each.evidence, *host.shortage], advice=[*first, *each.advice])
        if each.cause == PREEMPTION
        else each
        for each in findings
    ]
