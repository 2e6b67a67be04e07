"""CSV: numbers are numbers, text is text, and no cell is a formula."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nsysdiag.document.columns import Cell
from nsysdiag.document.names import visible
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.tables import FORMULA_STARTS, TABLES, _text, csv_of, table_path, tables
from tests.output.rendered import EVERY_SAMPLE
from tests.output.samples import SAMPLES


def rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))


OF_NO_DEVICE = {"threads": "process_id", "host_windows": "start_ns", "critical_path": "name"}
"""The first columns of tables that are about no device."""


@pytest.mark.parametrize("sample", EVERY_SAMPLE)
def test_every_table_is_rectangular(sample: str) -> None:
    for name, data in tables(SAMPLES[sample]()).items():
        header, *body = rows(data)
        assert header[0] == OF_NO_DEVICE.get(name, "device"), name
        assert all(len(row) == len(header) for row in body), name
        assert len(set(header)) == len(header)
        assert data.endswith(b"\r\n")


def test_gaps_are_the_main_table() -> None:
    report = SAMPLES["one_device"]()
    assert tables(report)["gaps"] == FORMATS["csv"].render(report, RenderOptions())
    assert "gaps" not in TABLES
    assert set(tables(report)) == {"gaps", *TABLES}


NUMBER = re.compile(r"-?[\d.]+(e-?\d+)?")
START = re.compile(r"[ \"]*[-=+@＝＋－＠]")
INJECTED = ("=1+1", "+1", "-1", "@x", "＝1", " =1", '"=1', ' ""=1', "'=1", "\t=1", "=cmd|' /C calc'!A0")
SEPARATORS = (",", ";", "|", "\t", "\n")


def formulas(data: bytes, separator: str) -> list[str]:
    """The cells that a spreadsheet takes for formulas, in a locale with this separator; a negative number is none."""
    text = io.StringIO(data.decode(), newline="")
    cells = [cell for row in csv.reader(text, delimiter=separator) for cell in row]
    return [cell for cell in cells if START.match(cell) and not NUMBER.fullmatch(cell.partition(",")[0])]


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
def test_no_cell_is_a_formula_in_any_locale(separator: str) -> None:
    for data in tables(SAMPLES["hostile"]()).values():
        assert not formulas(data, separator)


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
@pytest.mark.parametrize("between", SEPARATORS)
def test_nor_behind_a_separator(between: str, separator: str) -> None:
    for name in INJECTED:
        cells: list[Cell] = [
            f"a{between}{name}{between}{name}",
            f"{name}{between}",
            f'"{between}{name}"',
            between,
            -5,
            -1.5,
        ]
        data = csv_of(["first", "second", "third", "fourth", "fifth", "sixth"], [cells, cells[::-1]])
        assert not formulas(data, separator), name
        assert all(len(row) == len(cells) for row in rows(data)), name
        assert rows(data)[1][4:] == ["-5", "-1.5"], name


@given(st.lists(st.text(alphabet=";|, \t\"'=+-@a1\n＝"), min_size=3, max_size=3), st.sampled_from(",;|\t"))
def test_nor_in_any_text(texts: list[str], separator: str) -> None:
    data = csv_of(["first", "second", "third"], [texts, texts])
    assert not formulas(data, separator)
    assert [[cell.replace("'", "") for cell in row] for row in rows(data)[1:]] == [
        [visible(text).replace("'", "") for text in texts]
    ] * 2


def test_none_holds_control_characters() -> None:
    for data in tables(SAMPLES["hostile"]()).values():
        assert all(cell.isprintable() for row in rows(data) for cell in row)


def test_a_cell_with_the_separator_of_any_locale_is_quoted() -> None:
    """So that the first cell of a line is not taken apart anywhere."""
    data = csv_of(["a", "b", "c", "d"], [["x;y", "x|y", "x,y", "xy"]])
    assert data == b'a,b,c,d\r\n"x;y","x|y","x,y",xy\r\n'


@pytest.mark.parametrize("name", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", " =1", "＝1"])
def test_formulas_get_an_apostrophe(name: str) -> None:
    assert _text(name) == "'" + visible(name)


@pytest.mark.parametrize(
    ("name", "cell"),
    [("a;=1", "a;'=1"), ("a|-1", "a|'-1"), ('a; "@x', "a;' \"@x"), ("a;'=1", "a;'=1"), ("=1;+1", "'=1;'+1")],
)
def test_and_so_do_those_behind_a_separator(name: str, cell: str) -> None:
    assert _text(name) == cell


@given(st.text())
@example("'=1")
@example("f<1, -1>(a - b)")
def test_other_text_is_left_alone(name: str) -> None:
    if not name.lstrip(" ").startswith(FORMULA_STARTS) and not re.search(
        r"(^|[;|])[ \"]*[-=+@＝＋－＠]", visible(name)
    ):
        assert _text(name) == visible(name)


def test_other_tables_lie_beside_the_gaps() -> None:
    assert table_path(Path("out/x.csv"), "ledger") == Path("out/x.ledger.csv")
    assert table_path(Path("a.b.CSV"), "api") == Path("a.b.api.CSV")
