"""What pages say is so: nothing is left out, paths and links lead somewhere, numbers are today's."""

from __future__ import annotations

import gzip
import re
from signal import SIGINT
from typing import TYPE_CHECKING

import pytest

import nsysdiag
from nsysdiag.batch.results import OURS
from nsysdiag.bottlenecks import BOTTLENECKS
from nsysdiag.cli.console import BROKEN_BUDGET, BUG
from nsysdiag.functions import bundled_trace
from nsysdiag.messages import NsysdiagError
from nsysdiag.signals import Ended
from tests.conftest import NEEDS
from tests.docs.pages import (
    CONTRIBUTING,
    DOCS,
    PAGES,
    README,
    ROOT,
    everything,
    name_of,
    page,
    section,
    text,
    without_blocks,
)

if TYPE_CHECKING:
    from pathlib import Path

KIB = 2**10
CODES = re.compile(r"^\| ([\d, ]+) \|", flags=re.MULTILINE)
FOLDERS = ("nsysdiag", "docs", "templates", "tests", "scripts", ".ci", ".assets", ".github")


def test_the_readme_is_short() -> None:
    assert len(text(README).splitlines()) <= 180


BY_NAME = re.compile(r"(?:pip install|uv tool install|uvx|pipx (?:install|run))(?: -\S+)* ['\"]?nsysdiag\b")


@pytest.mark.checkout
@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_no_page_installs_by_the_bare_name(path: Path) -> None:
    """The name is no one's on any index, and another project may take it."""
    assert BY_NAME.findall(text(path)) == []


@pytest.mark.parametrize(
    ("line", "by_name"),
    [
        ("pip install nsysdiag", True),
        ("pip install --upgrade 'nsysdiag[parquet]'", True),
        ("uvx nsysdiag demo", True),
        ("pipx run nsysdiag", True),
        ("pip install ./nsysdiag", False),
        ("uvx --from . nsysdiag demo", False),
        ("pipx install .", False),
    ],
)
def test_an_installation_by_the_bare_name_is_seen(line: str, by_name: bool) -> None:
    assert bool(BY_NAME.search(line)) == by_name


def test_files_of_a_batch_are_named() -> None:
    assert [name for name in OURS if f"`{name}`" not in page("batches.md")] == []


def errors(kind: type[NsysdiagError]) -> list[type[NsysdiagError]]:
    return [kind, *(each for child in kind.__subclasses__() for each in errors(child))]


def test_every_exit_code() -> None:
    known = {0, BROKEN_BUDGET, BUG, Ended(SIGINT).exit_code}
    known |= {kind.exit_code for kind in errors(NsysdiagError)}
    listed = CODES.findall(section(page("cli.md"), "Exit codes"))
    assert [int(code) for code in listed if "," not in code] == sorted(known)


def test_every_script() -> None:
    said = text(CONTRIBUTING) + page("testing.md") + text(README)
    scripts = [path.name for path in (ROOT / "scripts").iterdir() if path.is_file() and not path.name.startswith("_")]
    assert [name for name in sorted(scripts) if f"scripts/{name}" not in said] == []


def test_every_need_of_tests() -> None:
    said = page("testing.md")
    assert [marker for marker in NEEDS if f"`{marker}`" not in said] == []
    assert "NSYSDIAG_TRACES" in said
    assert "NSYSDIAG_NSYS" in said


def test_every_bottleneck_of_a_headline() -> None:
    rows = re.findall(r"^\| ([\w -]+) \|", section(page("reading-a-report.md"), "The first screen"), re.MULTILINE)
    assert [each.title for each in BOTTLENECKS.values() if each.title not in rows] == []


@pytest.mark.checkout
@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_paths_lead_somewhere(path: Path) -> None:
    tops = "|".join(re.escape(name) for name in FOLDERS)
    named = set(re.findall(rf"(?<![\w./-])(?:{tops})/[\w./-]*[\w/](?![\w*./-])", without_blocks(text(path))))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def anchors(content: str) -> set[str]:
    """Of its headings, as forges and the site make them."""
    headings = re.findall(r"^#+ (.*)$", without_blocks(content), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def broken(path: Path, link: str) -> bool:
    """Whether a link in a page leads nowhere. Addresses on the net are not looked at."""
    if link.startswith(("http://", "https://")):
        return False
    name, _, anchor = link.partition("#")
    target = path.parent / name if name else path
    return not target.exists() or bool(anchor and anchor not in anchors(text(target)))


@pytest.mark.checkout
@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    """Also where no site is built."""
    links = re.findall(r"\]\(([^)\s]+)\)", without_blocks(text(path)))
    assert [link for link in links if broken(path, link)] == []


@pytest.mark.parametrize("link", ["missing.md", "ledger.md#missing", "#missing"])
def test_a_broken_link_is_seen(link: str) -> None:
    assert broken(DOCS / "how-it-works.md", link)


@pytest.mark.slow
def test_numbers_about_the_demo(tmp_path: Path) -> None:
    path = tmp_path / "demo.sqlite"
    path.write_bytes(gzip.decompress(bundled_trace()))
    devices = nsysdiag.analyze(path, nsysdiag.Settings(gaps=0)).devices
    long_ones = sum(gap.end_ns - gap.start_ns >= 1_000_000 for device in devices for gap in device.gaps)
    short_ones = sum(device.gap_count for device in devices) - long_ones
    assert f"the same {long_ones} gaps, to the nanosecond, and {short_ones:,} shorter ones" in page("beside-nsys.md")


def test_no_page_speaks_of_sections_that_moved() -> None:
    assert "the next section" not in everything()


@pytest.mark.checkout
def test_pictures_are_small() -> None:
    assert [path.name for path in (ROOT / ".assets").iterdir() if path.stat().st_size > 300 * KIB] == []
