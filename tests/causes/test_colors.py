"""Colours of causes: any two may stand beside each other in a bar, where rows are sorted by their time.

Distances are CIEDE2000. The thresholds are what a search over palettes of 29 colours reached, with lightness kept to
what stands out 2 : 1 on the light and the dark page; without that limit the best were 14 and 7.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise, product

import pytest
from coloraide import Color

from nsysdiag.causes import CAUSES
from nsysdiag.findings.rules import FINDING_RULES
from tests.output.test_assets import contrast, themes

PARTS = ("compute", "communication", "copies")
LEAST = {"normal": 11.5, "protan": 5.9, "deutan": 5.9, "tritan": 5.9}
LEAST_LIGHTNESS = 5.5
"""In L*, of 0 to 100: 29 colours cannot all differ in grey, those of one family and neighbours in the order do."""
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


@pytest.mark.parametrize("sight", LEAST)
def test_causes_differ(sight: str) -> None:
    close = {
        (one.id, other.id): distance(one.color, other.color, sight) for one, other in combinations(CAUSES.values(), 2)
    }
    assert {pair: value for pair, value in close.items() if value < LEAST[sight]} == {}


@pytest.mark.parametrize("sight", LEAST)
@pytest.mark.parametrize("theme", themes())
def test_causes_differ_from_work(theme: str, sight: str) -> None:
    palette = themes()[theme]
    close = {
        (cause.id, part): distance(cause.color, palette[part], sight) for cause, part in product(CAUSES.values(), PARTS)
    }
    assert {pair: value for pair, value in close.items() if value < LEAST[sight]} == {}


def test_neighbours_and_families_differ_in_grey() -> None:
    known = list(CAUSES.values())
    family = [(one, other) for one, other in combinations(known, 2) if one.family == other.family]
    close = {
        (one.id, other.id): abs(lightness(one.color) - lightness(other.color))
        for one, other in (*pairwise(known), *family)
    }
    assert {pair: value for pair, value in close.items() if value < LEAST_LIGHTNESS} == {}


@pytest.mark.parametrize("theme", themes())
def test_causes_stand_out_on_the_page(theme: str) -> None:
    """Swatches and bars have an edge besides, which stands out as graphics must."""
    surface, edge = themes()[theme]["surface"], themes()[theme]["edge"]
    assert min(contrast(cause.color, surface) for cause in CAUSES.values()) >= LEAST_ON_PAGE
    assert contrast(edge, surface) >= LEAST_EDGE


def test_what_the_trace_cannot_tell_is_greyish() -> None:
    for cause in CAUSES.values():
        assert (Color(cause.color).convert("oklch")["chroma"] < GREYISH) >= cause.unresolved, cause.id


def test_no_finding_has_the_colour_of_a_cause() -> None:
    colors = [*(cause.color for cause in CAUSES.values()), *(rule.color for rule in FINDING_RULES.values())]
    assert len(set(colors)) == len(colors)
