"""The wheel and the source distribution, built as a release builds them: what is in them, and that it works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nsysdiag
from scripts._long_description import LongDescription, absolute

if TYPE_CHECKING:
    from email.message import Message

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
MIB = 2**20
NAME = f"nsysdiag-{nsysdiag.__version__}"
LICENCES = ("LICENSE",)
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff")
BESIDE_THE_SOURCES = {"PKG-INFO", "pyproject.toml", ".gitignore", "action.yml", *PAGES, *LICENCES}
CACHES = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints; it must succeed. What it imports is what is in `cwd`, not the checkout."""
    environment = os.environ | {"PYTHONPATH": str(cwd), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def files_of(*folders: str) -> set[str]:
    """The files of folders of the project, as paths from its root; no caches."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    return {path.relative_to(ROOT).as_posix() for path in paths if not CACHES & set(path.parts)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both, built without network."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl")


@pytest.fixture(scope="module")
def sdist(built: Path) -> Path:
    return built / f"{NAME}.tar.gz"


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the source distribution unpacks to."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / NAME


def assert_licensed(metadata: Message) -> None:
    assert metadata["License-Expression"] == "MIT"
    assert metadata.get_all("License-File") == list(LICENCES)
    assert [each for each in metadata.get_all("Classifier", []) if each.startswith("License")] == []


class TestWheel:
    @pytest.mark.thorough
    def test_holds_the_package_its_templates_and_its_licences(self, wheel: zipfile.ZipFile) -> None:
        package = files_of("nsysdiag") | {f"nsysdiag/{name}" for name in files_of("templates")}
        info = {f"{NAME}.dist-info/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")}
        licences = {f"{NAME}.dist-info/licenses/{name}" for name in LICENCES}
        manual = f"{NAME}.data/data/share/man/man1/nsysdiag.1"
        assert set(wheel.namelist()) == package | info | licences | {manual}
        assert wheel.read(manual) == (ROOT / "docs" / "nsysdiag.1").read_bytes()
        assert {
            "nsysdiag/py.typed",
            "nsysdiag/data/demo.sqlite.gz",
            "nsysdiag/data/fixed.sqlite.gz",
            "nsysdiag/templates/report.html",
        } <= package

    def test_says_how_it_is_licensed(self, wheel: zipfile.ZipFile) -> None:
        assert_licensed(message_from_bytes(wheel.read(f"{NAME}.dist-info/METADATA")))
        for name in LICENCES:
            assert wheel.read(f"{NAME}.dist-info/licenses/{name}") == (ROOT / name).read_bytes()

    def test_its_description_is_the_readme(self, wheel: zipfile.ZipFile) -> None:
        """No addresses are set in pyproject.toml."""
        metadata = message_from_bytes(wheel.read(f"{NAME}.dist-info/METADATA"))
        assert metadata["Description-Content-Type"] == "text/markdown"
        assert metadata.get_payload(decode=True) == (ROOT / "README.md").read_bytes()

    @pytest.mark.thorough
    def test_runs_from_where_it_is_unpacked(self, wheel: zipfile.ZipFile, tmp_path: Path) -> None:
        wheel.extractall(tmp_path)
        where = run(sys.executable, "-c", "import nsysdiag; print(nsysdiag.__file__)", cwd=tmp_path)
        assert Path(where.strip()) == tmp_path / "nsysdiag" / "__init__.py"
        run(sys.executable, "-P", "-m", "nsysdiag", "demo", "--quiet", "-o", "demo.nsysdiag.html", cwd=tmp_path)
        assert "<html" in (tmp_path / "demo.nsysdiag.html").read_text(encoding="utf-8")


class TestDescription:
    """With addresses: the hook of the build, with other settings than those of pyproject.toml."""

    def test_links_and_pictures_get_addresses(self) -> None:
        settings = {"links": "https://host.example/blob/v{version}", "pictures": "https://host.example/raw/"}
        metadata = {"version": "1.2"}
        LongDescription(str(ROOT), settings).update(metadata)
        text: str = metadata["readme"]["text"]  # type: ignore[index]
        assert "](https://host.example/raw/.assets/report.png)" in text
        assert "](https://host.example/blob/v1.2/docs/quick-start.md)" in text
        assert [
            link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("https://host.example/")
        ] == []

    def test_anchors_and_addresses_stay(self) -> None:
        text = "[a](#b) [c](https://d.example) ![e](https://f.example/g.png)"
        assert absolute(text, "https://host.example", "https://host.example") == text


class TestSourceDistribution:
    def test_holds_what_builds_and_tests_it_but_no_fixtures(self, unpacked: Path) -> None:
        held = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
        sources = files_of("nsysdiag", "docs", "templates", "scripts", "tests") - files_of("tests/fixtures")
        assert held == sources | BESIDE_THE_SOURCES
        assert_licensed(message_from_bytes((unpacked / "PKG-INFO").read_bytes()))

    def test_is_small(self, sdist: Path) -> None:
        """0.7 MiB of it are the demo's trace, the rest, of 3.3 MiB, is code and goldens: a capture that slips in would
        show."""
        assert sdist.stat().st_size < 4 * MIB + MIB // 16

    def test_builds_the_same_wheel(self, unpacked: Path, wheel: zipfile.ZipFile, tmp_path: Path) -> None:
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=unpacked)
        again = zipfile.ZipFile(next(tmp_path.glob("*.whl")))
        assert {each.filename: each.CRC for each in again.infolist()} == {
            each.filename: each.CRC for each in wheel.infolist()
        }

    @pytest.mark.thorough
    def test_tests_without_their_fixtures_are_skipped(self, unpacked: Path) -> None:
        """Fixtures that are read by a test, by a fixture of pytest, and for parameters."""
        tests = ["tests/test_real_captures.py", "tests/test_counted.py", "tests/test_against_nsys.py"]
        said = run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rs", *tests, cwd=unpacked)
        assert re.search(r"^fixtures: 0 ran, \d+ skipped; \d+ no folder tests/fixtures", said, re.MULTILINE)
        reasons = set(re.findall(r"^SKIPPED \[\d+\] \S+: (.*)$", said, re.MULTILINE))
        assert reasons <= {
            "no folder tests/fixtures, as in a source distribution",
            "NSYSDIAG_TRACES is not set",
            "NSYSDIAG_NSYS is not set",
        }

    @pytest.mark.thorough
    def test_every_test_module_is_collected(self, unpacked: Path) -> None:
        said = run(
            sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "--thorough", cwd=unpacked
        )
        modules = {line.partition("::")[0] for line in said.splitlines() if "::" in line}
        assert {name for name in files_of("tests") if Path(name).name.startswith("test_")} - modules == set()
