"""The outputs of a comparison of two sides: the same facts in each, sums that add up, names that can do nothing."""

from __future__ import annotations

import re
import zlib
from functools import cache

import pytest
from msgspec.structs import replace

from nsysdiag.comparison.facts import Comparison, Move, Step
from nsysdiag.comparison.show import words
from nsysdiag.comparison.show.registry import RENDERERS
from nsysdiag.comparison.show.views import OTHERS, lone_findings, matrix, split, timelines, waterfall
from nsysdiag.document.names import visible
from nsysdiag.document.svg import group_widths, waterfall_steps
from nsysdiag.document.view import Causes
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.html.assets import content_hash
from nsysdiag.messages import InputError
from nsysdiag.saved import from_json
from tests.levels import quick
from tests.output.carrying import from_carried
from tests.output.compare_samples import CAUSES, COMPARISONS, US, change, comparison, device
from tests.output.page import Element, parse
from tests.output.samples import HOSTILE
from tests.output.test_markdown import TRIGGERS, drawn
from tests.output.test_text import SGR

OPTIONS = RenderOptions(width=80, details=True, command="nsysdiag compare before.sqlite after.sqlite")
COLOURED = RenderOptions(width=80, color=True, details=True)
every_sample = pytest.mark.parametrize("sample", COMPARISONS)


@cache
def data(name: str, sample: str = "one") -> bytes:
    """In full."""
    return RENDERERS[name](COMPARISONS[sample](), OPTIONS)


def shown(made: Comparison, name: str) -> str:
    return RENDERERS[name](made, OPTIONS).decode()


@pytest.mark.slow
def test_of_many_captures_the_first_three_are_named() -> None:
    made = comparison()
    four = [replace(made.before[0], file=f"run{at}.sqlite") for at in range(4)]
    for name, said in (("txt", "run2.sqlite and 1 more"), ("md", "`run2.sqlite` (3.30 MiB), 1 more")):
        text = shown(replace(made, before=four), name)
        assert said in text
        assert "run3.sqlite" not in text
        assert "0 more" not in shown(replace(made, before=four[:3]), name)


@pytest.mark.parametrize(
    ("statistic", "slow", "told"), [("median", True, True), ("median", False, False), ("mean", True, False)]
)
def test_the_mean_stands_beside_the_median_where_steps_are_slow(statistic: str, slow: bool, told: bool) -> None:
    made = comparison()
    assert made.job is not None
    job = replace(made.job, statistic=statistic, slow_steps=slow, mean=change(1500, 1400))
    row = "| Step time (mean, with slow steps) | 1.50 ms | 1.40 ms |"
    assert (row in shown(replace(made, job=job), "md")) == told


@cache
def tree(sample: str) -> Element:
    return parse(data("html", sample))


def section(root: Element, id: str) -> Element:
    return next(each for each in root.all("section") if each.attributes["id"] == id)


def cells(row: Element) -> list[str]:
    return [" ".join(cell.whole_text().split()) for cell in row.all("th", "td")]


def test_there_is_one_for_every_format_that_a_comparison_has() -> None:
    assert RENDERERS.keys() == {"html", "json", "md", "txt"}


@pytest.mark.sampled(quick=5)
@every_sample
@pytest.mark.parametrize("name", RENDERERS)
def test_each_is_taken_for_our_own_and_comes_out_the_same(name: str, sample: str) -> None:
    assert FORMATS[name].is_ours(data(name, sample))
    assert RENDERERS[name](COMPARISONS[sample](), OPTIONS) == data(name, sample)


@pytest.mark.sampled(quick=2)
@every_sample
def test_what_is_saved_can_be_drawn_again(sample: str) -> None:
    again = from_json(data("json", sample), Comparison)
    for name, render in RENDERERS.items():
        assert render(again, OPTIONS) == data(name, sample)


