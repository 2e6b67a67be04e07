"""The site: it builds without a warning, its links lead somewhere, and it loads nothing from elsewhere."""

from __future__ import annotations

import subprocess
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote_plus, unquote, urlsplit

import pytest

from tests.docs.conftest import ROOT
from tests.output.browser import Browser
from tests.output.conftest import chromium  # noqa: F401, a fixture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.output.browser import Chromium


LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("source", "srcset"), ("iframe", "src")}


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that a link may name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (tag, name) == ("a", "href"):
                self.links.append(value or "")
            elif (tag, name) in LOADED:
                self.loaded.append(value or "")
            elif name == "id":
                self.places.add(value or "")


page_of = cache(Page)


def pages(site: Path) -> dict[Path, Page]:
    return {path: page_of(path) for path in sorted(site.rglob("*.html"))}


def leads_somewhere(path: Path, link: str) -> bool:
    """Whether the page and the place that a link names are there. Addresses on the net are not looked at."""
    address = urlsplit(link)
    if address.scheme:
        return address.scheme in ("http", "https", "mailto")
    target = (path.parent / unquote(address.path)).resolve() if address.path else path
    if not target.is_file():
        return False
    return not address.fragment or target.suffix != ".html" or unquote(address.fragment) in page_of(target).places


@pytest.mark.parametrize(
    ("link", "right"),
    [
        ("b.html", True),
        ("b.html#here", True),
        ("#top", True),
        ("https://host.example/x", True),
        ("c.html", False),
        ("b.html#there", False),
        ("#here", False),
        ("file:///a.html", False),
    ],
)
def test_broken_links_are_seen(tmp_path: Path, link: str, right: bool) -> None:
    (tmp_path / "a.html").write_text('<h1 id="top">', encoding="utf-8")
    (tmp_path / "b.html").write_text('<h2 id="here">', encoding="utf-8")
    assert leads_somewhere(tmp_path / "a.html", link) == right


@pytest.mark.thorough
@pytest.mark.checkout
def test_every_link_leads_somewhere(site: Path) -> None:
    links = [(path, link) for path, page in pages(site).items() for link in page.links]
    assert len(links) > 50
    assert [(path.name, link) for path, link in links if not leads_somewhere(path, link)] == []


@pytest.mark.thorough
@pytest.mark.checkout
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = {each for page in pages(site).values() for each in page.loaded}
    assert len(loaded) > 5
    assert [each for each in sorted(loaded) if urlsplit(each).netloc] == []


@pytest.mark.thorough
@pytest.mark.checkout
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# A page\n\n[there](missing.md)\n", "missing.md"),
        ("# A page\n\n[there](#no-such-heading)\n", "no-such-heading"),
        ("# A page\n\n![picture](../.assets/missing.png)\n", "missing.png"),
    ],
)
def test_a_mistake_in_a_page_is_an_error(site: Path, tmp_path: Path, text: str, said: str) -> None:
    """With the options of scripts/docs. The site is asked for: where it cannot be built, this cannot either."""
    source = tmp_path / "docs"
    source.mkdir()
    (source / "index.md").write_text(text, encoding="utf-8")
    script = (ROOT / "scripts" / "docs").read_text(encoding="utf-8")
    options = ["--nitpicky", "--fail-on-warning"]
    assert [each for each in options if each not in script] == []
    command = [ROOT / ".venv-docs" / "bin" / "python", "-m", "sphinx", *options, "--conf-dir", ROOT / "docs"]
    done = subprocess.run(
        [*map(str, command), str(source), str(tmp_path / "html")],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode
    assert said in done.stderr


@pytest.fixture
def browser(chromium: Chromium) -> Iterator[Browser]:  # noqa: F811
    with Browser(chromium) as opened:
        yield opened


def found(browser: Browser, site: Path, words: str) -> list[str]:
    """The pages that a search shows, in its order."""
    browser.open(f"{(site / 'search.html').as_uri()}?q={quote_plus(words)}")
    browser.until(
        "/finished|did not match/i.test(document.querySelector('#search-results .search-summary')?.textContent ?? '')"
    )
    links = browser.value("Array.from(document.querySelectorAll('#search-results li > a'), (link) => link.href)")
    return [unquote(urlsplit(link).path) for link in links]


@pytest.mark.thorough
@pytest.mark.checkout
@pytest.mark.browser
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("cudaMemcpyAsync pageable idle", "causes/blocking_copy.html"),
        ("cudaStreamSynchronize idle", "causes/sync.html"),
        ("DataLoader workers idle", "causes/data_loading.html"),
        ("perf_event_paranoid", "capturing.html"),
        ("redact", "sharing.html"),
        ("uncovered", "causes/uncovered.html"),
        ("slurm", "guide-slurm.html"),
        ("jax", "guide-jax.html"),
        ("cmake", "guide-cpp.html"),
        ("openacc", "guide-cpp.html"),
        ("kubernetes", "guide-kubernetes.html"),
        ("HTA", "beside-nsys.html"),
        ("accuracy", "accuracy.html"),
        ("cost", "settings.html"),
    ],
)
def test_a_search_leads_to_the_page(site: Path, browser: Browser, words: str, page: str) -> None:
    """In two clicks: the search, and one of the first results."""
    assert [path for path in found(browser, site, words)[:3] if path.endswith(page)] != []


@pytest.mark.thorough
@pytest.mark.checkout
@pytest.mark.browser
def test_a_search_for_what_is_nowhere_finds_nothing(site: Path, browser: Browser) -> None:
    assert found(browser, site, "qwertzuiopasdf") == []
