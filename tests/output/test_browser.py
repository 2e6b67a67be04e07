"""The page in a real browser: scripts run under their own policy, and nobody complains."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.ranks.show.registry import RENDERERS
from tests.output.page import Element, parse
from tests.output.rank_samples import ranks_report
from tests.output.samples import SAMPLES

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser() -> str:
    return next(found for found in map(shutil.which, NAMES) if found)


def visit(browser: str, page: bytes, folder: Path) -> tuple[Element, list[str]]:
    """The page's elements after its scripts have run, and what was written to the console."""
    (folder / "page.html").write_bytes(page)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    options += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=3000", "--dump-dom"]
    done = subprocess.run(
        [browser, *options, (folder / "page.html").as_uri()], capture_output=True, timeout=120, check=True
    )
    console = [line for line in done.stderr.decode(errors="replace").splitlines() if "CONSOLE" in line]
    return parse(done.stdout), console


@pytest.mark.parametrize("sample", ["one_device", "hostile", "no_device"])
def test_scripts_run_without_complaint(sample: str, browser: str, tmp_path: Path) -> None:
    root, console = visit(browser, FORMATS["html"].render(SAMPLES[sample](), RenderOptions()), tmp_path)
    assert console == []
    assert root.all("html")[0].attributes["class"] == "js"
    theme = next(button for button in root.all("button") if button.attributes.get("class") == "theme")
    assert theme.text in ("Light theme", "Dark theme")
    assert "hidden" not in theme.attributes


def test_long_tables_are_folded_and_can_be_sorted(browser: str, tmp_path: Path) -> None:
    page = FORMATS["html"].render(SAMPLES["long_lists"](), RenderOptions())
    root, console = visit(browser, page, tmp_path)
    assert console == []
    table = next(table for table in root.all("table") if "gaps" in table.attributes["class"])
    records = table.all("tbody")
    assert len(records) == 60
    assert sum("hidden" not in record.attributes for record in records) == 20
    assert all(header.all("button") for header in table.all("thead")[0].all("th"))


def test_a_foreign_script_is_refused_and_noticed(browser: str, tmp_path: Path) -> None:
    page = FORMATS["html"].render(SAMPLES["one_device"](), RenderOptions())
    forged = page.replace(b"</main>", b"<script>document.title = 'taken'</script></main>")
    root, console = visit(browser, forged, tmp_path)
    assert root.all("title")[0].text != "taken"
    assert re.search("Content Security Policy", "".join(console))


def test_a_filter_leaves_the_other_tables_of_its_section_alone(browser: str, tmp_path: Path) -> None:
    root, console = visit(browser, FORMATS["html"].render(SAMPLES["hostile"](), RenderOptions()), tmp_path)
    assert console == []
    whole = [table for table in root.all("table") if "data-first" not in table.attributes]
    assert "Collectives by kind" in "".join(table.all("caption")[0].text for table in whole)
    assert [record for table in whole for record in table.all("tbody") if "hidden" in record.attributes] == []


def test_ranks_need_no_script_and_complain_of_none(browser: str, tmp_path: Path) -> None:
    root, console = visit(browser, RENDERERS["html"](ranks_report(), RenderOptions()), tmp_path)
    assert console == []
    assert [len(table.all("tbody")) for table in root.all("table")] == [4, 1, 4, 1, 2]
