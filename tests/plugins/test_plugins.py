"""A package that brings a cause, an input format and an output format by entry points, and packages that are broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag import plugins
from nsysdiag.causes import CAUSES
from nsysdiag.causes.added import AddedCause, with_added
from tests.additions import ROOT, printed
from tests.causes.example import late
from tests.causes.test_added import SOURCE
from tests.trace.test_added_format import SOURCE as READER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENTRY_POINTS = """
[nsysdiag.causes]
read_ahead = acme_nsysdiag.cause:ADDED

[nsysdiag.readers]
kernel_list = acme_nsysdiag.reader:FORMAT

[nsysdiag.formats]
headline = acme_nsysdiag.headline:FORMAT
"""
IMPORTED, BOTTLENECK = "import Cause, EvidenceRows, Variant\n", '    bottleneck="input",\n'
WORDS = '''    picture="""
device  [==A==)..............[==next==)
thread         [readahead][launch]
""",
    sources=("nsight_osrt",),
    advice=advice("Read ahead on a thread that launches nothing."),
    confirm=("In the row of OS calls of the launching thread, readahead covers the gap.",),
    confused_with=(Lookalike("io_wait", "A read whose bytes the thread takes at once."),),
'''
CAUSE = SOURCE.replace(IMPORTED, "import Cause, EvidenceRows, Lookalike, Variant, advice\n").replace(
    BOTTLENECK, BOTTLENECK + WORDS
)
"""A cause of a package brings its words with it."""
EXAMPLE = {
    "__init__.py": "",
    "cause.py": CAUSE
    + """
from nsysdiag.causes.added import AddedCause

ADDED = AddedCause(CAUSE, before="io_wait")
""",
    "reader.py": READER,
    "headline.py": '''"""The headline alone, on one line."""

from nsysdiag.formats import Format, RenderOptions
from nsysdiag.messages import TEXT
from nsysdiag.report import Report

MARK = b"headline: "
FORMAT = Format("headline", ".headline", "the headline", __name__, TEXT, added=True)


def render(report: Report, options: RenderOptions) -> bytes:
    return MARK + report.diagnosis.headline.encode() + b"\\n"


def is_ours(data: bytes) -> bool:
    return data.startswith(MARK)
''',
}
LINES = {
    "rule": ["rules", "read_ahead"],
    "own": ["analyze", "trace.sqlite", "-o", "own.json", "-o", "own.headline", "-q"],
    "without": ["analyze", "trace.sqlite", "--disable", "read_ahead", "-o", "without.json", "-q"],
    "list": ["analyze", "train.kernels.csv", "-o", "list.headline", "-q"],
    "again": ["render", "own.json", "-o", "again.headline", "--force", "-q"],
}


def installed(folder: Path, name: str, files: dict[str, str], entry_points: str) -> Path:
    """A folder of packages, with this one."""
    (folder / name).mkdir(parents=True)
    for file, text in files.items():
        (folder / name / file).write_text(text)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    return folder


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[int, str]]]:
    folder = tmp_path_factory.mktemp("plugins")
    site = installed(folder / "site", "acme_nsysdiag", EXAMPLE, ENTRY_POINTS)
    trace = late().osrt("readahead", 150_000, 200_000)
    trace.write(folder / "trace.sqlite")
    lines = [f"{at * 100_000},{at * 100_000 + 60_000},gemm{at % 3}" for at in range(10, 210)]
    (folder / "train.kernels.csv").write_text("\n".join(["start_ns,end_ns,kernel", *lines, ""]))
    return folder, printed(site / "nsysdiag", folder, LINES)


@pytest.mark.slow
class TestTheExample:
    def test_every_command_knows_it(self, ran: tuple[Path, dict[str, tuple[int, str]]]) -> None:
        assert {name: code for name, (code, _) in ran[1].items()} == dict.fromkeys(LINES, 0), ran[1]
        assert "File read ahead" in ran[1]["rule"][1]

    def test_its_cause_takes_what_one_behind_it_took(self, ran: tuple[Path, dict[str, tuple[int, str]]]) -> None:
        own, without = (ledger(ran[0] / f"{name}.json") for name in ("own", "without"))
        assert own["read_ahead"] == 50_000
        assert sum(own.values()) == sum(without.values())
        assert "read_ahead" not in without

    def test_its_formats_are_read_and_written(self, ran: tuple[Path, dict[str, tuple[int, str]]]) -> None:
        for name in ("own", "list", "again"):
            assert (ran[0] / f"{name}.headline").read_text().startswith("headline: ")
        assert (ran[0] / "own.headline").read_text() == (ran[0] / "again.headline").read_text()


def ledger(path: Path) -> dict[str, int]:
    (device,) = json.loads(path.read_text())["devices"]
    return {cause: ns for cause, ns in device["ledger"].items() if ns}


BROKEN = {
    "acme:GONE": "AttributeError",
    "acme:NUMBER": "it is not of the type Format",
    "acme:TWICE": "its name or suffix is that of another format",
    "no_such_module:FORMAT": "ModuleNotFoundError: No module named 'no_such_module'",
    "acme.ends:FORMAT": "SystemExit: 7",
    "acme.wrong:FORMAT": "SyntaxError",
}
FILES = {
    "__init__.py": "from nsysdiag.formats import Format\nNUMBER = 7\n"
    "TWICE = Format('md', '.mine', '', '', '', added=True)\n",
    "ends.py": "raise SystemExit(7)",
    "wrong.py": "def",
}


@pytest.mark.slow
@pytest.mark.parametrize(("value", "said"), BROKEN.items())
def test_a_broken_one_is_one_sentence(tmp_path: Path, value: str, said: str) -> None:
    site = installed(tmp_path / "site", "acme", FILES, f"[nsysdiag.formats]\nbad = {value}\n")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "nsysdiag", "baseline", "list"],
        env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines() or [""]
    assert line.startswith(f"nsysdiag: the plug-in 'bad' ({value}) of nsysdiag.formats is left out: ")
    assert said in line


def test_a_cause_brings_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def asked(_group: str, _kind: type, refused: Callable[[AddedCause], str]) -> Iterator[AddedCause]:
        bare = replace(CAUSES["sync"], id="mine")
        said.extend(refused(AddedCause(each, "io_wait")) for each in (bare, replace(bare, picture="[=]")))
        return iter(())

    monkeypatch.setattr(plugins, "plugins", asked)
    assert with_added(CAUSES) == CAUSES
    assert said == ["it has no picture", ""]


@pytest.fixture
def _no_problems(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plugins, "PROBLEMS", [])
    plugins._declared.cache_clear()
    yield
    plugins._declared.cache_clear()


@pytest.mark.usefixtures("_no_problems")
def test_nothing_is_imported_where_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), str(tmp_path / "gone"), f"{tmp_path}/a.zip"])
    monkeypatch.setitem(sys.modules, "importlib.metadata", None)  # an import of it fails
    assert list(plugins.plugins(plugins.FORMATS, int, str)) == []
