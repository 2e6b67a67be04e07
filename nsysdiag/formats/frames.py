"""The report's tables as pandas data frames, for a notebook: typed columns, raw values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nsysdiag.document.columns import Table
from nsysdiag.document.packed import unpack
from nsysdiag.errors import InputError
from nsysdiag.formats.rows import BY_NAME

if TYPE_CHECKING:
    import numpy.typing as npt

    from nsysdiag.report import Report

_DTYPES = {
    "text": "string",
    "integer": "int64",
    "integer or none": "Int64",
    "number": "float64",
    "truth": "boolean",
}


def frames(report: Report) -> dict[str, pd.DataFrame]:
    """One frame for each table of the CSV output, with the same names, columns and order of rows.

    Times are int64 nanoseconds, shares float64 from 0 to 1; a missing number is NaN, any other missing value `pd.NA`.
    Text is as the trace has it: it may hold control characters. Raises InputError where a saved report is damaged.
    """
    return {name: _frame(table, report) for name, table in BY_NAME.items()}


def _frame(table: Table[Report, Any], report: Report) -> pd.DataFrame:
    rows = list(table.rows(report))
    series: dict[str, pd.Series] = {}
    for column in table.columns:
        cells = [column.cell(row) for row in rows]
        try:
            series[column.name] = pd.Series(cells, dtype=_DTYPES[column.kind])
        except OverflowError as error:
            raise InputError(f"a {column.name} of this report is out of range: the file is damaged") from error
    return pd.DataFrame(series)


def all_gaps(report: Report) -> pd.DataFrame:
    """Every gap of every device, short ones included, by device, then time: a row a gap.

    Columns: `device` and `cause`, the dominant one, as categories; `start_ns`, `end_ns` and `length_ns` as int64.
    Raises InputError where a saved report is damaged.
    """
    parts = [unpack(device.gaps_packed) for device in report.devices]
    causes = list(dict.fromkeys(cause for device in report.devices for cause in device.gaps_packed.cause_ids))
    keys = list(dict.fromkeys(device.key for device in report.devices))
    codes = [
        _codes(device.gaps_packed.cause_ids, causes)[part[2]]
        for device, part in zip(report.devices, parts, strict=True)
    ]
    owners = np.repeat(
        _codes([device.key for device in report.devices], keys), [len(starts) for starts, _lengths, _causes in parts]
    )
    start, length = (_joined([part[at] for part in parts]) for at in (0, 1))
    return pd.DataFrame(
        {
            "device": pd.Categorical.from_codes(owners, pd.Index(keys, dtype="string")),
            "start_ns": start,
            "end_ns": start + length,
            "length_ns": length,
            "cause": pd.Categorical.from_codes(_joined(codes), pd.Index(causes, dtype="string")),
        }
    )


def _codes(names: list[str], known: list[str]) -> npt.NDArray[np.int64]:
    """The place of each name among the known ones."""
    places = {name: place for place, name in enumerate(known)}
    return np.array([places[name] for name in names], dtype=np.int64)


def _joined(parts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])
