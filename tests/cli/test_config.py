"""`nsysdiag analyze` with --config and --gpu-hour-cost: options over the file, prices for a saved report."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.config.settings import CostSettings, Settings, Thresholds
from nsysdiag.document.one_line import command_of
from nsysdiag.record import to_json
from nsysdiag.report import Report
from nsysdiag.saved import from_json
from tests.output import samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import FakeAnalysis, Result

FILE = """
gaps = 50
disabled = ["sync"]
same_gpu = true
[thresholds]
busy = 0.1
[cost]
gpu_hour_cost = 1.5
currency = "EUR"
run_hours = 72
[cost.gpus]
H100 = 2.5
"""


@pytest.fixture
def config(folder: Path) -> str:
    (folder / "nsysdiag.toml").write_text(FILE)
    return "nsysdiag.toml"


class TestOfTheAnalysis:
    def test_the_file_is_used(
        self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis, config: str
    ) -> None:
        assert cli("analyze", trace, "--config", config).code == 0
        assert analysis.settings == Settings(
            gaps=50,
            disabled=("sync",),
            same_gpu=True,
            thresholds=Thresholds(busy=0.1),
            cost=CostSettings(gpu_hour_cost=1.5, currency="EUR", run_hours=72.0, gpus={"H100": 2.5}),
            config="nsysdiag.toml",
        )

    def test_options_win(self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis, config: str) -> None:
        """The price on the command line is that of every GPU; what it does not name stays."""
        options = ("--gaps", "200", "--disable", "io_wait", "--gpu-hour-cost", "9")
        assert cli("analyze", trace, *options, "--config", config).code == 0
        assert analysis.settings.gaps == 200
        assert analysis.settings.disabled == ("io_wait",)
        assert analysis.settings.same_gpu
        assert analysis.settings.cost == CostSettings(gpu_hour_cost=9.0, currency="EUR", run_hours=72.0)

    def test_zero_on_the_command_line_wins_too(
        self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis, config: str
    ) -> None:
        assert cli("analyze", trace, "--gaps", "0", "--config", config).code == 0
        assert analysis.settings.gaps == 0

    @pytest.mark.slow
    def test_a_file_is_looked_for_unless_refused(
        self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis, config: str
    ) -> None:
        assert cli("analyze", trace, "--no-config").code == 0
        assert analysis.settings == Settings()
        result = cli("analyze", trace)
        assert result.stderr.splitlines()[0] == "settings of ./nsysdiag.toml"
        assert analysis.calls[1][1].gaps == 50
        assert analysis.calls[1][1].config == "nsysdiag.toml"

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("gaps = -3", "nsysdiag: nsysdiag.toml: gaps is -3, but must be a whole number"),
            ("gaps =", "nsysdiag: nsysdiag.toml, line 1, column 7: "),
            ('disabled = ["lock_wai"]', "nsysdiag.toml: disabled: unknown cause 'lock_wai'; did you mean 'lock_wait'?"),
        ],
    )
    def test_a_wrong_file_is_refused_before_the_work(
        self, cli: Callable[..., Result], trace: Path, folder: Path, analysis: FakeAnalysis, text: str, words: str
    ) -> None:
        (folder / "nsysdiag.toml").write_text(text)
        result = cli("analyze", trace, "--config", "nsysdiag.toml")
        assert (result.code, result.stdout, analysis.calls) == (2, b"", [])
        assert words in result.stderr

    def test_a_missing_file(self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis) -> None:
        result = cli("analyze", trace, "--config", "none.toml")
        assert (result.code, analysis.calls) == (2, [])
        assert result.stderr.startswith("nsysdiag: there is no settings file none.toml\n")

    @pytest.mark.parametrize("price", ["0", "-1", "nan", "inf", "1e300"])
    def test_a_price_that_is_none(
        self, cli: Callable[..., Result], trace: Path, analysis: FakeAnalysis, price: str
    ) -> None:
        result = cli("analyze", trace, "--gpu-hour-cost", price)
        assert (result.code, analysis.calls) == (2, [])
        assert "--gpu-hour-cost must be a number above 0, 1,000,000 at most, not" in result.stderr


class TestOfASavedReport:
    @pytest.fixture
    def saved(self, folder: Path, analysis: FakeAnalysis) -> object:
        (folder / "report.json").write_bytes(to_json(samples.one_device()))
        yield "report.json"
        assert analysis.calls == []

    def test_can_be_given_a_price(self, cli: Callable[..., Result], saved: str) -> None:
        """40, 10 and 5 of 100 ms at 2.50 an hour."""
        result = cli("analyze", saved, "--gpu-hour-cost", "2.5", "-o", "-", "--format", "json")
        report = from_json(result.stdout, Report)
        assert report.settings == {"gaps": 200, "cost": {"gpu_hour_cost": 2.5}}
        (device,) = report.devices
        assert device.cost is not None
        assert device.cost.lost.hour == 1.375

    @pytest.mark.slow
    def test_says_what_is_lost(self, cli: Callable[..., Result], saved: str) -> None:
        text = cli("analyze", saved, "--gpu-hour-cost", "2.5", "--details").stdout.decode()
        assert "1.38 USD of 2.50 USD an hour is lost, 55.0%" in text

    def test_keeps_its_price_where_none_is_given(self, cli: Callable[..., Result], saved: str, folder: Path) -> None:
        assert cli("analyze", saved, "--gpu-hour-cost", "2.5", "-o", "priced.json").code == 0
        again = cli("analyze", "priced.json", "-o", "-", "--format", "json").stdout
        assert again == (folder / "priced.json").read_bytes()

    def test_takes_prices_from_a_file(self, cli: Callable[..., Result], saved: str, folder: Path) -> None:
        (folder / "prices.toml").write_text("[cost.gpus]\nH100 = 4")
        result = cli("analyze", saved, "--config", "prices.toml", "-o", "-", "--format", "json")
        report = json.loads(result.stdout)
        assert report["devices"][0]["cost"]["idle"]["hour"] == 1.6
        assert report["settings"] == {"config": "prices.toml", "cost": {"gpus": {"H100": 4.0}}, "gaps": 200}

    def test_says_where_no_price_fits(self, cli: Callable[..., Result], saved: str, folder: Path) -> None:
        (folder / "prices.toml").write_text("[cost.gpus]\nA100 = 4")
        result = cli("analyze", saved, "--config", "prices.toml", "-o", "x.md")
        assert result.code == 0
        assert "no price in [cost.gpus] is for NVIDIA H100 80GB HBM3" in result.stderr
        assert "What it costs" not in (folder / "x.md").read_text()

    def test_refuses_another_analysis(self, cli: Callable[..., Result], saved: str, config: str) -> None:
        result = cli("analyze", saved, "--config", config)
        assert result.code == 2
        assert "same_gpu, gaps, disabled, thresholds of nsysdiag.toml cannot be used with report.json" in result.stderr
        assert "[cost]" in result.stderr

    def test_takes_the_file_that_it_was_made_with(
        self, cli: Callable[..., Result], saved: str, folder: Path, config: str
    ) -> None:
        made_with = {"same_gpu": True, "gaps": 50, "disabled": ["sync"], "thresholds": {"busy": 0.1}}
        (folder / saved).write_bytes(to_json(replace(samples.one_device(), settings=made_with)))
        result = cli("analyze", saved, "--config", config, "-o", "-", "--format", "json")
        assert from_json(result.stdout, Report).devices[0].cost is not None


class TestCommandOfAReport:
    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize(
        "settings",
        [
            Settings(cost=CostSettings(gpu_hour_cost=2.5)),
            Settings(config="nsysdiag.toml", cost=CostSettings(gpu_hour_cost=9.0, currency="EUR", run_hours=72.0)),
            Settings(
                config="nsysdiag.toml",
                cost=CostSettings(gpu_hour_cost=1.5, currency="EUR", run_hours=72.0, gpus={"H100": 2.5}),
            ),
        ],
    )
    def test_it_reads_back(
        self,
        cli: Callable[..., Result],
        trace: Path,
        folder: Path,
        analysis: FakeAnalysis,
        settings: Settings,
    ) -> None:
        if settings.config:
            (folder / "nsysdiag.toml").write_text(FILE[FILE.index("[cost]") :])
        report = replace(samples.one_device(), settings=settings.changed())
        assert cli("analyze", trace, *shlex.split(command_of(report))[3:]).code == 0
        assert analysis.settings == settings


@pytest.mark.parametrize("name", ["prom", "perfetto"])
def test_ranks_have_no_such_format(cli: Callable[..., Result], folder: Path, name: str) -> None:
    """Refused before anything is read: the traces do not exist."""
    result = cli("ranks", "a.sqlite", "b.sqlite", "-o", "-", "--format", name)
    assert result.code == 2
    assert f"a comparison of ranks cannot be written as {name}" in result.stderr
    assert "html, json, md, txt, csv" in result.stderr
