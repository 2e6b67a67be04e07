"""Propose a colour for a new bottleneck, or a shade for a new cause.

usage: scripts/colour bottleneck [COUNT]
       scripts/colour cause BOTTLENECK

Distances are CIEDE2000, for normal sight and three kinds of color blindness. Contrasts are those of WCAG 2.1. A
proposal for a bottleneck keeps 3 : 1 on the light and the dark page, and the least distances to all colours in use,
which `tests/causes/test_colors.py` holds the palette to. Exits with 1 if there is none.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from coloraide import Color
from msgspec.structs import replace

from nsysdiag.bottlenecks import BOTTLENECKS, Bottleneck
from nsysdiag.causes import CAUSES, color_of
from tests.output.test_assets import themes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LEAST = {"normal": 11.5, "protan": 5.9, "deutan": 5.9, "tritan": 5.9}
"""Between any two bottlenecks. These are what a search over palettes reached."""
LEAST_OF_SHADES = {"normal": 7.5, "protan": 3.8, "deutan": 3.8, "tritan": 3.8}
"""Between a shade of one bottleneck and any colour of another."""
LEAST_LIGHTNESS = 5.5
"""In L*, of 0 to 100: causes of one bottleneck differ in grey."""
LEAST_CONTRAST = 3.0
"""Of a proposal on a page: what WCAG asks of graphics (1.4.11)."""
LEAST_OF_SHADE_ON_PAGE = 2.0
"""Of a shade, which has an edge with more contrast."""
MOST_SHADES = 5
GRID = (np.arange(0.40, 0.80, 0.025), np.arange(0.06, 0.30, 0.03), np.arange(0, 360, 8.0))
"""Lightness, chroma and hue in Oklch of what is tried. Less chroma would look like what a trace cannot tell."""
DIFFERENT = 10.0
"""The least distance between two proposals, so that there is a choice."""


@cache
def seen(color: str, sight: str) -> Color:
    """As a person with this sight sees it."""
    return Color(color) if sight == "normal" else Color(color).filter(sight).clip()


@cache
def distance(first: str, second: str, sight: str = "normal") -> float:
    """CIEDE2000."""
    return seen(first, sight).delta_e(seen(second, sight), method="2000")


def lightness(color: str) -> float:
    """L*, 0 to 100."""
    return float(Color(color).convert("lab-d65")["lightness"])


def contrast(first: str, second: str) -> float:
    """The ratio of WCAG 2.1."""
    return Color(first).contrast(second, method="wcag21")


def pages() -> dict[str, str]:
    """The backgrounds by what they are: light and dark, of the page and of what stands on it."""
    light, dark = list(themes().values())[:2]
    grounds = {name: (light[name], dark[name]) for name in ("surface", "ground")}
    return {
        f"{kind} {name}": color
        for name, both in grounds.items()
        for kind, color in zip(("light", "dark"), both, strict=True)
    }


def shades_of(bottleneck: Bottleneck) -> list[str]:
    """Those that causes may have."""
    return [bottleneck.shade(number) for number in range(bottleneck.shades)]


class Used(NamedTuple):
    """A colour in use: of a bottleneck itself, or a shade of one."""

    bottleneck: str
    color: str
    is_own: bool


def used() -> list[Used]:
    """All of them, in both themes."""
    own = {
        (each.id, palette[each.part] if each.part else each.color)
        for each, palette in product(BOTTLENECKS.values(), themes().values())
    }
    shades = {(each.id, color) for each in BOTTLENECKS.values() for color in shades_of(each)}
    return [Used(*each, True) for each in sorted(own)] + [Used(*each, False) for each in sorted(shades - own)]


class Margin(NamedTuple):
    """How far a colour is from the nearest one in use, as a multiple of the least distance: under 1 is too near."""

    times: float
    nearest: Used
    sight: str


def margin(color: str, others: Iterable[Used], *, is_own: bool = True) -> Margin:
    """The smallest one. Normal sight comes first, as it refuses most colours."""
    found = Margin(float("inf"), Used("", "", True), "")
    for sight, other in product(LEAST, others):
        least = (LEAST if is_own and other.is_own else LEAST_OF_SHADES)[sight]
        times = distance(color, other.color, sight) / least
        if times < found.times:
            found = Margin(times, other, sight)
            if times < 1:
                break
    return found


class Proposal(NamedTuple):
    """A colour for a bottleneck, and how many shades of it keep the distances as well."""

    color: str
    margin: Margin
    shades: int


def candidates() -> Iterator[str]:
    """Colours of sRGB that stand out on every page."""
    grounds = pages().values()
    for lightness_, chroma, hue in product(*GRID):
        color = Color("oklch", [lightness_, chroma, hue])
        if color.in_gamut("srgb") and min(color.contrast(each, method="wcag21") for each in grounds) >= LEAST_CONTRAST:
            yield color.convert("srgb").to_string(hex=True)


def proposals(count: int) -> list[Proposal]:
    """The best ones that keep all distances, the farthest first; any two differ."""
    others = used()
    kept = [(found, color) for color in dict.fromkeys(candidates()) if (found := margin(color, others)).times >= 1]
    chosen: list[Proposal] = []
    for found, color in sorted(kept, key=lambda each: -each[0].times):
        if len(chosen) < count and all(distance(color, each.color) >= DIFFERENT for each in chosen):
            chosen.append(Proposal(color, found, fitting_shades(color, others)))
    return chosen


def fitting_shades(color: str, others: list[Used]) -> int:
    """How many shades of a colour, the first one itself, may tell causes apart."""
    one = replace(next(iter(BOTTLENECKS.values())), id="new", color=color, part="", shades=MOST_SHADES)
    kept: list[str] = []
    for shade in shades_of(one):
        if not fits(shade, kept, others, is_own=not kept):
            break
        kept.append(shade)
    return len(kept)


def fits(shade: str, own: list[str], others: list[Used], *, is_own: bool) -> bool:
    """Whether a shade differs in grey from those of its bottleneck, stands out, and is far from other bottlenecks."""
    surfaces = [color for name, color in pages().items() if name.endswith("surface")]
    apart = all(abs(lightness(shade) - lightness(each)) >= LEAST_LIGHTNESS for each in own)
    stands_out = min(contrast(shade, each) for each in surfaces) >= LEAST_OF_SHADE_ON_PAGE
    return apart and stands_out and margin(shade, others, is_own=is_own).times >= 1


def for_a_bottleneck(count: int) -> list[str]:
    """Lines about colours for a new bottleneck; none if there is none."""
    return [
        f"{each.color}  {contrasts(each.color)}  shades {each.shades}  "
        f"{each.margin.times:.2f} times the least distance from {each.margin.nearest.bottleneck} "
        f"({each.margin.sight} sight)"
        for each in proposals(count)
    ]


def for_a_cause(bottleneck: Bottleneck) -> list[str]:
    """A line for each shade of a bottleneck: which causes have it. The last line is about one shade more."""
    lines = []
    for number, shade in enumerate(shades_of(bottleneck)):
        causes = [each for each in CAUSES if CAUSES[each].bottleneck == bottleneck.id and color_of(each) == shade]
        lines.append(f"shade={number}  {shade}  {contrasts(shade)}  {', '.join(causes) or 'free'}")
    return [*lines, one_more(bottleneck)]


def one_more(bottleneck: Bottleneck) -> str:
    """Whether a further shade keeps the distances from other bottlenecks, and differs in grey from its own."""
    shade = replace(bottleneck, shades=bottleneck.shades + 1).shade(bottleneck.shades)
    own = shades_of(bottleneck)
    others = [each for each in used() if each.bottleneck != bottleneck.id]
    if shade in own or not fits(shade, own, others, is_own=False):
        return "no further shade keeps the distances: a cause without a free one shares its colour"
    return f"shade={bottleneck.shades}  {shade}  {contrasts(shade)}  free with shades={bottleneck.shades + 1}"


def contrasts(color: str) -> str:
    """On the light and the dark page."""
    said = {name: contrast(color, ground) for name, ground in pages().items() if name.endswith("surface")}
    return ", ".join(f"{value:.1f} : 1 on {name.split()[0]}" for name, value in said.items())


def main(words: list[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="scripts/colour", description="Propose a colour.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    kinds.add_parser("bottleneck").add_argument("count", type=int, nargs="?", default=5)
    kinds.add_parser("cause").add_argument("bottleneck", choices=list(BOTTLENECKS))
    given = parser.parse_args(words)
    lines = for_a_bottleneck(given.count) if given.kind == "bottleneck" else for_a_cause(BOTTLENECKS[given.bottleneck])
    if not lines:
        print("no colour keeps all distances: change one in use, or merge two bottlenecks", file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
