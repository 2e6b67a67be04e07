"""The files that go into a page: found in the right place, and colours that can be read."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.document.drawings import LegendEntry, StackedBar, safe_color, stack
from nsysdiag.document.svg import ink_on, segments
from nsysdiag.document.view import UNKNOWN_COLOR
from nsysdiag.formats.html import assets
from nsysdiag.messages import NsysdiagError

ROOT = Path(__file__).parent.parent.parent
TEXT_ON_GROUNDS = ("ink", "muted", "accent", "high", "medium", "low", "info", "good")
GROUNDS = ("ground", "surface", "sunken", "accent-soft")
colors = st.integers(0, 0xFFFFFF).map("#{:06x}".format)


@pytest.fixture
def _fresh() -> object:
    assets.templates_folder.cache_clear()
    yield
    assets.templates_folder.cache_clear()


def test_the_checkout_comes_first() -> None:
    assert assets.templates_folder() == ROOT / "templates"


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize("project", [None, "[project]\nname = 'other'\n", "not toml ["])
def test_a_folder_of_another_project_is_not_ours(
    project: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "nsysdiag" / "templates").mkdir(parents=True)
    if project is not None:
        (tmp_path / "pyproject.toml").write_text(project)
    monkeypatch.setattr(assets, "PACKAGE", tmp_path / "nsysdiag")
    assert assets.templates_folder() == tmp_path / "nsysdiag" / "templates"


@pytest.mark.usefixtures("_fresh")
def test_no_templates_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "PACKAGE", tmp_path / "nsysdiag")
    with pytest.raises(NsysdiagError, match="templates are missing"):
        assets.templates_folder()


@pytest.mark.usefixtures("_fresh")
def test_an_asset_cannot_end_its_element(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nsysdiag" / "templates" / "assets").mkdir(parents=True)
    (tmp_path / "nsysdiag" / "templates" / "assets" / "x.js").write_text("'</script>'")
    monkeypatch.setattr(assets, "PACKAGE", tmp_path / "nsysdiag")
    with pytest.raises(NsysdiagError, match="end the element"):
        assets.asset("x.js")


def themes() -> dict[str, dict[str, str]]:
    """The colours of each block of the style sheet that sets them, laid over the light ones."""
    blocks = re.findall(r"(:root[^{]*)\{([^}]*--ink:[^}]*)\}", assets.page_style())
    sets = [dict(re.findall(r"--([\w-]+):(#[0-9a-f]{6})", body)) for _selector, body in blocks]
    names = [" ".join(selector.split()) + f" {index}" for index, (selector, _body) in enumerate(blocks)]
    return {name: {**sets[0], **colours} for name, colours in zip(names, sets, strict=True)}


def contrast(first: str, second: str) -> float:
    lights = sorted(_luminance(color) for color in (first, second))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_there_is_a_light_a_dark_and_a_print_theme() -> None:
    light, system_dark, chosen_dark, print_theme = themes().values()
    assert system_dark == chosen_dark
    assert light["ground"] != system_dark["ground"]
    assert print_theme["ground"] == "#ffffff"


@pytest.mark.parametrize("theme", themes())
def test_text_stands_out(theme: str) -> None:
    palette = themes()[theme]
    for ink, ground in product(TEXT_ON_GROUNDS, GROUNDS):
        assert contrast(palette[ink], palette[ground]) >= 4.5, (ink, ground)
    for part in ("compute", "communication", "copies"):
        assert contrast(palette["on-part"], palette[part]) >= 4.5, part
    assert contrast(palette["on-idle"], palette["idle"]) >= 4.5


@pytest.mark.slow
@given(colors)
def test_labels_stand_out_on_any_cause(color: str) -> None:
    assert contrast(ink_on(color), color) >= 4.5


@pytest.mark.parametrize("color", ["red", "#fff", "#12345g", 'red" onload="x', "", "#1234567", "#123456\n"])
def test_only_plain_colours_are_drawn(color: str) -> None:
    assert safe_color(color) == UNKNOWN_COLOR


@given(st.lists(st.tuples(st.builds(LegendEntry, st.text(max_size=3), st.just(""), colors), st.integers(0, 10**12))))
def test_a_stack_fills_its_bar(parts: list[tuple[LegendEntry, int]]) -> None:
    placed = segments(StackedBar("", stack(parts), 1))
    assert len(placed) == sum(part[1] > 0 for part in parts)
    assert sum(float(each.width[:-1]) for each in placed) == pytest.approx(100 if placed else 0, abs=0.02)
    ends = [float(each.x[:-1]) + float(each.width[:-1]) for each in placed]
    assert [float(each.x[:-1]) for each in placed[1:]] == pytest.approx(ends[:-1], abs=0.01)


SCRIPT = """// about

/**
 * More.
 */
const a = () => {
  // why
  return "// no comment"; // kept
};
/** One. */
"""


def test_a_lean_script_lacks_nothing_but_comments() -> None:
    assert assets.lean(SCRIPT) == 'const a = () => {\nreturn "// no comment"; // kept\n};\n'


@pytest.mark.parametrize("path", sorted((ROOT / "templates" / "assets").rglob("*.js")), ids=lambda path: path.stem)
def test_no_text_in_a_script_goes_over_lines(path: Path) -> None:
    """Or what stands in it might be taken for a comment or for indentation."""
    text = path.read_text().replace(r"[\\`*", "").replace("^_`{", "").replace("/`/", "")  # patterns, and an alphabet
    assert not [line for line in text.splitlines() if line.count("`") % 2]
