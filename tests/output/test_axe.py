"""The page by the rules of axe-core: nothing serious for readers with a keyboard, a screen reader or weak eyes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nsysdiag
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.report import Report
from tests.conftest import AXE
from tests.output.browser import Chromium
from tests.output.reader import Reader
from tests.output.samples import SAMPLES

pytestmark = [pytest.mark.browser, pytest.mark.npm, pytest.mark.slow]

BAD = {"serious", "critical"}
ALL_RULES: dict[str, object] = {"resultTypes": ["violations"]}
COLOURS = {**ALL_RULES, "runOnly": ["color-contrast"]}


def violations(reader: Reader, options: dict[str, object]) -> list[str]:
    """What is seriously wrong with the page as it stands."""
    code = f"axe.run(document, {json.dumps(options)}).then(({{ violations }}) => violations.map((each) => "
    code += "[each.impact, each.id, each.nodes[0].html.slice(0, 200)]))"
    return [f"{rule}: {where}" for impact, rule, where in reader.value(code) if impact in BAD]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["demo", "hostile", "several_devices"])
def test_nothing_serious_in_light_and_dark(
    name: str, demo: nsysdiag.Report, chromium: Chromium, tmp_path: Path
) -> None:
    made: Report = demo if name == "demo" else SAMPLES[name]()
    with Reader(chromium) as reader:
        reader.file = tmp_path / "page.html"
        reader.file.write_bytes(FORMATS["html"].render(made, RenderOptions()))
        reader.dark(on=False)
        reader.start()
        reader.value("document.querySelectorAll('details.device').forEach((each) => { each.open = true; })")
        reader.value(f"{AXE.read_text(encoding='utf-8')}; 0")
        assert violations(reader, ALL_RULES) == []
        reader.dark(on=True)  # only colours change
        assert violations(reader, COLOURS) == []


def test_a_fault_is_found(chromium: Chromium, tmp_path: Path) -> None:
    """A picture without a name and pale text: the check can fail."""
    with Reader(chromium) as reader:
        reader.file = tmp_path / "page.html"
        reader.file.write_text("<!doctype html><html lang=en><title>x</title><main><h1>x</h1><img src='data:,'>")
        reader.start()
        reader.value(f"{AXE.read_text(encoding='utf-8')}; 0")
        assert [line.partition(":")[0] for line in violations(reader, ALL_RULES)] == ["image-alt"]
