"""Diagnosis of exported Nsight Systems traces: what an idle GPU was waiting for, to the nanosecond.

The public names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from nsysdiag.version import __version__

TYPE_CHECKING = False  # not from typing, whose import takes longer than all else before signals are answered
if TYPE_CHECKING:
    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.config.settings import Settings
    from nsysdiag.findings.facts import Finding
    from nsysdiag.formats.figures import figures, gap_chart, ledger_chart, queue_depth_chart
    from nsysdiag.formats.frames import all_gaps, frames
    from nsysdiag.functions import add_to_baseline, analyze_batch, baseline, bundle, check_report, demo_trace, info
    from nsysdiag.messages import InputError, NotComparableError, NsysdiagError, OutputError, UsageError
    from nsysdiag.pipeline.changes import compare, whatif
    from nsysdiag.pipeline.loading import analyze, load
    from nsysdiag.queries.asking import query_trace
    from nsysdiag.ranks.pipeline import analyze_ranks
    from nsysdiag.ranks.report import RanksReport
    from nsysdiag.replay.facts import Transform, WhatIf
    from nsysdiag.report import Report
    from nsysdiag.trace.trace import open_trace


__all__ = [
    "Comparison",
    "Finding",
    "InputError",
    "NotComparableError",
    "NsysdiagError",
    "OutputError",
    "RanksReport",
    "Report",
    "Settings",
    "Transform",
    "UsageError",
    "WhatIf",
    "__version__",
    "add_to_baseline",
    "all_gaps",
    "analyze",
    "analyze_batch",
    "analyze_ranks",
    "baseline",
    "bundle",
    "check_report",
    "compare",
    "demo_trace",
    "figures",
    "frames",
    "gap_chart",
    "info",
    "ledger_chart",
    "load",
    "open_trace",
    "query_trace",
    "queue_depth_chart",
    "whatif",
]

_HOMES = {
    name: f"nsysdiag.{module}"
    for module, names in {
        "comparison.facts": "Comparison",
        "config.settings": "Settings",
        "findings.facts": "Finding",
        "formats.figures": "figures gap_chart ledger_chart queue_depth_chart",
        "formats.frames": "all_gaps frames",
        "functions": "add_to_baseline analyze_batch baseline bundle check_report demo_trace info",
        "messages": "InputError NotComparableError NsysdiagError OutputError UsageError",
        "pipeline.changes": "compare whatif",
        "pipeline.loading": "analyze load",
        "queries.asking": "query_trace",
        "ranks.pipeline": "analyze_ranks",
        "ranks.report": "RanksReport",
        "replay.facts": "Transform WhatIf",
        "report": "Report",
        "trace.trace": "open_trace",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use."""
    from importlib import import_module

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'nsysdiag' has no attribute '{name}'")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
