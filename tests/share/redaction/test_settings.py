"""Settings of a redacted report: numbers stay, and what is named in them is public or replaced."""

from __future__ import annotations

import pytest

from nsysdiag.config.settings import CostSettings, Settings, Thresholds
from nsysdiag.share.names import Names, setting


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("nvtx", "train*", "range 1"),
        ("config", "acme.toml", "file 1"),
        ("device", "gpu0", "gpu0"),
        ("device", "1", "1"),
        ("device", "H200", "H200"),
        ("device", "acme", "pattern 1"),
        ("communication_patterns", ["nccl", "acme"], ["nccl", "pattern 1"]),
        ("disabled", ["sync", "acme"], ["sync", "cause 1"]),
        ("gaps", 10, 10),
        ("iterations", [3, None], [3, None]),
        ("gaps", "acme", "setting 1"),
        ("acme", "acme", "setting 1"),
    ],
)
def test_shown(name: str, value: object, shown: object) -> None:
    assert setting(Names(), name, value) == shown


def test_settings_of_numbers_stay() -> None:
    changed = Settings(thresholds=Thresholds(busy=0.25, launch_bound_gap_ns=7), start_ns=5, same_gpu=True).changed()
    assert {name: setting(Names(), name, value) for name, value in changed.items()} == changed


def test_prices_by_name() -> None:
    cost = CostSettings(gpu_hour_cost=2.5, currency="EUR", gpus={"H100": 3.0, "acme": 1e-5})
    text = Settings(cost=cost).changed()["cost"]
    gpus = {"H100": 3.0, "GPU 1": 1e-5}
    assert setting(Names(), "cost", text) == {"gpu_hour_cost": 2.5, "currency": "EUR", "gpus": gpus}
    odd = {"currency": "acme", "gpus": {"acme, of ann": 2.0, "b": "acme"}, "acme": 1}
    assert setting(Names(), "cost", odd) == {"currency": "currency 1", "gpus": {"GPU 1": 2.0}}


def test_a_currency_is_a_code_or_a_sign() -> None:
    assert [setting(Names(), "currency", text) for text in ("EUR", "€", "acme")] == ["EUR", "€", "currency 1"]
