"""`mostly` is said of more than half of the very time that the sentence is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag import typed
from nsysdiag.causes import HOST_CODE
from nsysdiag.config.settings import Settings
from nsysdiag.findings.facts import Finding
from nsysdiag.pipeline import analyze
from nsysdiag.report import Report
from nsysdiag.units import mostly
from tests.builder import TraceBuilder

US = 1_000
STEPS, STEP = 20, 10_000
"""Steps, and their length in µs: a kernel of 2 ms, then idle time until 1 ms of the next launch."""


class TestTheRule:
    @pytest.mark.parametrize(
        ("parts", "said"),
        [
            ([("read in load", 51), ("read", 60), ("in load", 70)], "mostly read in load"),
            ([("read in load", 50), ("read", 51), ("in load", 70)], "mostly read"),
            ([("read in load", 40), ("read", 50), ("in load", 70)], "mostly in load"),
            ([("read in load", 10), ("read", 40), ("in load", 30)], "read 20.0%"),
            ([("read", 50)], "read 25.0%"),
            ([("read", 9)], ""),
            ([("read", 0)], ""),
            ([], ""),
        ],
    )
    def test_more_than_half_or_its_own_share(self, parts: list[tuple[str, float]], said: str) -> None:
        assert mostly(parts, 100, 200) == said


def program(
    folder: Path,
    *,
    ranges: dict[str, int] | None = None,
    calls: dict[str, int] | None = None,
    samples: dict[str, int] | None = None,
    copies: dict[tuple[str, str], int] | None = None,
) -> Report:
    """A loop in which the host computes for 7.8 ms of each step while the GPU is idle. Lengths are in µs: NVTX `ranges`
    in that time, OS `calls`, `samples` of functions, one each ms, and copies that run alone by kind and memory."""
    trace = TraceBuilder().process().gpu(sm_count=108)
    for step in range(1, STEPS + 1):
        at = step * STEP * US
        trace.kernel(at, at + 2_000 * US, name="work", launch=(at - 30 * US, at - 20 * US), shape={"gridX": 216})
        trace.sched(at - 7_900 * US, True).sched(at - 10 * US, False)
        begin = at - 7_800 * US
        for name, length in (ranges or {}).items():
            trace.nvtx(name, begin, begin + length * US)
            begin += (length + 10) * US
        begin = at - 7_800 * US
        for name, length in (calls or {}).items():
            trace.osrt(name, begin, begin + length * US)
            begin += (length + 10) * US
        for (kind, host), length in (copies or {}).items():
            trace.memcpy(begin, begin + length * US, kind=kind, host=host, launch=(begin - 20 * US, begin - 10 * US))
            begin += length * US
        functions = [name for name, count in (samples or {}).items() for _ in range(count)]
        for number, name in enumerate(functions):
            trace.sample(at - 7_700 * US + number * 1_000 * US, symbols=(name, "main"))
    return analyze(trace.write(folder / "trace.sqlite"), Settings(replay=False, timeline=False))


def loop(folder: Path, ranges: dict[str, tuple[int, int]]) -> list[Finding]:
    """The findings on host code of the same loop; `ranges` are in each step, by begin and length in its 7.8 ms."""
    trace = TraceBuilder().process().gpu(sm_count=108)
    for step in range(1, STEPS + 1):
        at = step * STEP * US
        trace.kernel(at, at + 2_000 * US, name="work", launch=(at - 30 * US, at - 20 * US), shape={"gridX": 216})
        trace.sched(at - 7_900 * US, True).sched(at - 10 * US, False)
        for name, (begin, length) in ranges.items():
            trace.nvtx(name, at + (begin - 7_900) * US, at + (begin + length - 7_900) * US)
    report = analyze(trace.write(folder / "trace.sqlite"), Settings(replay=False))
    return [each for each in report.findings if each.cause == HOST_CODE]


def headline(report: Report) -> str:
    assert report.diagnosis is not None
    return typed.plain(report.diagnosis.headline)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(("length", "said"), [(420, False), (3_000, False), (5_500, True)])
def test_a_range_that_holds_a_part_of_the_time(length: int, said: bool, tmp_path: Path) -> None:
    """The GPU waits for the host for 7.8 ms of each step, and `softmax` is 0.4, 3 or 5.5 ms of it."""
    assert ("mostly in softmax" in headline(program(tmp_path, ranges={"softmax": length}))) == said


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("length", "said", "place"),
    [
        (7_700, "in softmax", ["train", "softmax"]),
        (5_500, "mostly in softmax", ["train", "softmax"]),
        (3_500, "in train", ["train"]),
    ],
)
def test_the_place_in_a_title_is_the_range_that_holds_the_time(
    length: int, said: str, place: list[str], tmp_path: Path
) -> None:
    """Of 7.8 ms in `train`, `softmax` is so many µs in the middle, where the place of a gap is read."""
    begin = (7_800 - length) // 2
    (found,) = (each for each in loop(tmp_path, {"train": (0, 7_800), "softmax": (begin, length)}) if each.nvtx)
    assert found.title.endswith(f", {said}")
    assert found.nvtx == place


@pytest.mark.parametrize("length", [7_700, 5_500, 4_100])
def test_only_what_is_in_a_range_that_compiles_is_start_up(length: int, tmp_path: Path) -> None:
    """In all of a gap, or in 4.1 ms of 7.8 ms of it: the rest is the host's."""
    begin = (7_800 - length) // 2
    found = {each.bottleneck: each.lost_ns for each in loop(tmp_path, {"compile": (begin, length)})}
    assert found["startup"] == (STEPS - 1) * length * US
    assert found["host"] == (STEPS - 1) * (7_870 - length) * US


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ({"fill": 7}, "mostly fill"),
        ({"fill": 4, "sort": 3}, "mostly fill"),
        ({"fill": 3, "sort": 2, "copy": 2}, None),
    ],
)
def test_a_function_in_samples(samples: dict[str, int], said: str | None, tmp_path: Path) -> None:
    """Seven samples a step, for 7.8 ms of host code."""
    text = headline(program(tmp_path, samples=samples))
    assert (said in text) if said else ("mostly" not in text)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ({"nanosleep": 5_000}, "mostly nanosleep"),
        ({"nanosleep": 3_000, "pthread_mutex_lock": 3_000}, None),
        ({"nanosleep": 2_500}, None),
    ],
)
def test_a_call_of_a_bottleneck_of_several_causes(calls: dict[str, int], said: str | None, tmp_path: Path) -> None:
    """All of it is charged to the host: the call, another call, and what it computes."""
    text = headline(program(tmp_path, calls=calls))
    assert "The host keeps the GPU waiting" in text
    assert (said in text) if said else ("mostly" not in text)


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize(
    ("copies", "said"),
    [
        ({("HtoD", "pageable"): 4_000, ("DtoH", "pageable"): 1_500}, "mostly memcpy HtoD from pageable"),
        ({("HtoD", "pinned"): 2_000, ("DtoH", "pageable"): 1_900, ("DtoD", "device"): 1_800}, None),
        ({("HtoD", "pageable"): 2_000, ("DtoH", "pinned"): 1_900, ("DtoD", "device"): 1_900}, None),
    ],
)
def test_kinds_of_copies(copies: dict[tuple[str, str], int], said: str | None, tmp_path: Path) -> None:
    report = program(tmp_path, copies=copies)
    (found,) = (each for each in report.findings if each.cause == "exposed_copy")
    assert (said in found.title) if said else ("mostly" not in found.title)
    assert any("Most of it is pageable" in text for text in found.advice) == (said is not None)


def test_a_smaller_finding_with_a_name_does_not_stand_for_a_larger_one(tmp_path: Path) -> None:
    """The thread is preempted for 5 ms of 7.8 ms, which has no name, and `fill` runs for the rest."""
    trace = TraceBuilder().process().gpu(sm_count=108).osrt("read", 1_000, 2_000)
    for step in range(1, STEPS + 1):
        at = step * STEP * US
        trace.kernel(at, at + 2_000 * US, name="work", launch=(at - 30 * US, at - 20 * US), shape={"gridX": 216})
        trace.sched(at - 7_900 * US, True).sched(at - 6_900 * US, False, state=1).sched(at - 1_900 * US, True)
        trace.sched(at - 6_900 * US, True, thread=(99, 99)).sched(at - 1_900 * US, False, thread=(99, 99))
        for number in (2, 3, 4, 62, 64, 66):
            trace.sample(at - 7_900 * US + number * 100 * US, symbols=("fill", "main"))
    report = analyze(trace.write(tmp_path / "trace.sqlite"), Settings(replay=False))
    assert "waiting for a CPU" in headline(report)
    assert "fill" not in headline(report)
