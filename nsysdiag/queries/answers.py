"""Short answers for programs: subjects of a report as data, each list with a limit, each claim with its status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nsysdiag.bottlenecks import BOTTLENECKS, UNKNOWN
from nsysdiag.diagnosis.facts import REPLAY, Saves
from nsysdiag.document.view import by_time
from nsysdiag.formats.tables import BY_NAME
from nsysdiag.messages import UsageError
from nsysdiag.version import __version__

if TYPE_CHECKING:
    from nsysdiag.findings.facts import Finding
    from nsysdiag.report import Report

Data = dict[str, Any]
MEASURED, INFERRED, PREDICTED, NOT_KNOWN = "measured", "inferred", "predicted", "unknown"
"""The status of a claim. Measured: a sum of times of the trace. Inferred: what the evidence of the trace shows, as the
cause of idle time. Predicted: by replay, or an upper bound. Unknown: the trace cannot tell."""
LIMIT = 5
"""Items of each list, unless another limit is asked for."""
MOST_TEXT = 300
"""Characters of a sentence: names of kernels in it may be long."""


def answer(report: Report, subjects: Sequence[str], limit: int = LIMIT) -> Data:
    """The subjects of a report, by name: those of `SUBJECTS`, or tables of `nsysdiag.frames(report)`. Keys are stable.

    Raises UsageError for a subject that there is not.
    """
    check_subjects(subjects)
    head = {"nsysdiag": __version__, "file": report.trace.file, "fingerprint": report.trace.fingerprint}
    return head | {each: _answered(report, each, limit) for each in subjects}


def check_subjects(subjects: Sequence[str]) -> list[str]:
    """The subjects. Raises UsageError for one that there is not."""
    unknown = [each for each in subjects if each not in SUBJECTS and each not in BY_NAME]
    if unknown or not subjects:
        what = f"no subject is called '{unknown[0]}'" if unknown else "no subject is named"
        raise UsageError(what, hint=f"the subjects are {', '.join(SUBJECTS)}; or a table: {', '.join(BY_NAME)}")
    return list(subjects)


def _answered(report: Report, subject: str, limit: int) -> Any:
    if subject in SUBJECTS:
        return SUBJECTS[subject](report, limit)
    table = BY_NAME[subject]
    return {"columns": table.header} | listed([[short(cell) for cell in row] for row in table.cells(report)], limit)


def listed(items: Iterable[Any], limit: int) -> Data:
    """A list with its length, and whether it was cut."""
    found = list(items)
    return {"items": found[:limit], "total": len(found), "truncated": len(found) > limit}


def short(value: Any) -> Any:
    """Texts that are too long, without their end."""
    return f"{value[: MOST_TEXT - 1]}…" if isinstance(value, str) and len(value) > MOST_TEXT else value


def _diagnosis(report: Report, _limit: int) -> Data | None:
    found = report.diagnosis
    if found is None:
        return None
    second = found.second
    return {
        "headline": short(found.headline),
        "bottleneck": {
            "id": found.bottleneck,
            "share": round(found.share, 4),
            "status": NOT_KNOWN if found.bottleneck == UNKNOWN else MEASURED,
        },
        "second": second and {"id": second.bottleneck, "share": round(second.share, 4), "status": MEASURED},
        "judged": {"basis": found.basis, "phase": found.phase, "unknown_share": round(found.unknown_share, 4)},
        "action": short(found.action),
        "fix_first": found.fix_first,
        "saves": _saves(found.saves),
        "frameworks": list(found.frameworks),
    }


def _saves(saves: Saves | None) -> Data:
    """A prediction with its bounds, of a step or of the window."""
    if saves is None:
        return {"status": NOT_KNOWN}
    known = {"low_ns": saves.low_ns, "high_ns": saves.high_ns, "of_ns": saves.of_ns, "per": saves.per}
    status = NOT_KNOWN if saves.cannot_tell else PREDICTED
    said = {"status": status, "by": "replay" if saves.method == REPLAY else "upper bound"}
    return known | said | ({"reason": short(saves.reason)} if saves.reason else {})


def _finding(finding: Finding) -> Data:
    of_work = bool(finding.bottleneck) and bool(BOTTLENECKS[finding.bottleneck].work)
    return {
        "id": finding.id,
        "title": short(finding.title),
        "severity": finding.severity,
        "devices": finding.devices or [finding.device],
        "cause": {
            "id": finding.cause,
            "status": MEASURED if of_work else INFERRED if finding.confidence else NOT_KNOWN,
            "confidence": round(finding.confidence, 3),
        },
        "lost": {"ns": finding.lost_ns, "share": round(finding.lost_share, 4), "status": MEASURED},
        "saves": _saves(finding.saves),
        "part_of": finding.part_of,
        "evidence": listed(map(short, finding.evidence), 2),
        "advice": listed(map(short, finding.advice), 1),
    }


def _phases(report: Report, limit: int) -> Data:
    return listed(
        (
            {
                "name": each.name,
                "start_ns": each.start_ns,
                "end_ns": each.end_ns,
                "judged": each.judged,
                "bottleneck": {"id": each.bottleneck, "share": round(each.share, 4), "status": MEASURED},
                "steps": each.steps and {"count": each.steps.count, "median_ns": each.steps.median_ns},
            }
            for each in report.phases
        ),
        limit,
    )


def _time(report: Report, limit: int) -> Data:
    """The judged time of each device by bottleneck, and its idle time by cause, largest first."""
    parts = []
    for device in report.devices:
        judged = report.judged_of(device.key)
        if judged is not None:
            sums = {"bottlenecks": judged.account, "idle_causes": judged.ledger}
            parted = {
                name: listed(({"id": id, "ns": ns} for id, ns in by_time(found) if ns), limit)
                for name, found in sums.items()
            }
            ns = {"ns": sum(judged.account.values()), "idle_ns": judged.idle_ns}
            parts.append({"device": device.key, "scope": "judged", "status": MEASURED} | ns | parted)
    return listed(parts, max(limit, 1))


def _trace(report: Report, limit: int) -> Data:
    """What was captured, what was not, and how to capture it."""
    missing = [each for each in report.trace.capabilities if not each.available]
    return {
        "nsys_version": report.trace.nsys_version,
        "devices": listed(({"key": each.key, "name": each.name} for each in report.devices), limit),
        "not_captured": listed(({"id": each.id, "option": each.recapture} for each in missing), limit),
        "warnings": listed((short(each) for each in report.trace.warnings), limit),
    }


def _summary(report: Report, limit: int) -> Data:
    """What a first question needs."""
    return {name: SUBJECTS[name](report, limit) for name in ("diagnosis", "findings", "phases")}


SUBJECTS: dict[str, Callable[[Report, int], Any]] = {
    "summary": _summary,
    "diagnosis": _diagnosis,
    "findings": lambda report, limit: listed(map(_finding, report.findings), limit),
    "phases": _phases,
    "time": _time,
    "trace": _trace,
}
"""What can be asked for besides the tables. A name that a table has, too, is the shorter answer here."""
