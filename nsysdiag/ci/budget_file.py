"""The budgets of a settings file."""

from __future__ import annotations

from collections.abc import Sequence

from nsysdiag.ci.budgets import FAIL, WARN, Budget
from nsysdiag.ci.expressions import parse
from nsysdiag.ci.ranges import NAMES, fits_ranges
from nsysdiag.config import BudgetEntry
from nsysdiag.errors import UsageError


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
