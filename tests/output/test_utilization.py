"""Utilization as it is shown: sentences, the drawing, tables, and what must not be claimed."""

from __future__ import annotations

import msgspec
import pytest

from nsysdiag.document.svg import curve_plot
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.tables import tables
from nsysdiag.record import to_json
from nsysdiag.report import Report
from nsysdiag.saved import from_json
from nsysdiag.utilization.facts import Utilization
from nsysdiag.utilization.show import (
    MOST_STEPS,
    real_note,
    sm_sentences,
    utilization_curve,
    utilization_sentences,
)
from tests.output.page import unexplained
from tests.output.samples import device, never_idle, report
from tests.output.utilization_samples import MS, long_utilization, measured_utilization, series, utilization_of

END = 190 * MS


def shown(name: str, **changes: object) -> str:
    made = report([device(utilization=utilization_of(**changes))], [])
    return FORMATS[name].render(made, RenderOptions(width=160, details=True)).decode()


def test_what_is_said_of_a_device() -> None:
    assert utilization_sentences(device()) == [
        "In this window a dashboard would show 55.0%; the GPU is idle 40.0% of the time.",
        "Utilization by time 55.0% (samples of 10.0 ms: 10.0% to 90.0%), by polling every 5.00 ms 94.7%; busy 60.0%, "
        "computing 45.0%.",
        "SM activity 11.0% to 13.2%, an estimate from launch shapes: while a kernel runs, 20.0% of the SMs have work, "
        "and the blocks fill 8.0% of the capacity of all SMs.",
        "It covers 96.0% of the kernels' time: some of the kernels' time has no launch shape.",
    ]


def test_what_was_measured_is_said_to_be() -> None:
    found = measured_utilization()
    assert sm_sentences(found) == ["SM activity 80.0%, from GPU metrics."]
    assert real_note(found) == "80.0% of SMs, measured"
    beside = msgspec.structs.replace(found, estimate=utilization_of().estimate)
    assert sm_sentences(beside) == ["SM activity 80.0%, from GPU metrics; launch shapes allow 11.0%."]


def test_what_nobody_knows_is_said_with_the_reason() -> None:
    bare = measured_utilization()
    unknown = msgspec.structs.replace(bare, sm_active_share=None, sm_source=None)
    assert sm_sentences(unknown) == ["SM activity is unknown: nothing is known about the chip."]
    assert real_note(unknown) == "100.0% by polling"


def test_without_kernels_there_are_no_sms_to_speak_of() -> None:
    idle = utilization_of(util_time_share=0.0, sm_active_share=0.0)
    assert sm_sentences(idle) == []
    assert real_note(idle) == "94.7% by polling"


def test_without_a_window_nothing_is_said() -> None:
    empty = device(utilization=utilization_of(util_time_share=None, by_time=None, by_period=None))
    assert utilization_sentences(empty) == []
    made = report([empty], [])
    text, page = (FORMATS[name].render(made, RenderOptions(details=True)).decode() for name in ("txt", "html"))
    assert "Utilization" not in text
    assert 'id="utilization"' not in page
    assert "Dashboard" not in page


@pytest.mark.slow
def test_a_report_of_before_has_three_shares_alone() -> None:
    old = msgspec.convert({"util_time_share": 0.55, "busy_share": 0.6, "compute_share": 0.45}, Utilization)
    made = report([device(utilization=old)], [])
    assert from_json(to_json(made), Report) == made
    told = {name: known.render(made, RenderOptions(details=True)).decode() for name, known in FORMATS.items()}
    assert "55.0%" in told["html"]
    assert "SM activity is unknown" not in told["txt"]
    assert tables(made)["utilization"].decode().splitlines()[1].startswith("gpu0,0.55,,0.6,0.45,")
    empty = report([device(utilization=msgspec.convert({}, Utilization))], [])
    assert 'id="utilization"' not in FORMATS["html"].render(empty, RenderOptions(details=True)).decode()


@pytest.mark.slow
def test_an_estimate_is_called_one_everywhere() -> None:
    for name in ("txt", "md", "html"):
        told = shown(name, sentence="99.0% on a dashboard, but an estimated 13.2% of the SMs have work.")
        assert "an estimated 13.2% of the SMs" in told, name
        assert "estimate from launch shapes" in " ".join(told.split()), name
    assert "SM activity, estimated" in shown("html")
    measured = FORMATS["html"].render(never_idle(), RenderOptions(details=True)).decode()
    assert "SM activity, measured" in measured
    assert "SM activity, estimated" not in measured


def test_the_card_in_the_overview() -> None:
    page = unexplained(shown("html"))
    assert '<dt>Dashboard</dt><dd><span class="value">55.0%</span><span class="note">11.0% of SMs, estimated' in page


# ---- the drawing -------------------------------------------------------------------------------------------------


def test_steps_of_both_series() -> None:
    """
    90       120      150      180 ms        by time 0.5, 0.5, 1.0; by polling 1, nothing, 0
    """
    found = utilization_of(by_time=series([0.5, 0.5, 1.0], 30 * MS), by_period=series([1.0, None, 0.0], 30 * MS))
    chart = utilization_curve(found, 180 * MS, 3)
    assert chart is not None
    plot = curve_plot(chart)
    assert [path.d for path in plot.paths] == ["M0 1000V500H20V0H30V1000z", "M0 0V0H10M20 1000V1000H30"]
    times = "by time (samples of 30.0 ms)", "by polling (every 30.0 ms)"
    assert [(hover.x, hover.tooltip) for hover in plot.hovers] == [
        (0, f"at 0.090000 s: {times[0]} 50.0%, {times[1]} 100.0%"),
        (10, f"at 0.120000 s: {times[0]} 50.0%, {times[1]} not known"),
        (20, f"at 0.150000 s: {times[0]} 100.0%, {times[1]} 0.0%"),
    ]


def test_the_last_step_ends_with_the_window() -> None:
    found = utilization_of(by_time=series([0.0, 1.0], 60 * MS), by_period=series([1.0] * 4, 30 * MS))
    chart = utilization_curve(found, END, 10)
    assert chart is not None
    assert [layer.series.edges[-1] for layer in chart.layers] == [END, END]
    assert curve_plot(chart).paths[0].d.endswith("H24V0H40V1000z")


@pytest.mark.parametrize("values", [[], [0.5]])
def test_one_value_is_no_drawing(values: list[float]) -> None:
    one = series([0.5], MS)
    found = utilization_of(by_time=msgspec.structs.replace(one, values=values))
    assert utilization_curve(found, END, 10) is None


def test_a_long_series_is_drawn_in_as_many_steps_as_can_be_seen() -> None:
    chart = utilization_curve(long_utilization(), 2090 * MS, 125)
    assert chart is not None
    plot = curve_plot(chart)
    assert plot.paths[0].d.count("V") <= MOST_STEPS + 1
    assert len(plot.paths[0].d) < 8_000
    assert len(plot.hovers) <= 125


# ---- tables ------------------------------------------------------------------------------------------------------
