"""The pages of a batch: the worst first, complete by themselves, deaf to the names in them."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise
from urllib.parse import unquote

import pytest
from msgspec.structs import replace

from nsysdiag.batch.results import OURS, write_all
from nsysdiag.document.names import visible
from nsysdiag.document.svg import curve_plot, spark_line
from nsysdiag.formats.batch import summary as history
from nsysdiag.formats.batch.entries import headline, result, rows
from nsysdiag.formats.batch.summary import link, render_page
from nsysdiag.formats.html.assets import content_hash
from tests.output.batch_samples import (
    BATCHES,
    CAUSES,
    HISTORIES,
    budget,
    device,
    entry,
    failed,
    line,
    no_work,
    summary,
    unjudged,
)
from tests.output.page import Element, parse
from tests.output.samples import HOSTILE, MS

PAGES = [(sample, page) for sample in BATCHES for page in ("index.html", "trend.html")]
PAGES = [(sample, page) for sample, page in PAGES if page == "index.html" or HISTORIES[sample]()]
every_page = pytest.mark.parametrize(
    ("sample", "page"), [pytest.param(*each, marks=pytest.mark.slow if each[0] == "many" else ()) for each in PAGES]
)


@cache
def files(sample: str) -> dict[str, bytes]:
    return write_all(BATCHES[sample](), HISTORIES[sample](), CAUSES)


@cache
def tree(sample: str, page: str = "index.html") -> Element:
    return parse(files(sample)[page])


def records(sample: str) -> list[list[str]]:
    """The cells of each row of the table of traces."""
    bodies = [body for table in tree(sample).all("table") for body in table.all("tbody")]
    return [[" ".join(cell.whole_text().split()) for cell in body.all("th", "td")] for body in bodies]


@every_page
class TestAlone:
    @pytest.mark.slow
    def test_leads_to_its_own_folder_only(self, sample: str, page: str) -> None:
        for element in tree(sample, page).walk():
            for name in ("src", "action", "data", "poster", "srcset", "xlink:href", "formaction"):
                assert name not in element.attributes
            assert re.match(r"#|data:,$|\./[^/:]", element.attributes.get("href", "#"))

    def test_has_no_handlers_no_styles_and_no_dangerous_elements(self, sample: str, page: str) -> None:
        dangerous = {"iframe", "object", "embed", "base", "form", "img", "foreignobject", "use"}
        for element in tree(sample, page).walk():
            assert element.tag not in dangerous
            assert not [name for name in element.attributes if name.startswith("on") or name == "style"]

    def test_policy_allows_its_own_style_and_scripts(self, sample: str, page: str) -> None:
        root = tree(sample, page)
        (policy,) = (meta.attributes["content"] for meta in root.all("meta") if "http-equiv" in meta.attributes)
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["script-src"].split() == [content_hash(script.text) for script in root.all("script")]
        assert rules["style-src"].split() == [content_hash(style.text) for style in root.all("style")]

    def test_anchors_lead_somewhere_and_ids_are_unique(self, sample: str, page: str) -> None:
        elements = list(tree(sample, page).walk())
        ids = Counter(element.attributes["id"] for element in elements if "id" in element.attributes)
        assert max(ids.values()) == 1
        anchors = {element.attributes.get("href", "") for element in elements if element.tag == "a"}
        assert {each[1:] for each in anchors if each.startswith("#")} <= ids.keys()

    def test_rows_have_a_cell_for_every_header(self, sample: str, page: str) -> None:
        for table in tree(sample, page).all("table"):
            count = len(table.all("thead")[0].all("th"))
            assert {len(row.all("th", "td")) for body in table.all("tbody") for row in body.all("tr")} <= {count}

    def test_has_no_character_that_does_not_print(self, sample: str, page: str) -> None:
        assert all(row.isprintable() for row in files(sample)[page].decode().split("\n"))


@pytest.mark.slow
@pytest.mark.parametrize("sample", BATCHES)
def test_same_batch_same_bytes_and_every_file_is_ours(sample: str) -> None:
    again = write_all(BATCHES[sample](), HISTORIES[sample](), CAUSES)
    assert again == files(sample)
    assert again.keys() == OURS.keys() - (set() if HISTORIES[sample]() else {"trend.html"})
    assert all(OURS[name](data) for name, data in again.items())
    assert not any(is_ours(b"<html>notes</html>") for is_ours in OURS.values())


def test_a_broken_budget_is_worse_than_much_idle_time_and_than_many_warnings() -> None:
    warn = [budget(str(at), level="warn") for at in range(5)]
    made = summary(
        entry("idle", devices=[device(idle=900)]),
        entry("warns", devices=[device(idle=800)], budgets=warn),
        entry("fails", devices=[device(idle=1)], budgets=[budget()]),
    )
    assert [row.entry.name for row in rows(made)] == ["fails", "warns", "idle"]


def test_a_budget_that_cannot_be_judged_is_better_than_a_broken_one_and_worse_than_a_warning() -> None:
    made = summary(
        entry("warns", devices=[device(idle=900)], budgets=[budget(level="warn")]),
        entry("unknown", budgets=[budget(broken=False), budget(level="warn")], unjudged=[unjudged()]),
        entry("fails", devices=[device(idle=1)], budgets=[budget()], unjudged=[unjudged()]),
    )
    assert [(row.entry.name, row.mark.word) for row in rows(made)] == [
        ("fails", "Budget broken"),
        ("unknown", "Budget not judged"),
        ("warns", "Warning"),
    ]
    assert headline(made) == "3 traces with 3 GPUs: 0 not analyzed, 2 budgets not judged, 1 budget broken, 2 warnings."
    cells = [" ".join(row.whole_text().split()) for row in parse(render_page(made, [])).all("tbody")]
    assert ["nothing repeats in it" in cell for cell in cells] == [True, True, False]
    links = [each for row in parse(render_page(made, [])).all("tbody") for each in row.all("a")]
    assert len(links) == 3
    assert all(each.attributes["href"].endswith(".html") for each in links)


def test_a_budget_counts_for_its_gpu_alone_and_one_of_the_trace_for_all() -> None:
    both = [device(), device("gpu1", 10)]
    words = lambda *budgets: [row.mark.word for row in rows(summary(entry(devices=both, budgets=list(budgets))))]  # noqa: E731
    assert words(budget(device="gpu1", on={"gpu0": False, "gpu1": True})) == ["Budget broken", "Budgets kept"]
    assert words(budget(device="gpu1")) == ["Budget broken", "No budgets"]
    assert words(budget(device="")) == ["Budget broken", "Budget broken"]


def test_each_gpu_has_the_state_of_its_own() -> None:
    """Nothing to judge is no budget kept, and hides neither the broken budget beside it nor the GPU that keeps it."""
    shown = zip(records("states"), rows(BATCHES["states"]()), strict=True)
    assert [(cells[1], row.mark.word in cells[2], row.mark.word, row.mark.tone, cells[5]) for cells, row in shown] == [
        ("gpu0", True, "Budget broken", "worse", "50.0%"),
        ("gpu4", True, "Not explained", "mixed", "10.0%"),
        ("gpu2", True, "No GPU work", "mixed", "–"),
        ("gpu3", True, "Hardly used", "mixed", "99.0%"),
        ("gpu1", True, "Budgets kept", "better", "20.0%"),
        ("4 more", True, "Not used", "same", "–"),
    ]
    assert ["high" in row[-1] for row in records("states")] == [True, False, False, False, True, False]
    assert result(BATCHES["states"]()).word == "Budgets broken"
    assert "1 without GPU work" in headline(BATCHES["states"]())


def test_a_budget_that_one_gpu_cannot_tell_leaves_the_others_judged() -> None:
    both, no = [device(), device("gpu1", 10)], unjudged(devices=["gpu1"])
    found = rows(summary(entry(devices=both, budgets=[budget(broken=False)], unjudged=[no])))
    assert [(row.device and row.device.key, row.mark.word) for row in found] == [
        ("gpu1", "Budget not judged"),
        ("gpu0", "Budgets kept"),
    ]


def test_a_batch_without_gpu_work_is_not_healthy() -> None:
    nothing = entry("a", devices=[no_work("gpu0")], budgets=[budget(broken=False, on={})])
    assert result(summary(nothing, entry("b", devices=[], findings=[]))).word == "No GPU work"
    assert result(summary(nothing, entry("c", budgets=[budget(broken=False)]))).word == "Budgets kept"


def test_a_failed_one_has_its_sentence_and_hint_and_no_link() -> None:
    (row,) = [body for body in tree("all_failed").all("tbody") if "b/c" in body.whole_text()]
    assert "the file is empty" in row.whole_text()
    assert row.all("a") == []
    assert "nsys export --type sqlite" in tree("all_failed").whole_text()


@pytest.mark.slow
def test_a_row_leads_to_its_report() -> None:
    hrefs = [a.attributes["href"] for body in tree("hostile").all("tbody") for a in body.all("a")]
    found = {unquote(href.removeprefix("./")) for href in hrefs}
    reports = {each.report for each in BATCHES["hostile"]().entries if each.report}
    assert {report for report in reports if "//" not in report and ".." not in report} <= found
    assert {"etc.html", "evil.example/x.html"} <= found
    assert len(found) == len(reports)


@pytest.mark.parametrize("path", ["//evil.example/x", "javascript:alert(1)", "a?b#c", 'x" onload="y', "\udcff"])
def test_a_link_stays_in_the_folder(path: str) -> None:
    assert re.fullmatch(r"\./[\w/.~%-]*", link(path))
    assert link("") == ""


@pytest.mark.slow
def test_hostile_names_are_text() -> None:
    for page in ("index.html", "trend.html"):
        text = tree("hostile", page).whole_text()
        for name in HOSTILE:
            assert visible(name).strip() in text


def test_headline_counts() -> None:
    said = headline(BATCHES["good"]())
    assert said == "7 traces with 6 GPUs: 1 not analyzed, 2 budgets broken, 2 warnings; 1 unchanged since the last run."
    assert headline(summary(entry())) == "1 trace with 1 GPU: 0 not analyzed, no budgets."
    assert headline(summary(failed())) == "1 trace: 1 not analyzed, no budgets."


class TestHistory:
    def test_runs_are_told_apart_and_in_order(self) -> None:
        found = history.series(HISTORIES["good"]())
        assert {key: len(lines) for key, lines in found.items()} == {
            ("runs/over.sqlite", "gpu0"): 25,
            ("eval.sqlite", "gpu0"): 2,
            ("runs/gone.sqlite", "gpu0"): 1,
        }
        for lines in found.values():
            assert [each.at for each in lines] == sorted(each.at for each in lines)

    def test_sparkline_rises_where_idle_time_does(self) -> None:
        made = history.spark([line(at, "a", "gpu0", idle) for at, idle in enumerate((100, 100, 200))])
        assert made is not None
        first, second, third = (int(y) for y in re.findall(r"[ML]\d+ (\d+)", spark_line(made).line))
        assert first == second > third
        assert made.said == "10.0% → 20.0%"
        assert made.change == pytest.approx(0.1)

    def test_noise_is_drawn_flat(self) -> None:
        made = history.spark([line(at, "a", "gpu0", idle) for at, idle in enumerate((300, 301, 300))])
        assert made is not None
        heights = [int(y) for y in re.findall(r"[ML]\d+ (\d+)", spark_line(made).line)]
        assert max(heights) - min(heights) < 50

    def test_one_run_is_no_line(self) -> None:
        assert history.spark([line(0, "a", "gpu0", 100)]) is None
        assert not [svg for svg in tree("all_failed").all("svg") if svg.attributes.get("class") == "spark"]

    @pytest.mark.parametrize("at", [-1, 0, 2**62])
    def test_any_time_is_a_moment(self, at: int) -> None:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", history.moment(replace(line(0, "a", "gpu0", 1), at=at)))

    def test_no_window_is_no_share(self) -> None:
        assert history.idle_share(line(0, "a", "gpu0", 1, window_ns=0)) == 0.0


class TestTrend:
    def test_a_run_without_a_value_leaves_a_gap(self) -> None:
        lines = [line(at, "a", "gpu0", 100, iteration_ns=ns) for at, ns in enumerate((10, None, 20, 30))]
        made = history.iteration_curve(lines, ["a", "b", "c", "d"])
        assert made is not None
        assert {path.look: path.d.count("M") for path in curve_plot(made).paths} == {"curve-line": 2, "curve-dots": 3}

    def test_causes_add_up_to_the_idle_share(self) -> None:
        lines = [line(0, "a", "gpu0", 400, causes={f"c{at}": 40 * MS for at in range(10)})]
        page = parse(history.render_trend(summary(), lines))
        shown = [rect.whole_text() for rect in page.all("rect") if "All other causes" in rect.whole_text()]
        assert ["All other causes 16.0%" in text for text in shown] == [True]

    def test_many_runs_are_thinned_and_that_is_said(self) -> None:
        lines = [line(at, "a", "gpu0", 100 + at % 50) for at in range(1000)]
        data = history.render_trend(summary(), lines)
        assert data.count(b'class="spot"') == 3 * 300
        text = parse(data).whole_text()
        assert "Charts show the latest 300 runs of each. Tables show the latest 30 runs of each." in text
        assert "1,000" in text

    @pytest.mark.slow
    def test_many_traces_stay_one_page_of_bearable_size(self) -> None:
        assert len(files("many")["trend.html"]) < 4_000_000
        assert "380 more are left out." in tree("many", "trend.html").whole_text()

    def test_labels_leave_room_for_each_other(self) -> None:
        for count in (1, 2, 7, 20, 100, 300):
            lines = [line(at, "a", "gpu0", 100) for at in range(count)]
            curve = history.iteration_curve(lines, [f"run {at}" for at in range(count)])
            assert curve is not None
            made = curve_plot(curve).labels
            places = [float(label.x.rstrip("%")) for label in made]
            assert made[-1].text == f"run {count - 1}"
            assert all(b - a > 13 for a, b in pairwise(places))

    @pytest.mark.parametrize("top", [50_000, 123_456, 500_000, 1_000_000])
    def test_levels_are_few_and_below_the_top(self, top: int) -> None:
        levels = history.share_levels(top, 1_000_000)
        assert 1 <= len(levels) <= 5
        assert max(levels.values()) <= top


def test_without_titles_causes_go_by_their_ids() -> None:
    data = write_all(BATCHES["good"](), HISTORIES["good"]())
    assert b"host compute" in data["trend.html"]
    assert b"host compute" not in files("good")["trend.html"]


def test_more_warnings_than_a_page_should_hold() -> None:
    made = write_all(summary(replace(entry(), warnings=[f"warning {at}" for at in range(250)])), [])
    assert "50 more are in the reports." in parse(made["index.html"]).whole_text()
