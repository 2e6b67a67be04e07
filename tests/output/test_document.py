"""A subject that is written once is in every format: names whole or short, numbers with their units, rows as there is
room. The toy subject is one function and one line in the registry."""

from __future__ import annotations

from functools import partial

import pytest
from jinja2 import ChoiceLoader, DictLoader

from nsysdiag.document.blocks import (
    EVERYWHERE,
    NOT_BRIEF,
    PAGE,
    TICKET,
    Cell,
    Chart,
    Column,
    Custom,
    Detail,
    Details,
    Fact,
    FigureRow,
    Heading,
    Limit,
    Lines,
    Name,
    Paragraph,
    Remark,
    Section,
    Table,
    left_out,
    shown,
)
from nsysdiag.document.columns import BAR, BYTES, COUNT, KEY, MARK, NAME, SHARE, SPARK, TEXT, TIME, StatusMark, part
from nsysdiag.document.drawings import Curve, CurveLayer, LegendEntry, Spark, TimeSeries
from nsysdiag.document.view import Context
from nsysdiag.formats import FORMATS, RenderOptions, sections
from nsysdiag.formats.html.page import environment
from nsysdiag.formats.html.section import drawn_section
from nsysdiag.report import DeviceReport
from tests.output.page import Element, parse
from tests.output.samples import SAMPLES

LONG = "void at::native::toy_kernel<float, 4>(float*, int)"
HOSTILE = "<script>alert(1)</script> | `x` \x1b[31m"
ROWS = [
    (3_000_000, part(3, 4), 1.0, Cell(Name("toy_kernel", LONG), tag="tagged"), 4096, "first"),
    (1_000_000, part(1, 4), 1 / 3, HOSTILE, None, HOSTILE),
    (500_000, None, 1 / 6, "third", 0, "last"),
]
TABLE = Table(
    "Toy kernels",
    (
        Column("Total", TIME, strong=True),
        Column("Of toys", SHARE),
        Column("Bar", BAR),
        Column("Toy", NAME, head=True),
        Column("Room", BYTES),
        Column("Place", TEXT, pick=True, limit=PAGE),
    ),
    ROWS,
    note="All in the toy box.",
    noun="toys",
    order="with most time",
    total=7,
    limit=Limit(ticket=2, summary=1, brief=0),
)
CURVE = Curve([CurveLayer("highest", "line", TimeSeries([0, 1], [7]))], "Toys", COUNT, 7, {"all": 7})


def toy(device: DeviceReport, _context: Context) -> Section:
    return Section(
        "toys",
        "Toys",
        [
            Paragraph(f"Toys of {device.key}.", tone="strong"),
            Lines(["One toy squeaks.", "One toy rolls.", "One toy sleeps."], Limit(summary=2, brief=1)),
            FigureRow([Fact("Squeaks", 1_234, COUNT), Fact("Never heard", None, COUNT)]),
            TABLE,
            Chart(CURVE, "Toys over time: at most 7", captions=["Of all boxes."], limit=NOT_BRIEF),
            Details("More toys", [Heading("Below the bed"), Paragraph("A bear.")], TICKET),
            Custom("blocks.html", dict, [Paragraph("Where templates are not drawn.")], EVERYWHERE),
        ],
    )


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "PER_DEVICE", (*sections.PER_DEVICE, (toy, "")))


def written(name: str, sample: str = "one_device") -> str:
    return FORMATS[name].render(SAMPLES[sample](), RenderOptions(width=120, details=True)).decode()


def section(sample: str = "one_device", anchor: str = "toys") -> Element:
    found = parse(written("html", sample).encode()).all("section")
    return next(each for each in found if each.attributes["id"] == anchor)


def cells(row: Element) -> list[str]:
    return [" ".join(cell.whole_text().split()) for cell in row.all("th", "td")]


