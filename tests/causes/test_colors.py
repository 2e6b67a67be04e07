"""Colours: bottlenecks differ, and causes are shades of the colour of theirs.

Distances are CIEDE2000. The thresholds are what a search over palettes reached, with lightness kept to what stands out
2 : 1 on the light and the dark page.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations

import pytest
from coloraide import Color
from msgspec.structs import replace

from nsysdiag import causes
from nsysdiag.bottlenecks import BOTTLENECKS, BottleneckId
from nsysdiag.causes import CAUSES, color_of
from nsysdiag.findings.rules import FINDING_RULES, cause_infos
from tests.output.test_assets import contrast, themes

LEAST = {"normal": 11.5, "protan": 5.9, "deutan": 5.9, "tritan": 5.9}
"""Between any two bottlenecks."""
LEAST_OF_SHADES = {"normal": 7.5, "protan": 3.8, "deutan": 3.8, "tritan": 3.8}
"""Between a shade of one bottleneck and any colour of another."""
LEAST_LIGHTNESS = 5.5
"""In L*, of 0 to 100: causes of one bottleneck differ in grey."""
LEAST_ON_PAGE, LEAST_EDGE = 2.0, 3.0
GREYISH = 0.035
"""Chroma in Oklch; the most in sRGB is 0.32."""


@cache
def seen(color: str, sight: str) -> Color:
    """As a person with this sight sees it."""
    return Color(color) if sight == "normal" else Color(color).filter(sight).clip()


def distance(first: str, second: str, sight: str) -> float:
    return seen(first, sight).delta_e(seen(second, sight), method="2000")


def lightness(color: str) -> float:
    return float(Color(color).convert("lab-d65")["lightness"])


def test_the_measure_knows_red_from_green() -> None:
    red, green = "#b05a30", "#7d7a30"
    assert distance(red, green, "normal") > 25
    assert distance(red, green, "deutan") < 6
    assert distance("#000000", "#ffffff", "tritan") == pytest.approx(100, abs=0.1)


SHADES = [(each.id, each.shade(number)) for each in BOTTLENECKS.values() for number in range(each.shades)]
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
