"""The steps of both sides in the outputs: the largest differences, which add up, and what the scripts draw."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

import pytest
from msgspec.structs import replace

from nsysdiag.arrays.groups import from_planes
from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.show.registry import RENDERERS
from nsysdiag.comparison.show.sections import MOST_ROWS, differences, steps_data
from nsysdiag.comparison.step_facts import AlignedSteps
from nsysdiag.document.blocks import Cell, Table
from nsysdiag.document.view import Causes
from nsysdiag.formats import RenderOptions
from nsysdiag.formats.html.assets import STEPS_SCRIPTS, asset, templates_folder
from nsysdiag.messages import InputError
from tests.output.carrying import from_carried
from tests.output.compare_samples import CAUSES, US, comparison, device
from tests.output.step_samples import difference, packed
from tests.output.timeline.test_scripts import OF_TEXT

OPTIONS = RenderOptions(width=120, details=True)
SCRIPTS = sorted(path.stem for path in (templates_folder() / "assets" / "steps").glob("*.js"))


def with_steps(**changed: Any) -> Comparison:
    steps = device().steps
    assert steps is not None
    return comparison([replace(device(), steps=replace(steps, **changed))])


def table(made: Comparison) -> Table:
    (found,) = (each for each in differences(made.devices[0], Causes(CAUSES)) if isinstance(each, Table))
    return found


def test_the_differences_are_in_order_of_time_and_add_up() -> None:
    found = table(comparison())
    assert "step 3 before, step 4 after" in found.title
    rows: list[list[Any]] = [[each.value if isinstance(each, Cell) else each for each in row] for row in found.rows]
    assert [row[3] for row in rows[:3]] == [0, 300 * US, 360 * US]
    assert [row[1] for row in rows[:3]] == ["only before", "idle", "longer"]
    *parts, whole = [row[-1] for row in rows]
    assert whole == (777 - 1052) * US
    assert sum(parts) == whole


def test_only_the_largest_differences_are_listed() -> None:
    """Those that are left out are in the row of everything else."""
    many = [difference("only_before", at, None, 100 - at, 0, names=(f"kernel_{at}", None)) for at in range(20)]
    rows = table(with_steps(differences=many)).rows
    assert len(rows) == MOST_ROWS + 2
    assert [row[3] for row in rows[:MOST_ROWS]] == [at * US for at in range(MOST_ROWS)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["txt", "md", "html"])
def test_every_format_has_the_table(name: str) -> None:
    text = re.sub(r"<[^>]+>", "", RENDERERS[name](comparison(), OPTIONS).decode())
    assert "What differs in the typical step" in text
    assert "Idle: Synchronization → Host code" in text


def test_the_first_screen_has_no_table() -> None:
    assert "typical step" not in RENDERERS["txt"](comparison(), RenderOptions(width=120)).decode()


@pytest.mark.parametrize("name", ["txt", "md", "html"])
def test_without_steps_every_format_says_why(name: str) -> None:
    made = comparison([replace(device(), steps=None, no_steps="A report does not hold them.")])
    text = RENDERERS[name](made, OPTIONS).decode()
    assert "A report does not hold them." in text
    assert "What differs" not in text


def test_the_script_is_in_pages_with_steps_alone() -> None:
    with_script, without = (
        RENDERERS["html"](comparison([each]), OPTIONS).decode() for each in (device(), replace(device(), steps=None))
    )
    assert 'id="timeline-script"' in with_script
    assert 'id="timeline-script"' not in without


def test_what_the_scripts_get_is_what_the_comparison_holds() -> None:
    steps = device().steps
    assert steps is not None
    data = json.loads(json.dumps(steps_data(steps, Causes(CAUSES))))
    block = zlib.decompress(from_carried(data["bytes"]))

    def column(place: list[int], count: int) -> list[int]:
        return [int(each) for each in from_planes(block[place[0] : sum(place)], count)] if place[1] else [0] * count

    after = data["after"]
    assert column(after["numbers"], 3) == [4, 5, 6]
    assert column(after["columns"]["lengths"], 6) == [300 * US, 417 * US] * 3
    assert column(data["before"]["columns"]["marks"], 9) == [1, 0, 3] * 3
    assert column(data["places"]["front"], 6) == [1] * 6
    assert [each["title"] for each in data["causes"]] == ["Unknown", "Synchronization", "Host code"]


@pytest.mark.parametrize(
    "damage",
    [
        {"matched": [2, 2]},
        {"kinds": [2, 0]},
        {"kinds": [2, 0, 3]},
        {"front": packed(1, 1)},
        {"front": packed(*[1, 7] * 3)},
        {"places_after": packed(*[0, 20] * 3)},
        {"places_before": packed(*[1, 2] * 3)},
        {"names": ["one", "two"], "kinds": [0, 0]},
        {"cause_ids": []},
    ],
)
def test_a_damaged_comparison_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="damaged"):
        RENDERERS["html"](with_steps(**damage), OPTIONS)


def test_a_side_with_other_numbers_is_refused() -> None:
    steps = device().steps
    assert isinstance(steps, AlignedSteps)
    for wrong in ([0], [0, 0, -1]):
        with pytest.raises(InputError, match="damaged"):
            RENDERERS["html"](with_steps(before=replace(steps.before, carried_ns=wrong)), OPTIONS)


def test_every_script_is_in_the_page_and_makes_nothing_of_text() -> None:
    assert sorted(name.partition("/")[2] for name in STEPS_SCRIPTS if name.startswith("steps/")) == SCRIPTS
    for name in STEPS_SCRIPTS:
        assert not re.search(OF_TEXT, asset(f"{name}.js"))
