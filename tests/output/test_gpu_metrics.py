"""GPU counters in the outputs: sentences only where something was captured, curves that are true, tables."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

from nsysdiag.counters.facts import GpuMetrics
from nsysdiag.counters.show import counter_sentences, counter_strip
from nsysdiag.document.packed import unpack_metric
from nsysdiag.document.svg import HEIGHT, SLOT, curve_plot
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.tables import tables
from nsysdiag.messages import InputError
from nsysdiag.report import DeviceReport
from tests.output.gpu_metric_samples import BUCKETS, MS, clock, gpu_metrics, kernel, metric, series
from tests.output.samples import device, gap, report


def made(**changes: object) -> DeviceReport:
    return device(gpu_metrics=gpu_metrics(**changes))  # type: ignore[arg-type]


def drawn(suffix: str, found: DeviceReport) -> str:
    return FORMATS[suffix].render(report([found], []), RenderOptions(width=160, details=True)).decode()


def test_all_that_there_is_to_say() -> None:
    assert counter_sentences(made()) == [
        "By the GPU's own counters 42.6% of the SMs are active on average over the window and 71.0% while kernels run; "
        "meanwhile instruction issue 22.0%, tensor cores 41.0%.",
        "Of the highest rates, while kernels run: DRAM reads 36.0% (720 GB/s), DRAM writes 11.0% (220 GB/s).",
        "vectorized_elementwise_kernel keeps 27.0% of the SMs active, with neighbouring work; it runs "
        "15.0% of the window.",
        "Clocks were at 77.3% of the maximum during 30.0% of the time with kernels (mean 1.84 GHz, lowest 1.41 GHz, "
        "the chip's highest 1.98 GHz). Power or thermal limits, a fixed clock, or a clock still rising after idle "
        "time: the trace cannot tell which.",
    ]


def test_nothing_to_say_where_nothing_was_captured() -> None:
    bare = device()
    assert counter_sentences(bare) == []
    for suffix in ("txt", "md"):
        assert "GPU counters" not in drawn(suffix, bare)
    assert 'id="gpu-metrics"' not in drawn("html", bare)
    assert all(len(tables(report([bare], []))[name].splitlines()) == 1 for name in TABLES)


TABLES = ("gpu_metrics", "gpu_metrics_by_name")


def test_without_sm_activity_nothing_is_said_of_it() -> None:
    others = [row for row in gpu_metrics().metrics if row.id != "sm_active"]
    assert not any("of the SMs are active on average" in line for line in counter_sentences(made(metrics=others)))
    assert any("of the SMs are active on average" in line for line in counter_sentences(made()))


def test_no_sentence_about_what_is_healthy() -> None:
    """A clock that is low for a moment, kernels that use the SMs or take no time."""
    quiet = made(clocks=clock(low=0.04), kernels=[kernel("gemm", 30 * MS), kernel("tiny", 4 * MS, sm_active=0.1)])
    assert len(counter_sentences(quiet)) == 2
    assert len(counter_sentences(made(clocks=clock(low=0), kernels=[]))) == 2


def test_what_was_not_sampled_is_a_dash() -> None:
    rows = [metric("sm_active", None, window=0.5, gaps=None), metric("dram_read", None)]
    bare = made(metrics=rows, clocks=None, kernels=[])
    assert counter_sentences(bare) == [
        "By the GPU's own counters 50.0% of the SMs are active on average over the window."
    ]
    assert "| SM active | 50.0% | – | – |" in drawn("md", bare)
    assert (
        tables(report([bare], []))["gpu_metrics"]
        .decode()
        .splitlines()[1]
        .startswith("gpu0,sm_active,SM active,share,0.5,,,,0.02,0.0,0.98,900,310,2,1,,SMs Active [Throughput %]")
    )


def test_idle_time_that_could_not_be_taken_out_is_owned_up_to() -> None:
    (first,) = counter_sentences(made(metrics=[metric(idle=None)], clocks=None, kernels=[]))
    assert first.endswith("and 71.0% while kernels run, with short idle times between them.")


def test_a_gap_that_was_none() -> None:
    gaps = [msgspec.structs.replace(gap(number), sm_active=active) for number, active in enumerate((0.2, 0.19, None))]
    shown = drawn("txt", device(gaps=gaps))
    assert shown.count("of the SMs active by the GPU's own counters") == 1
    assert "20.0% of the SMs active by the GPU's own counters" in shown


# ---- curves ----------------------------------------------------------------------------------------------------


def test_a_curve_lies_where_the_values_are() -> None:
    found, row = gpu_metrics(), metric("sm_active", 0.71)
    curve = curve_plot(counter_strip(found, row, 1000).curve)
    (area,) = [part for part in curve.paths[0].d.split("M") if part]
    steps = [(int(level), int(x)) for level, x in re.findall(r"V(\d+)H(\d+)", area)]
    assert steps[:3] == [(HEIGHT, 10 * SLOT), (round(0.29 * HEIGHT), 20 * SLOT), (HEIGHT, 30 * SLOT)]
    assert steps[-1][1] == SLOT * (BUCKETS - 20)


def test_a_curve_has_holes() -> None:
    row = metric(series=series([500] * 50 + [-1] * 100 + [1000] * 50))
    curve = curve_plot(counter_strip(gpu_metrics(), row, 4).curve)
    places = [part.split("V")[0] for part in curve.paths[0].d.split("M")[1:]]
    assert places == [f"0 {HEIGHT}", f"{150 * SLOT} {HEIGHT}"]
    assert [hover.tooltip for hover in curve.hovers] == [
        "at 0.090000 s: 50.0%",
        "at 0.115000 s: not known",
        "at 0.140000 s: not known",
        "at 0.165000 s: 100.0%",
    ]


def test_series_of_clocks_are_in_hertz() -> None:
    found = gpu_metrics()
    values = unpack_metric(found, next(row for row in found.metrics if row.id == "gpc_clock"))
    assert np.unique(values).tolist() == [1.845e9]


@pytest.mark.parametrize(("packed", "said"), [("???", "cannot be read"), (series([1, 2]), "contradict themselves")])
def test_a_damaged_series_is_the_input_s_fault(packed: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        drawn("html", made(metrics=[metric(series=packed)]))


# ---- tables ----------------------------------------------------------------------------------------------------


def test_csv_tables() -> None:
    found = {name: data.decode().splitlines() for name, data in tables(report([made()], [])).items()}
    assert found["gpu_metrics"][1] == (
        "gpu0,sm_active,SM active,share,0.426,0.71,0.71,0.02,0.02,0.0,0.98,900,310,2,1,,SMs Active [Throughput %]"
    )
    assert found["gpu_metrics"][4].endswith(",2000000000000,DRAM Read Bandwidth [Throughput %]")
    rows = found["gpu_metrics_by_name"]
    assert rows[0] == "device,what,name,count,time_ns,samples,whole,metric,mean"
    assert "gpu0,range,step #,25,80000000,810,,tensor_active," in rows
    assert "gpu0,kernel,vectorized_elementwise_kernel,250,15000000,150,false,sm_active,0.27" in rows
    assert rows[-1] == "gpu0,iteration,0,1,1000000,10,,tensor_active,0.62"


def test_markdown_tables() -> None:
    shown = drawn("md", made())
    assert "| DRAM read | 21.6% | 36.0% | 2.0% |" in shown
    assert "| GPC clock | 1.50 GHz | 1.84 GHz | 345 MHz |" in shown
    assert "| `ampere_sgemm_128x64_tn` | 30.0 ms | 94.0% | 31.0% | 62.0% | 22.0% | 8.0% | 0.0% |" in shown


def test_the_page_tells_all_without_scripts() -> None:
    shown = drawn("html", made())
    assert shown.count('<div class="strip">') == 4
    assert "SM active from 0.090000 s to 0.190000 s: 42.6% on average" in shown
    assert "a sample every 100 µs" in shown
    assert "below 90.0% of it 30.0% of that time" in shown
    assert shown.count('<span class="tag">mixed</span>') == 1


def test_no_columns_for_what_was_not_captured() -> None:
    found: GpuMetrics = gpu_metrics(metrics=[metric("sm_active")])
    lines = drawn("md", device(gpu_metrics=found)).splitlines()
    assert "| Kernel | Time | SM active |" in lines
    assert not any("Tensor" in line for line in lines if line.startswith("| Kernel |"))
