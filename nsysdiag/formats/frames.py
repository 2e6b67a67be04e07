"""The tables of a result as pandas data frames, for a notebook: typed columns, raw values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, union_categoricals

from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.show.registry import BY_NAME as OF_COMPARISONS
from nsysdiag.document.columns import RecordTable
from nsysdiag.document.names import clip
from nsysdiag.document.packed import unknown, unpack_places
from nsysdiag.formats.tables import BY_NAME
from nsysdiag.messages import InputError, UsageError
from nsysdiag.ranks.report import RanksReport
from nsysdiag.ranks.show.blocks import BY_NAME as OF_RANKS
from nsysdiag.saved import unpack
from nsysdiag.time.facts import NAMED, NameColumn, TimeColumns

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.report import Report

Source = TypeVar("Source")
MOST_SHOWN = 200
"""Characters of an expression, and of what is wrong with it, in an error."""
_DTYPES = {"text": "string", "integer": "int64", "integer or none": "Int64", "number": "float64", "truth": "boolean"}


def frames(result: Report | RanksReport | Comparison) -> dict[str, pd.DataFrame]:
    """One frame for each table. For a report or a comparison of ranks: those of the CSV output, with the same names,
    columns and order of rows. For a comparison of two sides: the changes, with times for a unit of work.

    Times are in ns (int64), shares float64 from 0 to 1; a missing number is NaN, any other missing value `pd.NA`. Text
    is as the trace has it: it may hold control characters. Raises InputError if a saved report is damaged.
    """
    if isinstance(result, RanksReport):
        return {name: _frame(table, result.comparison) for name, table in OF_RANKS.items()}
    if isinstance(result, Comparison):
        return {name: _frame(table, result) for name, table in OF_COMPARISONS.items()}
    return {name: _frame(table, result) for name, table in BY_NAME.items()}


def query(report: Report, expression: str, table: str = "gaps") -> pd.DataFrame:
    """The rows of a table of `frames(report)` for which an expression of pandas' DataFrame.query holds, such as
    `length_ns > 1e6 and cause == "sync"`.

    Names in it are columns; Python variables (`@x`) are not available. It may call methods of columns, so do not use
    untrusted expressions. Raises UsageError for an unknown table, and for an invalid expression or one that is not true
    or false for each row.
    """
    if table not in BY_NAME:
        raise UsageError(
            f"there is no table '{clip(str(table), MOST_SHOWN)}'", hint=f"the tables are: {', '.join(BY_NAME)}"
        )
    frame, hint = _frame(BY_NAME[table], report), f"its columns are: {', '.join(BY_NAME[table].header)}"
    asked = f"'{clip(str(expression), MOST_SHOWN)}' cannot be asked of {table}"
    try:
        # DataFrame.query in its two steps: it takes what is not true or false for labels of rows.
        holds: Any = frame.eval(expression, engine="python", local_dict={}, global_dict={})
    except Exception as error:  # pandas lets through whatever parsing and evaluating raise
        raise UsageError(f"{asked}: {clip(str(error), MOST_SHOWN)}", hint=hint) from error
    if not (is_bool_dtype(holds) and np.shape(holds) == (len(frame),)):
        raise UsageError(f"{asked}: it does not say yes or no of each row", hint=hint)
    return frame.loc[holds]


def _frame(table: RecordTable[Source, Any], report: Source) -> pd.DataFrame:
    rows = list(table.rows(report))
    series: dict[str, pd.Series] = {}
    for column in table.columns:
        cells = [column.cell(row) for row in rows]
        try:
            series[column.name] = pd.Series(cells, dtype=_DTYPES[column.kind])
        except OverflowError as error:
            raise InputError(f"a {column.name} of this report is out of range: the file is damaged") from error
    return pd.DataFrame(series)


def time_frame(report: Report, tables: Sequence[TimeColumns]) -> pd.DataFrame:
    """The table of time of a report, see `Report.time`. Raises UsageError if it was not kept."""
    if not tables and report.devices:
        raise UsageError(
            "this report does not hold the table of time, which is not saved with it",
            hint="analyze the trace again: nsysdiag.analyze(TRACE).time",
        )
    parts = [_time_of(each, report) for each in tables or [TimeColumns.empty()]]
    columns = {name: [part[name] for part in parts] for name in parts[0]}
    return pd.DataFrame({name: _stacked(each) for name, each in columns.items()})


def _stacked(parts: list[pd.Series[Any]]) -> Any:
    """One column below the other; of names with the names of all."""
    if isinstance(parts[0].dtype, pd.CategoricalDtype):
        return union_categoricals(parts)
    return pd.concat(parts, ignore_index=True)


def _time_of(table: TimeColumns, report: Report) -> pd.DataFrame:
    columns: dict[str, Any] = {
        "device": _categories([NameColumn(np.zeros(len(table.start), dtype=np.int64), [table.device])]),
        "start_ns": table.start,
        "end_ns": table.end,
        "ns": table.end - table.start,
        "phase": _or_none(table.phase),
        "phase_name": _categories([NameColumn(table.phase, [each.name for each in report.phases])]),
        "judged": table.judged,
        "step": _or_none(table.step),
        "thread": _or_none(table.thread),
        **{name: _categories([table.named[name]]) for name in NAMED},
    }
    return pd.DataFrame(columns)


def _or_none(values: npt.NDArray[Any]) -> Any:
    return pd.arrays.IntegerArray(np.maximum(values, 0).astype(np.int64), values < 0)


def _categories(parts: Sequence[NameColumn], dtype: Any = object) -> Any:
    """Names as categories of which each occurs once; every part numbers them its own way."""
    known = list(dict.fromkeys(name for part in parts for name in part.names))
    place = {name: at for at, name in enumerate(known)}
    # -1, for what is unknown, takes the last one.
    codes = [np.array([*(place[name] for name in part.names), -1], dtype=np.int64)[part.code] for part in parts]
    return pd.Categorical.from_codes(_joined(codes), pd.Index(known, dtype=dtype))


def all_gaps(report: Report) -> pd.DataFrame:
    """Every gap of every device, short ones included, by device, then time: a row a gap.

    Columns: `device` and `cause`, the dominant one, as categories; `start_ns`, `end_ns` and `length_ns` as int64.

    More categories: `nvtx`, the ranges open on the launching thread (empty for none), `previous_op` and `next_op`, the
    operations on both sides. These three have the names of the table `signatures`: counters read `#`. `nvtx` is missing
    if the launching thread is unknown or no ranges were captured. All three are missing in reports of older versions,
    and if the names would take too much of the report.

    Raises InputError if a saved report is damaged.
    """
    parts = [unpack(device.gaps_packed) for device in report.devices]
    places = [unpack_places(device.gaps_packed) for device in report.devices]
    start, length = (_joined([part[at] for part in parts]) for at in (0, 1))
    counts = [len(starts) for starts, _lengths, _causes in parts]
    devices = [
        NameColumn(np.zeros(n, dtype=np.int64), [each.key]) for each, n in zip(report.devices, counts, strict=True)
    ]
    causes = [NameColumn(part[2], each.gaps_packed.cause_ids) for each, part in zip(report.devices, parts, strict=True)]
    captured = not any(kind.id == "nvtx" and not kind.available for kind in report.trace.capabilities)
    return pd.DataFrame(
        {
            "device": _categories(devices, "string"),
            "start_ns": start,
            "end_ns": start + length,
            "length_ns": length,
            "cause": _categories(causes, "string"),
            "nvtx": _categories([each.nvtx if captured else unknown(len(each.nvtx.code)) for each in places], "string"),
            "previous_op": _categories([each.previous_op for each in places], "string"),
            "next_op": _categories([each.next_op for each in places], "string"),
        }
    )


def _joined(parts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])
