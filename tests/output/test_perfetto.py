"""Trace events: valid by their schema, exact to the nanosecond, every gap or a word about those left out.

```
  pid 10 gpu0   verdict, iterations, findings, gaps, counters      pid 20 gpu1   the same
```
"""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from jsonschema import Draft202012Validator

import nsysdiag
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.viewers import MOST_BUCKETS, gap_events, micros
from nsysdiag.messages import InputError
from nsysdiag.report import Report
from nsysdiag.saved import unpack
from nsysdiag.timeline.facts import TimelineLevel, TimelineLevels
from tests.levels import some
from tests.output.rendered import EVERY_SAMPLE, rendered
from tests.output.samples import HOSTILE, MS, SAMPLES, US, device, finding, pack, report, squeeze
from tests.output.trace_event_schema import SCHEMA

every_sample = pytest.mark.parametrize("sample", EVERY_SAMPLE)
Event = dict[str, Any]


def document(made: Report) -> dict[str, Any]:
    """The file as a reader sees it, its numbers with all their digits."""
    data = FORMATS["perfetto"].render(made, RenderOptions())
    found: dict[str, Any] = json.loads(data, parse_float=Decimal)
    return found


@cache
def events(sample: str) -> list[Event]:
    found: list[Event] = document(SAMPLES[sample]())["traceEvents"]
    return found


def of(category: str, found: list[Event]) -> list[Event]:
    return [event for event in found if event.get("cat") == category]


def ns(micros: Decimal) -> int:
    return int(micros * 1000)


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("sample", some(list(SAMPLES), 3))
def test_schema(sample: str) -> None:
    data = rendered("perfetto", sample)
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator(SCHEMA).validate(json.loads(data))


@pytest.mark.parametrize(
    "event",
    [
        {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "cat": "gap", "args": {}},
        {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": -1, "cat": "gap", "args": {}},
        {"ph": "i", "name": "a", "pid": 1, "tid": 1, "ts": 1, "s": "x", "cat": "gap", "args": {}},
        {"ph": "C", "name": "a", "pid": 1, "ts": 1, "args": {"idle": "all"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"sort_index": 1}},
        {"ph": "Q", "name": "a", "pid": 1},
    ],
)
def test_the_schema_refuses_what_is_no_event(event: Event) -> None:
    assert not Draft202012Validator(SCHEMA).is_valid({"traceEvents": [event]})


@every_sample
def test_each_track_is_sorted_and_named(sample: str) -> None:
    """A track has a number of its own in the whole file: some readers know no other."""
    tracks: dict[tuple[int, int], list[Decimal]] = defaultdict(list)
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events(sample) if e["name"] == "thread_name"}
    for event in events(sample):
        if event["ph"] in "Xi":
            tracks[event["pid"], event["tid"]].append(event["ts"])
    assert all(times == sorted(times) for times in tracks.values())
    assert tracks.keys() <= named.keys()
    numbers = [thread for _process, thread in named]
    assert len(numbers) == len(set(numbers))
    assert not {process for process, _thread in named} & set(numbers)


def test_every_gap_of_the_demo(demo: nsysdiag.Report) -> None:
    """The spans are the gaps, to the nanosecond, and add up to the idle time."""
    found = document(demo)
    assert found["otherData"]["gaps_left_out"] == 0
    for place, each in enumerate(demo.devices):
        gaps = [event for event in of("gap", found["traceEvents"]) if event["pid"] == 10 * (place + 1)]
        assert sum(ns(event["dur"]) for event in gaps) == each.idle_ns
        starts, lengths, _causes = unpack(each.gaps_packed)
        assert [(ns(event["ts"]), ns(event["dur"])) for event in gaps] == list(
            zip(starts.tolist(), lengths.tolist(), strict=True)
        )
        assert sum("slices" in event["args"] for event in gaps) == len(each.gaps)


def test_gaps_need_no_order_in_the_report() -> None:
    mixed = device(gaps=[], gaps_packed=pack([(30, 4, 1), (10, 5, 0), (20, 1, 0)], ["sync", "io_wait"]))
    found = of("gap", document(report([mixed], []))["traceEvents"])
    assert [(ns(event["ts"]), ns(event["dur"]), event["args"]["cause"]) for event in found] == [
        (10, 5, "sync"),
        (20, 1, "sync"),
        (30, 4, "io_wait"),
    ]


def test_of_too_many_gaps_the_longest_are_kept() -> None:
    """Of 5, 1, 4, 1 and 3 ns on two devices the three longest: 5 and 4 on the first, 3 on the second."""
    first = device(gaps=[], gaps_packed=pack([(10, 5, 0), (20, 1, 1), (30, 4, 2)], ["sync", "io_wait", "dispatch"]))
    second = device(1, gaps=[], gaps_packed=pack([(40, 1, 0), (50, 3, 0)], ["sync"]))
    tracks = [{"pid": 1, "tid": 2}, {"pid": 3, "tid": 4}]
    events, left_out = gap_events(report([first, second], []), 3, tracks)
    assert [[bytes(event["ts"]).decode() for event in track] for track in events] == [["0.010", "0.030"], ["0.050"]]  # type: ignore[call-overload]
    assert list(left_out.values()) == [3, 2, 2, 1]


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nsysdiag.formats.viewers.MOST_GAPS", 12)
    found = document(SAMPLES["one_device"]())
    assert len(of("gap", found["traceEvents"])) == 12
    about = found["otherData"]
    assert (about["gaps"], about["gaps_left_out"]) == (12, 1222)
    assert about["gaps_left_out_ns"] == sum(800 + 9 * number for number in range(1222))
    assert about["gaps_left_out_longest_ns"] == 800 + 9 * 1221


