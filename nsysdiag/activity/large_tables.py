"""The tables that take long to read, in the order in which they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.activity.calls import CALLS, call_columns
from nsysdiag.activity.host_tables import OS_CALL_COLUMNS, OS_CALLS
from nsysdiag.activity.nvtx import RANGE_COLUMNS, RANGES
from nsysdiag.activity.operations import TABLES, Category, operation_columns
from nsysdiag.activity.samples import SAMPLE_COLUMNS, SAMPLES
from nsysdiag.activity.scheduling import SWITCH_COLUMNS, SWITCHES

if TYPE_CHECKING:
    from nsysdiag.trace.ahead import Request
    from nsysdiag.trace.trace import Trace


def large_tables(trace: Trace) -> list[Request]:
    """What the analysis of any trace reads of them."""
    return [
        (TABLES[Category.KERNEL], operation_columns(Category.KERNEL)),
        (CALLS, call_columns(trace)),
        (RANGES, RANGE_COLUMNS),
        (SWITCHES, SWITCH_COLUMNS),
        (OS_CALLS, OS_CALL_COLUMNS),
        (SAMPLES, SAMPLE_COLUMNS),
    ]
