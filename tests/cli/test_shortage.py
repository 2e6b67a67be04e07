"""Memory that runs out: one sentence and exit code 2 in every command, 4 in a batch; no traceback, no part of an
output."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import zlib
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy._core._exceptions import _ArrayMemoryError

from nsysdiag import analyze
from nsysdiag.arrays.codes import from_text, to_text
from nsysdiag.batch.task import work
from nsysdiag.errors import InputError, MemoryShortError
from nsysdiag.formats.html import page
from nsysdiag.record import to_json
from nsysdiag.shortage import is_shortage
from tests.batch.loads import loading, tasks_of
from tests.builder import TraceBuilder
from tests.cli.every_command import COMMANDS, console_script, write_inputs
from tests.levels import quick
from tests.output import samples
from tests.simulator.large import write_large

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsysdiag.config.settings import Settings
    from nsysdiag.report import Report
    from tests.cli.conftest import Result

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")

SHORTAGES: dict[str, Callable[[], Exception]] = {
    "python": MemoryError,
    "numpy": lambda: _ArrayMemoryError((3 << 27,), np.dtype(np.int64)),
    "sqlite": lambda: sqlite3.OperationalError("out of memory"),
    "system": lambda: OSError(errno.ENOMEM, "Cannot allocate memory"),
    "thread": lambda: RuntimeError("can't start new thread"),
    "zlib": lambda: zlib.error("Error -4 while decompressing data"),
    "import": lambda: ImportError("libscipy_openblas64_.so: failed to map segment from shared object"),
}
TRACE, OTHER, SAVED = "a.sqlite", "b.sqlite", "saved.json"
A_STEP = "nsysdiag.pipeline.reading.read_operations"
INJECTED = {
    "analyze": (
        ["analyze", TRACE, "-o", "o.html"],
        A_STEP,
        f"analyse '{TRACE}'",
    ),
    "compare": (
        ["compare", TRACE, OTHER, "-o", "o.html"],
        A_STEP,
        f"analyse '{TRACE}'",
    ),
    "ranks": (["ranks", TRACE, OTHER, "-o", "o.html"], "nsysdiag.ranks.pipeline.analyze_devices", f"analyse '{TRACE}'"),
    "bundle": (["bundle", TRACE, "-o", "o.zip"], "nsysdiag.share.bundle.contents.slice_of", f"bundle '{TRACE}'"),
    "info": (["info", TRACE], "nsysdiag.cli.facts.gather", f"read '{TRACE}'"),
    "render": (["render", SAVED, "-o", "o.html"], "nsysdiag.saved.from_json", f"read '{SAVED}'"),
    "demo": (["demo", "-o", "o.html"], "nsysdiag.pipeline.reading.read_counters", "demo.sqlite'"),
}
"""A command, where memory runs out in it, and what it says was tried."""


@pytest.fixture
def inputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Two traces and a saved report in the current folder, and an empty temporary folder: the names of all."""
    for name in (TRACE, OTHER):
        TraceBuilder().kernel(100, 200, name="gemm", launch=(50, 60)).write(folder / name)
    (folder / SAVED).write_bytes(to_json(samples.one_device()))
    (folder / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
    return left_in(folder)


def left_in(folder: Path) -> set[str]:
    """All files and folders below, by their paths."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def fail(make: Callable[[], Exception], *_arguments: object, **_named: object) -> None:
    raise make()


class TestEveryCommand:
    @pytest.mark.parametrize(("name", "kind"), quick(list(product(INJECTED, SHORTAGES)), 6))
    def test_one_sentence(
        self,
        cli: Callable[..., Result],
        inputs: set[str],
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        kind: str,
    ) -> None:
        line, place, tried = INJECTED[name]
        monkeypatch.setattr(place, partial(fail, SHORTAGES[kind]))
        self._check(cli(*line), tried, kind)
        assert left_in(folder) == inputs

    def _check(self, result: Result, tried: str, kind: str) -> None:
        assert (result.code, result.stdout) == (2, b"")
        sentence, hint = result.stderr.splitlines()
        assert sentence.startswith("nsysdiag: not enough memory to ")
        assert tried in sentence
        assert ("3.00 GiB could not be allocated" in sentence) == (kind == "numpy")
        assert hint.startswith("  hint: ")
        assert "damaged" not in result.stderr
        assert "corrupt" not in result.stderr

    def test_no_output_where_one_cannot_be_made(
        self, cli: Callable[..., Result], inputs: set[str], folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(page, "render", partial(fail, MemoryError))
        result = cli("render", SAVED, "-o", "o.json", "-o", "o.html")
        self._check(result, "make 'o.html'", "python")
        assert left_in(folder) == inputs

    @pytest.mark.parametrize("command", ["analyze", "info", "bundle", "ranks", "compare"])
    def test_sqlite_without_memory_is_no_damaged_file(
        self, cli: Callable[..., Result], inputs: set[str], monkeypatch: pytest.MonkeyPatch, command: str
    ) -> None:
        monkeypatch.setattr("nsysdiag.trace.database.read_schema", partial(fail, SHORTAGES["sqlite"]))
        more = [OTHER] if command in ("ranks", "compare") else []
        self._check(cli(command, TRACE, *more), TRACE, "sqlite")

    def test_the_sentence_of_last_resort(
        self,
        cli: Callable[..., Result],
        inputs: set[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(A_STEP, partial(fail, MemoryError))
        monkeypatch.setattr("nsysdiag.cli.console.complain", partial(fail, MemoryError))
        result = cli("analyze", TRACE, "--debug")
        assert (result.code, result.stderr.splitlines()[-1]) == (2, "nsysdiag: not enough memory")


def no_memory(_path: Path, _settings: Settings, *, kind: str) -> Report:
    raise SHORTAGES[kind]()


class TestBatch:
    @pytest.mark.parametrize("kind", SHORTAGES)
    def test_the_input_failed(self, tmp_path: Path, kind: str) -> None:
        (task,) = loading(tasks_of(tmp_path, "large"), partial(no_memory, kind=kind))
        entry = work(task).entry
        assert entry.exit_code == 2
        assert entry.error.startswith("not enough memory to analyse 'large.json'")
        assert "--memory-limit" in entry.hint

    @pytest.mark.parametrize("kind", ["python", "system"])
    def test_no_process_can_be_started(
        self,
        cli: Callable[..., Result],
        inputs: set[str],
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        kind: str,
    ) -> None:
        monkeypatch.setattr("nsysdiag.batch.pool.start_worker", partial(fail, SHORTAGES[kind]))
        result = cli("batch", TRACE, OTHER, "-o", "out")
        assert result.code == 4
        assert f"failed: {TRACE}: not enough memory to analyse '{TRACE}'" in result.stderr
        assert f"failed: {OTHER}: not enough memory to analyse '{OTHER}'" in result.stderr
        assert json.loads((folder / "out" / "summary.json").read_bytes())["failed"] == 2
        assert not list((folder / "tmp").iterdir())


def test_the_error_of_the_library(inputs: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a MemoryError, too."""
    monkeypatch.setattr(A_STEP, partial(fail, SHORTAGES["numpy"]))
    words = r"analyse 'a\.sqlite' \(reading device activity\): 3.00 GiB could not be allocated"
    with pytest.raises(MemoryError, match=words) as caught:
        analyze(TRACE)
    assert isinstance(caught.value, MemoryShortError)


def test_other_errors_are_no_shortage() -> None:
    others = [
        OSError(errno.ENOSPC, "No space left"),
        sqlite3.OperationalError("no such table: a"),
        RuntimeError("no way"),
        InputError("'out of memory.sqlite' does not exist"),
        ImportError("a.so: failed to map segment from shared object: Operation not permitted"),
    ]
    assert not any(map(is_shortage, others))


def test_zlib_without_memory_is_no_damaged_report(monkeypatch: pytest.MonkeyPatch) -> None:
    text = to_text(b"text", 1)
    monkeypatch.setattr("nsysdiag.arrays.codes.base64.b64decode", partial(fail, SHORTAGES["zlib"]))
    with pytest.raises(MemoryError):
        from_text(text, 100)


def test_with_little_memory_left_one_thread_reads_with_sqlite3(
    inputs: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The columnar driver and a second thread could only end the process."""
    expected = analyze(TRACE)
    monkeypatch.setattr("nsysdiag.shortage.has_room", lambda _size: False)
    monkeypatch.setattr("nsysdiag.trace.catalog.Connections.adbc", partial(fail, AssertionError))
    monkeypatch.setattr("threading.Thread.start", partial(fail, AssertionError))
    assert to_json(analyze(TRACE)) == to_json(expected)


MIB = 1 << 20
LIMITS = (40, 120, 200, 235, 242, 250, 258, 266, 280, 320, 450, 900)
"""MiB of address space: Python itself starts with about 14, and the libraries take 192 beyond the 40 of the program's
beginning. The next ones are those where the analysis of the trace below runs out of memory at some step."""
READING = ("info", "analyze", "redacted", "render", "compare", "ranks", "bundle", "demo")
LARGE = "counted_training.sqlite"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    write_inputs(folder)
    (folder / LARGE).unlink()
    write_large(folder / LARGE, 60_000)
    console_script(folder / "bin")
    return folder


def limited(sources: Path, folder: Path, line: Sequence[str], mib: int | None, threads: str | None) -> tuple[int, str]:
    """The exit code and stderr of a command in a fresh folder with the inputs, under a limit of address space."""
    folder.mkdir()
    for path in sources.glob("*.*"):
        (folder / path.name).hardlink_to(path)
    (folder / "tmp").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(folder / "tmp")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", **({"OPENBLAS_NUM_THREADS": threads} if threads else {})}
    size = resource.RLIM_INFINITY if mib is None else mib * MIB
    done = subprocess.run(
        [sys.executable, "-P", str(sources / "bin" / "nsysdiag"), *line],
        cwd=folder,
        env=environment,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
        capture_output=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stderr.decode()


def contents(folder: Path, sources: Path) -> dict[str, bytes]:
    """What a command left behind."""
    paths = [path for path in folder.rglob("*") if path.is_file() and not (sources / path.name).exists()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["info", "analyze", "redacted", "render", "compare", "ranks", "bundle", "demo", "batch"]
)
def test_under_any_limit(sources: Path, tmp_path: Path, name: str) -> None:
    """All of it, with the same bytes, or one sentence and nothing."""
    line = COMMANDS[name]
    code, told = limited(sources, tmp_path / "free", line, None, None)
    assert code == 0, told
    complete = contents(tmp_path / "free", sources)
    codes = set()
    for at, mib in enumerate(LIMITS):
        folder = tmp_path / str(mib)
        code, told = limited(sources, folder, line, mib, "1" if at % 2 else None)
        codes.add(code)
        found = contents(folder, sources)
        assert not list((folder / "tmp").iterdir())
        assert "Traceback" not in told, (mib, told)
        if code == 0:
            assert found == complete, mib
        elif name == "batch" and code == 4:
            assert "could not be analysed" in told
            assert all(found[each] == complete[each] for each in found if each.startswith("out/") and "/" in each[4:])
        else:
            assert (code, found) == (2, {}), (mib, told)
            assert told.splitlines()[0].startswith("nsysdiag: not enough memory"), (mib, told)
        shutil.rmtree(folder)
    assert {0, 2} <= codes
