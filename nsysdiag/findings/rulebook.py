"""What `nsysdiag rules` says of a rule beside its words: its thresholds, with the values in force, and its sources."""

from __future__ import annotations

from dataclasses import dataclass

from nsysdiag.causes import CAUSES, call_facts, context_init, sync
from nsysdiag.causes.sources import SOURCES, Source
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.events import samples, scheduling
from nsysdiag.findings import attribution
from nsysdiag.findings.rules import FINDING_RULES
from nsysdiag.gaps import calibration, stream_waits
from nsysdiag.ledger import drained
from nsysdiag.units import format_ns

_MEANINGS = {
    "most": "findings of a report, at most",
    "places": "places of one cause and device that are findings of their own, at most",
    "rows": "rows of the trace named by a finding, at most",
    "smallest": "of the window from which on something is a finding, and a place one of its own",
    "high": "of the window from which on a finding is high",
    "medium": "of the window from which on a finding is medium",
    "low": "of the window from which on a finding is low",
    "empty": "of the iterations that must be without work",
    "collector": "of the CPU samples in Python's collector from which on host code is garbage collection",
    "interpreter": "of the CPU samples in the interpreter from which on host code is Python",
}


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that a rule depends on: its name, its value as text, and what it is. Names that begin with `findings.`
    are settings; the others are constants of the rule."""

    name: str
    value: str
    meaning: str


def finding_threshold(name: str) -> Threshold:
    """A field of FindingThresholds with its default."""
    value = getattr(FindingThresholds(), name)
    text = f"{100 * value:g} %" if isinstance(value, float) else str(value)
    return Threshold(f"findings.{name}", text, _MEANINGS[name])


_FLOOR = (
    Threshold(
        "floor", format_ns(calibration.DEFAULT_NS), "dispatch floor where the trace has too few cases to learn it"
    ),
    Threshold("floor_samples", str(calibration.FLOOR_SAMPLES), "gaps between issued operations that learning it needs"),
    Threshold("floor_percentile", f"{calibration.FLOOR_PERCENTILE} %", "percentile of those gaps that is the floor"),
    Threshold(
        "floor_range",
        f"{format_ns(calibration.FLOOR_LOWEST_NS)} to {format_ns(calibration.FLOOR_HIGHEST_NS)}",
        "bounds of the learnt floor",
    ),
)
_LATENCY = (
    Threshold(
        "latency", format_ns(calibration.DEFAULT_NS), "launch latency where the trace has too few cases to learn it"
    ),
    Threshold(
        "latency_samples", str(calibration.LATENCY_SAMPLES), "launches that found the device idle that learning needs"
    ),
    Threshold(
        "latency_percentile", f"{calibration.LATENCY_PERCENTILE} %", "percentile of their delays that is the latency"
    ),
    Threshold(
        "latency_limit",
        f"{calibration.LATENCY_FACTOR} × latency, {format_ns(calibration.LATENCY_LOWEST_NS)} to "
        f"{format_ns(calibration.LATENCY_HIGHEST_NS)}",
        "what a launch may take to reach an idle device; what is longer is something else",
    ),
)
_DRAINED = Threshold(
    "drained_lead", format_ns(drained.LEAD_NS), "a call that emptied the queue began this long before the gap"
)
_READ_BACK = Threshold(
    "read_back", f"{call_facts.READ_BACK_BYTES} B", "the largest copy to the host that is a read-back"
)

THRESHOLDS: dict[str, tuple[Threshold, ...]] = {
    "dispatch": _FLOOR,
    "unified_memory": (),
    "intra_graph": (),
    "graph_untraced": (),
    "launch_unknown": (),
    "profiler_overhead": (),
    "sync": (
        Threshold("spin", format_ns(sync.SPIN_NS), "the longest pause between two queries of one wait"),
        _DRAINED,
        _READ_BACK,
        Threshold(
            "read_back_pause", format_ns(attribution.READ_BACK_NS), "the longest pause between a read-back and its wait"
        ),
    ),
    "blocking_copy": (_READ_BACK, _DRAINED),
    "memory_allocation": (),
    "context_init": (
        Threshold("long", format_ns(context_init.LONG_NS), "a first call or stream creation over this makes a context"),
    ),
    "queue_full": (),
    "module_load": (
        Threshold(
            "slow_factor", f"{call_facts.SLOW_FACTOR} ×", "a first launch over this many medians of its API loads code"
        ),
        Threshold(
            "few_launches", str(call_facts.FEW_LAUNCHES), "an API with fewer launches has no median to compare with"
        ),
        Threshold("long", format_ns(call_facts.LONG_NS), "there, and where most launches are first ones, this decides"),
    ),
    "graph_build": (),
    "cuda_api": (),
    "lock_wait": (),
    "io_wait": (),
    "os_memory": (),
    "sleep": (),
    "off_cpu": (
        Threshold(
            "held", f"{100 * scheduling.PREEMPTED_SHARE:g} %", "of the time away in which others must have held the CPU"
        ),
    ),
    "blocked": (),
    "host_compute": (
        Threshold(
            "sampling_period",
            f"{format_ns(samples.SHORTEST_PERIOD_NS)} to {format_ns(samples.LONGEST_PERIOD_NS)}",
            "a sample vouches for half its thread's period to either side",
        ),
        Threshold("lone_sample", format_ns(samples.LONE_PERIOD_NS), "the period of a thread with a single sample"),
        finding_threshold("collector"),
        finding_threshold("interpreter"),
    ),
    "uncovered": (),
    "launch_call": (),
    "launch_latency": _LATENCY,
    "stream_wait": (
        Threshold("slack", format_ns(stream_waits.SLACK_NS), "the producer may end this long before the gap opens"),
        *_LATENCY[-1:],
    ),
    "stream_barrier": _LATENCY[-1:],
    "gpu_context_switch": _LATENCY[-1:],
    "device_stall": _LATENCY[-1:],
    "data_loading": (),
}

_SOURCES: dict[str, tuple[str, ...]] = {
    "dispatch": ("asynchronous", "cuda_graphs"),
    "unified_memory": ("unified_memory",),
    "intra_graph": ("cuda_graphs",),
    "graph_untraced": ("nsight_cli", "activity"),
    "launch_unknown": ("nsight_cli", "activity"),
    "profiler_overhead": ("overhead", "nsight_cli"),
    "sync": ("api_sync", "asynchronous", "tuning_guide"),
    "blocking_copy": ("api_sync", "pinned_memory"),
    "memory_allocation": ("malloc_async", "allocator"),
    "context_init": ("contexts", "lazy_loading"),
    "queue_full": ("overhead",),
    "module_load": ("lazy_loading", "overhead"),
    "graph_build": ("cuda_graphs", "torch_graphs"),
    "cuda_api": ("asynchronous",),
    "lock_wait": ("nsight_osrt", "gil"),
    "io_wait": ("nsight_osrt", "tuning_guide"),
    "os_memory": ("nsight_osrt", "mallopt"),
    "sleep": ("nsight_osrt", "data_loader"),
    "off_cpu": ("nsight_sampling", "taskset"),
    "blocked": ("nsight_sampling", "nsight_osrt"),
    "host_compute": ("nsight_sampling", "gc", "torch_graphs"),
    "uncovered": ("nsight_cli",),
    "launch_call": ("asynchronous", "cuda_graphs", "torch_graphs"),
    "launch_latency": ("asynchronous", "cuda_graphs"),
    "stream_wait": ("stream_sync", "asynchronous"),
    "stream_barrier": ("stream_sync",),
    "gpu_context_switch": ("mps", "nsight_cli"),
    "device_stall": ("asynchronous",),
    "data_loading": ("data_loader", "tuning_guide"),
    **{rule.id: rule.sources for rule in FINDING_RULES.values()},
}


def thresholds_of(rule: str) -> tuple[Threshold, ...]:
    """The thresholds of a cause or a rule of findings: its own, then those that make it a finding."""
    if rule in FINDING_RULES:
        return tuple(finding_threshold(name) for name in FINDING_RULES[rule].thresholds)
    common = () if CAUSES[rule].unresolved else ("smallest", "places")
    return (*THRESHOLDS[rule], *(finding_threshold(name) for name in common or ("smallest",)))


def sources_of(rule: str) -> tuple[Source, ...]:
    """The documents that a cause or a rule of findings rests on."""
    return tuple(SOURCES[name] for name in _SOURCES[rule])
