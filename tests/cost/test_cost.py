"""What lost time costs: amounts worked out by hand.

```
  100 ms   |==compute 45==|.....idle 40.....|comm 10|copies 5|      20 iterations: a step is 5 ms
  at 2.50 an hour:          idle 1.00         0.25    0.125         lost 1.375
```
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import msgspec
import pytest

from nsysdiag.config.settings import CostSettings, Settings
from nsysdiag.cost.cost import price_of, priced
from nsysdiag.cost.facts import Amount
from nsysdiag.functions import bundled_trace
from nsysdiag.pipeline import analyze
from nsysdiag.record import to_json
from nsysdiag.report import Report
from nsysdiag.saved import from_json
from tests.output.samples import MS, cost, device, finding, iterations, report

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.cost.facts import Cost

HOUR_NS = 3_600_000_000_000


def cost_of(settings: CostSettings, **changes: object) -> Cost:
    """The cost of one device that is like the sample but for the changes."""
    (made,) = priced(report([device(**changes)], [finding()]), settings).devices
    assert made.cost is not None
    return made.cost


def test_every_amount_of_a_run_of_72_hours() -> None:
    """Idle is 40 of 100 ms: 1.00 an hour, 72.00 in 72 hours; 1,000 steps last 5 s, so 2.50 × 5 / 3600 × 0.4."""
    assert cost_of(CostSettings(gpu_hour_cost=2.5, run_hours=72)) == cost()


def test_the_run_is_the_window_unless_said() -> None:
    """100 ms of an hour at 3,600 are 0.1 in all, 0.04 of it idle."""
    found = cost_of(CostSettings(gpu_hour_cost=3600))
    assert not found.run_given
    assert found.run_hours == 100 * MS / HOUR_NS
    assert found.idle == Amount(hour=1440.0, run=0.04, thousand_steps=2.0)
    assert found.step == 0.005


def test_without_iterations_there_are_no_steps() -> None:
    found = cost_of(CostSettings(gpu_hour_cost=2.5), iterations=None)
    assert found.step is None
    assert found.best is not None
    assert {each.thousand_steps for each in (found.idle, found.lost, found.best.amount)} == {None}


def test_iterations_that_are_none_bring_no_steps() -> None:
    assert cost_of(CostSettings(gpu_hour_cost=2.5), iterations=iterations(count=0)).step is None


def test_a_device_that_loses_nothing() -> None:
    found = cost_of(
        CostSettings(gpu_hour_cost=2.5), idle_ns=0, exposed_comm_ns=0, exposed_copy_ns=0, compute_ns=100 * MS
    )
    assert found.lost == Amount(hour=0.0, run=0.0, thousand_steps=0.0)


def test_without_a_window_there_is_no_cost() -> None:
    made = priced(report([device(window_ns=0)], []), CostSettings(gpu_hour_cost=2.5))
    assert made.devices[0].cost is None
    assert made.cost is None


@pytest.mark.parametrize(
    ("name", "price", "matched"),
    [
        ("NVIDIA H100 80GB HBM3", 3.2, "H100"),
        ("NVIDIA H100 NVL", 2.9, "h100 nvl"),
        ("NVIDIA A100-SXM4-80GB", 1.5, None),
        ("nvidia rtx 4090", 0.4, "RTX 4090"),
    ],
)
def test_the_longest_part_of_the_name_wins(name: str, price: float, matched: str | None) -> None:
    prices = CostSettings(gpu_hour_cost=1.5, gpus={"H100": 3.2, "h100 nvl": 2.9, "RTX 4090": 0.4})
    assert price_of(name, prices) == (price, matched)


def test_of_parts_of_one_length_the_order_in_the_file_decides_nothing() -> None:
    first = CostSettings(gpus={"H100": 3.2, "80GB": 2.0})
    second = CostSettings(gpus={"80GB": 2.0, "H100": 3.2})
    assert price_of("NVIDIA H100 80GB", first) == price_of("NVIDIA H100 80GB", second) == (2.0, "80GB")


def test_a_device_without_a_price_costs_nothing_known() -> None:
    """gpu1 is none of the GPUs with a price, so the total is that of gpu0."""
    devices = [device(), device(1, name="NVIDIA T4")]
    made = priced(report(devices, []), CostSettings(gpus={"H100": 2.5}, currency="EUR"))
    assert [each.cost is None for each in made.devices] == [False, True]
    assert made.cost is not None
    assert made.cost.devices == ["gpu0"]
    assert made.cost.currency == "EUR"
    assert made.cost.lost.hour == 1.375


def test_the_total_of_two_devices() -> None:
    """3.20 and 2.50 an hour: idle 1.28 and 1.00; a thousand steps of both cost what both cost."""
    devices = [device(), device(1, name="NVIDIA A100")]
    made = priced(report(devices, []), CostSettings(gpu_hour_cost=2.5, gpus={"H100": 3.2}, run_hours=10))
    assert made.cost is not None
    assert made.cost.gpu_hour_cost == 5.7
    assert made.cost.idle == Amount(hour=2.28, run=22.8, thousand_steps=0.00316667)
    assert made.cost.lost.hour == 3.135


def test_a_total_has_steps_only_where_each_device_has() -> None:
    made = priced(report([device(), device(1, iterations=None)], []), CostSettings(gpu_hour_cost=2.5))
    assert made.cost is not None
    assert made.cost.lost.thousand_steps is None


def test_best_is_the_ceiling_of_the_first_finding_of_the_device_never_a_sum() -> None:
    """gpu1's own findings may bring 30 and 20 of its 100 ms: the first alone counts, 0.75 an hour."""
    findings = [
        finding("f-other", ceiling_ns=90 * MS),
        finding("f-none", device="gpu1", ceiling_ns=0),
        finding("f-first", device="gpu1", ceiling_ns=30 * MS),
        finding("f-second", device="gpu1", ceiling_ns=20 * MS),
    ]
    made = priced(report([device(), device(1)], findings), CostSettings(gpu_hour_cost=2.5))
    assert made.devices[1].cost is not None
    assert made.devices[1].cost.best is not None
    assert made.devices[1].cost.best.finding == "f-first"
    assert made.devices[1].cost.best.amount.hour == 0.75


