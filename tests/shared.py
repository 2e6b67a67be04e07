"""Traces and reports that many tests look at are made once in a run. Workers of pytest-xdist share them as files."""

from __future__ import annotations

import gzip
import hashlib
import os
import pickle
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

import pytest
from msgspec import structs

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsysdiag.config.settings import Settings
    from nsysdiag.pipeline.analysis import Analysis
    from nsysdiag.pipeline.changes import Replayed
    from nsysdiag.pipeline.reading import Progress
    from nsysdiag.report import Report
    from nsysdiag.trace.trace import Trace
    from tests.simulator import Capture


FIXTURES = Path(__file__).parent / "fixtures"


class Shared:
    """Files in a folder of this run, which no test changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def trace(self, name: str, capture: Capture | None = None) -> Path:
        """The trace of a scenario, by default of what the scenario says is captured of it."""
        from tests.simulator.scenarios import SCENARIOS, scenario

        capture = capture or SCENARIOS[name].capture
        folder = self.folder / f"{name}-{_key(capture)}"
        folder.mkdir(exist_ok=True)
        return self._made(folder / "trace.sqlite", lambda path: scenario(name).write(path, capture))

    def report(self, trace: Path, settings: Settings | None = None) -> Report:
        """The report about a trace, by default with default settings. The trace stays as it is during the run."""
        import msgspec

        import nsysdiag
        from nsysdiag.record import to_json
        from nsysdiag.report import Report

        saved = self.file(
            f"{trace.stem}-{_key((trace, settings))}.json",
            lambda path: path.write_bytes(to_json(nsysdiag.analyze(trace, settings))),
        )
        return msgspec.json.decode(saved.read_bytes(), type=Report)  # without the checks of untrusted files

    def replayed(self, trace: Path) -> Replayed:
        """The report about a trace without a timeline, and the model of its judged time. The trace stays as it is."""
        from tests.replay.making import replay_of

        name = f"{trace.stem}-{_key(trace)}.pickle"
        saved = self.file(name, lambda path: path.write_bytes(pickle.dumps(replay_of(trace))))
        found: Replayed = pickle.loads(saved.read_bytes())
        return found

    def fixture(self, name: str) -> Path:
        """A trace of `tests/fixtures`, unpacked, in a folder apart from files of its name that tests make."""
        folder = self.folder / "fixtures"
        folder.mkdir(exist_ok=True)
        packed = FIXTURES / f"{name}.gz"
        return self._made(folder / name, lambda path: path.write_bytes(gzip.decompress(packed.read_bytes())))

    def file(self, name: str, make: Callable[[Path], object]) -> Path:
        """A file of this name, which `make` writes."""
        return self._made(self.folder / name, make)

    @staticmethod
    def _made(path: Path, make: Callable[[Path], object]) -> Path:
        """`path`, which is there in whole or not at all, and never replaced: the other worker may be reading it."""
        if not path.exists():
            draft = path.with_name(f"{os.getpid()}-{path.name}")
            make(draft)
            with suppress(FileExistsError):  # the other worker was faster
                os.link(draft, path)
            draft.unlink()
        return path


P = ParamSpec("P")
T = TypeVar("T")
_results_in: list[Shared] = []


def keep_results(shared: Shared) -> None:
    """From now on the results of functions that are `made_once` are among the files of this run."""
    _results_in[:] = [shared]


def made_once(make: Callable[P, T]) -> Callable[P, T]:
    """A function whose results no test changes, of arguments that their `repr` tells apart: it runs once for each of
    them in this process, and, after `keep_results`, once in all workers. `__wrapped__` is the function itself."""

    @cache
    @wraps(make)
    def found(*args: P.args, **kwargs: P.kwargs) -> T:
        if not _results_in:
            return make(*args, **kwargs)
        name = f"{make.__qualname__}-{_key((make.__module__, args, sorted(kwargs.items())))}.pickle"
        saved = _results_in[0].file(name, lambda path: path.write_bytes(pickle.dumps(make(*args, **kwargs))))
        result: T = pickle.loads(saved.read_bytes())
        return result

    found.__wrapped__ = make  # not what `cache` calls
    return cast("Callable[P, T]", found)


MOST_KEPT = 32
_kept: dict[str, Analysis] = {}


@pytest.fixture
def analyzed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of traces with the same name, bytes and settings one is analyzed, for tests of what becomes of reports."""
    from nsysdiag.pipeline import analysis

    def once(trace: Trace, settings: Settings, progress: Progress | None = None, **options: object) -> Analysis:
        if not trace.path.is_file():
            return analyze(trace, settings, progress, **options)
        content = hashlib.sha256(trace.path.read_bytes()).hexdigest()
        key = repr((trace.path.name, content, settings, options))
        if key not in _kept:
            if len(_kept) >= MOST_KEPT:
                del _kept[next(iter(_kept))]
            _kept[key] = analyze(trace, settings, progress, **options)
        found = _kept[key]
        return structs.replace(found, report=structs.replace(found.report))  # which keeps where it comes from

    analyze: Callable[..., Analysis] = analysis.analysis_of
    monkeypatch.setattr(analysis, "analysis_of", once)


def _key(what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()[:12]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    base = tmp_path_factory.getbasetemp()
    return Shared((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared")
