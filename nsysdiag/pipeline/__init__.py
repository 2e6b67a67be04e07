"""The analysis: a trace file in, a report out. `analysis` has its stages, `changes` compares and predicts."""

from nsysdiag.pipeline.analysis import analyze, analyze_devices, analyze_trace

__all__ = ["analyze", "analyze_devices", "analyze_trace"]
