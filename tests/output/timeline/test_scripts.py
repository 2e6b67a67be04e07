"""The scripts themselves: all of them are in the page, and none of them makes elements or code of text."""

from __future__ import annotations

import re

import pytest

from nsysdiag.formats.html.assets import TIMELINE_SCRIPTS, assembled, asset, templates_folder

FILES = sorted(path.stem for path in (templates_folder() / "assets" / "timeline").glob("*.js"))
OF_TEXT = (
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|setAttribute|fetch\(|XMLHttpRequest"
)


def test_every_file_is_in_the_page() -> None:
    assert sorted(TIMELINE_SCRIPTS) == FILES


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_made_of_text(name: str) -> None:
    assert not re.search(OF_TEXT, asset(f"timeline/{name}.js"))


def test_they_share_a_scope_of_their_own() -> None:
    script = assembled("timeline", TIMELINE_SCRIPTS)
    assert script.startswith('(function () {\n"use strict";\n')
    assert script.rstrip().endswith("})();")
    assert script.count("window.nsysdiagTimeline =") == 1
