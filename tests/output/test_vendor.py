"""plotly.js as the page carries it: the version that plotly for Python comes with, whole, and with its licence."""

from __future__ import annotations

import gzip
import hashlib
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs_version

from nsysdiag.output import FORMATS, RenderOptions
from nsysdiag.output.assets import content_hash
from nsysdiag.output.carried import from_carried
from nsysdiag.output.vendor import plotly
from tests.output.page import parse
from tests.output.samples import SAMPLES

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "templates" / "assets" / "vendor"
CHARTLESS = ("no_device", "no_device_no_rows", "never_idle")


def page(sample: str) -> bytes:
    return FORMATS["html"].render(SAMPLES[sample](), RenderOptions())


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
    root = parse(page("one_device"))
    (block,) = (script for script in root.all("script") if script.attributes.get("id") == "plotly")
    (policy,) = (meta.attributes["content"] for meta in root.all("meta") if "http-equiv" in meta.attributes)
    unpacked = gzip.decompress(from_carried(block.text)).decode()
    assert unpacked == plotly().source
    assert content_hash(unpacked) in policy.split("script-src ")[1].split(";")[0]


def test_makes_no_code_from_text() -> None:
    assert not re.search(r"\beval\s*\(|new Function\b|[=(,]Function\(", plotly().source)


def test_goes_with_its_licence() -> None:
    (notice,) = (pre for pre in parse(page("one_device")).all("pre") if pre.attributes["id"] == "plotly-licence")
    assert notice.text.strip() == (FOLDER / "LICENSE").read_text().strip()
    assert notice.text.startswith("MIT License\n\nCopyright (c) 2016-2024 Plotly Technologies Inc.\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_is_in_pages_with_charts_only(name: str, sample: str) -> None:
    made = FORMATS[name].render(SAMPLES[sample](), RenderOptions())
    assert (plotly().packed[:1000].encode() in made) == (name == "html" and sample not in CHARTLESS)


@pytest.mark.slow
def test_is_in_the_source_distribution(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)], cwd=ROOT, check=True
    )
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"templates/assets/vendor/{path.name}" for path in FOLDER.iterdir()} <= names
