"""A step with the profiler and without it, as plain data."""

from __future__ import annotations

from nsysdiag.fields import Ns, OwnText, Ratio, Sentence
from nsysdiag.record import Record


class StepReference(Record, frozen=True):
    """How long a step takes without the profiler, as the user measured it (`reference_ns`), and with it: the median
    steady step of `device`, the slowest one (`measured_ns`). `factor` is measured / reference: how much the profiler
    distorts, if both are of the same steps on the same machine; `sentence` says so."""

    reference_ns: Ns
    measured_ns: Ns
    device: OwnText
    factor: Ratio
    sentence: Sentence
