"""A cause that is added as CONTRIBUTING.md says is known everywhere, and passes the tests of causes."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nsysdiag.bottlenecks import BOTTLENECKS
from nsysdiag.causes import CAUSES
from tests.additions import ROOT, copied_package, not_yet_added, printed

pytestmark = [pytest.mark.slow, not_yet_added("read_ahead" in CAUSES)]

SOURCE = '''"""Reading ahead: the thread fills the page cache with parts of a file that it needs later."""

from __future__ import annotations

import re

from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes.cause import Cause, EvidenceRows, Variant
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, layer_of


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Outermost calls of readahead."""
    return [layer_of(evidence.os_calls(re.compile(r"readahead")), EvidenceLabel("page cache"))]


CAUSE = Cause(
    id="read_ahead",
    title="File read ahead",
    meaning="The launching thread read parts of a file into the page cache, for later.",
    side="host",
    tables=("OSRT_API",),
    bottleneck="input",
    variants=(Variant("other", "by the launching thread", "read ahead on another thread"),),
    opening="{thread} reads ahead by {call}",
    rows=(EvidenceRows.OS_CALL,),
    host=evidence,
)
'''
WORDS = """sources = ["nsight_osrt"]
picture = '''
device  [==A==)..............[==next==)
thread         [readahead][launch]
'''
confirm = ["In the row of OS calls of the launching thread, readahead covers the gap."]

[confused_with]
io_wait = "A read whose bytes the thread takes at once."

[advice]
plain = ["Read ahead on a thread that launches nothing."]

[advice.pytorch]
sentences = ["Read ahead in a worker of the DataLoader."]
source = "data_loader"
"""
TITLED = ("json", "md", "txt", "html", "csv", "prom", "perfetto.json", "junit.xml", "sarif")

DEMO = "trace.sqlite"
LINES: dict[str, list[str]] = {
    "plain": ["analyze", DEMO, "--fail-on", "ledger.read_ahead > 1ms"],
    "redacted": ["analyze", DEMO, "--redact"],
    "without": ["analyze", DEMO, "--disable", "read_ahead", "--fail-on", "ledger.read_ahead > 1ms"],
    "rules": ["rules"],
    "rule": ["rules", "read_ahead"],
    "rules in JSON": ["rules", "--format", "json"],
    "compared with itself": ["compare", "plain.json", "plain.json", "-o", "-", "--format", "md"],
    "compared": ["compare", "without.json", "plain.json", "-o", "-", "--format", "json"],
}
TESTS = """
import sys, pytest

given = ["-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", "tests/causes"]
sys.exit(pytest.main([*given, "-m", "not slow"]) or pytest.main([*given, "--thorough", "-k", "read_ahead"]))
"""
"""Runs the quick tests of causes, then all that are about this one."""
CODES = {"plain": 1, "without": 2}
"""Of the budgets; the other commands exit with 0."""


def with_the_cause(folder: Path) -> Path:
    """A copy of the package that has the cause: its two files, and its place in the order."""
    package = copied_package(folder)
    (package / "causes" / "read_ahead.py").write_text(SOURCE)
    (package / "data" / "rules" / "read_ahead.toml").write_text(WORDS)
    registry = package / "causes" / "__init__.py"
    before = registry.read_text()
    after = before.replace("    start_up,\n", "    read_ahead,\n    start_up,\n")
    after = after.replace("    input_output.IO_WAIT,\n", "    read_ahead.CAUSE,\n    input_output.IO_WAIT,\n")
    assert after.count("read_ahead") == 2  # the import, and the place in the order
    registry.write_text(after)
    return package


def outputs(name: str) -> list[str]:
    """Options for what a line of LINES writes."""
    suffixes = {"plain": TITLED, "redacted": TITLED, "without": ("json",)}.get(name, ())
    return [word for suffix in suffixes for word in ("-o", f"{name}.{suffix}")]


@dataclass(frozen=True)
class Added:
    """What the program with the cause printed for each of LINES, and its files."""

    folder: Path
    printed: dict[str, str]

    def texts(self, stem: str) -> dict[str, str]:
        """A report in every format."""
        return {suffix: (self.folder / f"{stem}.{suffix}").read_text(encoding="utf-8") for suffix in TITLED}


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Added:
    folder = tmp_path_factory.mktemp("added")
    package = with_the_cause(folder)
    (folder / DEMO).write_bytes(gzip.decompress((ROOT / "nsysdiag" / "data" / "demo.sqlite.gz").read_bytes()))
    with closing(sqlite3.connect(folder / DEMO)) as trace, trace:
        trace.execute("UPDATE StringIds SET value = 'readahead' WHERE value = 'read'")
    told = printed(package, folder, {name: [*line, *outputs(name)] for name, line in LINES.items()})
    assert {name: code for name, (code, _) in told.items()} == {name: CODES.get(name, 0) for name in LINES}, told
    return Added(folder, {name: text for name, (_, text) in told.items()})


@pytest.fixture(scope="module")
def texts(added: Added) -> dict[str, str]:
    return added.texts("plain")


@pytest.mark.sampled(normal=4)
@pytest.mark.parametrize("suffix", TITLED)
def test_every_format_names_it(texts: dict[str, str], suffix: str) -> None:
    assert "File read ahead" in texts[suffix] or "read_ahead" in texts[suffix]


def test_it_takes_time_in_both_ledgers(texts: dict[str, str]) -> None:
    report = json.loads(texts["json"])
    device = report["devices"][0]
    assert device["ledger"]["read_ahead"] > 100_000_000
    assert device["labels"]["read_ahead"] == {"page cache": device["ledger"]["read_ahead"]}
    assert device["root_ledger"]["read_ahead"] == device["ledger"]["read_ahead"]
    assert sum(device["ledger"].values()) == device["idle_ns"]
    colors = {cause["color"] for cause in report["causes"] if cause["bottleneck"] == "input" and cause["meaning"]}
    assert len(colors) == BOTTLENECKS["input"].shades


def finding_of(texts: dict[str, str]) -> dict[str, Any]:
    """What the report says of it: it makes a GPU late for which the other waits."""
    found: list[dict[str, Any]] = json.loads(texts["json"])["findings"]
    return next(each for each in found if "File read ahead" in each["title"])


def test_it_is_a_finding(texts: dict[str, str]) -> None:
    finding = finding_of(texts)
    assert "(File read ahead: by the launching thread" in finding["title"]
    assert "reads ahead by readahead" in finding["chain"][0]
    assert finding["chain"][-1] == "read ahead on another thread"
    assert finding["advice"][:1] == ["Read ahead in a worker of the DataLoader."]
    assert {row["table"] for row in finding["rows"]} >= {"OSRT_API"}


def test_bottleneck_and_verdict(texts: dict[str, str]) -> None:
    report = json.loads(texts["json"])
    assert report["devices"][0]["verdict"]["id"] == "input-bound"
    assert report["diagnosis"]["bottleneck"] == "input"
    assert finding_of(texts)["bottleneck"] == "input"


def test_rules(added: Added) -> None:
    assert "read_ahead" in added.printed["rules"]
    for words in (
        "File read ahead",
        "into the page cache, for later",
        "Read ahead on a thread",
        "thread         [readahead][launch]",
    ):
        assert words in added.printed["rule"]
    assert "read_ahead" in added.printed["rules in JSON"]


def test_compare(added: Added) -> None:
    assert "File read ahead" in added.printed["compared with itself"]
    assert "read_ahead" in added.printed["compared"]


def test_budget_of_a_disabled_cause(added: Added) -> None:
    assert "the cause read_ahead was disabled" in added.printed["without"]


def test_redacted(added: Added, texts: dict[str, str]) -> None:
    """Its words are the program's own, and stay."""
    redacted = added.texts("redacted")
    for suffix in ("json", "md", "txt", "html", "csv", "prom", "perfetto.json"):
        assert ("File read ahead" in redacted[suffix]) == ("File read ahead" in texts[suffix]), suffix
    plain, hidden = (json.loads(each["json"])["devices"][0] for each in (texts, redacted))
    assert hidden["ledger"] == plain["ledger"]
    assert hidden["labels"]["read_ahead"] == plain["labels"]["read_ahead"]
    found, before = finding_of(redacted), finding_of(texts)
    assert found["advice"] == before["advice"]
    assert found["title"].endswith("(File read ahead: by the launching thread, in range 2)")
    assert found["chain"][-1] == before["chain"][-1]
    assert "reads ahead by readahead" in found["chain"][0]


def test_the_steps_of_contributing_pass_the_tests_of_causes(added: Added) -> None:
    """The examples of its fourth step in their file, and the tests of its fifth."""
    steps = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(r"```text\n(@fires.*?)```", steps, re.DOTALL)
    assert found is not None
    checkout = added.folder / "site"
    for name in ("README.md", "pyproject.toml", "docs", "scripts"):
        (checkout / name).symlink_to(ROOT / name)
    (checkout / "templates").symlink_to("nsysdiag/templates")
    shutil.copytree(ROOT / "tests", checkout / "tests", ignore=shutil.ignore_patterns("__pycache__", "goldens", "data"))
    with (checkout / "tests" / "causes" / "host_examples.py").open("a", encoding="utf-8") as examples:
        examples.write("\n\n" + found[1])
    done = subprocess.run(
        [sys.executable, "-P", "-c", TESTS],
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONUTF8": "1"},
        cwd=checkout,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3_000:]
