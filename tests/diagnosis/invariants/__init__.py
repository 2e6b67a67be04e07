"""What holds in every report, whatever the trace: functions of a report's JSON that say what is broken in it.

They look at nothing but the report, so they are as true of a saved one, of a simulated program or of a real trace.
"""

from __future__ import annotations

from tests.diagnosis.invariants import bottleneck, findings, savings, sums, words
from tests.diagnosis.invariants.registry import INVARIANTS, broken

__all__ = ["INVARIANTS", "bottleneck", "broken", "findings", "savings", "sums", "words"]
