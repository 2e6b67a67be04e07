"""Budgets: what a report must not be, whether it is, and those of a settings file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from math import inf
from pathlib import PurePath

from msgspec import Struct, field
from msgspec.structs import replace

from nsysdiag.ci import measuring
from nsysdiag.ci.expressions import Expression, parse, sentence
from nsysdiag.ci.facts import FAIL, WARN, BatchEntry, BudgetResult, DeviceValue, UnjudgedBudget
from nsysdiag.config.settings import BudgetEntry, most_findings
from nsysdiag.gap_groups.groups import normal_range
from nsysdiag.messages import UsageError
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import DeviceReport, Report

# Budgets on one NVTX range: the gaps inside it, by the gap groups of a report.
#
# A gap is inside a range if the range was open on the thread that launched the next operation. Gap groups have the
# largest cause of a gap, so a cause counts whole gaps here. Shares are of the whole window.

NAMES = "idle_ns, idle_share, gap_count, ledger.CAUSE and ledger.CAUSE_share"


def fits_ranges(measure: measuring.Measure) -> bool:
    """Do the gaps inside a range show it?"""
    return measure.path in (("idle_ns",), ("gap_count",)) or measure.path[0] == "ledger"


def require_range(report: Report, name: str) -> None:
    """Raise UnmeasurableError if no device has a gap inside such a range: the name may be a wrong one."""
    paths = [each for device in report.devices for row in device.signatures for each in row.nvtx]
    if any(_is(each, name) for each in paths):
        return
    missing = any(each.id == "nvtx" and not each.available for each in report.trace.capabilities)
    if missing:
        raise measuring.UnmeasurableError("the trace has no NVTX ranges: --trace=nvtx brings those of the program")
    near = get_close_matches(name, paths, n=1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    raise measuring.UnmeasurableError(f"none of its gap groups is in an NVTX range '{name}'{meant}")


def value_between(
    report: Report, device: DeviceReport, measure: measuring.Measure, name: str, *, per_iteration: bool
) -> tuple[float, float]:
    """The lowest and the highest possible value: a report holds the gap groups with most idle time, and the rest may be
    inside the range too. Raises UnmeasurableError."""
    measuring.require_evidence(report, measure)
    inside = [row for row in device.signatures if any(_is(each, name) for each in row.nvtx)]
    mine = [row for row in inside if measure.cause in (None, row.cause)]
    of_all, of_row = (device.gap_count, "count") if measure.unit == measuring.COUNT else (device.idle_ns, "total_ns")
    found = float(sum(getattr(row, of_row) for row in mine))
    rest = max(float(of_all - sum(getattr(row, of_row) for row in device.signatures)), 0.0)
    if per_iteration:
        whole = measuring.units_of(report, device)
        known = [row.per_iteration_ns for row in mine if row.per_iteration_ns is not None]
        least = float(sum(known)) if measure.unit == measuring.NS and len(known) == len(mine) else found / whole
        return least, least + rest / whole
    whole = device.window_ns if measure.of_window else 1
    return found / whole, (found + rest) / whole


def _is(name: str, wanted: str) -> bool:
    """Names of gap groups have # for counters; * and ? match any text and one character."""
    return name in (wanted, normal_range(wanted)) or fnmatchcase(name, wanted)


_NO_WORK = "it has no GPU work: capture with --trace=cuda"


class Budget(Struct, frozen=True):
    """An expression that must not be true. `source` says where it was written, `level` is fail or warn.

    `device` limits it to devices by key, number or part of the name; `nvtx` to the gaps inside a range; `trace` to
    traces by a pattern; empty for all. One that is `shared` stands in a file, for every command that it suits.
    """

    expression: Expression
    level: str
    source: str
    device: str = ""
    nvtx: str = ""
    trace: str = ""
    shared: bool = False

    @property
    def id(self) -> str:
        """The same budget has the same id everywhere, wherever it is written."""
        words = (self.level, self.expression.text, self.device, self.nvtx, self.trace)
        return "b-" + hashlib.sha256("\x1f".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:10]

    def result(self, device: str, value: float, sentence: str, *, broken: bool) -> BudgetResult:
        """What became of it on a device, or under no name for the whole trace."""
        return BudgetResult(
            id=self.id,
            budget=self.expression.text,
            source=self.source,
            level=self.level,
            device=device,
            nvtx=self.nvtx,
            value=value,
            limit=self.expression.limit,
            unit=self.expression.unit,
            broken=broken,
            sentence=sentence,
        )

    def is_about(self, report: Report | WhatIf, trace: str) -> bool:
        """Does its pattern fit the path, its last part, or the file that a saved report was made of?"""
        return not self.trace or self.fits(trace) or fnmatchcase(report.trace.file, self.trace)

    def fits(self, trace: str) -> bool:
        """Does its pattern fit the path, or its last part?"""
        path = PurePath(trace)
        return any(fnmatchcase(name, self.trace) for name in (trace, path.as_posix(), path.name))


