"""Sections of the page that stand for several devices, for root causes, and for NVTX ranges."""

from __future__ import annotations

import msgspec
import pytest

from nsysdiag.document.context import Context
from nsysdiag.document.view import Causes
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.report import DeviceReport, Launch
from tests.output.page import Element, parse
from tests.output.samples import MS, device, report


def rendered(*devices: DeviceReport) -> Element:
    return parse(FORMATS["html"].render(report(list(devices), []), RenderOptions()))


def by_id(root: Element, name: str) -> Element:
    return next(element for element in root.walk() if element.attributes.get("id") == name)


def cells(row: Element) -> list[str]:
    return [" ".join(cell.whole_text().split()) for cell in row.all("th", "td")]


def test_both_ledgers_lead_to_each_other() -> None:
    """10 ms of a lock were the work of another thread: the lock row leads to the root's rows, and they lead back."""
    made = device(ledger={"lock_wait": 30 * MS, "sync": 10 * MS}, root_ledger={"lock_wait": 20 * MS, "sync": 20 * MS})
    root = rendered(made)
    lock = by_id(root, "ledger-cause-1")
    assert cells(lock.children[0])[:3] == ["Waiting for a lock", "30.0 ms", "20.0 ms"]
    (to_root,) = lock.children[0].all("a")
    moved = by_id(root, to_root.attributes["href"][1:])
    assert cells(moved.children[0])[0] == "Waiting for a lock"
    assert moved.children[0].all("a")[0].attributes["href"] == "#ledger-cause-1"


@pytest.mark.slow
def test_idle_time_by_ranges() -> None:
    """
    train > forward  30 ms of 3 gaps waiting for the device, 10 ms of 2 gaps waiting for I/O
    no range          5 ms of 1 gap
    """
    first = device().signatures[0]
    rows = [
        msgspec.structs.replace(first, id="a", nvtx=["train", "forward"], cause="io_wait", count=2, total_ns=10 * MS),
        msgspec.structs.replace(first, id="b", nvtx=["train", "forward"], cause="sync", count=3, total_ns=30 * MS),
        msgspec.structs.replace(first, id="c", nvtx=[], cause="sync", count=1, total_ns=5 * MS),
    ]
    table = by_id(rendered(device(signatures=rows)), "nvtx").all("table")[0]
    inside, outside = (cells(body.children[0]) for body in table.all("tbody"))
    assert [*inside[:3], inside[4]] == ["40.0 ms", "100.0%", "5", "train › forward"]
    assert inside[3].startswith("Waiting in a synchronisation, Waiting for I/O")
    assert [*outside[:3], outside[4]] == ["5.00 ms", "12.5%", "1", "outside all ranges"]


def test_without_ranges_there_is_no_table_of_them() -> None:
    rows = [msgspec.structs.replace(row, nvtx=[]) for row in device().signatures]
    ids = [section.attributes["id"] for section in rendered(device(signatures=rows)).all("section")]
    assert "signatures" in ids
    assert "nvtx" not in ids


def test_devices_share_the_room_for_large_rows() -> None:
    """60 gaps on one page: 60 of one device, 30 of each of two, and never fewer than 10."""
    shown = {}
    for count in (1, 2, 8):
        made = report([device(number) for number in range(count)], [])
        shown[count] = Context(made, Causes(made.causes)).shared_rows(60)
    assert shown == {1: 60, 2: 30, 8: 10}


NOTHING = Launch(
    launched_ops=0,
    unlaunched_ops=0,
    found_device_idle=0,
    median_queue_delay_ns=None,
    median_interval_ns=None,
    median_kernel_ns=None,
    api=[],
)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["launches", "api"])
def test_a_section_without_anything_to_say_is_left_out(name: str) -> None:
    def sections(made: DeviceReport) -> set[str]:
        return {section.attributes["id"] for section in rendered(made).all("section")}

    assert name in sections(device())
    assert name not in sections(device(launch=NOTHING))


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "12.0 ms outside it"),
        ({"outside_ns": 0}, "from 0.090000 s"),
        ({"outside_ns": 0, "parts": [(90 * MS, 100 * MS), (110 * MS, 190 * MS)]}, "in 2 parts"),
    ],
)
def test_the_overview_says_where_the_window_is(changes: dict[str, object], told: str) -> None:
    window = msgspec.structs.replace(device().window, **changes)
    assert told in " ".join(by_id(rendered(device(window=window)), "overview").whole_text().split())
