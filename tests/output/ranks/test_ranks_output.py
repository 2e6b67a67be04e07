"""The outputs of `nsysdiag ranks`: the same facts in each, and names that can do nothing."""

from __future__ import annotations

import csv
import io
import re
from functools import cache

import pytest
from msgspec.structs import replace

from nsysdiag.document.view import Causes
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.tables import FORMULA_STARTS
from nsysdiag.ranks.show import blocks
from nsysdiag.ranks.show.registry import RENDERERS, TABLES, tables
from tests.output.page import Element, parse
from tests.output.rank_samples import comparison, ranks_report
from tests.output.samples import HOSTILE

OPTIONS = RenderOptions(width=80, command="nsysdiag ranks train.sqlite second.sqlite")


@cache
def plain(name: str) -> str:
    return RENDERERS[name](ranks_report(), OPTIONS).decode()


@cache
def hostile(name: str) -> str:
    report = ranks_report(comparison(HOSTILE, HOSTILE), file="".join(HOSTILE))
    return RENDERERS[name](report, OPTIONS).decode()


def rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline="")))


def test_there_is_one_for_every_format_but_those_about_one_trace() -> None:
    assert RENDERERS.keys() == FORMATS.keys() - {"prom", "perfetto", "folded", "speedscope", "junit", "sarif"}


@pytest.mark.parametrize("name", RENDERERS)
def test_each_is_taken_for_our_own(name: str) -> None:
    assert FORMATS[name].is_ours(RENDERERS[name](ranks_report(), OPTIONS))


def test_every_table_is_taken_for_our_own() -> None:
    assert [name for name, data in tables(ranks_report()).items() if not FORMATS["csv"].is_ours(data)] == []
    assert set(tables(ranks_report())) == {"ranks", *TABLES}


@pytest.mark.parametrize("name", RENDERERS)
def test_same_report_same_bytes(name: str) -> None:
    assert RENDERERS[name](ranks_report(), OPTIONS) == RENDERERS[name](ranks_report(), OPTIONS)


@pytest.mark.parametrize("name", ["html", "md", "txt"])
def test_each_says_who_is_late_why_and_how_sure_that_is(name: str) -> None:
    text = " ".join(re.sub(r"<[^>]*>|\\", " ", plain(name)).split())
    for fact in (
        "gpu1 is late for 12 of 40 collectives",
        "9.00 ms",
        "7.20 ms",
        "Host code",
        "1.20 µs",
        "ReduceScatter",
    ):
        assert fact in text, fact


def test_rows_of_csv() -> None:
    found = {name: rows(data) for name, data in tables(ranks_report()).items()}
    assert [row["rank"] for row in found["ranks"]] == ["gpu0", "gpu1", "gpu2", "gpu3"]
    assert [row["late_ns"] for row in found["ranks"]] == ["0", "9000000", "0", "0"]
    assert found["stragglers"][0]["more_ns"] == "host_compute:7200000;compute:1800000"
    assert found["collectives"][0]["ranks"] == "gpu0;gpu1;gpu2;gpu3"
    assert [row["late_rank"] for row in found["waits"]] == ["gpu1", "gpu1", "gpu1", ""]


class TestHostileNames:
    def test_are_no_formula(self) -> None:
        for data in tables(ranks_report(comparison(HOSTILE, HOSTILE))).values():
            for row in rows(data):
                for cell in row.values():
                    assert not cell.lstrip(" ").startswith(FORMULA_STARTS)
                    assert cell.isprintable()

    @pytest.mark.parametrize("name", ["md", "txt", "html"])
    def test_leave_no_control_characters(self, name: str) -> None:
        assert all(line.isprintable() for line in hostile(name).split("\n") if "<" not in line)
        assert "\x1b" not in hostile(name)

    def test_bring_no_element_into_the_page(self) -> None:
        assert tags(hostile("html")) <= tags(plain("html")) | {"title"}
        assert "<img" not in hostile("html")

    def test_bring_no_element_into_markdown(self) -> None:
        bare = re.sub(r"(`+).+?\1", "", hostile("md"))
        assert not re.search(r"(?<!\\)<(?!!-- -->|!-- nsysdiag)", bare)

    def test_rows_of_markdown_keep_their_cells(self) -> None:
        for table in re.findall(r"(?:^\| .*\n)+", hostile("md"), re.MULTILINE):
            rows = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table.splitlines()]
            assert len(set(rows)) == 1


def tags(page: str) -> set[str]:
    return {element.tag for element in tree(page).walk()}


def tree(page: str) -> Element:
    return parse(page.encode())


class TestPage:
    def test_refers_to_nothing_outside(self) -> None:
        for element in tree(plain("html")).walk():
            for name in ("src", "href", "action", "data"):
                assert element.attributes.get(name, "#").startswith(("#", "data:,"))
            assert not [name for name in element.attributes if name.startswith("on") or name == "style"]

    def test_has_a_bar_and_a_row_for_each_rank(self) -> None:
        first = tree(plain("html")).all("table")[0]
        assert len(first.all("tbody")) == 4
        assert len([svg for svg in first.all("svg") if svg.attributes.get("class") == "stack small"]) == 4

    def test_tables_have_captions(self) -> None:
        assert all(table.all("caption") for table in tree(plain("html")).all("table"))

    def test_anchors_lead_somewhere(self) -> None:
        root = tree(plain("html"))
        ids = [element.attributes["id"] for element in root.walk() if "id" in element.attributes]
        links = [element.attributes["href"][1:] for element in root.all("a")]
        assert set(links) <= set(ids)
        assert len(set(ids)) == len(ids)


class TestWords:
    def test_unknown_clocks(self) -> None:
        said = blocks.clock_sentence(
            replace(comparison(), clock="by the session start times alone", clock_error_ns=None)
        )
        assert said.endswith("their offset is unknown, so late ranks are not reported across them.")

    def test_one_clock_has_no_error(self) -> None:
        found = replace(comparison(), clock="one file, one clock", clock_error_ns=0)
        assert blocks.clock_sentence(found) == "Clocks: one file, one clock."

    def test_reasons_are_cut_short_and_add_up(self) -> None:
        times = {"compute": 50, "exposed_comm": 20, "a": 15, "b": 10, "c": 5}
        assert blocks.reasons(times, Causes([])) == (
            "Compute 50 ns (50.0%), Exposed communication 20 ns (20.0%), a 15 ns (15.0%), 15 ns of others"
        )


def test_text_lists_the_first_ranks_and_counts_the_others() -> None:
    many = comparison([f"gpu{at}" for at in range(70)])
    text = RENDERERS["txt"](ranks_report(many), OPTIONS).decode()
    assert "64 of 70 ranks." in text
    assert ("gpu63 " in text, "gpu64 " in text) == (True, False)


def test_text_has_no_heading_without_lines() -> None:
    heads = ("Late", "Waits", "Collectives", "Not matched", "Trace health")
    calm = replace(comparison(), stragglers=[], waits=[], groups=[], unmatched=[])
    told, quiet = plain("txt"), RENDERERS["txt"](ranks_report(calm), OPTIONS).decode()
    assert len(quiet.splitlines()) < len(told.splitlines())
    assert [head for head in heads if head in quiet] != [head for head in heads if head in told]