def unused(budgets: Sequence[Budget], entries: Sequence[BatchEntry]) -> list[Budget]:
    """Those whose pattern fits no trace of a batch. One that could not be analyzed is known by its path alone."""
    judged = {each.id for entry in entries for each in entry.budgets}
    judged |= {each.id for entry in entries for each in entry.unjudged}
    inputs = [entry.input for entry in entries]
    ours = [each for each in budgets if each.trace and not each.expression.of_change and each.id not in judged]
    return [each for each in ours if not any(each.fits(name) for name in inputs)]


def parse_budgets(texts: Sequence[str], level: str, source: str) -> list[Budget]:
    """Budgets of options. Raises UsageError with the place of the mistake."""
    return [Budget(parse(text, source), level, source) for text in texts]


def refuse_changes(budgets: Sequence[Budget]) -> None:
    """Raise UsageError for an option about a change, if there is one capture alone. Those of a file are left to
    `compare`."""
    for budget in budgets:
        if budget.expression.of_change and not budget.shared:
            raise UsageError(
                f"{budget.source}: '{budget.expression.text}' is about a change, and here is one capture alone",
                hint="use it with 'nsysdiag compare BEFORE AFTER'",
            )


def check(report: Report, budgets: Sequence[Budget], trace: str) -> list[BudgetResult]:
    """What becomes of each budget that is about this trace, by its path. Raises UsageError for one on something that
    the trace cannot tell, and for an option about a change."""
    refuse_changes(budgets)
    chosen = [each for each in budgets if not each.expression.of_change and each.is_about(report, trace)]
    return [_checked(report, budget, trace) for budget in chosen]


class Judgement(Struct):
    """What became of budgets: those that could be judged, and the others."""

    results: list[BudgetResult] = field(default_factory=list)
    unjudged: list[UnjudgedBudget] = field(default_factory=list)


def judge(
    budgets: Sequence[Budget], check: Callable[[Budget], list[BudgetResult]], unjudged_does: str = FAIL
) -> Judgement:
    """Each by itself: one that cannot be judged, for which `check` raises UnjudgedError, does not hide the others.
    `unjudged_does` is what becomes of the run then: fail, warn or ignore. A budget that warns fails no run."""
    found = Judgement()
    for budget in budgets:
        try:
            found.results.extend(check(budget))
        except UnjudgedError as error:
            found.results.extend(error.results)
            unjudged = UnjudgedBudget(
                id=budget.id,
                budget=budget.expression.text,
                source=budget.source,
                level=budget.level,
                device=budget.device,
                nvtx=budget.nvtx,
                error=error.message,
                why=error.why,
                hint=error.hint or "",
                devices=error.devices,
                outcome=WARN if unjudged_does == FAIL and budget.level == WARN else unjudged_does,
            )
            found.unjudged.append(unjudged)
    return found


def _checked(report: Report, budget: Budget, trace: str) -> BudgetResult:
    """The result. Raises UnjudgedError if a device cannot be judged; it then holds the result of the others."""
    try:
        if budget.expression.measure.of_report:
            return _result(budget, {"": _of_report(report, budget)})
        devices = _devices(report, budget)
    except measuring.UnmeasurableError as error:
        raise UnjudgedError(budget, trace, str(error)) from error
    values, reasons = dict[str, float](), dict[str, str]()
    for device in devices:
        try:
            values[device.key] = _value(report, device, budget)
        except measuring.UnmeasurableError as error:
            reasons[device.key] = str(error)
    if not reasons:
        return _result(budget, values)
    why = "; ".join(dict.fromkeys(reasons.values()))
    if not values:
        raise UnjudgedError(budget, trace, why)
    raise UnjudgedError(budget, trace, f"{', '.join(reasons)}: {why}", [_result(budget, values)], list(reasons))


class UnjudgedError(UsageError):
    """A budget is about something that a trace cannot tell: `why`. If only some `devices` cannot be judged,
    `results` has what became of it on the others."""

    def __init__(
        self, budget: Budget, trace: str, why: str, results: Sequence[BudgetResult] = (), devices: Sequence[str] = ()
    ) -> None:
        super().__init__(
            f"{budget.source}: '{budget.expression.text}' cannot be judged by {trace}: {why}",
            hint="a budget that cannot be judged is not kept: capture what it needs, or take it out",
        )
        self.why = why
        self.results: list[BudgetResult] = list(results)
        self.devices: list[str] = list(devices)


