"""What holds for the whole suite: order, what a test needs, and the closing count of tests by their needs."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import coverage
import hypothesis
import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported: its threads spin beside the other worker

from tests import levels
from tests.shared import analyzed_once, shared  # noqa: F401, fixtures of every test

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from _pytest.terminal import TerminalReporter

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
"""Captures and simulated traces. A source distribution leaves them out."""
NODE_MODULES = ROOT / ".npm" / "node_modules"
"""Where `scripts/test` puts what it fetches for the tests alone: axe-core, official schemas, checkers of workflows and
types."""
AXE = NODE_MODULES / "axe-core" / "axe.min.js"
PYRIGHT = NODE_MODULES / "pyright" / "index.js"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NEEDS = {
    "checkout": "git checkout",
    "fixtures": "fixtures",
    "real": "real traces",
    "browser": "browser",
    "npm": "fetched packages",
    "nsys": "nsys program",
}
"""The markers of tests that need something from outside, and their names in the summary."""
GARBAGE = (10_000, 10, 10)
"""When to look for garbage. A simulated program is tens of thousands of objects that refer to each other, of which
none is garbage while it runs: with Python's own threshold of 700 that took half of the time of its tests."""
NOT_QUICK = ("slow", "thorough", "real", "sampled")
"""The markers of tests that the quick level leaves out, or whose cases it chooses by the arguments of the marker."""


def missing(marker: str) -> str | None:
    """Why tests with this marker cannot run here, or None."""
    if marker == "browser":
        return None if any(shutil.which(name) for name in BROWSERS) else "no Chromium found"
    if marker == "npm":
        return None if AXE.is_file() else "no packages in .npm; scripts/test fetches them where npm can"
    if marker == "checkout":
        return None if (ROOT / ".git").exists() else "not in a git checkout"
    if marker == "fixtures":
        return None if FIXTURES.is_dir() else "no folder tests/fixtures, as in a source distribution"
    variable = {"real": "NSYSDIAG_TRACES", "nsys": "NSYSDIAG_NSYS"}[marker]
    return None if os.environ.get(variable) else f"{variable} is not set"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough",
        action="store_true",
        help="also the tests marked thorough, every case of a crossing, and more examples of every property",
    )


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until the tests are collected: all of that stays
    _set_level(config)
    _check_environment()


def _set_level(config: pytest.Config) -> None:
    """Before any test is imported: parameters and numbers of examples depend on the level."""
    levels.THOROUGH = config.getoption("thorough")
    hypothesis.settings.register_profile(
        "nsysdiag",
        max_examples=levels.examples(100),
        deadline=None,
        derandomize="CI" in os.environ,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],  # it looks at the clock, and the machine may be busy
    )
    hypothesis.settings.load_profile("nsysdiag")


def _check_environment() -> None:
    """A path that is set but leads nowhere is a mistake, not a reason to skip. A time that a build of a package sets
    for what it makes is none of the tests': it is in reports, which are compared."""
    os.environ.pop("SOURCE_DATE_EPOCH", None)
    for variable in ("NSYSDIAG_TRACES", "NSYSDIAG_NSYS"):
        path = os.environ.get(variable)
        if path and not Path(path).exists():
            raise pytest.UsageError(f"{variable} leads nowhere: {path}")


def _mark_cases(items: list[pytest.Item], *, all_slow: bool) -> None:
    """Cases of a test marked `sampled` are quick, slow or thorough by their place among those that run. Of the slow
    cases of any other test, all but some are thorough, unless `all_slow`; of its other cases, all but some are slow."""
    cases = _by_test(
        item for item in items if item.get_closest_marker("sampled") or (not all_slow and _is_slow_case(item))
    )
    for test, found in cases.items():
        marker = found[0].get_closest_marker("sampled")
        for item, marks in zip(found, levels.marks(test, len(found), marker and marker.kwargs), strict=True):
            for mark in marks:
                item.add_marker(mark)
    for found in _by_test(item for item in items if _is_quick_case(item)).values():
        for at, item in enumerate(found):
            for mark in levels.sampled(at, levels.QUICK):
                item.add_marker(mark)


def _by_test(items: Iterable[pytest.Item]) -> dict[str, list[pytest.Item]]:
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    return cases


def _is_quick_case(item: pytest.Item) -> bool:
    return hasattr(item, "callspec") and not any(item.get_closest_marker(name) for name in NOT_QUICK)


def _is_slow_case(item: pytest.Item) -> bool:
    slow = item.get_closest_marker("slow") or item.get_closest_marker("real")
    return bool(slow and hasattr(item, "callspec") and not item.get_closest_marker("thorough"))


@pytest.hookimpl(tryfirst=True)  # before pytest selects by `-m`
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is thorough or real is slow too, and what is thorough is left out unless asked for. Quick tests first; what
    cannot run here is skipped."""
    _mark_cases(items, all_slow=any(".py" in named for named in config.args))
    thorough = [item for item in items if item.get_closest_marker("thorough")]
    if thorough and not levels.THOROUGH:
        config.hook.pytest_deselected(items=thorough)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    for item in items:
        if item.get_closest_marker("thorough") or item.get_closest_marker("real"):
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)
    reasons = [(marker, why) for marker in NEEDS if (why := missing(marker))]
    for item in items:
        for marker, why in reasons:
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=why), append=False)  # before "got empty parameter set"


def pytest_collection_finish() -> None:
    """The heap of a process that runs tests is large, and giving back its free pages after every analysis costs a
    tenth of each. Tests of processes of their own show that it is done."""
    if spill := sys.modules.get("nsysdiag.arrays.spill"):
        spill._free_bytes = lambda: 0  # type: ignore[attr-defined]
    # What was imported and collected stays for the whole run: going through it for garbage takes a twentieth of it.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    """A fixture of pytest may be what reads a file of `FIXTURES`."""
    return (yield from _skipping_without_fixtures())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    return (yield from _skipping_without_fixtures())


def _skipping_without_fixtures() -> Generator[None, Any, Any]:
    """Skip a test that reads a file of `FIXTURES` where the folder is missing; where it is there, a missing file is an
    error. Tests that do not read, or that need files to be there in other ways, are marked `fixtures`."""
    try:
        return (yield)
    except FileNotFoundError as error:
        why = missing("fixtures")
        if why and error.filename and FIXTURES in Path(error.filename).parents:
            pytest.skip(why)
        raise


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Save what coverage has measured so far: a worker of pytest-xdist that takes ten seconds to end is killed."""
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.save()


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say how many of the tests with needs ran: a green suite that skipped them has shown less."""
    for marker, name in NEEDS.items():
        reports = [
            (outcome, report)
            for outcome in ("passed", "failed", "error", "xfailed", "xpassed", "skipped")
            for report in terminalreporter.stats.get(outcome, [])
            if marker in getattr(report, "keywords", ())
        ]
        skipped = Counter(_reason(report) for outcome, report in reports if outcome == "skipped")
        reasons = "".join(f"; {count} {reason}" for reason, count in skipped.most_common())
        ran = len(reports) - skipped.total()
        terminalreporter.write_line(f"{name}: {ran} ran, {skipped.total()} skipped{reasons}")


def _reason(report: pytest.TestReport) -> str:
    where_and_why = report.longrepr
    text = where_and_why[2] if isinstance(where_and_why, tuple) else str(where_and_why)
    return text.removeprefix("Skipped: ")
