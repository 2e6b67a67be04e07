"""Memory that runs out: one sentence and exit code 2 in every command, 4 in a batch; no traceback, no part of an
output."""

from __future__ import annotations

import errno
import json
import sqlite3
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
from nsysdiag.arrays.groups import from_text, to_text
from nsysdiag.batch.task import work
from nsysdiag.formats.html import page
from nsysdiag.messages import InputError, MemoryShortError
from nsysdiag.record import to_json
from nsysdiag.shortage import is_shortage
from tests.batch.loads import loading, tasks_of
from tests.builder import TraceBuilder
from tests.levels import quick
from tests.output import samples

if TYPE_CHECKING:
    from collections.abc import Callable

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
        f"analyze '{TRACE}'",
    ),
    "compare": (
        ["compare", TRACE, OTHER, "-o", "o.html"],
        A_STEP,
        f"analyze '{TRACE}'",
    ),
    "ranks": (["ranks", TRACE, OTHER, "-o", "o.html"], "nsysdiag.ranks.pipeline.analyze_devices", f"analyze '{TRACE}'"),
    "bundle": (["bundle", TRACE, "-o", "o.zip"], "nsysdiag.share.bundle.slice_of", f"bundle '{TRACE}'"),
    "info": (["info", TRACE], "nsysdiag.trace.capabilities.gather", f"read '{TRACE}'"),
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
        monkeypatch.setattr("nsysdiag.trace.reader.read_schema", partial(fail, SHORTAGES["sqlite"]))
        more = [OTHER] if command in ("ranks", "compare") else []
        self._check(cli(command, TRACE, *more), TRACE, "sqlite")


def no_memory(_path: Path, _settings: Settings, *, kind: str) -> Report:
    raise SHORTAGES[kind]()


class TestBatch:
    @pytest.mark.parametrize("kind", SHORTAGES)
    def test_the_input_failed(self, tmp_path: Path, kind: str) -> None:
        (task,) = loading(tasks_of(tmp_path, "large"), partial(no_memory, kind=kind))
        entry = work(task).entry
        assert entry.exit_code == 2
        assert entry.error.startswith("not enough memory to analyze 'large.json'")
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
        assert f"failed: {TRACE}: not enough memory to analyze '{TRACE}'" in result.stderr
        assert f"failed: {OTHER}: not enough memory to analyze '{OTHER}'" in result.stderr
        assert json.loads((folder / "out" / "summary.json").read_bytes())["failed"] == 2
        assert not list((folder / "tmp").iterdir())


def test_the_error_of_the_library(inputs: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a MemoryError, too."""
    monkeypatch.setattr(A_STEP, partial(fail, SHORTAGES["numpy"]))
    words = r"analyze 'a\.sqlite' \(reading device activity\): 3.00 GiB could not be allocated"
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
    monkeypatch.setattr("nsysdiag.arrays.groups.binascii.a2b_base64", partial(fail, SHORTAGES["zlib"]))
    with pytest.raises(MemoryError):
        from_text(text, 100)
