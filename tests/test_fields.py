"""A field that is added to a record is found by all that shows or checks it, with nothing but its type to go by."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest

from nsysdiag.ci.measuring import _numbers
from nsysdiag.document.columns import RecordColumn, RecordTable, columns, of_devices
from nsysdiag.fields import (
    NO_BUDGET,
    ZERO_IF_NONE,
    Bytes,
    Count,
    KernelName,
    Leaf,
    Moment,
    NumberUnit,
    OwnText,
    RangeName,
    Share,
    TextKind,
    ThreadName,
    TotalNs,
    leaves,
    markers_of,
)
from nsysdiag.formats.frames import _frame
from nsysdiag.formats.tables import csv_of
from nsysdiag.record import Record, json_schema, rewritten
from tests.output import samples


class Before(Record, frozen=True):
    """Before a field is added."""

    kernel: KernelName
    total_ns: TotalNs


class Added(Before, frozen=True):
    """With two fields more."""

    thread: ThreadName | None = None
    share: Share | None = None


class Device(Record, frozen=True):
    """A device that has one such record, and a table of them."""

    key: OwnText
    added: Added
    rows: list[Added]


ROWS = [Added(kernel="gemm", total_ns=5, thread="main", share=0.25), Added(kernel="relu", total_ns=3)]
DEVICE = Device(key="gpu0", added=ROWS[0], rows=ROWS)


def test_budgets_find_it() -> None:
    assert [(each.name, each.unit) for each in _numbers(Device)] == [("added.total_ns", "ns"), ("added.share", "share")]


def test_the_schema_has_it() -> None:
    share = json.loads(json_schema(Device))["$defs"]["Added"]["properties"]["share"]
    assert {"type": "number", "x-unit": "share"} in share["anyOf"]


def test_redaction_sees_it() -> None:
    seen: list[tuple[TextKind, Any]] = []

    def visit(text: TextKind, _record: Record, value: Any) -> Any:
        seen.append((text, value))
        return value

    rewritten(DEVICE, visit)
    assert (TextKind.THREAD, "main") in seen
    assert (TextKind.KERNEL, "relu") in seen


def test_its_table_shows_it() -> None:
    table = RecordTable[Device, Added]("added", columns(Added), lambda device: device.rows)
    assert [column.name for column in columns(Before)] == table.header[:2]
    assert csv_of(table.header, table.cells(DEVICE)) == (
        b"kernel,total_ns,thread,share\r\ngemm,5,main,0.25\r\nrelu,3,,\r\n"
    )
    frame = _frame(table, DEVICE)  # type: ignore[arg-type]
    assert dict(frame.dtypes.astype(str)) == {
        "kernel": "string",
        "total_ns": "int64",
        "thread": "string",
        "share": "float64",
    }


class Parts(Record, frozen=True):
    """What a column can be about."""

    plain: Count
    maybe: Bytes | None
    flag: bool
    at: Annotated[Moment, NO_BUDGET]
    inner: Annotated[Added | None, ZERO_IF_NONE]
    listed: list[RangeName]
    either: Count | OwnText


def test_columns_by_name_and_path() -> None:
    shown = columns(Parts, "plain maybe flag begin=at of_thread=inner.thread took_ns=inner.total_ns part=inner.share")
    assert [(column.name, column.kind) for column in shown] == [
        ("plain", "integer"),
        ("maybe", "integer or none"),
        ("flag", "truth"),
        ("begin", "integer"),
        ("of_thread", "text"),
        ("took_ns", "integer or none"),
        ("part", "number"),
    ]
    full = Parts(plain=1, maybe=2, flag=True, at=3, inner=ROWS[0], listed=[], either=4)
    empty = Parts(plain=1, maybe=None, flag=False, at=3, inner=None, listed=[], either="4")
    assert [column.cell(full) for column in shown] == [1, 2, True, 3, "main", 5, 0.25]
    assert [column.cell(empty) for column in shown] == [1, None, False, 3, None, None, None]


@pytest.mark.parametrize("name", ["listed", "either", "inner"])
def test_what_is_no_plain_value_needs_a_function(name: str) -> None:
    with pytest.raises(TypeError, match=rf"Parts\.{name} is not a plain value"):
        columns(Parts, name)


def test_a_column_of_a_field_that_is_gone() -> None:
    with pytest.raises(KeyError, match="missing"):
        columns(Parts, "plain missing")


def test_a_table_of_devices_begins_with_the_device() -> None:
    table = of_devices(
        "sizes", (RecordColumn[int]("size", "integer", lambda size: size),), lambda device: [1, device.gap_count]
    )
    report = samples.one_device()
    key, gaps = report.devices[0].key, report.devices[0].gap_count
    assert table.header == ["device", "size"]
    assert list(table.cells(report)) == [[key, 1], [key, gaps]]


def test_leaves_carry_all_markers_around_them() -> None:
    deep = list(leaves(Annotated[dict[KernelName, list[Share | None]], NO_BUDGET]))
    assert [(leaf.kind, leaf.text, leaf.unit) for leaf in deep] == [
        (str, TextKind.KERNEL, None),
        (float, None, NumberUnit.SHARE),
        (type(None), None, None),
    ]
    assert all(NO_BUDGET in leaf.markers for leaf in deep)
    assert list(leaves(dict[KernelName, int], deep=False)) == []
    assert list(leaves(int)) == [Leaf(int, ())]


def test_markers_of_a_field_as_a_whole() -> None:
    assert markers_of(Parts, "inner") == (ZERO_IF_NONE,)
    assert markers_of(Parts, "listed") == ()
