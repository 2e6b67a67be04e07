"""What goes to stdout and stderr may be the log of a CI job: whatever a trace, a file or an option is called, no line
of it is a workflow command. Files hold the names as they are."""

from __future__ import annotations

import html
import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.cli.console import emit
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.messages import JOINER, JSON, MARKUP
from nsysdiag.record import to_json
from tests.builder import TraceBuilder
from tests.hostile.renaming import renamed
from tests.hostile.runners import SYSTEMS, commands, systems
from tests.hostile.test_terminal import COMMANDS
from tests.levels import crossed, some
from tests.output.compare_samples import comparison
from tests.output.rank_samples import ranks_report
from tests.output.samples import SAMPLES
from tests.output.whatif_samples import listing
from tests.ranks.run import files
from tests.trace.files import small_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.conftest import Told

    Command = Callable[..., Told]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names"),
]

NAMES = (
    "::error file=x::y",
    "::Set-Output name=a::b",
    "::stop-commands::word",
    "##[error]a",
    "##[Set-Env name=A]b",
    "##vso[task.setvariable variable=a]b",
    "##TeamCity[message 'a']",
    "section_start:1560896352:name",
    "travis_fold:start:name",
)
BEFORE = (
    "",
    "  ",
    "\t",
    "\xa0",
    "\u3000",
    "\x1b[1m",
    "\n",
    "\r",
    "\x0b",
    "\x0c",
    "\x85",
    "\u2028",
    "a ",
    "a" * 37 + " ",
)
EVERYWHERE = {"azure", "azure by culture", "github legacy", "teamcity", "gitlab", "travis"}
"""The systems that look for commands anywhere in a line."""
FILE = " ".join(NAMES)
TABLES = ("::error::table", "##[error]table")


def quiet(told: Told) -> Told:
    """Neither stream has a command in it."""
    assert not commands(told.stdout)
    assert not commands(told.stderr)
    return told


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All names of the trace are commands: kernels, ranges, threads, processes, GPU, calls, functions, tables, file."""
    made = TraceBuilder(schema="3.24.8").process(name=FILE).gpu(name=FILE).cuda_device(0, 0).thread_name(FILE)
    for number, name in enumerate(before + name for before in BEFORE for name in NAMES):
        at = 1_000_000 * (number + 1)
        made.nvtx(name, at, at + 900_000)
        made.osrt(name, at + 200_000, at + 600_000, chain=[name, (name, name)])
        made.sample(at + 100_000, symbols=[name, "main"])
        made.kernel(at + 700_000, at + 750_000, name=name, demangled=name, launch=(at + 650_000, at + 660_000))
    for name in NAMES:
        made.diagnostic(name)
    path = made.write(tmp_path_factory.mktemp("named") / f"{FILE}.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in TABLES:
            connection.execute(f'CREATE TABLE "{table}" (a)')
            connection.execute(f'INSERT INTO "{table}" VALUES (1)')
    return path


def unescaped(page: str) -> str:
    """A page without escapes, in its text and in the JSON of its scripts."""
    return re.sub(r"\\u00([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), html.unescape(page))


DOCUMENTS = {
    "report": lambda: to_json(SAMPLES["one_device"]()),
    "ranks": lambda: to_json(ranks_report()),
    "whatif": lambda: to_json(listing()),
    "comparison": lambda: to_json(comparison()),
}


@pytest.mark.parametrize(("kind", "name"), crossed(list(DOCUMENTS), list(FORMATS), 2))
def test_a_document(kind: str, name: str, command: Command, tmp_path: Path) -> None:
    """The file has the commands in it, stdout has the same without."""
    saved, out = tmp_path / f"{FILE}.json", f"x{FORMATS[name].suffix}"
    saved.write_bytes(renamed(DOCUMENTS[kind](), [*NAMES, FILE]))
    whole = ["--details"] if kind == "report" else []
    if "cannot be written as" in quiet(command("render", saved, "-o", out, *whole)).stderr:
        return
    file = Path(out).read_bytes().decode()
    assert systems(file) == set(SYSTEMS) if (kind, name) == ("report", "txt") else systems(file) & EVERYWHERE
    told = quiet(command("render", saved, "-o", "-", "--format", name, *whole))
    assert told.code == 0
    if FORMATS[name].syntax == JSON:
        assert json.loads(told.stdout) == json.loads(file)
    elif FORMATS[name].syntax == MARKUP:
        assert unescaped(told.stdout) == unescaped(file)
    else:
        assert told.stdout.replace(JOINER, "") == file


@pytest.mark.parametrize(("width", "color"), crossed([*range(60, 121), 140, 160], [False, True], 16))
def test_a_summary_of_any_width(width: int, color: bool, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Names behind words of all lengths, so that each of them is the first in some line."""
    report = SAMPLES["one_device"]()
    notes = [f"{'a' * pad} {before}{name}" for pad in range(60) for before, name in zip(BEFORE, NAMES, strict=False)]
    report = replace(report, devices=[replace(report.devices[0], notes=[*NAMES, *notes])])
    data = FORMATS["txt"].render(report, RenderOptions(width=width, color=color, details=True))
    assert systems(data.decode()) == set(SYSTEMS)
    emit(data, FORMATS["txt"].syntax)
    assert not commands(capfdbinary.readouterr().out.decode())