@pytest.mark.usefixtures("registered")
class TestToySubject:
    @pytest.mark.slow
    def test_the_page_has_all_of_it(self) -> None:
        found = section()
        text = " ".join(found.whole_text().split())
        for part_of in ("Toys of gpu0.", "One toy sleeps.", "1,234", "Of all boxes.", "A bear.", "highest"):
            assert part_of in text
        assert "Where templates" not in text
        assert "#toys" in [link.attributes["href"] for link in parse(written("html").encode()).all("a")]
        drawing = next(each for each in found.all("svg") if each.attributes.get("role") == "img")
        assert drawing.attributes["aria-label"] == "Toys over time: at most 7"

    @pytest.mark.slow
    def test_its_table_can_be_sorted_and_filtered(self) -> None:
        table = section().all("table")[0]
        caption = " ".join(table.all("caption")[0].text.split())
        assert caption == "Toy kernels. All in the toy box. 3 of 7 toys, those with most time."
        assert "data-sortable" in table.attributes
        first, second, third = (body.all("tr")[0] for body in table.all("tbody"))
        assert cells(first) == ["3.00 ms", "75.0%", "", f"toy_kerneltagged {LONG}", "4.00 KiB", "first"]
        values = [cell.attributes.get("data-v") for cell in first.all("th", "td")]
        assert values == ["3000000", "0.75", None, None, "4096", None]
        assert first.all("td")[0].attributes["title"] == "3,000,000 ns"
        assert first.all("td")[-1].attributes["data-f"] == "first"
        assert first.all("th")[0].attributes["scope"] == "row"
        assert [cells(second)[at] for at in (1, 4)] == ["25.0%", "–"]
        assert [cells(third)[at] for at in (1, 4)] == ["–", "0 B"]

    def test_markdown_has_names_as_code_and_fewer_rows(self) -> None:
        text = written("md")
        assert "\n## Toys\n" in text
        assert "**Toys of gpu0.**" in text
        assert "| Toy | Total | Of toys | Room |" in text
        assert "| `toy_kernel` (tagged) | 3.00 ms | 75.0% | 4.00 KiB |" in text
        assert "2 of 7 toys, those with most time." in text
        assert "| Squeaks | 1,234 |" in text
        assert "Toys over time: at most 7" in text
        assert "Where templates are not drawn." in text
        assert "third" not in text
        assert "\n### Below the bed\n" in text

    @pytest.mark.slow
    def test_text_has_the_most_important_lines(self) -> None:
        text = written("txt")
        lines = [line.strip() for line in text[text.index("\nToys\n") :].splitlines()[1:6]]
        assert lines[:4] == ["Toys", "Toys of gpu0.", "One toy squeaks.", "One toy rolls."]
        assert lines[4] == "1 more line in the other formats"
        assert "toy_kernel (tagged)" in text
        assert "1 of 7 toys" in text
        assert "sleeps" not in text
        assert "A bear" not in text

    @pytest.mark.slow
    def test_of_several_devices_text_has_less(self) -> None:
        text = written("txt", "several_devices")
        assert "Toys of gpu1." in text
        assert "One toy rolls." not in text
        assert "Toy kernels" not in text
        assert section("several_devices", "gpu-1-toys")

    @pytest.mark.slow
    def test_hostile_names_stay_text(self) -> None:
        assert not [each for each in section().all("script") if "alert" in each.text]
        assert "\x1b" not in written("html") + written("md") + written("txt")
        line = next(line for line in written("md").splitlines() if "<script>alert" in line)
        assert line.replace("\\|", "").count("|") == 5

    def test_nothing_of_it_changes_the_report(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with_toys = written("json")
        monkeypatch.undo()
        assert written("json") == with_toys


@pytest.mark.slow
def test_what_the_page_alone_draws_is_made_for_it_alone_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def view(_context: Context, device: DeviceReport) -> dict[str, object]:
        asked.append(device.key)
        return {}

    def drawn(device: DeviceReport, context: Context) -> Section:
        return drawn_section("drawn", "Drawn", partial(view, context, device), [Paragraph("Told.")])

    monkeypatch.setattr(sections, "PER_DEVICE", ((drawn, ""),))
    monkeypatch.setattr("nsysdiag.formats.html.page.environment", lambda: environment().overlay(loader=WITH_DRAWN))
    assert "Told." in written("md")
    assert "Told." in written("txt")
    assert asked == []
    assert "Told." not in written("html")
    assert asked == ["gpu0"]


def test_empty_blocks_are_left_out() -> None:
    nothing = Table("Empty", TABLE.columns, [])
    for detail in Detail:
        assert shown([Lines([]), FigureRow([]), nothing, Details("More", [Lines([])])], detail) == []


def test_what_is_left_out_is_counted() -> None:
    table = Table("All", TABLE.columns, ROWS, noun="toys")
    assert left_out(table, Detail.PAGE) == ""
    limited = Table("Few", TABLE.columns, ROWS, noun="toys", limit=Limit(page=1))
    assert left_out(limited, Detail.PAGE) == "1 of 3 toys."


def test_a_column_with_colours_can_be_filtered_by_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell without a value to filter by would be chosen by an address without one."""
    keyed = Table("Keyed", [Column("Cause", KEY)], [(LegendEntry("sync", "", "#123456"),), (None,)], limit=PAGE)
    made = Section("keys", "Keys", [keyed])
    monkeypatch.setattr(sections, "PER_DEVICE", ((lambda _device, _context: made, ""),))
    found = section(anchor="keys").all("td")
    assert [cell.attributes["data-f"] for cell in found] == ["sync", "–"]


WITH_DRAWN = ChoiceLoader(
    [DictLoader({"sections/drawn.html": "<p>Drawn.</p>"}), environment().loader or DictLoader({})]
)
MARKED = Section(
    "marked",
    "Marked",
    [
        Paragraph([StatusMark("▲", "Broken", "worse"), ". See ", Name("the toys", href="./toys.html"), "."], "verdict"),
        Table(
            "",
            [
                Column("Toy", NAME, head=True),
                Column("State", MARK, pick=True),
                Column("Why", TEXT),
                Column("Runs", SPARK),
            ],
            [
                (
                    Name("bear", href="./bear.html"),
                    Cell(
                        StatusMark("◆", "Worn", "mixed"),
                        note=[Remark("An ear is off.", "bad", "since May"), Remark("Wet.")],
                    ),
                    (StatusMark("●", "low", "low"), ": old | torn"),
                    Cell(Spark([0.1, 0.2], "Wear"), order=0.1),
                ),
                ("duck", StatusMark("✓", "New", "better"), None, None),
            ],
            limit=EVERYWHERE,
        ),
        Details("Unfolded", [Paragraph("At once.")], open=True),
    ],
)


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "PER_DEVICE", ((lambda _device, _context: MARKED, ""),))


@pytest.mark.usefixtures("marked")
class TestJudgementsAndLinks:
    def test_on_the_page(self) -> None:
        found = section(anchor="marked")
        assert [link.attributes["href"] for link in found.all("a")] == ["./toys.html", "./bear.html"]
        first, second = (body.all("td") for body in found.all("tbody"))
        assert [cell.attributes["data-f"] for cell in (first[0], second[0])] == ["Worn", "New"]
        below = [
            (each.attributes, each.text) for each in first[0].all("span") if "full" in each.attributes.get("class", "")
        ]
        assert below == [
            ({"class": "full tone-bad", "title": "since May"}, "An ear is off."),
            ({"class": "full"}, "Wet."),
        ]
        assert "judged-low" in first[1].all("span")[0].attributes["class"]
        assert first[2].attributes["data-v"] == "0.1"
        assert first[2].text.strip() == "10.0% → 20.0%"
        assert (
            first[2].all("svg")[0].attributes["aria-label"]
            == "Wear: first 10.0%, last 20.0%, lowest 10.0%, highest 20.0%"
        )
        assert "open" in found.all("details")[0].attributes

    def test_in_markdown_and_text(self) -> None:
        text = written("md")
        assert "**▲ Broken. See `the toys`.**" in text
        assert "| `bear` | ◆ Worn | ● low: old \\| torn | 10.0% → 20.0% |" in text
        assert "| `duck` | ✓ New | – | – |" in text
        shown_as = written("txt")
        assert "▲ Broken. See the toys." in shown_as
        assert "● low: old | torn" in shown_as
