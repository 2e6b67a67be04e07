"""The outputs of `nsysdiag whatif`: one line to paste, the same facts in each, and names that can do nothing."""

from __future__ import annotations

import re
from functools import cache

import pytest
from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.phrases import finished
from nsysdiag.replay.facts import Identity, Transform
from nsysdiag.replay.show import outlooks as words
from nsysdiag.replay.show.blocks import RENDERERS
from tests.output.page import Element, parse
from tests.output.samples import HOSTILE
from tests.output.whatif_samples import MS, SYNC, US, WHATIFS, device, listing, refused, whatif

OPTIONS = RenderOptions(width=100, command="nsysdiag whatif train.sqlite --without sync")
SCREEN = 25


@cache
def shown(name: str, sample: str) -> str:
    return RENDERERS[name](WHATIFS[sample](), OPTIONS).decode()


def plain(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>|\\", " ", page).split())


class TestHeadline:
    def test_a_prediction(self) -> None:
        said = "Step time 34.9 → 18.9 ms predicted (1.85× faster, between 18.5 and 19.6 ms): --without sync"
        assert words.headline(whatif()) == said

    def test_of_a_window_with_several_changes_and_units(self) -> None:
        made = replace(
            whatif([SYNC, Transform(option="kernel", of="a b*", factor=2.0)]),
            per="window",
            now_ns=1200 * MS,
            predicted_ns=900 * MS,
            low_ns=900 * US,
            high_ns=1100 * MS,
        )
        assert words.headline(made) == (
            "Window 1.20 s → 900 ms predicted (1.33× faster, between 900 µs and 1.10 s): "
            "--without sync --kernel 'a b**2'"
        )

    @pytest.mark.parametrize(
        ("predicted", "said"), [(34_900, "no change"), (69_800, "2.00× slower"), (0, "no factor: nothing is left")]
    )
    def test_factors(self, predicted: int, said: str) -> None:
        assert f"predicted ({said}, " in words.headline(replace(whatif(), predicted_ns=predicted * US))

    def test_refused(self) -> None:
        said = "Step time 34.9 ms; no prediction: no GPU work"
        assert words.headline(replace(refused("no GPU work"), transforms=[])) == said
        nothing = replace(refused("no GPU work"), transforms=[], now_ns=0, steps=0)
        assert words.headline(nothing) == "No prediction: no GPU work"
        assert words.replayed(nothing) == "Nothing was replayed."

    def test_what_findings_would_bring(self) -> None:
        said = "Step time 34.9 ms; predicted 18.9 ms with the best single fix, 12.1 ms with all (the floor)"
        assert words.headline(listing()) == said
        none = replace(listing(), savings=[], floor_ns=None)
        assert words.headline(none) == "Step time 34.9 ms; no finding has a predicted saving"


class TestTrust:
    def test_the_model_gives_the_step_back(self) -> None:
        said = "Saves 43.8% to 47.0% of a step. Replayed 40 steps; the model is within 0.3% of the recorded step."
        assert words.replayed(whatif()) == said

    def test_nothing_is_saved(self) -> None:
        same = replace(whatif(), low_ns=34_900 * US, high_ns=35_000 * US)
        assert words.replayed(same).startswith("Replayed 40 steps")

    def test_unknown_or_not_exact(self) -> None:
        assert words.replayed(replace(whatif(), identity=None)).endswith("how well the model reproduces it is unknown.")
        broken = replace(whatif(), identity=Identity(exact=False, length_error=0.01))
        for name in ("txt", "md", "html"):
            assert "does not reproduce every recorded start" in plain(RENDERERS[name](broken, OPTIONS).decode())


@pytest.mark.parametrize("sample", WHATIFS)
@pytest.mark.parametrize("name", RENDERERS)
def test_each_is_taken_for_our_own_and_the_same_again(name: str, sample: str) -> None:
    data = RENDERERS[name](WHATIFS[sample](), OPTIONS)
    assert FORMATS[name].is_ours(data)
    assert data == RENDERERS[name](WHATIFS[sample](), OPTIONS)


@pytest.mark.parametrize("sample", WHATIFS)
def test_text_fits_a_screen_under_its_headline(sample: str) -> None:
    lines = shown("txt", sample).splitlines()
    assert len(lines) <= SCREEN
    assert " ".join(" ".join(lines[1:4]).split()).startswith(words.headline(WHATIFS[sample]()))


@pytest.mark.parametrize("sample", ["one", "listing"])
def test_text_of_one_gpu_fits_whatever_there_is_to_say(sample: str) -> None:
    plain = WHATIFS[sample]()
    crowded = replace(
        plain,
        trace=replace(plain.trace, warnings=["dropped"] * 5),
        caveats=["not predicted"] * 5,
        identity=Identity(exact=False, length_error=0.01),
        waterfall=plain.waterfall * 5,
        savings=plain.savings * 5,
    )
    assert len(RENDERERS["txt"](crowded, OPTIONS).decode().splitlines()) <= SCREEN


@pytest.mark.parametrize("sample", WHATIFS)
def test_markdown_begins_with_the_headline(sample: str) -> None:
    first = shown("md", sample).splitlines()[2]
    assert first.replace("\\", "").strip("*") == words.headline(WHATIFS[sample]())


@pytest.mark.parametrize("name", ["html", "md", "txt"])
def test_a_refusal_has_no_predicted_figures(name: str) -> None:
    said = plain(shown(name, "refused"))
    assert "no prediction for --without sync: the model is off by 4.1%" in said
    assert "Predicted" not in said


@pytest.mark.parametrize("name", ["html", "md", "txt"])
def test_bounds_far_apart_are_no_prediction(name: str) -> None:
    said = plain(shown(name, "unsure"))
    assert "Step time 34.9 ms; anywhere between 17.0 and 31.0 ms with --without sync: the trace cannot tell" in said
    assert "18.9" not in said


@pytest.mark.parametrize("name", ["html", "md", "txt"])
def test_a_listing_says_what_it_cannot_tell(name: str) -> None:
    said = plain(shown(name, "unsure listing"))
    assert "1: anywhere between 17.0 and 31.0 ms: the trace cannot tell" in said
    assert "predicted 30.0 ms with the best single fix" in said
    assert "18.9" not in said


def tree(page: str) -> Element:
    return parse(page.encode())


class TestPage:
    def strips(self, page: str) -> list[Element]:
        return [svg for svg in tree(page).all("svg") if svg.attributes.get("class") == "stack"]

    @pytest.mark.parametrize("sample", ["one", "several"])
    def test_a_strip_of_today_above_the_predicted_one(self, sample: str) -> None:
        now, predicted = self.strips(shown("html", sample))
        widths = [
            [float(rect.attributes["width"].rstrip("%")) for rect in strip.all("rect")] for strip in (now, predicted)
        ]
        assert sum(widths[0]) == pytest.approx(100, abs=0.1)
        assert sum(widths[1]) == pytest.approx(100 * 18.9 / 34.9, abs=0.1)
        assert now.attributes["aria-label"].startswith("A step")
        said = [title.text for title in now.all("title")]
        count = 8 if sample == "several" else 1
        assert f"Synchronization: {18 * count}{'.0' if count == 1 else ''} ms, 51.6%" in said

    def test_idle_time_of_no_listed_cause_is_idle(self) -> None:
        made = replace(whatif(), waterfall=whatif().waterfall[:1])
        now, predicted = self.strips(RENDERERS["html"](made, OPTIONS).decode())
        assert [title.text for title in now.all("title")][-1] == "Idle: 1.90 ms, 5.4%"
        assert [title.text for title in predicted.all("title")][-1] == "Idle: 3.90 ms, 11.2%"

    def test_none_without_a_prediction(self) -> None:
        assert self.strips(shown("html", "listing")) == self.strips(shown("html", "refused")) == []

    @pytest.mark.parametrize("sample", WHATIFS)
    def test_refers_to_nothing_outside_and_anchors_lead_somewhere(self, sample: str) -> None:
        root = tree(shown("html", sample))
        ids = [element.attributes["id"] for element in root.walk() if "id" in element.attributes]
        assert len(set(ids)) == len(ids)
        for element in root.walk():
            for name in ("src", "href", "action", "data"):
                assert element.attributes.get(name, "#").startswith(("#", "data:,"))
            assert not [name for name in element.attributes if name.startswith("on") or name == "style"]
        assert {element.attributes["href"][1:] for element in root.all("a")} <= set(ids)
        assert all(table.all("caption") for table in root.all("table"))


@cache
def hostile(name: str) -> str:
    transforms = [Transform(option="kernel", of=each, factor=0.5) for each in HOSTILE]
    found = whatif(transforms, [device(each, each) for each in HOSTILE], file="".join(HOSTILE))
    caveats = [typed.nvtx(each) for each in HOSTILE]
    return RENDERERS[name](finished(replace(found, caveats=caveats)), OPTIONS).decode()


class TestHostileNames:
    @pytest.mark.parametrize("name", ["md", "txt", "html"])
    def test_leave_no_control_characters(self, name: str) -> None:
        assert all(line.isprintable() for line in hostile(name).split("\n") if "<" not in line)
        assert "\x1b" not in hostile(name)

    def test_bring_no_element_into_the_page(self) -> None:
        tags = [{element.tag for element in tree(page).walk()} for page in (hostile("html"), shown("html", "one"))]
        assert tags[0] <= tags[1] | {"title"}
        assert "<img" not in hostile("html")

    def test_rows_of_markdown_keep_their_cells(self) -> None:
        for table in re.findall(r"(?:^\| .*\n)+", hostile("md"), re.MULTILINE):
            rows = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table.splitlines()]
            assert len(set(rows)) == 1
