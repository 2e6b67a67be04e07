"""Diagnosis of exported Nsight Systems traces: what an idle GPU was waiting for, to the nanosecond.

The public names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from nsysdiag.version import __version__

TYPE_CHECKING = False  # not from typing, whose import takes longer than all else before signals are answered
if TYPE_CHECKING:
    from nsysdiag.config import Settings
    from nsysdiag.errors import InputError, NotComparableError, NsysdiagError, OutputError, UsageError
    from nsysdiag.model import Finding, Report
    from nsysdiag.model_compare import Comparison
    from nsysdiag.model_ranks_report import RanksReport
    from nsysdiag.output.charts import gap_chart, ledger_chart, run_ahead_chart
    from nsysdiag.output.frames import all_gaps, frames
    from nsysdiag.pipeline import analyze, compare
    from nsysdiag.ranks import analyze_ranks
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
    "UsageError",
    "__version__",
    "all_gaps",
    "analyze",
    "analyze_ranks",
    "compare",
    "frames",
    "gap_chart",
    "ledger_chart",
    "open_trace",
    "run_ahead_chart",
]

_HOMES = {
    "Comparison": "nsysdiag.model_compare",
    "Finding": "nsysdiag.model",
    "InputError": "nsysdiag.errors",
    "NotComparableError": "nsysdiag.errors",
    "NsysdiagError": "nsysdiag.errors",
    "OutputError": "nsysdiag.errors",
    "RanksReport": "nsysdiag.model_ranks_report",
    "Report": "nsysdiag.model",
    "Settings": "nsysdiag.config",
    "UsageError": "nsysdiag.errors",
    "all_gaps": "nsysdiag.output.frames",
    "analyze": "nsysdiag.pipeline",
    "analyze_ranks": "nsysdiag.ranks",
    "compare": "nsysdiag.pipeline",
    "frames": "nsysdiag.output.frames",
    "gap_chart": "nsysdiag.output.charts",
    "ledger_chart": "nsysdiag.output.charts",
    "open_trace": "nsysdiag.trace.trace",
    "run_ahead_chart": "nsysdiag.output.charts",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use."""
    from importlib import import_module

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'nsysdiag' has no attribute '{name}'")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
