"""Types as a program outside sees them: what it may write is accepted by mypy and pyright, what is wrong is not."""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nsysdiag
from tests.conftest import PYRIGHT, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

PROGRAM = """
from pathlib import Path
from typing import assert_type

import pandas as pd

from nsysdiag import (
    Comparison, Finding, InputError, NotComparableError, NsysdiagError, OutputError, RanksReport, Report, Settings,
    Transform, UsageError, WhatIf, __version__, add_to_baseline, all_gaps, analyze, analyze_batch, analyze_ranks,
    baseline, bundle, check_report, compare, demo_trace, figures, frames, gap_chart, info, ledger_chart, load,
    open_trace, query_trace, queue_depth_chart, whatif,
)


def worst(report: Report) -> Finding | None:
    return max(report.findings, key=lambda finding: finding.lost_ns, default=None)


def shown(name: str, share: float) -> None:
    print(f"{share:.0%} {name}")


def main(path: Path) -> int:
    try:
        report = analyze(path, Settings(gaps=20, disabled=("sync",)), progress=shown)
    except InputError as error:
        print(error.message, error.hint)
        return error.exit_code
    assert_type(report, Report)
    assert_type(load("report.json"), Report)
    for device in report.devices:
        assert_type(sum(device.ledger.values()), int)
        assert_type(device.coverage, float | None)
        for gap in device.gaps:
            assert_type(gap.nvtx, list[str])
            assert_type([part.ns for part in gap.slices], list[int])
            if gap.next_op is not None:
                assert_type(gap.next_op.name, str)
    finding = worst(report)
    if finding is not None and finding.saves is not None:
        assert_type(finding.saves.high_ns, int)
    assert_type(frames(report)["gaps"], pd.DataFrame)
    assert_type(all_gaps(report), pd.DataFrame)
    assert_type(report.query("length_ns > 1e6"), pd.DataFrame)
    assert_type(report.sql("SELECT sum(ns) FROM time"), pd.DataFrame)
    assert_type(query_trace(path, "SELECT * FROM steps"), pd.DataFrame)
    gaps = all_gaps(report)
    print(gaps.groupby(["nvtx", "cause"], observed=True)["length_ns"].sum().nlargest(5))
    assert_type(report.devices["gpu0"].idle_ns, int)
    assert_type(report.findings["f-sync"], Finding)
    assert_type(report.frames(), dict[str, pd.DataFrame])
    assert_type(report.all_gaps(), pd.DataFrame)
    assert_type(report.compare("after.sqlite"), Comparison)
    assert_type(report.whatif("without sync"), WhatIf)
    assert_type([each.broken for each in report.check("idle_share > 20%")], list[bool])
    assert_type([each.broken for each in check_report(report, "idle_share > 20%")], list[bool])
    assert_type(demo_trace(), Path)
    assert_type(bundle(path, "ticket.zip", redact=True), Path)
    assert_type(add_to_baseline("main", report), list[Path])
    assert_type(baseline("main"), list[Report])
    assert_type(info(path).processes, int)
    print([each.name for each in analyze_batch([path], "reports", jobs=2).entries])
    comparison = compare(["a.json", report], whatif(path, [Transform(option="without", of="sync")]), across_gpus=True)
    assert_type(comparison, Comparison)
    ranks = analyze_ranks([path, "b.sqlite"])
    assert_type(ranks, RanksReport)
    prediction = whatif(path)
    assert_type(prediction, WhatIf)
    for result in (report, comparison, ranks, prediction):
        assert_type(result.to_html(), str)
        assert_type(result.to_markdown(), str)
        assert_type(result.to_json(), str)
    try:
        prediction.save(path.with_suffix(".html"), force=True)
    except (OutputError, UsageError) as error:
        print(error.shown)
    except (NotComparableError, NsysdiagError):
        raise
    assert_type(frames(ranks), dict[str, pd.DataFrame])
    assert_type(frames(comparison), dict[str, pd.DataFrame])
    with open_trace(path) as trace:
        assert_type(trace.nsys_version, str | None)
        assert_type(trace.warnings, list[str])
        assert_type(trace.compare("after.sqlite"), Comparison)
        assert_type(trace.analyze(), Report)
    charts = [ledger_chart(report), gap_chart(report, device="gpu0"), queue_depth_chart(report)]
    for figure in (*figures(report).values(), *charts):
        figure.write_html("figure.html")  # pyright: ignore[reportUnknownMemberType] plotly tells no types
    return len(__version__)
"""
MISTAKES = (
    "load(3)",
    "analyze('x').device",
    "analyze('x').save(None)",
    "analyze('x', gaps=3)",
    "analyze('x').findings[0].saves.high_ns",
    "all_gaps('x')",
    "compare('x')",
    "frames(3)",
    "whatif('x', ['sync'])",
    "analyze_ranks(3)",
    "Settings(unknown=1)",
    "open_trace('x').rows",
    "gap_chart(1)",
)


