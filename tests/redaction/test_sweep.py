"""No text of a trace comes through: every one is a canary of its own, and none of them is in anything written."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING

import pytest

from nsysdiag.cli.app import app
from nsysdiag.cli.guard import run
from tests.redaction.sweep_trace import token, write_sweep
from tests.redaction.unpacking import around, found

if TYPE_CHECKING:
    from pathlib import Path

FEWEST = 2_000
"""Canaries in the trace."""
SUFFIXES = ("html", "json", "md", "txt", "csv", "prom", "perfetto.json", "junit.xml", "sarif", "gitlab.json")
RANKS = ("html", "json", "md", "txt", "csv")
KEY = "k3y-that-is-in-no-output"
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
    assert not [name for name, data in made.items() if KEY.encode() in data]


def keyed(key: str | None) -> list[str]:
    return ["--redact", *(("--redact-key", key) if key else ())]


def test_without_redaction_they_are_there(traces: list[Path], written: Written) -> None:
    """What is searched for below can be found: the outputs hold hundreds of names."""
    made = written("analyze", traces[0], *outputs("plain", SUFFIXES), *BUDGET)
    seen = set().union(*map(found, made.values()))
    assert len(seen) >= 600
    assert len(found(made["plain.html"])) >= 600
    bundle = written("bundle", traces[0], "-o", "plain.zip", "--quiet")["plain.zip"]
    assert len(found(bundle)) >= 1_500


@pytest.mark.parametrize("key", [None, KEY])
def test_no_canary_is_in_any_format(traces: list[Path], written: Written, key: str | None) -> None:
    assert_clean(written("analyze", traces[0], *outputs("out", SUFFIXES), *keyed(key), *BUDGET))


def test_no_canary_is_on_stdout_or_in_a_default_name(traces: list[Path], written: Written) -> None:
    assert_clean(written("analyze", traces[0], "--redact"))
    for name in ("md", "json", "txt"):
        assert_clean(written("analyze", traces[0], "--redact", "-o", "-", "--format", name))


@pytest.mark.parametrize("key", [None, KEY])
def test_no_canary_is_in_a_bundle(traces: list[Path], written: Written, key: str | None) -> None:
    """In no file of it, and in no byte of the slice."""
    made = written("bundle", traces[0], "-o", "out.zip", *keyed(key))
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
