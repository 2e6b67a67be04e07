"""The sentences of the outputs: how sure a claim is, what a window is, what a thread is called."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nsysdiag.causes.ids import BLOCKING_COPY, GRAPH_BUILD, SYNCHRONIZATION, UNCOVERED
from nsysdiag.diagnosis.facts import LIKELY_BELOW, WAITS
from nsysdiag.document.names import brief, clip
from nsysdiag.document.view import Causes, RootRow, more_shares
from nsysdiag.units import NS_PER, every_nth, format_count, format_ns, format_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsysdiag.findings.facts import EvidenceRow, Finding
    from nsysdiag.iterations.facts import IterationReport, ServingPhase, SlowIteration
    from nsysdiag.phases.facts import Phase
    from nsysdiag.report import DeviceReport, Gap, NotRecorded, OpCounts, Report, SignatureRow, Thread

ITERATION_NAME, MOST_MORE, CALL_NAME = 60, 3, 60
ITERATION_KINDS = {
    "step": ("iteration", "iterations"),
    "layer": ("layer", "layers"),
    "repeat": ("repeat", "repeats"),
}
ITERATION_TITLES = {"step": "Iterations", "layer": "Layers", "repeat": "Repeats"}
UNRESOLVED_BELOW = 0.2
CHARGED = 0.05
"""Of the idle time: where less is charged to other causes, figures of two sections look alike."""
NO_GPU_WORK = "No GPU work in this trace"
SEVERITY_ICONS = {"high": "▲", "medium": "◆", "low": "●", "info": "○"}
OVERLAP = "Savings of several findings may overlap: do not add them up. Lost times do not overlap and can be added up."
METHOD = (
    "A device is busy while any kernel, copy, memory set or graph of any process runs on it; the rest of its window is "
    "idle. Each maximal idle interval is a gap. The operation that ends the gap leads to the call that launched it and "
    "to the thread that made the call. The time until that call is explained by what the thread did: CUDA calls first, "
    "then operating-system calls, then scheduling and CPU samples. The call itself, the launch latency and waits on "
    "the device follow. Every nanosecond goes to the first cause with evidence, and to “unexplained” where there is "
    "none. So the causes add up to the idle time exactly."
)


def instant(ns: int) -> str:
    """A moment of the trace in seconds with six decimals, as the Nsight timeline shows it: `12.345678 s`."""
    return f"{ns / NS_PER['s']:,.6f} s"


def confidence_word(coverage: float) -> str:
    """How far a claim may be trusted by the share of the time behind it that has evidence."""
    if coverage < UNRESOLVED_BELOW:
        return "unresolved"
    return "likely" if coverage < LIKELY_BELOW else "supported"


def coverage_sentence(coverage: float | None) -> str:
    """What the coverage of a device means for its ledger."""
    if coverage is None:
        return "No idle time here needs evidence from the host."
    share = format_share(coverage, 1)
    if coverage < UNRESOLVED_BELOW:
        return f"Only {share} of the idle time that the host must explain has evidence: its causes are unresolved."
    if coverage < LIKELY_BELOW:
        return f"{share} of the idle time that the host must explain has evidence: read its causes as likely."
    return f"{share} of the idle time that the host must explain has evidence."


def root_sentence(gap: Gap) -> str:
    """How sure the chain behind a gap is, empty if it has none."""
    return f"{format_share(gap.root.confidence, 1)} sure" if gap.root and gap.root.hops else ""


def root_kinds(row: RootRow) -> str:
    """The kinds of what a cause is after wake-ups were followed; empty if there are none."""
    return ", ".join(f"{label} {format_ns(ns)}" for label, ns in row.labels)


def root_change(row: RootRow) -> str:
    """What a cause was before wake-ups were followed, and the kinds of what it is then."""
    kinds = root_kinds(row)
    was = f"was {format_ns(row.before_ns)}" if row.before_ns else ""
    return "; ".join(part for part in (was, kinds) if part)


def window_sentence(device: DeviceReport) -> str:
    """Length, place and reason of a device's window, and the time left out of it."""
    window = device.window
    where = f"{format_ns(device.window_ns)} from {instant(window.start_ns)} to {instant(window.end_ns)}"
    parts = f" in {format_count(len(window.parts))} parts" if len(window.parts) > 1 else ""
    outside = f"; {format_ns(window.outside_ns)} of it left out" if window.outside_ns else ""
    edge = f"; {format_ns(window.edge_ns)} of the capture before and after" if window.edge_ns else ""
    return f"{where}{parts}, {window.reason}{outside}{edge}"