def test_the_program_uses_every_public_name() -> None:
    assert [name for name in nsysdiag.__all__ if re.search(rf"\b{name}\b", PROGRAM) is None] == []


@pytest.fixture(scope="session")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which the package is installed, beside those that this one has."""
    folder = tmp_path_factory.mktemp("outside")
    venv.create(folder / "venv", symlinks=True)
    packages = Path(*(folder / "venv").glob("lib/python*/site-packages"))
    shutil.copytree(ROOT / "nsysdiag", packages / "nsysdiag", ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    return folder


def python(outside: Path) -> Path:
    return outside / "venv" / "bin" / "python"


def mypy(outside: Path, path: Path) -> set[int]:
    """The lines of a program with an error."""
    options = ["--strict", "--python-executable", python(outside), "--cache-dir", outside / "cache"]
    command = [sys.executable, "-m", "mypy", *options, "--output", "json", path]
    done = subprocess.run(command, cwd=path.parent, env=_environment(outside), capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return {
        each["line"] for each in map(json.loads, filter(None, done.stdout.splitlines())) if each["severity"] == "error"
    }


def pyright(outside: Path, path: Path) -> set[int]:
    """The lines of a program with an error."""
    (path.parent / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    found = _pyright(outside, path.parent, "--pythonpath", str(python(outside)), str(path))
    errors = [each for each in found["generalDiagnostics"] if each["severity"] == "error"]
    return {each["range"]["start"]["line"] + 1 for each in errors}


def _pyright(outside: Path, folder: Path, *arguments: str) -> Any:
    command = ["node", str(PYRIGHT), "--outputjson", *arguments]
    done = subprocess.run(command, cwd=folder, env=_environment(outside), capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def _environment(outside: Path) -> dict[str, str]:
    """The environment is the active one, and no path leads to the checkout."""
    hidden = ("PYTHONPATH", "MYPYPATH", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return kept | {"PATH": f"{python(outside).parent}{os.pathsep}{os.environ['PATH']}"}


NEEDS_PYRIGHT = [
    pytest.mark.npm,
    pytest.mark.skipif(not PYRIGHT.is_file(), reason="no pyright in .npm; scripts/test fetches it where npm can"),
]
CHECKERS = [pytest.param(mypy, id="mypy"), pytest.param(pyright, id="pyright", marks=NEEDS_PYRIGHT)]


@pytest.mark.thorough
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_program_is_accepted(checker: Callable[[Path, Path], set[int]], outside: Path, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    assert checker(outside, path) == set()


@pytest.mark.thorough
@pytest.mark.parametrize("checker", CHECKERS)
def test_the_first_example_of_the_documentation_is_accepted(
    checker: Callable[[Path, Path], set[int]], outside: Path, tmp_path: Path
) -> None:
    example = re.search(r"```python\n(.+?)```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    path = tmp_path / "example.py"
    path.write_text(example[1], encoding="utf-8")
    assert checker(outside, path) == set()


@pytest.mark.thorough
@pytest.mark.parametrize("checker", CHECKERS)
def test_mistakes_are_found(checker: Callable[[Path, Path], set[int]], outside: Path, tmp_path: Path) -> None:
    path = tmp_path / "mistakes.py"
    names = [name for name in nsysdiag.__all__ if any(re.search(rf"\b{name}\b", each) for each in MISTAKES)]
    lines = [f"from nsysdiag import {', '.join(names)}", *MISTAKES, "print(load('x').findings)"]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert checker(outside, path) == set(range(2, len(MISTAKES) + 2))


@pytest.mark.thorough
@pytest.mark.npm
@pytest.mark.skipif(not PYRIGHT.is_file(), reason="no pyright in .npm; scripts/test fetches it where npm can")
def test_types_are_complete(outside: Path) -> None:
    """In every module, of all symbols without an underscore, none is without a type or has one that is inferred."""
    found = _pyright(outside, outside, "--verifytypes", "nsysdiag", "--ignoreexternal")["typeCompleteness"]
    counts = found["exportedSymbolCounts"]
    assert counts["withKnownType"] > 10_000
    incomplete = [each["name"] for each in found["symbols"] if each["isExported"] and not each["isTypeKnown"]]
    assert incomplete == []
    assert (counts["withUnknownType"], counts["withAmbiguousType"]) == (0, 0)
