"""Sections of the page that stand for several devices, for root causes, and for NVTX ranges."""

from __future__ import annotations

import msgspec
import pytest

from nsysdiag.document.view import Causes, Context
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.launches.facts import Launch
from nsysdiag.report import DeviceReport
from tests.output.page import Element, parse
from tests.output.range_samples import range_tree
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


def test_time_by_ranges() -> None:
    """The paths with most time in the order of the tree, the window first."""
    section = by_id(rendered(device(ranges=range_tree())), "nvtx")
    assert "8 paths of ranges hold 82.0% of the window, one 70.0 ms" in section.all("summary")[0].whole_text()
    rows = [cells(row) for row in section.all("table")[0].all("tbody")[0].all("tr")]
    assert [row[:7] for row in rows] == [
        ["Window", "100 ms", "100.0%", "18.0 ms", "60.0 ms", "–", "–"],
        ["train", "70.0 ms", "70.0%", "16.0 ms", "50.0 ms", "51.0 ms", "10"],
        ["· forward", "54.0 ms", "54.0%", "54.0 ms", "42.0 ms", "43.0 ms", "20"],
        ["load", "12.0 ms", "12.0%", "12.0 ms", "0 ns", "–", "–"],
    ]
    assert rows[3][7].startswith("Waiting for a lock, Waiting in a synchronisation")


def test_the_icicle_of_ranges() -> None:
    """Each cell begins where its siblings before it end, below the one that it is inside of."""
    drawn = by_id(rendered(device(ranges=range_tree())), "nvtx").all("svg")
    (icicle,) = (each for each in drawn if each.attributes.get("class") == "icicle")
    cells = [each.all("rect")[0].attributes for each in icicle.all("g")]
    assert [(each["x"], each["y"], each["width"]) for each in cells] == [
        ("0.000%", "0", "100.000%"),
        ("0.000%", "26", "70.000%"),
        ("0.000%", "52", "54.000%"),
        ("70.000%", "26", "12.000%"),
    ]
    assert [each.all("title")[0].text for each in icicle.all("g")][2] == "train › forward: 54.0 ms, 54.0%; idle 12.0 ms"
    assert [len(each.all("rect")) for each in icicle.all("g")] == [3, 3, 3, 2]


def test_a_damaged_tree_is_drawn_as_far_as_it_is_one() -> None:
    tree = range_tree()
    orphan = msgspec.structs.replace(tree, rows=[tree.rows[0], tree.rows[2]])
    assert "forward" in by_id(rendered(device(ranges=orphan)), "nvtx").whole_text()


def test_without_ranges_there_is_no_table_of_them() -> None:
    ids = [section.attributes["id"] for section in rendered(device()).all("section")]
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
