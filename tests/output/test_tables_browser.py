"""The tables of the page as tools, in a real browser: order, filter, pages, copies, CSV, links and paper."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import nsysdiag
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.report import Gap, Report, Slice
from tests.output.browser import Chromium
from tests.output.reader import Reader
from tests.output.samples import SAMPLES, device, finding, gap, kernel, report

pytestmark = [pytest.mark.browser, pytest.mark.slow]

US = 1000
WILD = "=cmd|=x @user"
COPIED = "=cmd|'=x @user"
FIRST, SECOND, LAST = "0.100000 s", "0.102000 s", "0.148000 s"


def waiting_gap(index: int) -> Gap:
    """Gap 0 is the longest and first of 25, each next one 1 µs shorter and 2 ms later; every fifth waits for I/O."""
    made = gap(index)
    whole = [Slice(cause="io_wait", ns=made.end_ns - made.start_ns, evidence="read of a file")]
    return msgspec.structs.replace(made, slices=made.slices if index % 5 else whole)


def tool_report() -> Report:
    """25 gaps, 25 kernels, one of a wild name, and eight findings, two of them of high severity."""
    kernels = [kernel(WILD if index == 0 else f"kernel_{index:02}", (500 - index) * US) for index in range(25)]
    findings = [finding(f"f-{index}", severity="high" if index < 2 else "low") for index in range(8)]
    gaps = [waiting_gap(index) for index in range(25)]
    return report([device(gaps=gaps, gap_count=25, kernels=kernels)], findings)


@pytest.fixture(scope="module")
def one_reader(chromium: Chromium, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("tables")
    with Reader(chromium) as reader:
        reader.file = folder / "page.html"
        reader.file.write_bytes(FORMATS["html"].render(tool_report(), RenderOptions()))
        yield reader


@pytest.fixture
def reader(one_reader: Reader) -> Iterator[Reader]:
    """The page as it comes; afterwards nothing was written to the console, and nothing but the page was asked for."""
    one_reader.value("try { localStorage.clear() } catch (error) { 0 }")
    one_reader.console.clear()
    one_reader.requests.clear()
    one_reader.start()
    yield one_reader
    assert one_reader.console == []
    asked = [address for address in one_reader.requests if not address.startswith(("data:", "about:", "blob:"))]
    assert {address.partition("#")[0] for address in asked} <= {one_reader.file.as_uri()}


def header(table: str, number: int) -> str:
    return f"#{table} table[data-first] thead th:nth-child({number + 1}) button"


def order_of(reader: Reader, table: str, number: int) -> str | None:
    code = f"document.querySelector({header(table, number)!r}).parentElement.getAttribute('aria-sort')"
    found: str | None = reader.value(code)
    return found


class TestOrder:
    def test_a_click_sorts_numbers_from_the_top_and_the_next_one_turns_them(self, reader: Reader) -> None:
        assert reader.column("gaps", 1)[:2] == [FIRST, SECOND]
        reader.click_on(header("gaps", 1))
        assert reader.column("gaps", 1)[0] == LAST
        assert order_of(reader, "gaps", 1) == "descending"
        reader.click_on(header("gaps", 1))
        assert reader.column("gaps", 1)[0] == FIRST
        assert order_of(reader, "gaps", 1) == "ascending"
        assert order_of(reader, "gaps", 0) is None

    def test_the_keyboard_sorts_too_and_it_is_announced(self, reader: Reader) -> None:
        reader.value(f"document.querySelector({header('kernels', 8)!r}).focus()")
        reader.key("Enter")
        assert reader.column("kernels", 8)[0].startswith(WILD)
        assert "sorted by Kernel, ascending" in reader.text("#kernels [role=status]")

    def test_evidence_stays_with_its_gap(self, reader: Reader) -> None:
        reader.click_on(header("gaps", 1))
        first = "#gaps tbody:not([hidden])"
        assert reader.text(f"{first} summary") == "cudaStreamSynchronize on thread 4242, row 24"


class TestFilter:
    def test_all_words_must_be_in_a_record(self, reader: Reader) -> None:
        reader.write("#gaps .tools input", "0.11 SYNCHRO")
        # Of those that start at 0.110 to 0.118 s, the first waits for I/O.
        assert reader.text("#gaps [role=status] span") == "4 of 25 shown"
        assert reader.column("gaps", 1) == ["0.112000 s", "0.114000 s", "0.116000 s", "0.118000 s"]

    def test_by_cause(self, reader: Reader) -> None:
        reader.choose("#gaps .tools select", "Waiting for I/O")
        assert reader.column("gaps", 1) == ["0.100000 s", "0.110000 s", "0.120000 s", "0.130000 s", "0.140000 s"]

    def test_nothing_left(self, reader: Reader) -> None:
        reader.write("#kernels .tools input", "no such kernel")
        assert reader.column("kernels", 0) == []
        assert reader.text("#kernels [role=status] span") == "none of 25 shown"

    def test_findings_by_severity(self, reader: Reader) -> None:
        reader.choose("#findings .tools select", "high")
        assert reader.value("document.querySelectorAll('.finding:not([hidden])').length") == 2
        assert reader.text("#findings [role=status]") == "2 of 8 shown"


class TestPages:
    def test_the_buttons_turn_them(self, reader: Reader) -> None:
        assert reader.text("#gaps [role=status] span") == "1–20 of 25 shown"
        reader.click_on("#gaps .pages button[aria-label='Next page']")
        assert len(reader.column("gaps", 0)) == 5
        assert reader.text("#gaps [role=status] span") == "21–25 of 25 shown"
        assert reader.value("document.querySelector('#gaps .pages button[aria-label=\"Next page\"]').disabled")

    def test_rows_of_a_page(self, reader: Reader) -> None:
        reader.choose("#gaps .pages select", "10")
        assert len(reader.column("gaps", 0)) == 10
        reader.choose("#gaps .pages select", "0")
        assert len(reader.column("gaps", 0)) == 25

    def test_arrows_go_from_row_to_row_and_page_down_turns(self, reader: Reader) -> None:
        reader.value("document.querySelector('#gaps tbody tr').focus()")
        reader.key("ArrowDown")
        assert SECOND in reader.focused()
        reader.key("PageDown")
        assert "0.140000 s" in reader.focused()
        assert len(reader.column("gaps", 0)) == 5
        reader.key("PageUp")
        assert FIRST in reader.focused()

    def test_only_one_row_is_a_stop_of_the_tab_key(self, reader: Reader) -> None:
        assert reader.value("document.querySelectorAll('#gaps tr[tabindex=\"0\"]').length") == 1

    def test_enter_opens_the_evidence_of_a_row(self, reader: Reader) -> None:
        reader.value("document.querySelector('#gaps tbody tr').focus()")
        reader.key("Enter")
        assert reader.value("document.querySelector('#gaps tbody details').open")


class TestTakeAlong:
    def test_a_row_as_text_and_as_markdown(self, reader: Reader) -> None:
        reader.value("document.querySelector('#kernels tbody tr').focus()")
        reader.click_on("#kernels .row-tools button")
        assert (
            reader.value("window.copied").split("\t")[-1]
            == f"'{COPIED} void {COPIED}<float, 4>(float const*, float*, int)"
        )
        reader.click_on("#kernels .row-tools button + button")
        title, rule, row = reader.value("window.copied").split("\n")
        assert title.endswith("| Longest | Kernel |")
        assert rule.endswith("| ---: | --- |")
        assert "=cmd\\|=x @<!-- -->user void" in row

    def test_the_table_as_markdown_is_what_was_found(self, reader: Reader) -> None:
        reader.choose("#gaps .tools select", "Waiting for I/O")
        reader.click_on("#gaps .take button")
        assert len(reader.value("window.copied").split("\n")) == 2 + 5

    def test_a_finding_as_markdown(self, reader: Reader) -> None:
        reader.click_on("#f-0 button.copy")
        assert "The step ends in a stream synchronisation" in reader.value("window.copied")
        assert reader.text("#f-0 button.copy") == "Copied"

    def test_csv_has_plain_numbers_and_no_formulas(self, reader: Reader, tmp_path: Path) -> None:
        written = tmp_path / "train.kernels.csv"
        reader.taken("#kernels .take button + button", written)
        with written.open(encoding="utf-8", newline="") as file:
            title, *rows = list(csv.reader(file))
        assert title[:3] == ["Total (ns)", "Of window", "Runs"]
        assert len(rows) == 25
        assert rows[0][:3] == ["500000", "0.5%", "100"]
        assert rows[0][-1].startswith("'=cmd|'=x @user void")


class TestLinks:
    def test_a_link_brings_everything_back(self, reader: Reader) -> None:
        reader.click_on(header("gaps", 1))
        reader.write("#gaps .tools input", "step")
        reader.choose("#gaps .tools select", "Waiting in a synchronisation")
        reader.choose("#gaps .pages select", "10")
        reader.click_on("#gaps .pages button[aria-label='Next page']")
        reader.write("#kernels .tools input", "kernel_2")
        reader.choose("#findings .tools select", "low")
        reader.click_on("button.theme")
        reader.until("location.hash.includes('theme=')")
        link = reader.value("location.hash")
        shown = [
            reader.column("gaps", 1),
            reader.column("kernels", 8),
            reader.value("document.documentElement.dataset.theme"),
        ]
        assert len(shown[0]) == 10
        reader.value("localStorage.clear()")
        reader.start(link)
        assert reader.value("document.documentElement.dataset.theme") == shown[2] == "dark"
        assert [reader.column("gaps", 1), reader.column("kernels", 8)] == shown[:2]
        assert reader.value("document.querySelector('#gaps .tools input').value") == "step"
        assert order_of(reader, "gaps", 1) == "descending"
        assert reader.value("document.querySelectorAll('.finding:not([hidden])').length") == 6

    def test_what_others_wrote_stays(self, reader: Reader) -> None:
        reader.start("#t=100-200&g=0.150")
        reader.click_on(header("gaps", 1))
        reader.until("location.hash.includes('gaps.sort')")
        assert reader.value("location.hash") == "#t=100-200&g=0.150&gaps.sort=-1"

    def test_an_anchor_beside_a_state_leads_there(self, reader: Reader) -> None:
        reader.start("#kernels&gaps.sort=-1", unfold=False)
        assert reader.value("document.querySelector('#kernels > details').open")
        assert reader.column("gaps", 1)[0] == LAST
        assert abs(reader.value("document.getElementById('kernels').getBoundingClientRect().top")) < 40

    def test_a_link_of_the_page_keeps_the_state(self, reader: Reader) -> None:
        reader.start("#gaps.sort=-1")
        reader.click_on(".contents a[href='#kernels']")
        reader.until("location.hash === '#kernels&gaps.sort=-1'")
        assert reader.column("gaps", 1)[0] == LAST

    def test_another_state_by_hand(self, reader: Reader) -> None:
        reader.value("location.hash = '#gaps.rows=10'")
        reader.until("document.querySelector('#gaps .pages select').value === '10'")
        assert len(reader.column("gaps", 0)) == 10

    def test_nonsense_is_left_alone(self, reader: Reader) -> None:
        reader.start("#gaps.sort=99&gaps.page=-3&gaps.rows=x&gaps.2=none&findings.severity=?&%E0%A4=%E0%A4")
        assert len(reader.column("gaps", 0)) == 20


@pytest.mark.sampled(normal=2)
@pytest.mark.parametrize("place", ["#f-7", "#f-7&gaps.sort=-1"])
def test_a_link_to_a_folded_finding_opens_it(place: str, reader: Reader) -> None:
    reader.start(place)
    folds = "Array.from(document.querySelectorAll('.finding details.more'), (each) => each.open)"
    assert reader.value(folds) == [False] * 5 + [True]
    reader.click_on("#f-6 a.anchor")
    reader.until("document.querySelector('#f-6 details.more').open")


def test_paper_has_every_device_and_what_is_folded(chromium: Chromium, tmp_path: Path) -> None:
    """By the style of paper alone, as without scripts nothing is opened for it."""
    with Reader(chromium) as reader:
        reader.file = tmp_path / "page.html"
        reader.file.write_bytes(FORMATS["html"].render(SAMPLES["several_devices"](), RenderOptions()))
        reader.start("#theme=dark")
        reader.media("print")
        seen = (
            "((each) => each.checkVisibility({contentVisibilityAuto: true}) && each.getBoundingClientRect().height > 0)"
        )
        for place in (
            "#gpu-0-ledger .ledger tbody",
            "#gpu-2-ledger .ledger tbody",
            "#gpu-0-gaps .slices",
            ".still svg",
        ):
            assert reader.value(f"{seen}(document.querySelector('{place}'))"), place
        for place in ("#gpu-2-launches", ".stage", ".contents", ".tools", "button.copy"):
            assert not reader.value(f"{seen}(document.querySelector('{place}'))"), place
        assert reader.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert reader.value("document.documentElement.scrollWidth <= innerWidth")
        reader.media("screen")


@pytest.mark.thorough
def test_paper_with_and_without_scripts(chromium: Chromium, demo: nsysdiag.Report, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(FORMATS["html"].render(demo, RenderOptions()))
    for scripts in (True, False):
        with Reader(chromium, scripts=scripts) as reader:
            reader.file = page
            reader.open(page.as_uri())
            assert 3 <= reader.printed() <= 9


def test_without_scripts_all_is_there_to_read(chromium: Chromium, tmp_path: Path) -> None:
    with Reader(chromium, scripts=False) as reader:
        reader.file = tmp_path / "page.html"
        reader.file.write_bytes(FORMATS["html"].render(tool_report(), RenderOptions()))
        reader.start()
        assert reader.value("document.documentElement.className") == ""
        visible = "(each) => each.checkVisibility() && each.getBoundingClientRect().height > 0"
        assert reader.value(f"Array.from(document.querySelectorAll('.finding')).filter({visible}).length") == 8
        assert reader.value(f"Array.from(document.querySelectorAll('#gaps tbody')).filter({visible}).length") == 25
        assert (
            reader.value(f"Array.from(document.querySelectorAll('button, input, select')).filter({visible}).length")
            == 0
        )


@pytest.mark.sampled(normal=2)
@pytest.mark.parametrize("place", ["#gpu-2-ledger", "#gpu-2-ledger&gpu-2-gaps.sort=-1"])
def test_a_link_into_a_folded_device_unfolds_it(place: str, chromium: Chromium, tmp_path: Path) -> None:
    with Reader(chromium) as reader:
        reader.file = tmp_path / "page.html"
        reader.file.write_bytes(FORMATS["html"].render(SAMPLES["several_devices"](), RenderOptions()))
        reader.start(place)
        folds = "Array.from(document.querySelectorAll('details.device'))"
        assert reader.value(f"{folds}.map((each) => each.open)") == [True, False, True, False]
        assert reader.value("document.getElementById('gpu-2-ledger').checkVisibility()")
