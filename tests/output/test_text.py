"""The text summary: it fits, it has no colour unless asked, and names do nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.output import FORMATS, RenderOptions
from nsysdiag.output.text_ import bar
from tests.output.samples import RECAPTURE, SAMPLES

SGR = re.compile(r"\x1b\[[0-9;]*m")


def text(sample: str, width: int = 80, color: bool = False) -> str:
    return FORMATS["txt"].render(SAMPLES[sample](), RenderOptions(width=width, color=color)).decode()


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("width", [80, 100, 132])
def test_fits(sample: str, width: int) -> None:
    lines = text(sample, width).split("\n  nsys profile ")[0].split("To resolve more")[0].splitlines()
    assert max(len(line) for line in lines) <= width


def test_uses_the_width() -> None:
    assert max(map(len, text("one_device", 132).splitlines())) > 100


def test_the_command_can_be_copied_whole() -> None:
    assert f"  {RECAPTURE}\n" in text("one_device")


@pytest.mark.parametrize("sample", SAMPLES)
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
        "20 iterations by NVTX range “step #”: p50 4.00 ms, p95 4.50 ms, worst 5.00 ms;"
        " 2 left out (1 warm-up, 1 cut short at the end)"
    )
    assert block[2:] == [
        "  #6 took 999 us more than the median one: Waiting for a lock +700 us, Compute +500 us",
        "  #13 took 499 us more than the median one: Compute +250 us, Host computing +200 us, No evidence +100 us",
    ]
    assert "Iterations" not in text("never_idle")


def test_no_gpu_work_is_said_plainly() -> None:
    shown = text("no_device")
    assert "No GPU work in this trace" in shown
    assert "OSRT_API (~1200 rows)" in shown
    assert RECAPTURE in shown


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 60))
def test_bars_stay_inside(part: int, whole: int, columns: int) -> None:
    drawn = bar(part, whole, columns)
    assert len(drawn) <= columns
    assert bool(drawn) == (part > 0 and whole > 0)
