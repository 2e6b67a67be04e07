"""What lost time costs, in every format that tells it: the same amounts, and nothing without a price."""

from __future__ import annotations

import csv
import io

import pytest

from nsysdiag.config.settings import CostSettings
from nsysdiag.cost.cost import priced
from nsysdiag.cost.show import cost_lines, cost_rows, price_sentences
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.tables import tables
from tests.output.page import Element
from tests.output.rendered import tree
from tests.output.samples import SAMPLES, device, finding, report


def shown(name: str, sample: str = "priced") -> str:
    return FORMATS[name].render(SAMPLES[sample](), RenderOptions(width=160, details=True)).decode()


def section(sample: str) -> Element | None:
    found = [each for each in tree(sample).all("section") if each.attributes["id"] == "cost"]
    return found[0] if found else None


def test_one_device_in_sentences() -> None:
    """40 + 10 + 5 of 100 ms at 2.50; 1,000 steps of 5 ms; the ceiling of the finding is 21 ms."""
    settings = CostSettings(gpu_hour_cost=2.5, run_hours=72, currency="EUR")
    assert cost_lines(priced(report([device()], [finding()]), settings)) == [
        "1.38 EUR of 2.50 EUR an hour is lost, 55.0%: idle 1.00 EUR, exposed communication 0.250 EUR, "
        "exposed copies 0.125 EUR.",
        "1,000 steps cost 0.00347 EUR, 0.00191 EUR of it lost.",
        "A run of 72 h loses 99.00 EUR, if the whole run is like this window.",
        "Fixing “The step ends in a stream synchronisation” saves at best 0.525 EUR an hour, 37.80 EUR a run, "
        "0.000729 EUR in 1,000 steps.",
    ]


def test_one_device_without_run_steps_or_findings() -> None:
    made = priced(report([device(iterations=None, exposed_comm_ns=0)], []), CostSettings(gpu_hour_cost=2.5))
    assert cost_lines(made) == [
        "1.12 USD of 2.50 USD an hour is lost, 45.0%: idle 1.00 USD, exposed copies 0.125 USD.",
        "Each hour loses that much if the whole run is like this window.",
    ]


def test_a_device_without_a_finding_has_no_saving_in_the_tables() -> None:
    made = priced(report([device()], []), CostSettings(gpu_hour_cost=2.5))
    assert [row.kind for row in cost_rows(made)] == ["part", "part", "part", "sum"]
    rows = csv.DictReader(io.StringIO(tables(made)["cost"].decode(), newline=""))
    assert [row["what"] for row in rows] == ["idle", "exposed_comm", "exposed_copy", "lost"]


def test_a_report_without_a_price_has_no_sentences() -> None:
    assert cost_lines(report([device()], [finding()])) == []
    assert cost_rows(report([device()], [finding()])) == []


def test_several_devices_in_a_line_each() -> None:
    lines = cost_lines(SAMPLES["priced"]())
    assert lines[0].startswith("2 GPUs together: 2.75 USD of 5.00 USD an hour is lost, 55.0%: idle 2.00 USD, ")
    assert lines[0].endswith("A run of 72 h loses 198.00 USD, if the whole run is like this window.")
    assert [line.split(":")[0] for line in lines[1:]] == ["gpu0", "gpu1"]
    assert "fixing “The input pipeline is late” saves at best 0.525 USD an hour" in lines[2]


def test_rows_of_the_table() -> None:
    rows = [
        (row.device, row.what, row.amount.hour, row.amount.run, row.amount.thousand_steps)
        for row in cost_rows(SAMPLES["priced"]())
    ]
    assert rows[3] == ("2 GPUs together", "Lost together", 2.75, 198.0, 0.00381944)
    assert rows[4:8] == [
        ("gpu0", "Idle", 1.0, 72.0, 0.00138889),
        ("gpu0", "Exposed communication", 0.25, 18.0, 0.000347222),
        ("gpu0", "Exposed copies", 0.125, 9.0, 0.000173611),
        ("gpu0", "Lost together", 1.375, 99.0, 0.00190972),
    ]
    assert rows[8][1].startswith("At best saved by fixing “The step ends")


def test_of_many_devices_the_sums_alone() -> None:
    """Eight GPUs: four rows of all together, and two of each."""
    findings = [finding(f"f-{at}", device=f"gpu{at}") for at in range(8)]
    made = priced(report([device(at) for at in range(8)], findings), CostSettings(gpu_hour_cost=2.5))
    rows = cost_rows(made)
    assert [row.kind for row in rows] == ["part", "part", "part", "sum", *["sum", "best"] * 8]
    assert (rows[3].device, rows[3].amount.hour) == ("8 GPUs together", 11.0)
    assert price_sentences(made) == [
        "An hour of gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, gpu6, gpu7 costs 2.50 USD; a step costs 0.00000347 USD."
    ]


def test_savings_are_never_added_up() -> None:
    """The rows of all devices together have no saving, since those of two findings may overlap."""
    together = [row.kind for row in cost_rows(SAMPLES["priced"]()) if row.device == "2 GPUs together"]
    assert together == ["part", "part", "part", "sum"]


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("name", ["html", "md"])
def test_what_the_amounts_rest_on(name: str) -> None:
    text = shown(name)
    assert "An hour of gpu0 costs 2.50 USD, the price for “H100”; a step costs 0.00000347 USD." in text
    assert "There is no price for gpu2, NVIDIA H100 80GB HBM3." in text
    assert "The amounts hold if the whole run is like this window." in text
    assert "do not add them up" in text
    assert "A run of 72 h" in text


def test_text_tells_it_before_the_findings() -> None:
    text = shown("txt")
    assert text.index("What it costs") < text.index("Findings")


def test_markdown_is_a_table() -> None:
    line = "| **Lost together** | **gpu0** | **1.38 USD** | **99.00 USD** | **0.00191 USD** |"
    assert line in shown("md").splitlines()


@pytest.mark.slow
def test_html_has_a_row_for_each_amount() -> None:
    found = section("priced")
    assert found is not None
    assert len(found.all("tr")) == 1 + 2 * 5 + 4
    assert "198.00 USD" in found.whole_text()


@pytest.mark.sampled(normal=3)
@pytest.mark.parametrize("sample", ["one_device", "several_devices", "no_device"])
def test_without_a_price_nothing_is_said(sample: str) -> None:
    assert section(sample) is None
    assert "What it costs" not in shown("txt", sample)
    assert "What it costs" not in shown("md", sample)
    assert tables(SAMPLES[sample]())["cost"].count(b"\r\n") == 1


def test_numbers_of_the_csv_table() -> None:
    rows = list(csv.DictReader(io.StringIO(tables(SAMPLES["priced"]())["cost"].decode(), newline="")))
    first = [(row["device"], row["what"], float(row["hour"]), float(row["run"])) for row in rows[:5]]
    assert first == [
        ("gpu0", "idle", 1.0, 72.0),
        ("gpu0", "exposed_comm", 0.25, 18.0),
        ("gpu0", "exposed_copy", 0.125, 9.0),
        ("gpu0", "lost", 1.375, 99.0),
        ("gpu0", "best", 0.525, 37.8),
    ]
    assert {row["finding"] for row in rows} == {"", "f-sync-1a2b", "f-2"}
    assert {float(row["step"]) for row in rows} == {0.00000347222}
