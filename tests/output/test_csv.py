"""CSV: numbers are numbers, text is text, and no cell is a formula."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nsysdiag.output import FORMATS, TABLES, RenderOptions, table_path, tables
from nsysdiag.output.csv_ import FORMULA_STARTS, _text
from nsysdiag.output.names import visible
from tests.output.samples import SAMPLES


def rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_table_is_rectangular(sample: str) -> None:
    for name, data in tables(SAMPLES[sample]()).items():
        header, *body = rows(data)
        assert header[0] == {"threads": "process_id", "host_windows": "start_ns"}.get(name, "device"), name
        assert all(len(row) == len(header) for row in body), name
        assert len(set(header)) == len(header)
        assert data.endswith(b"\r\n")


def test_gaps_are_the_main_table() -> None:
    report = SAMPLES["one_device"]()
    assert tables(report)["gaps"] == FORMATS["csv"].render(report, RenderOptions())
    assert "gaps" not in TABLES
    assert set(tables(report)) == {"gaps", *TABLES}


def test_numbers_stay_numbers() -> None:
    report = SAMPLES["one_device"]()
    header, *body = rows(tables(report)["gaps"])
    for gap, row in zip(report.devices[0].gaps, body, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert int(cells["end_ns"]) - int(cells["start_ns"]) == int(cells["length_ns"]) == gap.end_ns - gap.start_ns
        assert sum(int(part.split(":")[1]) for part in cells["slices_ns"].split(";")) == int(cells["length_ns"])


def test_ledger_adds_up() -> None:
    report = SAMPLES["one_device"]()
    header, *body = rows(tables(report)["ledger"])
    assert sum(int(row[header.index("idle_ns")]) for row in body) == report.devices[0].idle_ns


def test_iterations_add_up() -> None:
    report = SAMPLES["one_device"]()
    header, *body = rows(tables(report)["iterations"])
    assert len(body) == 20
    for row in body:
        cells = dict(zip(header, row, strict=True))
        work = sum(int(cells[f"{name}_ns"]) for name in ("compute", "exposed_comm", "exposed_copy"))
        ledger = sum(int(part.split(":")[1]) for part in cells["ledger_ns"].split(";"))
        assert ledger == int(cells["idle_ns"])
        assert work + ledger == int(cells["length_ns"]) == int(cells["end_ns"]) - int(cells["start_ns"])
    assert [row[header.index("steady")] for row in body].count("false") == 2


def test_no_cell_is_a_formula_and_none_holds_control_characters() -> None:
    for data in tables(SAMPLES["hostile"]()).values():
        for cell in (cell for row in rows(data) for cell in row):
            assert not cell.lstrip(" ").startswith(FORMULA_STARTS)
            assert cell.isprintable()


@pytest.mark.parametrize("name", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", " =1", "＝1"])
def test_formulas_get_an_apostrophe(name: str) -> None:
    assert _text(name) == "'" + visible(name)


@given(st.text())
@example("'=1")
def test_other_text_is_left_alone(name: str) -> None:
    if not name.lstrip(" ").startswith(FORMULA_STARTS):
        assert _text(name) == visible(name)


def test_other_tables_lie_beside_the_gaps() -> None:
    assert table_path(Path("out/x.csv"), "ledger") == Path("out/x.ledger.csv")
    assert table_path(Path("a.b.CSV"), "api") == Path("a.b.api.CSV")