def _devices(report: Report, budget: Budget) -> list[DeviceReport]:
    """Those that it is about and that worked. Raises UnmeasurableError if there is none."""
    places = called([(device.key, device.name) for device in report.devices], budget.device)
    named = [report.devices[at] for at in places]
    if not named:
        known = ", ".join(f"{device.key} ({device.name})" for device in report.devices) or "none"
        raise measuring.UnmeasurableError(
            f"it has no device '{budget.device}'; its devices: {known}" if budget.device else _NO_WORK
        )
    working = [device for device in named if device.window_ns]
    if not working:
        raise measuring.UnmeasurableError(f"nothing ran on {named[0].key}" if budget.device else _NO_WORK)
    if budget.nvtx:
        require_range(report, budget.nvtx)
    return working


def called(devices: Sequence[tuple[str, str]], wanted: str) -> list[int]:
    """Which of the devices, by key and name, have this key or number; or else by this part of their name. All if
    nothing is wanted."""
    exact = [at for at, (key, _name) in enumerate(devices) if wanted in (key, key.removeprefix("gpu"))]
    return exact or [at for at, (_key, name) in enumerate(devices) if wanted.lower() in name.lower()]


def _value(report: Report, device: DeviceReport, budget: Budget) -> float:
    expression = budget.expression
    measure, per_iteration = expression.measure, expression.per_iteration
    if not budget.nvtx:
        return measuring.value_of(report, device, measure, per_iteration=per_iteration)
    least, most = value_between(report, device, measure, budget.nvtx, per_iteration=per_iteration)
    if expression.holds(least) != expression.holds(most) or least < expression.limit < most:
        raise measuring.UnmeasurableError(
            "the report holds the 50 gap groups with most idle time, and the rest may decide it"
        )
    return least


def _of_report(report: Report, budget: Budget) -> float:
    measure = budget.expression.measure
    if measure.is_findings:
        return _findings(report, budget)
    if budget.device:
        raise measuring.UnmeasurableError(f"{measure.name} is of all devices: leave out '{budget.device}'")
    return measuring.of_diagnosis(report, measure.path[1])


def _findings(report: Report, budget: Budget) -> float:
    """How many there are of a severity: of the whole report, or of the devices that it is about."""
    keys = {device.key for device in _devices(report, budget)}
    level = budget.expression.measure.path[1]
    mine = [each for each in report.findings if not budget.device or each.device in keys]
    found = float(sum(level in ("all", each.severity) for each in mine))
    full = len(report.findings) >= most_findings(report.settings)
    # A report keeps those that may bring most: one of a lower severity in it means that it has all of this one.
    below = () if level == "all" else measuring.LEVELS[measuring.LEVELS.index(level) + 1 :]
    more = full and not any(each.severity in below for each in report.findings)
    if more and budget.expression.holds(found) != budget.expression.holds(inf):
        raise measuring.UnmeasurableError(
            f"its report keeps {len(report.findings)} findings: raise most under [findings]"
        )
    return found


def _result(budget: Budget, values: dict[str, float]) -> BudgetResult:
    """By the value of each device, or under no name that of the whole trace."""
    expression = budget.expression
    device, value = max(values.items(), key=lambda each: expression.distance(each[1]))
    broken = expression.holds(value)
    said = sentence(expression, value, device, budget.nvtx, broken=broken)
    each_of = [
        DeviceValue(device=key, value=each, broken=expression.holds(each)) for key, each in values.items() if key
    ]
    return replace(budget.result(device, value, said, broken=broken), devices=each_of)


def budgets_of(entries: Sequence[BudgetEntry], file: str) -> list[Budget]:
    """The budgets. Raises UsageError with the file, the key and the place in the expression."""
    return [_budget(entry, f"{file}: budgets[{at}]") for at, entry in enumerate(entries)]


def _budget(entry: BudgetEntry, where: str) -> Budget:
    level, text = (FAIL, entry.fail) if entry.fail is not None else (WARN, entry.warn or "")
    budget = Budget(
        parse(text, f"{where}.{level}"),
        level,
        f"{where}.{level}",
        device=entry.device or "",
        nvtx=entry.nvtx or "",
        trace=entry.trace or "",
        shared=True,
    )
    if budget.nvtx and (budget.expression.of_change or not fits_ranges(budget.expression.measure)):
        raise UsageError(
            f"{where}.nvtx: '{budget.expression.text}' is not known inside an NVTX range", hint=f"known there: {NAMES}"
        )
    return budget