def ops_sentence(ops: OpCounts) -> str:
    """What ran in the window, counted."""
    kinds = [
        counted(ops.kernel, "kernel"),
        counted(ops.memcpy, "copy", "copies"),
        counted(ops.memset, "memory set"),
        counted(ops.graph, "graph"),
    ]
    odd = []
    if ops.zero_length:
        odd.append(f"{format_count(ops.zero_length)} of no length")
    if ops.malformed:
        odd.append(f"{format_count(ops.malformed)} malformed, left out")
    return ", ".join(kinds) + (f" ({'; '.join(odd)})" if odd else "")


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 copy`, `2 copies`."""
    return f"{format_count(count)} {one if count == 1 else many or one + 's'}"


def drained_sentence(device: DeviceReport) -> str | None:
    """How many gaps a synchronization opened by emptying the queue, None if none did."""
    gaps, ns = device.sync_drained.get("gaps", 0), device.sync_drained.get("ns", 0)
    if not gaps:
        return None
    share = format_share(ns, device.idle_ns)
    verb = "follows" if gaps == 1 else "follow"
    return (
        f"{counted(gaps, 'gap')}, {format_ns(ns)} or {share} of the idle time, {verb} a synchronization or blocking "
        "call that drained the queue. Without that call, the host might have run ahead."
    )


def behind_sentences(device: DeviceReport, report: Report) -> list[str]:
    """How much idle time synchronizations made, by the queue and by the diagnosis; what that charges to start-up."""
    told = (drained_sentence(device), charged_sentence(device, report.phases), built_sentence(device, report.findings))
    return [each for each in told if each]


def built_sentence(device: DeviceReport, findings: Sequence[Finding]) -> str | None:
    """How much unexplained time the diagnosis charges to start-up, as ranges of the program say that it compiles."""
    built = (each for each in findings if (each.cause, each.bottleneck) == (UNCOVERED, "startup"))
    ns = sum(each.lost_ns for each in built if device.key in each.devices)
    said = f"The diagnosis charges {format_ns(ns)} of the unexplained time to start-up: by ranges, code is compiled."
    return said if ns else None


def charged_sentence(device: DeviceReport, phases: Sequence[Phase]) -> str | None:
    """How much idle time the diagnosis charges to synchronizations although the host did something else by then; None
    if that is little of it."""
    judged = [each for phase in phases if phase.judged for each in phase.devices if each.key == device.key]
    charged = sum(each.account.get(WAITS, 0) for each in judged)
    other = charged - sum(each.ledger.get(SYNCHRONIZATION, 0) + each.ledger.get(BLOCKING_COPY, 0) for each in judged)
    if not judged or other < CHARGED * device.idle_ns:
        return None
    return (
        f"The diagnosis charges {format_ns(charged)} of the judged time to synchronization: while that held the host, "
        "work could have been launched. The table says what the host did in the idle time itself."
    )


def thread_label(thread: Thread | None) -> str:
    """A thread by name and ids."""
    if thread is None:
        return "unknown thread"
    name = f"{thread.name} " if thread.name else "thread "
    return f"{name}{thread.tid} of process {thread.pid}"


def short_thread_label(thread: Thread) -> str:
    """A thread by name and thread id."""
    return f"{thread.name or 'thread'} {thread.tid}"


def path_label(nvtx: list[str]) -> str:
    """An NVTX path, outermost first; empty if no range is open."""
    return " › ".join(nvtx)


def iterations_found(found: IterationReport) -> str:
    """How many iterations there are, and by what they were distinguished."""
    what = counted(found.count, *ITERATION_KINDS[found.kind])
    name = f"“{clip(brief(found.name), ITERATION_NAME)}”"
    # Of an operation with several launch shapes, or places, in an iteration, one is the mark.
    return f"{what} by NVTX range {name}" if found.source == "nvtx" else f"{what} by one start of {name} in each"


def inner_sentence(found: IterationReport) -> str:
    """The layers of several kinds, or the shorter period, in iterations; empty if there is neither."""
    inner = found.inner
    if found.layers:
        each = " + ".join(map(format_count, found.layers))
        return f"Each iteration has {format_count(sum(found.layers))} layers of {len(found.layers)} kinds: {each}"
    if inner is None:
        return ""
    by = "NVTX range" if inner.source == "nvtx" else "One launch shape of"
    times = f"{counted(inner.per_iteration, 'time')} in each iteration, {format_ns(inner.median_ns)} apart"
    return f"{by} “{clip(brief(inner.name), ITERATION_NAME)}” comes {times}"


def kinds_sentence(found: IterationReport) -> str:
    """What each phase of a server takes, or what each kind of iterations runs; empty if all do the same work."""
    if found.serving:
        return f"Steps of a server: {'; '.join(map(_serving_phase, found.serving))}"
    if not found.kinds:
        return ""
    total = sum(each.total_ns for each in found.kinds)
    said = (
        f"{format_count(each.count)} mostly {clip(brief(each.name), ITERATION_NAME)} "
        f"({format_share(each.total_ns, total)} of the time, median {format_ns(each.median_ns)})"
        for each in found.kinds
    )
    return f"Iterations of several kinds take turns: {', '.join(said)}"


SHOWN_BY = {"nvtx": "NVTX ranges", "attention": "attention kernels", "graphs": "graphs next to steps without them"}
"""What shows the phase of a step."""


def _serving_phase(each: ServingPhase) -> str:
    told = [
        f"{format_share(each.share, 1)} of the time",
        f"{counted(each.count, 'step')} of {format_ns(each.median_ns)}",
        f"{format_share(sum(each.idle.values()), each.total_ns)} idle",
        *([] if each.tokens is None else [f"{counted(each.tokens, 'token')} a step"]),
    ]
    return f"{each.phase} {', '.join(told)}"


def doubt_sentence(found: IterationReport) -> str:
    """What else may be the step; empty if the trace shows it, or shows that these are layers."""
    if found.certain or found.kind == "layer":
        return ""
    if not found.closed:
        asked = "say so with --step kernel=NAME or --step NVTX"
        return f"The trace does not show whether these are steps or layers of one pass: {asked}"
    if found.outer is not None:
        other, option = f"{found.outer.per_iteration} iterations, {format_ns(found.outer.median_ns)}", "--step every=N"
    elif found.inner is not None:
        other, option = f"each of the shorter repeats, {format_ns(found.inner.median_ns)}", "--step kernel=NAME"
    else:
        other, option = "one of these, from wait to wait, or several", "--step every=N"
    return f"The trace does not show whether the step is {other}: say so with {option} or --step NVTX"


def slow_sum(found: IterationReport) -> str:
    """How many iterations are slow, at which distance, and what they cost together; empty if none is."""
    if not found.slow_count:
        return ""
    every = f", {every_nth(found.slow_period)}" if found.slow_period is not None else ""
    return f"{counted(found.slow_count, 'slow iteration')}{every}: {format_ns(found.slow_extra_ns)} more in all"


def iterations_sentence(found: IterationReport) -> str:
    """The iterations of a device in one sentence."""
    lengths = f"p50 {format_ns(found.p50_ns)}, p95 {format_ns(found.p95_ns)}, worst {format_ns(found.worst_ns)}"
    left_out = left_out_sentence(found)
    return f"{iterations_found(found)}: {lengths}" + (f"; {left_out}" if left_out else "")


def left_out_sentence(found: IterationReport) -> str:
    """How many iterations the percentiles leave out, and why; empty if none."""
    reasons = Counter(left_out_reason(found, index) for index in found.left_out)
    if len(reasons) < 2:
        return "".join(f"{format_count(count)} left out ({reason})" for reason, count in reasons.items())
    which = ", ".join(f"{format_count(count)} {reason}" for reason, count in reasons.items())
    return f"{format_count(len(found.left_out))} left out ({which})"


def left_out_reason(found: IterationReport, index: int) -> str:
    """Why the percentiles leave an iteration out."""
    row = next((row for row in found.rows if row.index == index), None)
    always = any(each.steady and each.ledger.get(GRAPH_BUILD) for each in found.rows)
    if row is not None and row.ledger.get(GRAPH_BUILD) and not always:
        return "graph capture"
    if index < found.count // 4:
        return "warm-up"
    if index < found.count - 1:
        return "the last before a pause"
    longer = row is not None and row.end_ns - row.start_ns > found.p50_ns
    return "the last, with what follows it" if longer else "cut short at the end"


def slow_sentence(slow: SlowIteration, causes: Causes) -> str:
    """How much longer a slow iteration is than the median one, and what it has more of."""
    return f"#{slow.index} took {format_ns(slow.extra_ns)} more than the median: {more_label(slow, causes)}"


def more_label(slow: SlowIteration, causes: Causes) -> str:
    """What a slow iteration has more of than the median one, most first."""
    shares = more_shares(slow, causes)[:MOST_MORE]
    return ", ".join(f"{share.label} +{format_ns(share.ns)}" for share in shares) or "no part alone"


def lost_sentence(finding: Finding) -> str:
    """What a finding costs, and what its fix may bring if that is more."""
    if finding.lost_ns == 0 and finding.ceiling_ns > 0:
        return f"nothing by itself, at most {format_ns(finding.ceiling_ns)} together with other findings"
    best = f"; at most {format_ns(finding.ceiling_ns)} together with other findings" if _brings_more(finding) else ""
    return f"{format_ns(finding.lost_ns)}, {format_share(finding.lost_share, 1)} of the window{best}"


def _brings_more(finding: Finding) -> bool:
    return finding.ceiling_ns > finding.lost_ns


def overlap_note(findings: list[Finding]) -> str | None:
    """How the figures of findings may be added up; None if nothing overlaps."""
    several = sum(finding.saves is not None for finding in findings) > 1
    return OVERLAP if several or any(_brings_more(finding) for finding in findings) else None


def where_sentence(finding: Finding) -> str:
    """The gaps of a finding and the call behind them; empty if it is about no gaps."""
    if not finding.gaps:
        return ""
    where = "in or behind" if finding.bottleneck == WAITS else "in"
    call = f" {where} {clip(brief(finding.call), CALL_NAME)}" if finding.call else ""
    return counted(finding.gaps, "gap") + call


def chain_label(chain: list[str]) -> str:
    """A causal chain on one line, from root to fix."""
    return " → ".join(chain)


def row_query(row: EvidenceRow) -> str:
    """The SELECT that finds a row of evidence in the trace."""
    columns = {
        "start": row.start_ns,
        "globalTid": row.thread,
        "globalPid": row.process,
        "correlationId": row.correlation,
    }
    where = " AND ".join(f"{column} = {value}" for column, value in columns.items() if value is not None)
    return f"SELECT * FROM {row.table} WHERE {where}"


def signatures_sentence(device: DeviceReport) -> str:
    """How much of the idle time the listed signatures explain together."""
    total = sum(row.total_ns for row in device.signatures)
    kinds = counted(len(device.signatures), "gap group", "gap groups")
    return f"{kinds}, together {format_share(total, device.idle_ns)} of the idle time"


def signature_sentence(row: SignatureRow) -> str:
    """The share of idle time of a gap group, and its cost per iteration."""
    facts = [f"{format_share(row.share_of_idle, 1)} of idle", counted(row.count, "gap")]
    facts += [f"{format_ns(row.per_iteration_ns)} an iteration"] if row.per_iteration_ns else []
    return " · ".join(facts)


def lengths_sentence(row: SignatureRow) -> str:
    """How long the gaps of one kind are, and where the longest is."""
    where = f"at {instant(row.representative_start_ns)}"
    if row.count == 1:
        return where
    return f"p50 {format_ns(row.median_ns)}, p95 {format_ns(row.p95_ns)}, max {format_ns(row.max_ns)} {where}"


def calibration_sentence(device: DeviceReport) -> str:
    """The two thresholds of a device and where they come from."""
    floor = "calibrated from this trace" if device.floor_calibrated else "default"
    latency = "calibrated from this trace" if device.launch_latency_calibrated else "default"
    return (
        f"Gaps up to {format_ns(device.floor_ns)} between queued operations are the device's own dispatch ({floor}); "
        f"a launch reaches the idle device in {format_ns(device.launch_latency_ns)} ({latency})."
    )


def not_recorded_sentence(rows: list[NotRecorded]) -> str:
    """What no such trace tells."""
    return f"No such trace shows: {'; '.join(row.what for row in rows)}."
