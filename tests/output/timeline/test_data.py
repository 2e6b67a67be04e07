"""What the page carries for its timeline, read back from the page, against the report."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import msgspec
import numpy as np
import pytest

from nsysdiag.arrays.groups import from_planes
from nsysdiag.document.svg import lane_paths
from nsysdiag.document.view import Causes
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.html.assets import Blob, unpacked
from nsysdiag.formats.html.timeline import _gaps_sentence, still_lanes
from nsysdiag.formats.html.timeline_data import FEWEST_GAPS, MOST_GAPS, DrawnGaps, drawn_gaps
from nsysdiag.messages import InputError
from nsysdiag.report import Hop, Root, Thread
from nsysdiag.saved import unpack
from tests.output.carrying import from_carried
from tests.output.page import Element, parse
from tests.output.samples import CAUSES, MS, SAMPLES, device, finding, gap, pack, report, squeeze
from tests.output.timeline.samples import packed, served, timeline


def page(made: msgspec.Struct) -> Element:
    return parse(FORMATS["html"].render(made, RenderOptions()))


def data_of(root: Element) -> dict[str, Any]:
    (script,) = [each for each in root.all("script") if each.attributes.get("id") == "timeline-data"]
    value: dict[str, Any] = json.loads(script.text)
    return value


class Block:
    def __init__(self, value: dict[str, Any]) -> None:
        self._bytes = zlib.decompress(from_carried(value["bytes"]))

    def at(self, place: list[int]) -> bytes:
        return self._bytes[place[0] : place[0] + place[1]]

    def numbers(self, place: list[int], count: int) -> list[int]:
        found: list[int] = from_planes(self.at(place), count).tolist()
        return found

    def names(self, given: dict[str, Any]) -> list[str]:
        """Every name by number; like the script, but slowly."""
        forms = json.loads(self.at(given["forms"]))
        columns = []
        for place, count in given["columns"]:
            steps = [-(each + 1) // 2 if each % 2 else each // 2 for each in self.numbers(place, count)]
            columns.append(iter(np.cumsum(steps).tolist()))
        found: list[str] = []
        for form in (forms[at] for at in self.numbers(given["used"], given["count"])):
            if isinstance(form, str):
                found.append(form)
            else:
                first, *pieces = form[0].split("\n")
                holes = (str(next(columns[at])) for at in form[1:])
                found.append(first + "".join(number + piece for number, piece in zip(holes, pieces, strict=True)))
        return found

    def gaps(self, value: dict[str, Any], device: dict[str, Any]) -> tuple[list[int], list[int]]:
        """Starts, from the origin, and lengths of the gaps of a device, from wherever the script takes them."""
        given = device["gaps"]
        if "starts" in given:
            starts = np.cumsum(self.numbers(given["starts"], given["count"])).tolist()
            return starts, self.numbers(given["lengths"], given["count"])
        busy = sorted(row for lane in device["lanes"] if lane["kind"] == "stream" for row in self.rows(device, lane))
        found, reach = [], busy[0][1]
        for start, end in busy:
            if start > reach:
                found.append((reach, start - reach))
            reach = max(reach, end)
        assert len(found) == given["count"]
        return [start for start, _ in found], [length for _, length in found]

    def rows(self, area: dict[str, Any], lane: dict[str, Any]) -> list[tuple[int, int]]:
        """Start and end of each slice of a lane of a device or a thread, from the origin."""
        lengths = self.numbers(lane["lengths"], lane["count"])
        found, now = [], area["start"]
        for step, length in zip(self.numbers(lane["starts"], lane["count"]), lengths, strict=True):
            now += step
            found.append((now, now + length))
            now += length if lane["apart"] else 0
        return found


class TestGaps:
    @pytest.mark.slow
    def test_all_gaps_of_the_report_are_on_the_page(self) -> None:
        made = SAMPLES["one_device"]()
        value = data_of(page(made))
        block, drawn = Block(value), value["devices"][0]["gaps"]
        relative, lengths = block.gaps(value, value["devices"][0])
        starts = np.array(relative) + int(value["origin"])
        causes = [value["causes"][at]["title"] for at in block.numbers(drawn["causes"], drawn["count"])]
        start, length, cause = unpack(made.devices[0].gaps_packed)
        known = Causes(made.causes)
        expected = [known.title(made.devices[0].gaps_packed.cause_ids[at]) for at in cause.tolist()]
        assert (starts.tolist(), lengths, causes) == (start.tolist(), length.tolist(), expected)
        assert drawn["total"] == drawn["count"] == 1234

    @pytest.mark.slow
    def test_of_too_many_the_longest_and_those_of_exact_windows(self) -> None:
        count = MOST_GAPS + 5_000
        chance = np.random.default_rng(1)
        lengths = chance.integers(1, 10_000, count).tolist()
        gaps = [(20_000 * at, length, at % 3) for at, length in enumerate(lengths)]
        exact = [(400_000, 800_000), (9_000_000, 9_000_001)]
        drawn = drawn_gaps(device(gap_count=count, gaps_packed=pack(gaps, ["a", "b", "c"])), exact, 1)
        expected = [
            gap
            for gap in gaps
            if gap[1] >= drawn.threshold or any(gap[0] < end and gap[0] + gap[1] > start for start, end in exact)
        ]
        assert list(zip(drawn.start, drawn.length, drawn.cause, strict=True)) == expected
        assert drawn.longest == sum(length >= drawn.threshold for length in lengths) <= MOST_GAPS
        assert sum(length >= drawn.threshold - 1 for length in lengths) > MOST_GAPS
        assert (drawn.total, drawn.all) == (count, False)

    def test_many_devices_share_the_room(self) -> None:
        gaps = [(20_000 * at, 1 + at, 0) for at in range(3_000)]
        made = device(gap_count=3_000, gaps_packed=pack(gaps, ["a"]))
        assert drawn_gaps(made, [], 10).count == MOST_GAPS // 10
        assert drawn_gaps(made, [], 1_000).count == FEWEST_GAPS

    def test_gaps_all_as_long_are_all_there_or_none_is(self) -> None:
        gaps = [(10 * at, 5, 0) for at in range(MOST_GAPS + 1)]
        made = device(gap_count=len(gaps), gaps_packed=pack(gaps, ["a"]))
        assert (drawn_gaps(made, [], 1).count, drawn_gaps(made, [], 1).threshold) == (0, 6)


class TestPage:
    @pytest.mark.slow
    def test_lanes_come_with_names_fit_to_be_shown(self) -> None:
        value = data_of(page(SAMPLES["hostile"]()))
        shown = Block(value).names(value["names"])
        assert "\\u202eevil\\u202c" in shown
        assert all(name.isprintable() for name in shown)
        assert value["threads"]
        assert all(thread["label"].isprintable() for thread in value["threads"])

    @pytest.mark.slow
    def test_a_command_is_quoted_for_a_shell(self) -> None:
        made = msgspec.structs.replace(SAMPLES["one_device"](), trace=report([], [], file="my run;rm.sqlite").trace)
        assert data_of(page(made))["command"] == "nsysdiag analyze 'my run;rm.sqlite'"

    @pytest.mark.slow
    def test_moments_may_be_too_large_for_a_script(self) -> None:
        start = 1_700_000_000_000_000_000
        packed_gaps = pack([(start + 7, 100, 0)], ["sync"])
        made = report([device(gap_count=1, gaps_packed=packed_gaps)], [])
        made = msgspec.structs.replace(made, timeline={"gpu0": timeline(start, start + 100 * MS)})
        value = data_of(page(made))
        assert value["origin"] == str(start)
        assert (value["devices"][0]["start"], value["devices"][0]["end"]) == (0, 100 * MS)
        assert Block(value).numbers(value["devices"][0]["gaps"]["starts"], 1) == [7]

    @pytest.mark.slow
    def test_a_drawing_of_each_device_is_there_without_scripts(self) -> None:
        section = next(
            each for each in page(SAMPLES["several_devices"]()).all("section") if each.attributes["id"] == "timeline"
        )
        figures = section.all("figure")
        assert len(figures) == 4
        labels = [svg.attributes["aria-label"] for svg in figures[0].all("svg")]
        assert labels == ["Compute over time", "Copies over time", "Idle over time"]
        stage = next(div for div in section.all("div") if div.attributes.get("class") == "stage")
        assert "hidden" in stage.attributes

    @pytest.mark.slow
    def test_gaps_and_findings_lead_to_the_timeline(self) -> None:
        root = page(SAMPLES["one_device"]())
        keys = [
            button.attributes.get("data-gap")
            for button in root.all("button")
            if button.attributes.get("class") == "show"
        ]
        bodies = [body.attributes["data-gap"] for body in root.all("tbody") if "data-gap" in body.attributes]
        assert bodies == [f"0.{100 * MS + number * 2 * MS}" for number in range(12)]
        rows = [f"0.{row.representative_start_ns}" for row in SAMPLES["one_device"]().devices[0].signatures]
        assert keys[3:] == [*rows, *bodies]
        assert len(keys) == 3 + 12 + len(rows)  # the first ones are those of findings

    def test_who_woke_whom_goes_along_the_chain(self) -> None:
        """worker 4250 ended the wait of python 4242 at 100.3 ms; who woke the worker has no lane, and so no arrow."""
        worker, outside = Thread(pid=4200, tid=4250, name="worker"), Thread(pid=9, tid=9, name=None)
        hops = [
            Hop(thread=worker, how="woke it", did="read", confidence=0.9, at_ns=100_300_000),
            Hop(thread=outside, how="ended", did="slept", confidence=0.5, at_ns=100_200_000),
        ]
        first = msgspec.structs.replace(gap(), root=Root(chain=[], confidence=0.9, hops=hops))
        made = msgspec.structs.replace(
            report([device(gaps=[first])], []), timeline={"gpu0": timeline(90 * MS, 190 * MS)}
        )
        assert data_of(page(made))["devices"][0]["wakes"] == [[10 * MS, 1, 0, 10_300_000]]

    @pytest.mark.slow
    def test_devices_share_threads_and_names(self) -> None:
        """The second device ends its gap with the work of the same thread: one set of lanes, one number."""
        worker = Thread(pid=4200, tid=4250, name="worker")
        hop = Hop(thread=worker, how="woke it", did="read", confidence=0.9, at_ns=100_300_000)
        woken = msgspec.structs.replace(gap(), root=Root(chain=[], confidence=0.9, hops=[hop]))
        made = report([device(), device(1, gaps=[woken])], [])
        lines = {"gpu0": timeline(90 * MS, 190 * MS), "gpu1": served(90 * MS, 190 * MS)}
        value = data_of(page(msgspec.structs.replace(made, timeline=lines)))
        assert [len(thread["lanes"]) for thread in value["threads"]] == [2, 1]
        assert [[thread["number"] for thread in each["threads"]] for each in value["devices"]] == [[0, 1], [0, 1]]
        assert value["devices"][1]["wakes"] == [[10 * MS, 1, 0, 10_300_000]]
        assert value["names"]["count"] == 5

    @pytest.mark.slow
    def test_threads_of_a_device_that_is_not_there_have_no_lanes(self) -> None:
        made = msgspec.structs.replace(report([device()], []), timeline={"gpu0": served(90 * MS, 190 * MS)})
        lines = msgspec.structs.replace(served(90 * MS, 190 * MS).threads[0], lanes_of="gpu9")
        away = msgspec.structs.replace(served(90 * MS, 190 * MS), threads=[lines])
        value = data_of(page(msgspec.structs.replace(made, timeline={"gpu0": away})))
        assert value["threads"] == [None]

    def test_threads_may_last_longer_than_their_device(self) -> None:
        levels = msgspec.structs.replace(
            timeline(90 * MS, 190 * MS), host_span=(80 * MS, 290 * MS), exact_host=[(80 * MS, 185 * MS)]
        )
        root = page(msgspec.structs.replace(report([device()], []), timeline={"gpu0": levels}))
        value = data_of(root)
        assert value["origin"] == str(80 * MS)
        assert [(each["start"], each["end"]) for each in value["threads"]] == [(0, 210 * MS)] * 2
        (calls,) = (lane for lane in value["threads"][0]["lanes"] if lane["kind"] == "api")
        assert Block(value).rows(value["threads"][0], calls)[0] == (0, 100_000)
        assert "Threads are exact in 1 window around the gaps that matter most, 50.0% of the time" in root.whole_text()

    def test_of_too_many_gaps_it_says_which_are_exact(self) -> None:
        nothing = np.empty(0, dtype=np.int64)
        some = DrawnGaps(nothing, nothing, nothing, [], total=12_000, threshold=4_000, longest=10_000)
        assert _gaps_sentence(some).startswith("Of 12,000 gaps the 10,000 longest, all of 4,000 ns or more, are exact")

    def test_without_a_timeline_there_is_none(self) -> None:
        root = page(report([device()], [finding()]))
        assert not [section for section in root.all("section") if section.attributes["id"] == "timeline"]
        assert not [button for button in root.all("button") if button.attributes.get("class") == "show"]
        assert not [script for script in root.all("script") if script.attributes.get("id") == "timeline-script"]

    def test_what_was_thinned_is_said(self) -> None:
        thin = msgspec.structs.replace(
            timeline(90 * MS, 190 * MS), exact_operations=[(100 * MS, 102 * MS)], exact_host=[], threads_left_out=3
        )
        made = msgspec.structs.replace(report([device()], []), timeline={"gpu0": thin})
        shown = page(made).whole_text()
        assert "Every gap is exact at every level." in shown
        assert "Operations are exact in 1 window around the gaps that matter most, 2.0% of the time" in shown
        assert "Threads are exact in 0 windows" in shown
        assert "3 more launching threads not drawn." in shown


class TestStill:
    def test_steps_follow_the_shares(self) -> None:
        levels = timeline(0, 100)
        half = levels.levels[-1]
        column = bytes([0] * 256 + [255] * 128 + [51] * 128)
        levels = msgspec.structs.replace(levels, levels=[msgspec.structs.replace(half, compute=packed(column))])
        (compute, _copies, idle) = still_lanes(levels, Causes(CAUSES), 1)
        assert [path.d for path in lane_paths(compute)] == ["M0 255V255H256V0H384V204H512V255z"]
        assert [(path.color, path.d) for path in lane_paths(idle)] == [("#d1495b", "M0 255V191H512V255z")]

    def test_many_devices_have_coarser_ones(self) -> None:
        assert {lane.buckets for lane in still_lanes(timeline(0, 100), Causes(CAUSES), 9)} == {256}


class TestDamage:
    def test_a_column_comes_back(self) -> None:
        blob = Blob()
        places = [blob.add(b"one"), blob.add(b""), blob.add_packed(packed(b"three"), 5)]
        assert places == [(0, 3), (3, 0), (3, 5)]
        assert zlib.decompress(from_carried(blob.text())) == b"onethree"

    @pytest.mark.parametrize("text", ["!", "AAAA", packed(b"cut short")[:8], base64.b64encode(b"x").decode()])
    def test_what_cannot_be_unpacked_is_the_inputs_fault(self, text: str) -> None:
        with pytest.raises(InputError, match="damaged"):
            unpacked(text, 100)

    def test_of_nothing_comes_nothing(self) -> None:
        assert unpacked("", 0) == b""

    def test_a_level_that_is_no_base64_is_too(self) -> None:
        levels = timeline(0, 100)
        broken = msgspec.structs.replace(levels.levels[-1], idle="!")
        with pytest.raises(InputError, match="cannot be read"):
            still_lanes(msgspec.structs.replace(levels, levels=[broken]), Causes(CAUSES), 1)

    def test_a_level_of_another_length_is_too(self) -> None:
        levels = timeline(0, 100)
        short = msgspec.structs.replace(levels.levels[-1], idle=packed(b"x"))
        with pytest.raises(InputError, match="contradicts"):
            still_lanes(msgspec.structs.replace(levels, levels=[short]), Causes(CAUSES), 1)

    @pytest.mark.parametrize("changes", [{"count": 2}, {"cause_ids": []}, {"lengths": squeeze(np.array([5]))}])
    def test_gaps_that_contradict_each_other(self, changes: dict[str, object]) -> None:
        whole = pack([(0, 10, 0), (20, 5, 0), (40, 7, 0)], ["sync"])
        assert [column.tolist() for column in unpack(whole)] == [[0, 20, 40], [10, 5, 7], [0, 0, 0]]
        with pytest.raises(InputError, match="damaged"):
            unpack(msgspec.structs.replace(whole, **changes))

    def test_gaps_that_are_no_base64(self) -> None:
        whole = pack([(0, 10, 0)], ["sync"])
        with pytest.raises(InputError, match="cannot be read"):
            unpack(msgspec.structs.replace(whole, starts="!"))
