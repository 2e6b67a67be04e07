"""What is worth doing something about: where each cause costs most, ranked by the time that it alone costs.

Lost times are exclusive: each nanosecond of idle time belongs to one cause and one place, so those of a device's causes
add up to at most its idle time. Exposed copies and communication are busy time, counted beside it. Findings that point
at time of others lose nothing of their own.
"""

from __future__ import annotations

import hashlib

from nsysdiag.causes import CAUSES
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.findings.attribution import shares_of
from nsysdiag.findings.empty_iterations import EmptyIterations
from nsysdiag.findings.evidence_rows import Sightings
from nsysdiag.findings.exposed import exposed_findings
from nsysdiag.findings.hotspots import Spot, spots_of
from nsysdiag.findings.pointers import pointers_of
from nsysdiag.findings.rules import severity
from nsysdiag.findings.text import FindingContext, Story, story_of
from nsysdiag.report import DeviceReport, Finding


def findings_of(device: DeviceReport, context: FindingContext, empty: EmptyIterations | None) -> list[Finding]:
    """The findings of one device: every cause and exposed work that takes, or may bring, at least 1 % of the window."""
    if device.window_ns == 0:
        return []
    thresholds = context.thresholds
    shares = shares_of(context.gaps, context.evidence, context.keys, context.attribution)
    spots = spots_of(shares, device.window_ns, device.busy_ns, thresholds)[: thresholds.most]
    sightings = Sightings.of(context.gaps, context.evidence, context.attribution.own)
    found = [
        _of_spot(device, context, spot, story_of(device, context, sightings, shares.take(spot.rows), spot))
        for spot in spots
    ]
    found += exposed_findings(device, sightings, thresholds)
    return ranked(found + pointers_of(device, sightings, empty, thresholds), thresholds.most)


def ranked(findings: list[Finding], most: int = FindingThresholds().most) -> list[Finding]:
    """The dozen that may bring most, those that alone cost most first, of equal ones by id."""
    kept = sorted(findings, key=lambda finding: (-finding.ceiling_ns, -finding.lost_ns, finding.id))[:most]
    return sorted(kept, key=lambda finding: (-finding.lost_ns, -finding.ceiling_ns, finding.id))


def _of_spot(device: DeviceReport, context: FindingContext, spot: Spot, story: Story) -> Finding:
    rule = CAUSES[spot.cause]
    share = spot.ceiling_ns / device.window_ns
    return Finding(
        id=_id(device, spot, story),
        cause=spot.cause,
        device=device.key,
        severity=severity(share, context.thresholds, unresolved=rule.unresolved),
        title=story.title,
        lost_ns=spot.lost_ns,
        lost_share=round(spot.lost_ns / device.window_ns, 6),
        ceiling_ns=spot.ceiling_ns,
        confidence=story.confidence,
        nvtx=story.path,
        evidence=story.evidence,
        advice=story.advice,
        signature=story.signature,
        call=story.call,
        gaps=story.gaps,
        chain=story.chain,
        rows=story.rows,
    )


def _id(device: DeviceReport, spot: Spot, story: Story) -> str:
    """The same in every trace of the program: by device, cause, kind and place."""
    if spot.rest:
        return f"f-{device.key}-{spot.cause}-rest"
    if spot.kind is None:
        return f"f-{device.key}-{spot.cause}"
    text = "\x1f".join((story.kind, *story.path))
    place = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"f-{device.key}-{spot.cause}-{place}"