class TestWaterfall:
    @every_sample
    def test_steps_lead_from_before_to_after(self, sample: str) -> None:
        for found in COMPARISONS[sample]().devices:
            before, *steps, _after = waterfall(found, Causes(CAUSES), 3).bars
            assert [step.from_ns for step in steps] == [step.to_ns for step in (before, *steps)][:-1]

    def test_small_steps_are_one(self) -> None:
        steps = [Step(id=id, change_ns=ns) for id, ns in (("sync", -1000), ("a", 9), ("b", -8), ("c", 1))]
        found = waterfall(replace(device(), waterfall=steps), Causes(CAUSES), 10)
        assert [(bar.label, bar.ns) for bar in found.bars[1:-1]] == [("Synchronization", -1000), ("3 smaller steps", 2)]

    def test_a_single_small_step_keeps_its_name(self) -> None:
        steps = [Step(id="sync", change_ns=-1000), Step(id="a", change_ns=9)]
        found = waterfall(replace(device(), waterfall=steps), Causes(CAUSES), 10)
        assert [bar.label for bar in found.bars[1:-1]] == ["Synchronization", "a"]

    def test_a_bar_begins_where_the_one_before_it_ended(self) -> None:
        bars = waterfall_steps(waterfall(device(), Causes(CAUSES)))
        assert [bar.begin for bar in bars[1:]] == [bar.end for bar in bars[:-1]]
        assert [bar.width for bar in (bars[0], bars[-1])] == ["100.000%", "73.859%"]

    def test_the_axis_begins_at_zero_but_for_lengths_far_from_it(self) -> None:
        assert waterfall(device(), Causes(CAUSES)).low == 0
        near = replace(device(), length=change(1000, 990), waterfall=[Step(id="sync", change_ns=-10 * US)])
        cut = waterfall(near, Causes(CAUSES))
        assert 0 < cut.low < 990 * US
        assert cut.high - cut.low >= 100 * US  # a hundredth never looks like all of it
        assert cut.cut == "The axis begins at 0.9 ms."


