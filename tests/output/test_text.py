"""The text summary: it fits, it has no colour unless asked, and names do nothing."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.document.text import bar
from nsysdiag.formats import FORMATS, RenderOptions
from tests.output.rendered import EVERY_SAMPLE
from tests.output.samples import RECAPTURE, SAMPLES, device, gap

if TYPE_CHECKING:
    from nsysdiag.report import Gap

COMMAND = re.compile(r"(?<=\n)  nsys profile .*$", re.MULTILINE)
"""It is never cut: it is to be copied."""
SGR = re.compile(r"\x1b\[[0-9;]*m")


@cache
def text(sample: str, width: int = 80, color: bool = False, *, details: bool = True) -> str:
    return FORMATS["txt"].render(SAMPLES[sample](), RenderOptions(width=width, color=color, details=details)).decode()


@pytest.mark.sampled(quick=8, normal=7)
@pytest.mark.parametrize("sample", EVERY_SAMPLE)
@pytest.mark.parametrize("width", [80, 100, 132])
def test_fits(sample: str, width: int) -> None:
    for details in (False, True):
        shown = text(sample, width, details=details)
        lines = COMMAND.sub("", shown).splitlines()
        assert max(len(line) for line in lines) <= width


def test_uses_the_width() -> None:
    assert max(map(len, text("one_device", 132).splitlines())) > 100


def test_the_command_can_be_copied_whole() -> None:
    assert f"\n  {RECAPTURE}\n" in text("several_devices")


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize("sample", EVERY_SAMPLE)
def test_colour_only_where_asked(sample: str) -> None:
    assert "\x1b" not in text(sample)
    assert SGR.search(text(sample, color=True))


@pytest.mark.parametrize("color", [False, True])
def test_hostile_names_do_nothing(color: bool) -> None:
    shown = SGR.sub("", text("hostile", color=color)) if color else text("hostile")
    assert all(line.isprintable() for line in shown.split("\n"))
    for name in ("[bold]", "f<[/b]>", "\\x1b[31mred", "\\u202eevil", "a\\nb", "nul\\0"):
        assert name in shown


def test_iterations_in_a_few_lines() -> None:
    shown = text("one_device", 120)
    block = shown.split("\nIterations\n")[1].split("\n\n")[0].splitlines()
    assert " ".join(line.strip() for line in block[:2]) == (
        "20 iterations by NVTX range “step N”: p50 4.00 ms, p95 4.50 ms, worst 5.00 ms;"
        " 2 left out (1 warm-up, 1 cut short at the end)"
    )
    assert block[2:] == [
        "  2 slow iterations: 1.50 ms more in all",
        "  NVTX range “micro batch N” comes 4 times in each iteration, 900 µs apart",
        "  #6 took 999 µs more than the median: Waiting for a lock +700 µs, Compute +500 µs",
        "  #13 took 499 µs more than the median: Compute +250 µs, Host computing +200 µs, Unexplained +100 µs",
    ]
    assert "Iterations" not in text("never_idle")


def test_what_to_do_comes_before_the_details() -> None:
    """
    overview of each device | findings | who is late | ledgers, iterations, launches, gaps | health
    """
    shown = text("several_devices", 100)
    titles = ["gpu3", "Findings", "GPU comparison", "Details of gpu0", "What the GPU waited for"]
    titles += ["Longest gaps", "Details of gpu1", "Trace health"]
    places = [re.search(rf"^(?:.*  )?{title}", shown, re.MULTILINE) for title in titles]
    assert [place.start() for place in places if place] == sorted(place.start() for place in places if place)
    assert all(places)
    assert "Details of" not in text("one_device")


def test_the_same_finding_on_another_device_is_told_once() -> None:
    shown = text("several_devices", 120).split("\nFindings\n")[1].split("\n\n")[0].splitlines()
    title = "  ▲ high  The step ends in a stream synchronisation"
    first, second = (shown.index(f"{title}  on {key}") for key in ("gpu0", "gpu1"))
    between = shown[first:second]
    assert sum("the queue is empty for 170 µs" in line for line in between) == 1
    assert "      as on gpu0, above" in shown[second:]
    assert not any("the queue is empty" in line for line in shown[second:])
    assert sum(line.startswith("      Fix: ") for line in shown) == 1


def test_steps_of_a_chain_begin_lines_of_their_own_where_they_do_not_fit() -> None:
    shown = text("one_device", 120).split("\nFindings\n")[1].splitlines()
    assert [line.strip() for line in shown[3:6]] == [
        "cudaStreamSynchronize (waits for a stream) on thread 4242 'python'",
        "→ the queue is empty for 170 µs at a time, 96 times",
        "→ idle before vectorized_elementwise_kernel<AddFunctor, …> in train › forward",
    ]


def with_gaps(*gaps: Gap, **changes: object) -> str:
    made = SAMPLES["one_device"]()
    made = msgspec.structs.replace(made, devices=[device(gaps=list(gaps), **changes)])
    return FORMATS["txt"].render(made, RenderOptions(width=100, details=True)).decode()


def test_a_gap_like_an_earlier_one_is_not_told_again() -> None:
    """The second gap is 2 µs shorter and otherwise alike; the third has another operation behind it."""
    other = msgspec.structs.replace(gap(6), next_op=None)
    block = with_gaps(gap(2), gap(4), other).split("\nLongest gaps")[1].split("\n\n")[0]
    assert block.count("like the one at 0.104000 s") == 1
    assert block.count("launched by") == 2
    assert block.splitlines()[-1].strip() != "like the one at 0.104000 s"


def test_the_smallest_causes_share_a_row() -> None:
    """Of 40 ms, 39.95 ms are synchronization; two causes have less than a thousandth, which is 40 µs."""
    ledger = {"sync": 39_950_000, "uncovered": 20_000, "launch_call": 30_000}
    shown = with_gaps(ledger=ledger, root_ledger=ledger, labels={"sync": {"a stream": 39_950_000}})
    rows = shown.split("\nWhat the GPU waited for\n")[1].split("\n\n")[0].splitlines()[1:]
    assert [" ".join(row.rstrip("█▏▎▍▌▋▊▉ ").split()) for row in rows] == [
        "Waiting in a synchronisation: a stream 40.0 ms 99.9% 40.0%",
        "2 smaller causes 50.0 µs 0.1% <0.1%",
    ]


@pytest.mark.parametrize("name", ["txt", "html"])
def test_no_gpu_work_in_a_report_of_before_diagnoses(name: str) -> None:
    made = msgspec.structs.replace(SAMPLES["no_device"](), diagnosis=None)
    shown = FORMATS[name].render(made, RenderOptions(width=80)).decode()
    assert "No GPU work in this trace." in shown
    assert RECAPTURE in shown


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 60))
def test_bars_stay_inside(part: int, whole: int, columns: int) -> None:
    drawn = bar(part, whole, columns)
    assert len(drawn) <= columns
    assert bool(drawn) == (part > 0 and whole > 0)