@pytest.mark.parametrize("name", ["txt", "md"])
@pytest.mark.parametrize("sample", SAMPLES)
def test_reports_without_commands_go_out_as_they_are(
    name: str, sample: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    data = FORMATS[name].render(SAMPLES[sample](), RenderOptions())
    emit(data, FORMATS[name].syntax)
    assert capfdbinary.readouterr().out == data


class TestCommands:
    def test_analyze(self, trace: Path, command: Command) -> None:
        """What wraps a name differs from trace to trace; what is found anywhere in a line does not."""
        told = quiet(command("analyze", "--no-config", trace, "--fail-on", "idle_share > 0"))
        assert told.code == 1
        assert command("analyze", "--no-config", trace, "-q", "-o", "x.txt").code == 0
        assert systems(Path("x.txt").read_text()) >= EVERYWHERE
        report, _, failures = told.stdout.replace(JOINER, "").partition("fail: ")
        assert Path("x.txt").read_text() == report
        assert failures.startswith("idle_share on gpu0 is ")

    @pytest.mark.parametrize("name", some(NAMES, 3))
    def test_a_range(self, name: str, trace: Path, command: Command) -> None:
        told = quiet(command("analyze", "--no-config", trace, "--nvtx", name, "--fail-on", "idle_share >= 0"))
        assert told.code == 1

    def test_info(self, trace: Path, command: Command) -> None:
        text = quiet(command("info", trace)).stdout.replace(JOINER, "")
        told = quiet(command("info", trace, "--format", "json")).stdout
        assert {*TABLES} <= json.loads(told)["tables"].keys()
        assert all(table in text for table in TABLES)
        assert systems(text) >= EVERYWHERE

    def test_compare(self, trace: Path, command: Command, tmp_path: Path) -> None:
        other = tmp_path / f"::error::{FILE}.sqlite"
        other.write_bytes(trace.read_bytes())
        told = quiet(command("compare", "--no-config", trace, other, "--fail-on", "idle_share > 0"))
        assert systems(told.stdout.replace(JOINER, "")) >= EVERYWHERE
        assert told.code == 1

    def test_ranks(self, command: Command, tmp_path: Path) -> None:
        paths = files(tmp_path, [[4_000_000, 7_000_000]] * 5, [0, 0])
        named = [path.rename(path.with_name(f"::error::{path.name} {FILE}.sqlite")) for path in paths]
        told = quiet(command("ranks", *named))
        assert told.code == 0
        assert systems(told.stdout.replace(JOINER, "")) >= EVERYWHERE

    @pytest.mark.thorough
    def test_batch_and_bundle(self, trace: Path, command: Command) -> None:
        told = quiet(command("batch", "--no-config", trace.parent, "-o", FILE, "--fail-on", "idle_share > 0"))
        assert told.code == 1
        assert systems(told.stderr.replace(JOINER, "")) >= EVERYWHERE
        assert quiet(command("bundle", trace, "-o", f"{FILE}.zip")).code == 0

    def test_a_bug(self, trace: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object) -> None:
            raise RuntimeError("\n".join(NAMES)) from ValueError(FILE)

        monkeypatch.setattr("nsysdiag.pipeline.analyze", broken)
        told = quiet(command("analyze", "--no-config", trace, "--debug"))
        assert told.code == 70
        assert "Traceback" in told.stderr


@pytest.mark.parametrize(
    ("which", "name"),
    crossed(list(COMMANDS), [before + name for before in ("", "\n", "\x1b[1m ") for name in NAMES], 18),
)
def test_errors(which: str, name: str, command: Command, tmp_path: Path) -> None:
    trace = small_trace(tmp_path / "trace.sqlite")
    told = quiet(command(*(word.replace("{trace}", str(trace)).replace("{}", name) for word in COMMANDS[which])))
    assert told.code in (2, 3, 4)
