"""Colours: bottlenecks differ, and causes are shades of the colour of theirs.

Distances are CIEDE2000. The thresholds are what a search over palettes reached, with lightness kept to what stands out
2 : 1 on the light and the dark page.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import pytest
from coloraide import Color
from msgspec.structs import replace

from nsysdiag import causes
from nsysdiag.bottlenecks import BOTTLENECKS, BottleneckId
from nsysdiag.causes import CAUSES, color_of
from nsysdiag.findings.rules import FINDING_RULES, cause_infos
from scripts import _colour
from scripts._colour import LEAST, LEAST_LIGHTNESS, LEAST_OF_SHADES, contrast, distance, lightness, shades_of
from tests.output.test_assets import themes

LEAST_ON_PAGE, LEAST_EDGE = _colour.LEAST_OF_SHADE_ON_PAGE, 3.0
GREYISH = 0.035
"""Chroma in Oklch; the most in sRGB is 0.32."""


def test_the_measure_knows_red_from_green() -> None:
    red, green = "#b05a30", "#7d7a30"
    assert distance(red, green, "normal") > 25
    assert distance(red, green, "deutan") < 6
    assert distance("#000000", "#ffffff", "tritan") == pytest.approx(100, abs=0.1)


SHADES = [(each.id, shade) for each in BOTTLENECKS.values() for shade in shades_of(each)]
"""All shades that a cause can have, of causes that are added too."""


def colors(theme: str) -> list[tuple[str, str]]:
    """Each colour on a page of this theme, with its bottleneck."""
    palette = themes()[theme]
    own = [(each.id, palette[each.part] if each.part else each.color) for each in BOTTLENECKS.values()]
    return list(dict.fromkeys([*own, *SHADES]))


@pytest.mark.parametrize("sight", LEAST)
@pytest.mark.parametrize("theme", themes())
def test_bottlenecks_differ(theme: str, sight: str) -> None:
    own = colors(theme)[: len(BOTTLENECKS)]
    close = {(one, other): distance(one[1], other[1], sight) for one, other in combinations(own, 2)}
    assert {pair: value for pair, value in close.items() if value < LEAST[sight]} == {}


@pytest.mark.parametrize("sight", LEAST)
@pytest.mark.parametrize("theme", themes())
def test_no_shade_looks_like_another_bottleneck(theme: str, sight: str) -> None:
    close = {
        (one, other): distance(one[1], other[1], sight)
        for one, other in combinations(colors(theme), 2)
        if one[0] != other[0]
    }
    assert {pair: value for pair, value in close.items() if value < LEAST_OF_SHADES[sight]} == {}


@pytest.mark.parametrize("theme", themes())
def test_colors_of_a_bottleneck_differ_in_grey(theme: str) -> None:
    close = {
        (one, other): abs(lightness(one[1]) - lightness(other[1]))
        for one, other in combinations(colors(theme), 2)
        if one[0] == other[0]
    }
    assert {pair: value for pair, value in close.items() if value < LEAST_LIGHTNESS} == {}


@pytest.mark.parametrize("theme", themes())
def test_causes_stand_out_on_the_page(theme: str) -> None:
    """Swatches and bars have an edge besides, which stands out as graphics must."""
    surface, edge = themes()[theme]["surface"], themes()[theme]["edge"]
    assert min(contrast(shade, surface) for _, shade in SHADES) >= LEAST_ON_PAGE
    assert contrast(edge, surface) >= LEAST_EDGE


def test_what_the_trace_cannot_tell_is_greyish() -> None:
    for cause in CAUSES.values():
        assert (Color(color_of(cause.id)).convert("oklch")["chroma"] < GREYISH) >= cause.unresolved, cause.id


def test_a_finding_has_the_colour_of_its_bottleneck() -> None:
    known = {each.id: each.color for each in cause_infos()}
    assert {known[rule.id] for rule in FINDING_RULES.values()} <= {each.color for each in BOTTLENECKS.values()}


def test_causes_share_a_shade_only_where_all_are_taken() -> None:
    for bottleneck in BOTTLENECKS.values():
        used = Counter(color_of(cause.id) for cause in CAUSES.values() if cause.bottleneck == bottleneck.id)
        assert max(used.values(), default=1) == 1 or len(used) == bottleneck.shades, bottleneck.id


@pytest.mark.parametrize("bottleneck", BOTTLENECKS)
def test_a_cause_that_is_added_changes_no_declared_colour(
    bottleneck: BottleneckId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In front of all others, as in the middle; its own colour is one of those that are tested above."""
    before = {cause: color_of(cause) for cause in CAUSES if CAUSES[cause].shade is not None}
    first = replace(next(iter(CAUSES.values())), id="added", bottleneck=bottleneck, shade=None)
    monkeypatch.setattr(causes, "CAUSES", {"added": first, **CAUSES})
    assert {cause: color_of(cause) for cause in before} == before
    assert (bottleneck, color_of("added")) in SHADES


def test_the_first_shade_is_the_colour_itself() -> None:
    assert BOTTLENECKS["sync"].shade(0) == BOTTLENECKS["sync"].color
    assert BOTTLENECKS["kernels"].shade(0) != BOTTLENECKS["kernels"].color, "work has it"


class TestProposals:
    """`scripts/colour`."""

    @pytest.mark.slow
    def test_each_keeps_the_distances_and_contrasts(self) -> None:
        proposed = _colour.proposals(5)
        assert proposed
        for each in proposed:
            assert min(contrast(each.color, ground) for ground in _colour.pages().values()) >= 3
            for other, sight in product(_colour.used(), LEAST):
                least = (LEAST if other.is_own else LEAST_OF_SHADES)[sight]
                assert distance(each.color, other.color, sight) >= least, (each.color, other, sight)

    def test_pages_are_those_of_both_themes(self) -> None:
        light, dark = list(themes().values())[:2]
        assert set(_colour.pages().values()) == {each[name] for each in (light, dark) for name in ("surface", "ground")}

    def test_a_color_in_use_is_none(self) -> None:
        for each in _colour.used():
            assert _colour.margin(each.color, _colour.used()).times < 1

    def test_what_only_color_blind_readers_mistake_is_none(self) -> None:
        red = _colour.Used("host", "#b05a30", True)
        found = _colour.margin("#7d7a30", [red])
        assert found.times < 1
        assert found.sight == "deutan"
        assert distance("#7d7a30", red.color) >= LEAST["normal"]

    @pytest.mark.slow
    def test_a_crowded_palette_has_no_room(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        taken = [_colour.Used("taken", color, True) for color in _colour.candidates()]
        monkeypatch.setattr(_colour, "used", lambda: taken)
        assert _colour.main(["bottleneck"]) == 1
        assert "no colour keeps all distances" in capsys.readouterr().err

    def test_shades_of_a_bottleneck_say_who_has_them(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert _colour.main(["cause", "host"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == BOTTLENECKS["host"].shades + 1
        for cause in ("lock_wait", "sleep", "off_cpu", "host_compute"):
            assert sum(color_of(cause) in line and cause in line for line in lines) == 1

    def test_a_further_shade_is_free_only_if_it_fits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fewer = replace(BOTTLENECKS["sync"], shades=2)
        monkeypatch.setitem(BOTTLENECKS, "sync", fewer)
        assert _colour.one_more(fewer).startswith(f"shade=2  {replace(fewer, shades=3).shade(2)}  ")
        full = replace(fewer, shades=9)
        assert _colour.one_more(full).startswith("no further shade")