def test_without_a_finding_nothing_can_be_saved() -> None:
    made = priced(report([device()], []), CostSettings(gpu_hour_cost=2.5))
    assert made.devices[0].cost is not None
    assert made.devices[0].cost.best is None


def test_without_a_price_the_report_stays_as_it_is() -> None:
    plain = report([device()], [finding()])
    assert priced(plain, CostSettings(currency="EUR", run_hours=3)) is plain


@pytest.mark.thorough
def test_a_saved_report_is_priced_like_a_fresh_one(tmp_path: Path) -> None:
    path = tmp_path / "demo.sqlite"
    path.write_bytes(gzip.decompress(bundled_trace()))
    prices = CostSettings(gpu_hour_cost=2.5, run_hours=100)
    fresh = analyze(path, Settings(cost=prices))
    again = priced(from_json(to_json(analyze(path)), Report), prices)
    assert again.devices == fresh.devices
    assert again.cost == fresh.cost
    for each in fresh.devices:
        assert each.cost is not None
        lost = each.idle_ns + each.exposed_comm_ns + each.exposed_copy_ns
        assert each.cost.lost.hour == pytest.approx(2.5 * lost / each.window_ns, abs=1e-6)
    assert from_json(to_json(fresh), Report) == fresh


def test_settings_tell_the_prices() -> None:
    prices = CostSettings(gpu_hour_cost=2.5, currency="EUR", gpus={"H100": 3.2, "RTX 4090": 0.4})
    assert Settings(cost=prices).changed() == {
        "cost": {"gpu_hour_cost": 2.5, "currency": "EUR", "gpus": {"H100": 3.2, "RTX 4090": 0.4}}
    }
    assert msgspec.structs.replace(Settings(), cost=CostSettings()).changed() == {}
