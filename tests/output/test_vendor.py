"""plotly.js as the page carries it: the version that plotly for Python comes with, whole, and with its licence."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs_version

from nsysdiag.formats import FORMATS
from nsysdiag.formats.html.assets import content_hash, plotly
from tests.output.carrying import from_carried
from tests.output.rendered import EVERY_SAMPLE, rendered, tree

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "templates" / "assets" / "vendor"
TERMS = {"MIT": "Permission is hereby granted", "BSD-3-Clause": "Redistribution and use", "Zlib": "This software"}
"""How the terms of a licence begin."""
CHARTLESS = ("no_device", "no_device_no_rows", "never_idle")


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def test_knows_all_that_the_installed_plotly_knows() -> None:
    """A script that is too old is mended by scripts/vendor_plotly; older versions of plotly ask for less."""
    assert numbers(plotly().version) >= numbers(get_plotlyjs_version())
    assert plotly().source.startswith(f"/**\n* plotly.js (basic - minified) v{plotly().version}\n")


def test_is_what_was_fetched() -> None:
    facts = dict(line.split(" ") for line in (FOLDER / "VERSION").read_text().splitlines())
    assert facts["package"] == "plotly.js-basic-dist-min"
    assert facts["sha256"] == hashlib.sha256(plotly().source.encode()).hexdigest()
    assert re.fullmatch(r"sha512-[\w+/]{86}==", facts["integrity"])


def test_unpacks_to_what_the_policy_allows() -> None:
    root = tree("one_device")
    (block,) = (script for script in root.all("script") if script.attributes.get("id") == "plotly")
    (policy,) = (meta.attributes["content"] for meta in root.all("meta") if "http-equiv" in meta.attributes)
    unpacked = gzip.decompress(from_carried(block.text)).decode()
    assert unpacked == plotly().source
    assert unpacked.split("*/")[0].endswith("Licensed under the MIT license\n")
    assert "/*! Bundled license information:" in unpacked
    assert content_hash(unpacked) in policy.split("script-src ")[1].split(";")[0]


def test_makes_no_code_from_text() -> None:
    assert not re.search(r"\beval\s*\(|new Function\b|[=(,]Function\(", plotly().source)


def test_goes_with_its_licence() -> None:
    (notice,) = (pre for pre in tree("one_device").all("pre") if pre.attributes["id"] == "plotly-licence")
    licence, libraries = ((FOLDER / name).read_text() for name in ("LICENSE", "NOTICES"))
    assert notice.text.strip() == f"{licence}\n{libraries}".strip()
    assert notice.text.startswith("MIT License\n\nCopyright (c) 2016-2024 Plotly Technologies Inc.\n")


def notices() -> dict[str, list[str]]:
    """The entries of THIRD-PARTY-NOTICES: name and version; licence, place, a blank line, the text of the licence."""
    blocks = (ROOT / "THIRD-PARTY-NOTICES").read_text(encoding="utf-8").split("=" * 80 + "\n")[2:]
    return {lines[0]: lines[1:] for lines in (block.splitlines() for block in blocks)}


class TestNotices:
    def test_every_vendored_file_is_named_with_its_version(self) -> None:
        title, (licence, files, _, *text) = next(iter(notices().items()))
        assert title == f"plotly.js-basic-dist-min {plotly().version}"
        assert licence == "Licence: MIT"
        assert files.removeprefix("Files: ").split(", ") == [
            path.relative_to(ROOT).as_posix() for path in sorted(FOLDER.iterdir())
        ]
        assert "\n".join(text).strip() == (FOLDER / "LICENSE").read_text().strip()

    def test_every_library_that_the_bundle_names_is_there(self) -> None:
        """The bundle says little of what is in it: a few licences that ask for it, and versions of two libraries."""
        names = {title.rpartition(" ")[0] for title in notices()}
        said = plotly().source.rpartition("/*! Bundled license information:")[2]
        assert set(re.findall(r"^([\w@-]+)/\S+:$", said, re.MULTILINE)) <= names
        (promises,) = re.findall(r"Native Promise Only\s+v(\S+)", said)
        (d3,) = re.findall(r'=\{version:"(3[\d.]+)"\}', plotly().source)
        assert {f"native-promise-only {promises}", f"@plotly/d3 {d3}"} <= set(notices())

    def test_each_has_a_licence_its_text_and_a_copyright(self) -> None:
        assert len(notices()) > 20
        for title, (licence, _, _, *text) in notices().items():
            assert re.fullmatch(r"\S+ \d+\.\d+\.\d+", title)
            assert any(line.startswith(TERMS[licence.removeprefix("Licence: ")]) for line in text), title
            assert any(re.match(r"Copyright .*[A-Za-z]{3}", line) for line in text), title

    def test_pages_name_every_library_its_copyright_and_its_terms(self) -> None:
        """The terms without regard to case, quotes and line breaks, as libraries under the same ones share them."""

        def words(lines: list[str]) -> str:
            return " ".join(re.findall(r"\w+", " ".join(lines).lower()))

        page = plotly().licence
        for title, (licence, _, _, *text) in list(notices().items())[1:]:
            at = next(at for at, line in enumerate(text) if line.startswith(TERMS[licence.removeprefix("Licence: ")]))
            holders = [line for line in text[:at] if line.startswith(("Copyright", "All rights reserved"))]
            assert "\n".join([f"{title}, {licence.removeprefix('Licence: ')}", *holders]) in page
            assert words(text[at:]) in words(page.splitlines()), title


@pytest.mark.slow
@pytest.mark.parametrize("sample", EVERY_SAMPLE)
def test_is_in_pages_with_charts(sample: str) -> None:
    assert (plotly().packed[:1000].encode() in rendered("html", sample)) == (sample not in CHARTLESS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "html"])
def test_is_in_no_other_format(name: str) -> None:
    made = rendered(name, "one_device")
    assert plotly().packed[:1000].encode() not in made
