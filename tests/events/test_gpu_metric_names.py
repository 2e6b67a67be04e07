"""The names of metrics on chips and in versions of nsys: what is understood, and what looks alike and is not."""

from __future__ import annotations

import pytest

from nsysdiag.events.gpu_metrics import LONGEST, METRICS, matched


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("SMs Active [Throughput %]", "sm_active"),
        ("SM Active [Throughput %]", "sm_active"),
        ("SM Active", "sm_active"),
        ("SMs Active", "sm_active"),
        ("sms  active [throughput %]", "sm_active"),
        ("SM Issue [Throughput %]", "sm_issue"),
        ("SM Issue", "sm_issue"),
        ("SM Issue Active", "sm_issue"),
        ("Tensor Active [Throughput %]", "tensor_active"),
        ("Tensor Active", "tensor_active"),
        ("Tensor Active / FP16 Active", "tensor_active"),
        ("DRAM Read Bandwidth [Throughput %]", "dram_read"),
        ("DRAM Read Throughput", "dram_read"),
        ("GPU Memory Read Bandwidth", "dram_read"),
        ("DRAM Write Bandwidth [Throughput %]", "dram_write"),
        ("DRAM Write Throughput", "dram_write"),
        ("GPU Memory Write Bandwidth", "dram_write"),
        ("PCIe RX Throughput [Throughput %]", "pcie_rx"),
        ("PCIe RX Throughput", "pcie_rx"),
        ("PCIe Read Bandwidth", "pcie_rx"),
        ("PCIe TX Throughput", "pcie_tx"),
        ("PCIe Write Bandwidth", "pcie_tx"),
        ("NVLink RX Throughput", "nvlink_rx"),
        ("NVLink TX Bandwidth [Throughput %]", "nvlink_tx"),
        ("GR Active [Throughput %]", "gr_active"),
        ("GPU Active [Throughput %]", "gr_active"),
        ("Compute Warps in Flight [Throughput %]", "warps_in_flight"),
        ("Compute Warps In Flight", "warps_in_flight"),
        ("Unallocated Warps in Active SMs [Throughput %]", "unallocated_warps"),
        ("Sync Copy Engine Active", "copy_engine"),
        ("Async Copy Engine Active 2", "copy_engine"),
        ("GPC Clock Frequency [MHz]", "gpc_clock"),
        ("GPC Clock Frequency", "gpc_clock"),
        ("SYS Clock Frequency [MHz]", "sys_clock"),
    ],
)
def test_one_name_means_one_metric(name: str, metric: str) -> None:
    assert matched([name]) == {metric: [name]}


@pytest.mark.parametrize(
    "name",
    [
        "Compute Warps in Flight [Avg]",
        "Compute Warps in Flight [Avg Warps per Cycle]",
        "Unallocated Warps in Active SMs [Avg]",
        "Pixel Warps in Flight [Throughput %]",
        "SM Warp Occupancy",
        "Active SM Unused Warp Slots",
        "Idle SM Active",
        "SM Active [Throughput %] of another GPU",
        "SM FP16+Tensor Pipe Throughput",
        "PCIe Read Requests to BAR1",
        "DRAM Bandwidth",
        "NVLink RX Requests User Data [Throughput %]",
        "NVLink RX Responses Protocol Data [Throughput %]",
        "GPC Clock Frequency [%]",
        "SM Active [MHz]",
        "",
        "[",
        "[Throughput %]",
        "SM Active" + " " * LONGEST,
        "[" * 100_000,
    ],
)
def test_names_that_look_alike_mean_nothing(name: str) -> None:
    assert matched([name]) == {}


def test_the_user_data_of_nvlink_is_added_and_its_headers_are_not() -> None:
    names = [f"NVLink TX {what} {data} Data" for what in ("Requests", "Responses") for data in ("User", "Protocol")]
    assert matched(names) == {"nvlink_tx": ["NVLink TX Requests User Data", "NVLink TX Responses User Data"]}


def test_the_user_data_goes_before_the_whole_throughput() -> None:
    parts = ["NVLink RX Requests User Data", "NVLink RX Responses User Data"]
    assert matched([*parts, "NVLink RX Throughput"]) == {"nvlink_rx": parts}
    assert matched([parts[0], "NVLink RX Throughput"]) == {"nvlink_rx": ["NVLink RX Throughput"]}


def test_all_copy_engines_are_one_metric() -> None:
    names = ["Sync Copy Engine Active", "Async Copy Engine Active 0", "Async Copy Engine Active 1"]
    assert matched(names) == {"copy_engine": sorted(names)}


def test_two_names_of_one_thing_count_once() -> None:
    assert matched(["SM Active", "SMs Active [Throughput %]"]) == {"sm_active": ["SM Active"]}


def test_every_metric_is_shown_under_a_title_of_its_own() -> None:
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)
