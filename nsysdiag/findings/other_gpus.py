"""Findings on the time in which a GPU waits for another one."""

from __future__ import annotations

import numpy as np

from nsysdiag.causes import CAUSES, EVENT_WAIT
from nsysdiag.causes.advice import Advice
from nsysdiag.causes.families import FAMILIES, Family
from nsysdiag.diagnosis.facts import KERNELS
from nsysdiag.events.identity import joint
from nsysdiag.findings.attribution import Shares
from nsysdiag.findings.hotspots import Spot, spot_of
from nsysdiag.findings.rules import DIVIDE_EVENLY, NOT_SAVED, OTHER_GPU, SEE_THE_OTHER, severity
from nsysdiag.findings.text import FindingContext, story_of
from nsysdiag.report import DeviceReport, Finding

DID = {
    "kernels": "kernels of ",
    "parallelism": "small kernels of ",
    "communication": "communication of ",
    "copies": "copies of ",
}
"""What another GPU was busy with; if it was idle itself, only its name."""


def waits_for_others(device: DeviceReport, context: FindingContext, shares: Shares, gpus: list[str]) -> list[Finding]:
    """Findings on a device's waits for others: one for each other device and its bottleneck, from the smallest share of
    the judged time on. `shares` are these waits, `gpus` the keys of all GPUs by number."""
    least = max(context.thresholds.smallest * context.judged.ns, 1)
    pair = joint(shares.other, shares.family, len(FAMILIES))
    found = []
    for each in np.unique(pair).tolist():
        number, family = divmod(each, len(FAMILIES))
        mine = shares.take(pair == each)
        if int(mine.lost.sum()) >= least:
            found.append(_finding(device, context, mine, gpus[number], FAMILIES[family]))
    return found


def _finding(device: DeviceReport, context: FindingContext, shares: Shares, other: str, family: Family) -> Finding:
    spot, judged = _spot(shares, family), context.judged
    story = story_of(device, context, shares, spot)
    what = f"{DID.get(family, '')}{other}"
    advice, fix = _advice(spot)
    return Finding(
        id=f"f-{OTHER_GPU.id}-{family}-{other}",
        cause=OTHER_GPU.id,
        device=device.key,
        severity=severity(judged.share(spot.lost_ns), context.thresholds),
        title=f"Waiting for {what}",
        lost_ns=spot.lost_ns,
        lost_share=round(judged.share(spot.lost_ns), 6),
        ceiling_ns=0 if family in NOT_SAVED else spot.lost_ns,
        confidence=story.confidence,
        nvtx=story.path,
        evidence=story.evidence,
        advice=list(advice.plain),
        signature=story.signature,
        call=story.call,
        gaps=story.gaps,
        chain=[*story.chain[:-1], fix],
        rows=story.rows,
        devices=[device.key],
        bottleneck=family,
        share=round(judged.share(spot.counted_ns), 6),
        summary=f"{device.key} waits for {what}",
    )


def _advice(spot: Spot) -> tuple[Advice, str]:
    """What to do, and its short form. If events order the GPUs already, that advice is left out."""
    if spot.family not in KERNELS:
        return SEE_THE_OTHER, "see what that GPU does"
    return (DIVIDE_EVENLY, "divide the work evenly") if spot.cause == EVENT_WAIT else (OTHER_GPU.advice, OTHER_GPU.fix)


def _spot(shares: Shares, family: Family) -> Spot:
    """All of it, described by the cause with most of its time."""
    cause = int(np.argmax(np.bincount(shares.cause, weights=shares.lost)))
    return spot_of(shares, (list(CAUSES)[cause], family), np.arange(len(shares)))