def test_findings_lie_over_their_gaps() -> None:
    """The first names the gap at 100 ms by its signature; the last has no signature, and evidence at 99.99 ms."""
    made = report([device()], [finding(), finding("f-2", signature=None, title="Elsewhere", rows=finding().rows[:1])])
    found = of("finding", document(made)["traceEvents"])
    assert [(event["ph"], event["name"], ns(event["ts"])) for event in found] == [
        ("i", "Elsewhere", 99_990_000),
        ("X", "The step ends in a stream synchronisation", 100 * MS),
    ]
    assert ns(found[1]["dur"]) == 400 * US
    assert found[1]["args"]["advice"] == finding().advice
    assert found[0]["s"] == "t"


def test_a_finding_about_nothing_in_particular_stands_at_the_start() -> None:
    made = report([device()], [finding(signature="s-unknown", rows=[])])
    (event,) = of("finding", document(made)["traceEvents"])
    assert (event["ph"], ns(event["ts"])) == ("i", 90 * MS)


def level(**lanes: list[int]) -> TimelineLevel:
    packed = {name: squeeze(np.array(lane, dtype=np.uint8)) for name, lane in lanes.items()}
    return TimelineLevel(buckets=len(lanes["idle"]), cause=packed["idle"], **packed)


def test_counters_follow_the_timeline() -> None:
    """Four buckets of 250 ns: computing, the same again, half idle, copies. An event where something changes."""
    lanes = level(compute=[255, 255, 128, 0], communication=[0] * 4, copies=[0, 0, 0, 255], idle=[0, 0, 127, 0])
    timeline = TimelineLevels(start_ns=1000, end_ns=2000, cause_ids=["sync"], levels=[lanes])
    made = msgspec.structs.replace(report([device()], []), timeline={"gpu0": timeline})
    found = [event for event in document(made)["traceEvents"] if event["ph"] == "C"]
    assert [(ns(event["ts"]), *map(float, event["args"].values())) for event in found] == [
        (1000, 100.0, 100.0, 0.0, 0.0, 0.0),
        (1500, 50.2, 50.2, 0.0, 0.0, 49.8),
        (1750, 100.0, 0.0, 0.0, 100.0, 0.0),
        (2000, 0.0, 0.0, 0.0, 0.0, 0.0),
    ]
    assert list(found[0]["args"]) == ["busy", "compute", "communication", "copies", "idle"]


@pytest.mark.slow
def test_counters_of_the_demo_add_up_to_its_idle_time(demo: nsysdiag.Report) -> None:
    """Within the rounding of a bucket: a 255th of it, and of its tenth of a per cent."""
    found = [event for event in document(demo)["traceEvents"] if event["ph"] == "C" and event["pid"] == 10]
    idle = sum(
        float(event["args"]["idle"]) / 100 * (ns(after["ts"]) - ns(event["ts"])) for event, after in pairwise(found)
    )
    assert idle == pytest.approx(demo.devices[0].idle_ns, rel=0.01)


def test_a_damaged_timeline() -> None:
    lanes = level(compute=[255] * 4, communication=[0] * 4, copies=[0] * 4, idle=[0] * 3)
    timeline = TimelineLevels(start_ns=0, end_ns=9, cause_ids=[], levels=[msgspec.structs.replace(lanes, buckets=4)])
    made = msgspec.structs.replace(report([device()], []), timeline={"gpu0": timeline})
    with pytest.raises(InputError, match="timeline of this report contradicts itself"):
        document(made)


def test_a_timeline_of_no_base64_and_one_too_fine() -> None:
    lanes = level(compute=[255], communication=[0], copies=[0], idle=[0])
    broken = msgspec.structs.replace(lanes, idle="!")
    fine = msgspec.structs.replace(lanes, buckets=MOST_BUCKETS + 1)
    for each, message in ((broken, "cannot be read"), (fine, "")):
        timeline = TimelineLevels(start_ns=0, end_ns=9, cause_ids=[], levels=[each])
        made = msgspec.structs.replace(report([device()], []), timeline={"gpu0": timeline})
        if message:
            with pytest.raises(InputError, match=message):
                document(made)
        else:
            assert not [event for event in document(made)["traceEvents"] if event["ph"] == "C"]


@pytest.mark.slow
def test_hostile_names_are_shown_and_do_nothing() -> None:
    data = FORMATS["perfetto"].render(SAMPLES["hostile"](), RenderOptions()).decode()
    assert all(line.isprintable() for line in data.split("\n"))
    made = report([device(name=name, key="gpu0") for name in HOSTILE], [])
    names = [event["args"]["name"] for event in document(made)["traceEvents"] if event["name"] == "process_name"]
    assert len(names) == len(HOSTILE)
    assert "gpu0 \\x1b[31mred\\x1b[0m" in names


@pytest.mark.slow
def test_long_names_are_cut() -> None:
    for event in events("long_lists"):
        assert len(event["name"]) <= 200
        assert all(len(str(value)) < 4000 for value in event["args"].values())


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0.000"),
        (1, "0.001"),
        (1_234_567, "1234.567"),
        (-1_500, "-1.500"),
        (2**62 + 1, "4611686018427387.905"),
    ],
)
def test_microseconds_are_exact(ns: int, text: str) -> None:
    assert bytes(micros(ns)).decode() == text