class TestMatrix:
    @every_sample
    @pytest.mark.parametrize("most", [2, 8])
    def test_adds_up_to_what_moved(self, sample: str, most: int) -> None:
        for found in COMPARISONS[sample]().devices:
            table = matrix(found, most)
            assert table.total_ns == sum(move.ns for move in found.moves)
            assert sum(row.total_ns for row in table.rows) == table.total_ns == sum(table.totals)
            assert len(table.columns) <= most + 1

    def test_rows_and_columns_are_the_parts_before_and_after(self) -> None:
        table = matrix(device(), 8)
        before = {row.id: row.total_ns // US for row in table.rows}
        after = dict(zip(table.columns, (ns // US for ns in table.totals), strict=True))
        assert before == {"compute": 600, "sync": 400, "exposed_copy": 50, "launch_latency": 2, None: 5}
        known = {"compute": 605, "sync": 100, "exposed_copy": 10, "host_compute": 60, "launch_latency": 2}
        assert after == known | {None: 280}

    def test_small_parts_are_one_even_where_one_has_no_name(self) -> None:
        moves = [Move(before=id, after=None, ns=ns, seen_ns=0) for id, ns in (("a", 9), ("b", 5), ("c", 2), ("", 50))]
        table = matrix(replace(device(), moves=moves), 2)
        assert [(row.id, row.total_ns) for row in table.rows] == [("a", 9), (OTHERS, 57)]


class TestChanges:
    def test_what_is_small_and_the_same_is_folded(self) -> None:
        shown, tiny = split(device().ledger, device())
        assert [row.id for row in shown] == ["sync", "host_compute"]
        assert [row.id for row in tiny] == ["launch_latency", "queue_full"]
        folded = section(tree("one"), "changes").all("details")[0]
        assert len(folded.all("tr")) == 1 + 2

    def test_roots_are_left_out_where_they_say_no_more(self) -> None:
        assert len(section(tree("one"), "changes").all("table")) == 4
        same = replace(device(), root_ledger=device().ledger[::-1])
        root = parse(RENDERERS["html"](comparison([same]), OPTIONS))
        assert len(section(root, "changes").all("table")) == 3


class TestFindings:
    def test_those_that_are_not_compared_are_of_no_side_alone(self) -> None:
        assert [row.id for row in lone_findings(device())] == ["f-2", "f-3"]
        rows = [cells(row) for row in section(tree("one"), "findings").all("table")[0].all("tr")[1:]]
        assert rows[3][1:] == ["not compared", "● low", "–", "30.0 µs", "–"]
        assert "not compared" in section(tree("one"), "findings").all("caption")[0].text
        for name in ("md", "txt"):
            assert "Waiting for input data" not in data(name).decode()


class TestStrips:
    def test_the_same_time_is_as_wide_on_both_sides(self) -> None:
        view = timelines(device(), Causes(CAUSES))
        (chart,) = view["charts"]
        assert [side.note for side in chart.drawing.groups] == ["50.0 ms", "40.0 ms"]
        assert group_widths(chart.drawing) == ["100.000%", "80.000%"]
        assert view["ticks"][-1] == ("100.000%", "50 ms")
        assert [key.label for key in chart.legend] == ["Compute", "Copies", "Synchronization"]

    def test_a_damaged_one_is_told(self) -> None:
        found = device()
        assert found.strip_after is not None
        level = replace(found.strip_after.level, buckets=7)
        bad = comparison([replace(found, strip_after=replace(found.strip_after, level=level))])
        with pytest.raises(InputError, match="damaged"):
            RENDERERS["html"](bad, OPTIONS)


def source(script: Element) -> str:
    """What runs: one that is packed is unpacked first."""
    packed = script.attributes.get("type") == "text/plain"
    return zlib.decompress(from_carried(script.text)).decode() if packed else script.text


@every_sample
class TestPage:
    def test_refers_to_nothing_outside(self, sample: str) -> None:
        for element in tree(sample).walk():
            for name in ("src", "href", "action", "data"):
                assert element.attributes.get(name, "#").startswith(("#", "data:,"))
            assert not [name for name in element.attributes if name.startswith("on") or name == "style"]
        assert not re.search(r"@import|url\(", "".join(style.text for style in tree(sample).all("style")))

    def test_policy_allows_exactly_its_own_scripts_and_styles(self, sample: str) -> None:
        root = tree(sample)
        (policy,) = [meta.attributes["content"] for meta in root.all("meta") if "http-equiv" in meta.attributes]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
        scripts = [each for each in root.all("script") if each.attributes.get("type") != "application/json"]
        assert set(rules["script-src"].split()) == {content_hash(source(each)) for each in scripts}
        assert rules["style-src"].split() == [content_hash(each.text) for each in root.all("style")]

    def test_anchors_lead_somewhere_and_ids_are_unique(self, sample: str) -> None:
        root = tree(sample)
        ids = [element.attributes["id"] for element in root.walk() if "id" in element.attributes]
        assert len(set(ids)) == len(ids)
        assert {element.attributes["href"][1:] for element in root.all("a")} <= set(ids)

    def test_tables_have_captions_and_every_row_a_header(self, sample: str) -> None:
        for table in tree(sample).all("table"):
            assert table.all("caption")
            assert all(head.attributes.get("scope") for head in table.all("th"))

    def test_rows_have_as_many_cells_as_the_head(self, sample: str) -> None:
        for table in tree(sample).all("table"):
            assert {len(row.all("th", "td")) for row in table.all("tr")} == {len(table.all("tr")[0].all("th"))}


class TestHostileNames:
    @pytest.mark.slow
    def test_bring_no_element_into_the_page(self) -> None:
        known = {element.tag for element in tree("one").walk()}
        assert {element.tag for element in tree("hostile").walk()} <= known
        assert len(tree("hostile").all("script")) == len(tree("one").all("script"))

    def test_bring_no_attribute_class_id_or_colour(self) -> None:
        known = {name for sample in ("one", "mixed") for element in tree(sample).walk() for name in element.attributes}
        for element in tree("hostile").walk():
            assert element.attributes.keys() <= known
            for name in ("class", "id", "href", "fill"):
                assert re.fullmatch(r"[#\w .:,-]*", element.attributes.get(name, ""), re.ASCII)

    def test_are_shown_as_they_are(self) -> None:
        shown = tree("hostile").whole_text()
        assert [name for name in HOSTILE if visible(name) not in shown] == []

    @pytest.mark.parametrize("name", ["html", "md", "txt"])
    def test_leave_no_control_characters(self, name: str) -> None:
        assert all(line.isprintable() for line in data(name, "hostile").decode().split("\n"))

    @pytest.mark.slow
    def test_bring_nothing_into_markdown(self) -> None:
        shape = drawn(data("md", "hostile").decode())
        known = drawn(data("md").decode())
        assert set(shape.elements) <= set(known.elements)
        assert not [text for text in shape.plain if TRIGGERS.search(text)]

    @pytest.mark.slow
    def test_colours_of_the_terminal_are_ours(self) -> None:
        shown = RENDERERS["txt"](COMPARISONS["hostile"](), COLOURED).decode()
        assert all(line.isprintable() for line in SGR.sub("", shown).split("\n"))


class TestText:
    @every_sample
    @pytest.mark.parametrize("width", quick([60, 80, 100, 132], 2))
    def test_fits(self, sample: str, width: int) -> None:
        lines = RENDERERS["txt"](COMPARISONS[sample](), RenderOptions(width=width)).decode().splitlines()
        assert max(map(len, lines)) <= width

    def test_numbers_stay_whole_beside_long_names(self) -> None:
        shown = data("txt", "hostile").decode()
        assert len(re.findall(r"30\.0 µs +40\.0 µs +\+10\.0 µs +\? unknown", shown)) == 8


class TestMarkdown:
    @every_sample
    def test_rows_keep_their_cells(self, sample: str) -> None:
        for block in data("md", sample).decode().split("\n\n"):
            if block.startswith("| "):
                counts = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in block.splitlines()}
                assert len(counts) == 1, block


class TestWords:
    def test_without_an_interval_nothing_is_claimed(self) -> None:
        said = words.length_sentence(replace(device(), length=change(100, 120, told=False)))
        assert "no interval" in said
        assert (
            words.change_mark("unknown") == words.change_mark("nonsense") == words.StatusMark("?", "unknown", "unknown")
        )

    def test_work_that_changed_is_left_to_the_note_about_it(self) -> None:
        assert words.workload_sentence(device()).endswith("kernel 18 and 18.2.")
        changed = [replace(device().workload[0], changed=True)]
        assert words.workload_sentence(replace(device(), workload=changed)) == ""

    def test_a_unit_that_does_the_work_of_several(self) -> None:
        unit = replace(device().unit, kind="kernels", name_before="", name_after="", scale=2.0)
        assert words.unit_sentence(unit).endswith("2 after do the work of one before.")
        assert "same" not in words.unit_sentence(replace(unit, kind="iterations", name_before="a", name_after="b"))

    @pytest.mark.parametrize(
        ("unit", "before", "after", "text"),
        [
            ("share", 0.5, 0.39, "-11.0 points"),
            ("share", 0.5, 0.5, "="),
            ("count", 20.0, 19.0, "-5.0%"),
            ("ns", None, 5.0, "–"),
            ("ns", 4.0, 4.0, "="),
            ("ns", 0.0, 4.0, "new"),
        ],
    )
    def test_differences(self, unit: str, before: float | None, after: float | None, text: str) -> None:
        row = replace(device().launch[0], unit=unit, before=before, after=after)
        assert words.metric_change(row) == text
