"""Findings: where each cause costs most, ranked by its exclusive time.

Lost times are exclusive: each nanosecond of idle time belongs to one cause and one place. So the lost times of a
device's causes add up to at most its idle time. Exposed copies and communication are busy time, counted separately.
Findings that point at the time of others have no lost time.
"""

from __future__ import annotations

import hashlib

from msgspec import Struct

from nsysdiag.account.bottlenecks import Bottlenecks
from nsysdiag.causes import CAUSES
from nsysdiag.findings.attribution import Shares, inside_mpi
from nsysdiag.findings.behind_waits import behind_waits
from nsysdiag.findings.exposed import exposed_findings
from nsysdiag.findings.hotspots import Spot, spots_of
from nsysdiag.findings.other_gpus import waits_for_others
from nsysdiag.findings.pageable import copies_as_one
from nsysdiag.findings.pages import pages_as_one
from nsysdiag.findings.rules import NOT_SAVED, severity
from nsysdiag.findings.text import FindingContext, Story, story_of
from nsysdiag.phases.facts import BehindWait
from nsysdiag.report import DeviceReport, Finding, Named


class IdleFindings(Struct, frozen=True):
    """The findings on time in which a device waited, or worked exposed, and what threads did `behind` its waits."""

    found: list[Finding]
    behind: list[BehindWait]


def findings_of(
    device: DeviceReport, context: FindingContext, shares: Shares, work: Bottlenecks, gpus: list[str]
) -> IdleFindings:
    """The findings of one device: every cause and exposed work that takes, or may bring, at least 1% of the judged
    time. `gpus` are all of the trace."""
    judged, thresholds = context.judged, context.thresholds
    if judged.ns == 0:
        return IdleFindings([], [])
    in_mpi = inside_mpi(shares)
    own = shares.take(~in_mpi & (shares.other < 0))
    spots = spots_of(own, judged.ns, thresholds)
    spots = [*spots[: thresholds.most], *[spot for spot in spots[thresholds.most :] if spot.behind]]
    stories = [story_of(device, context, own.take(spot.rows), spot) for spot in spots]
    found = [_of_spot(device, context, *each) for each in zip(spots, stories, strict=True)]
    exposed = exposed_findings(device, context, int(shares.lost[in_mpi].sum()), work)
    behind = behind_waits(own, spots, found)
    found = copies_as_one(found, [story.kind for story in stories], exposed, context, work)
    found = pages_as_one(found, device, context)
    return IdleFindings([*found, *waits_for_others(device, context, shares.take(shares.other >= 0), gpus)], behind)


def _of_spot(device: DeviceReport, context: FindingContext, spot: Spot, story: Story) -> Finding:
    rule, judged = CAUSES[spot.cause], context.judged
    return Finding(
        id=_id(spot, story),
        cause=spot.cause,
        device=device.key,
        severity=severity(judged.share(spot.ceiling_ns), context.thresholds, unresolved=rule.unresolved),
        title=story.title,
        lost_ns=spot.lost_ns,
        lost_share=round(judged.share(spot.lost_ns), 6),
        ceiling_ns=0 if spot.family in NOT_SAVED else spot.ceiling_ns,
        confidence=story.confidence,
        nvtx=story.path,
        evidence=story.evidence,
        advice=story.advice,
        signature=story.signature,
        call=story.call,
        gaps=story.gaps,
        chain=story.chain,
        rows=story.rows,
        devices=[device.key],
        bottleneck=spot.family,
        share=round(judged.share(spot.counted_ns), 6),
        variant=story.variant,
        summary=story.summary,
        named=[Named(text=text, share=round(judged.share(ns), 6)) for text, ns in story.named],
    )


def _id(spot: Spot, story: Story) -> str:
    """An id that is the same in every trace of the program and on every device: by cause, bottleneck, variant and
    place."""
    family = "" if spot.family == CAUSES[spot.cause].family else f"-{spot.family}"
    if spot.rest:
        return f"f-{spot.cause}{family}-rest"
    if spot.kind is None:
        return f"f-{spot.cause}{family}"
    text = "\x1f".join((story.kind, *story.path))
    place = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"f-{spot.cause}{family}-{place}"
