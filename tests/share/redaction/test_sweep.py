"""No text of a trace comes through: every one is a canary of its own, and none of them is in anything written."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysdiag import open_trace
from nsysdiag.cli.app import app
from nsysdiag.cli.console import run
from nsysdiag.share.cut import SliceCut, write_cut
from nsysdiag.share.names import Names
from nsysdiag.share.slice_names import SliceNames
from tests.builder import TraceBuilder
from tests.share.redaction.sweep_trace import token, write_sweep
from tests.share.redaction.unpacking import around, found

if TYPE_CHECKING:
    from nsysdiag.share.target import Rename

pytestmark = pytest.mark.slow

MS = 1_000_000
FEWEST = 2_000
"""Canaries in the trace."""
SUFFIXES = ("html", "json", "md", "txt", "csv", "prom", "perfetto.json", "junit.xml", "sarif")
RANKS = ("html", "json", "md", "txt", "csv")
BUDGET = ("--fail-on", "idle_share > 1%")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two traces of one run, each with canaries of its own."""
    written = []
    for first in (0, 26**3):
        path, count = write_sweep(tmp_path_factory.mktemp("sweep"), first)
        assert count >= FEWEST
        written.append(path)
    return written


class Written:
    """Runs commands in a folder of their own, and collects what they write anywhere."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[bytes]) -> None:
        self._folder, self._capture = folder, capture

    def __call__(self, *arguments: object) -> dict[str, bytes]:
        """The files that a command wrote by their names, and both streams."""
        before = set(self._folder.iterdir())
        code = run(app, [str(argument) for argument in arguments])
        out, err = self._capture.readouterr()
        assert code in (0, 1), err.decode()
        made = {path.name: path.read_bytes() for path in sorted(self._folder.iterdir()) if path not in before}
        names = "\n".join(made).encode()
        return {**made, "names of files": names, "stdout": out, "stderr": err}


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Written:
    monkeypatch.chdir(tmp_path)
    return Written(tmp_path, capfdbinary)


def outputs(stem: str, suffixes: tuple[str, ...]) -> list[str]:
    return [part for suffix in suffixes for part in ("-o", f"{stem}.{suffix}")]


def assert_clean(made: dict[str, bytes]) -> None:
    hits = {name: around(data) for name, data in made.items() if found(data)}
    assert not hits


@pytest.mark.thorough
def test_without_redaction_they_are_there(traces: list[Path], written: Written) -> None:
    """What is searched for below can be found: 470 names in a report, 730 in a bundle, 1,040 in the whole of a cut."""
    made = written("analyze", traces[0], *outputs("plain", SUFFIXES), *BUDGET)
    assert len(set().union(*map(found, made.values()))) >= 450
    assert len(found(made["plain.html"])) >= 390
    assert len(found(written("bundle", traces[0], "-o", "plain.zip", "--quiet")["plain.zip"])) >= 700
    assert len(found(cut(traces[0], None))) >= 1_000


def cut(path: Path, rename: Rename | None) -> bytes:
    """All of a trace that a bundle may ever hold."""
    target = Path(f"cut-{bool(rename)}.sqlite")
    with open_trace(path) as trace:
        write_cut(trace, target, SliceCut(rename=rename))
    return target.read_bytes()


def test_no_canary_is_in_any_byte_of_a_cut(traces: list[Path], written: Written) -> None:
    """Free pages and all."""
    assert_clean({"cut": cut(traces[0], SliceNames(Names()).of)})


def test_no_canary_is_in_any_format(traces: list[Path], written: Written) -> None:
    assert_clean(written("analyze", traces[0], *outputs("out", SUFFIXES), "--redact", *BUDGET))


METHODS = (
    "acme::Layer{x}<Patient{x}>::forward(int)",
    "acme::Layer{x}<Patient{x}>::forward",
    "acme.layers.{x}.forward",
    "void acme::{x}::run<float, Patient {x}>(std::vector<acme::{x}> const&, int) const [clone .isra.0]",
    "_ZN4acme8{x}7forwardEi",
    "acme::copy::{x}",
    "acme::{x}::operator()(int) const::{{lambda(acme::{x})#1}}::operator()(acme::{x}) const",
)


def full_of_methods(path: Path) -> Path:
    """Host code between kernels: samples, and calls with chains, in methods of C++."""
    trace = TraceBuilder().gpu().process()
    names = (METHODS[number % len(METHODS)].format(x=token(number)) for number in range(8_000))
    for step in range(60):
        begin = (10 + 10 * step) * MS
        chain = [(next(names), f"/opt/{token(9_000 + step)}/libsolve.so") for _ in range(4)]
        trace.kernel(begin, begin + MS, name=next(names), launch=(begin - 20_000, begin - 10_000))
        for tick in range(1, 8):
            trace.sample(begin + tick * MS, symbols=((next(names), "/opt/app"), *chain[tick % 3 :]))
        trace.osrt("read", begin + 8 * MS, begin + 9 * MS)
        trace.nvtx(chain[0][0], begin, begin + 9 * MS)
    return trace.write(path)


def test_no_method_of_a_call_chain_comes_through(written: Written, tmp_path: Path) -> None:
    """Names that share their last part, which is one of our words too."""
    trace = full_of_methods(tmp_path / "trace.sqlite")
    formats = ("html", "json", "md", "csv", "perfetto.json")
    assert len(set().union(*map(found, written("analyze", trace, *outputs("plain", formats)).values()))) >= 100
    assert_clean(written("analyze", trace, *outputs("out", formats), "--redact"))
    assert_clean(written("bundle", trace, "-o", "out.zip", "--redact"))


@pytest.mark.thorough
def test_no_canary_is_on_stdout_or_in_a_default_name(traces: list[Path], written: Written) -> None:
    assert_clean(written("analyze", traces[0], "--redact"))
    for name in ("md", "json", "txt"):
        assert_clean(written("analyze", traces[0], "--redact", "-o", "-", "--format", name))


def test_no_canary_is_in_a_bundle(traces: list[Path], written: Written) -> None:
    """In no file of it, and in no byte of the slice."""
    made = written("bundle", traces[0], "-o", "out.zip", "--redact")
    assert_clean(made)
    assert len(made["out.zip"]) > 10_000


def test_no_canary_is_in_a_report_of_ranks(traces: list[Path], written: Written) -> None:
    assert len(found(written("ranks", *traces, "-o", "plain.json")["plain.json"])) >= 2
    assert_clean(written("ranks", *traces, *outputs("ranks", RANKS), "--redact"))


def test_no_canary_is_in_a_comparison(traces: list[Path], written: Written) -> None:
    assert_clean(
        written("compare", *traces, "-o", "both.html", "-o", "both.json", "-o", "both.md", "--redact", "--across-gpus")
    )


def test_no_canary_is_in_a_saved_report_that_is_redacted_later(traces: list[Path], written: Written) -> None:
    written("analyze", traces[0], "-o", "saved.json")
    assert_clean(written("render", "saved.json", "-o", "later.html", "-o", "later.csv", "--redact"))


def test_settings_and_prices_by_name(traces: list[Path], written: Written, tmp_path: Path) -> None:
    """A settings file of a canary's name, with prices, patterns and a currency that are canaries."""
    settings = tmp_path / f"{token(5)}.toml"
    settings.write_text(
        f'communication_patterns = ["nccl", "{token(6)}"]\n[cost]\ncurrency = "{token(7)}"\n'
        f'[cost.gpus]\n"{token(8)}" = 2.5\n"NVIDIA" = 2.0\n'
    )
    made = written("analyze", traces[0], "-o", "x.html", "-o", "x.json", "--redact", "--config", settings)
    assert_clean(made)


@pytest.mark.parametrize(
    "packed",
    [
        lambda text: text,
        lambda text: text.upper(),
        base64.b64encode,
        base64.urlsafe_b64encode,
        lambda text: base64.b64encode(zlib.compress(text)),
        lambda text: text.hex().encode(),
        lambda text: text.decode().encode("utf-16-le"),
        lambda text: b"".join(b"\\u%04x" % sign for sign in text),
        lambda text: b"".join(b"&#%d;" % sign for sign in text),
        lambda text: b"".join(b"%%%02x" % sign for sign in text),
    ],
)
def test_a_packed_canary_is_found(packed: object) -> None:
    text = f"a longer text that holds the word {token(7)} in its middle".encode()
    assert found(b'{"blob": "' + packed(text) + b'"}') == {token(7).encode()}  # type: ignore[operator]
