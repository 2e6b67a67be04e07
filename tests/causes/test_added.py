"""A cause that is added by one file and its place in the registry is known everywhere."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow

SOURCE = '''"""Reading pipes: the thread waits for bytes of another process."""

from __future__ import annotations

import re

from nsysdiag.arrays.labels import EvidenceLabel
from nsysdiag.causes.cause import Advice, Cause, EvidenceRows, Variant
from nsysdiag.causes.evidence import EvidenceLayer, HostEvidence, layer_of


def evidence(evidence: HostEvidence) -> list[EvidenceLayer]:
    """Outermost reads."""
    return [layer_of(evidence.os_calls(re.compile(r"read")), EvidenceLabel("small reads"))]


CAUSE = Cause(
    id="pipe_read",
    title="Pipe drained",
    meaning="The launching thread read from a pipe.",
    side="host",
    tables=("OSRT_API",),
    advice=Advice(("Use shared memory in place of the pipe.",)),
    picture="""
device  [==A==)..............[==next==)
thread         [read  ][launch]
""",
    bottleneck="input",
    sources=("nsight_osrt",),
    variants=(Variant("other", "of a sibling", "share the memory of the sibling"),),
    opening="{thread} drains a pipe by {call}",
    rows=(EvidenceRows.OS_CALL,),
    host=evidence,
)
'''
TITLED = ("json", "md", "txt", "html", "csv", "prom", "perfetto.json", "junit.xml", "sarif")


RUNNER = """
import contextlib, io, json, sys
from nsysdiag.cli.app import app
from nsysdiag.cli.console import run

told = {}
for name, line in json.load(sys.stdin).items():
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run(app, line)
        out.flush()
    told[name] = [code, out.buffer.getvalue().decode()]
json.dump(told, sys.stdout)
"""
"""Runs command lines one after the other, in one process."""
DEMO = "trace.sqlite"
LINES: dict[str, list[str]] = {
    "plain": ["analyze", DEMO, "--fail-on", "ledger.pipe_read > 1ms"],
    "redacted": ["analyze", DEMO, "--redact"],
    "without": ["analyze", DEMO, "--disable", "pipe_read", "--fail-on", "ledger.pipe_read > 1ms"],
    "rules": ["rules"],
    "rule": ["rules", "pipe_read"],
    "rules in JSON": ["rules", "--format", "json"],
    "compared with itself": ["compare", "plain.json", "plain.json", "-o", "-", "--format", "md"],
    "compared": ["compare", "without.json", "plain.json", "-o", "-", "--format", "json"],
}
CODES = {"plain": 1, "without": 2}
"""Of the budgets; the other commands exit with 0."""


def with_the_cause(folder: Path) -> Path:
    """A copy of the package that has the cause, in a folder of its own."""
    package = folder / "site" / "nsysdiag"
    shutil.copytree(ROOT / "nsysdiag", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "templates", package / "templates")
    (package / "causes" / "pipe_read.py").write_text(SOURCE)
    registry = package / "causes" / "__init__.py"
    before = registry.read_text()
    after = before.replace("    profiler_overhead,\n", "    profiler_overhead,\n    pipe_read,\n")
    assert after.count("pipe_read") == 2  # the import, and the place in the order
    registry.write_text(after)
    return package.parent


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
    site = with_the_cause(folder)
    (folder / DEMO).write_bytes(gzip.decompress((ROOT / "nsysdiag" / "data" / "demo.sqlite.gz").read_bytes()))
    done = subprocess.run(
        [sys.executable, "-P", "-c", RUNNER],
        input=json.dumps({name: [*line, *outputs(name)] for name, line in LINES.items()}),
        env={**os.environ, "PYTHONPATH": str(site), "PYTHONUTF8": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    told = json.loads(done.stdout)
    assert {name: code for name, (code, _) in told.items()} == {name: CODES.get(name, 0) for name in LINES}, told
    return Added(folder, {name: printed for name, (_, printed) in told.items()})


@pytest.fixture(scope="module")
def texts(added: Added) -> dict[str, str]:
    return added.texts("plain")


@pytest.mark.parametrize("suffix", TITLED)
def test_every_format_names_it(texts: dict[str, str], suffix: str) -> None:
    assert "Pipe drained" in texts[suffix] or "pipe_read" in texts[suffix]


def test_it_takes_time_in_both_ledgers(texts: dict[str, str]) -> None:
    report = json.loads(texts["json"])
    device = report["devices"][0]
    assert device["ledger"]["pipe_read"] > 100_000_000
    assert device["labels"]["pipe_read"] == {"small reads": device["ledger"]["pipe_read"]}
    assert device["root_ledger"]["pipe_read"] == device["ledger"]["pipe_read"]
    assert sum(device["ledger"].values()) == device["idle_ns"]
    colors = {cause["color"] for cause in report["causes"] if cause["bottleneck"] == "input" and cause["meaning"]}
    assert len(colors) == 3


def finding_of(texts: dict[str, str]) -> dict[str, Any]:
    """What the report says of it: it makes a GPU late for which the other waits."""
    found: list[dict[str, Any]] = json.loads(texts["json"])["findings"]
    return next(each for each in found if "Pipe drained" in each["title"])


def test_it_is_a_finding(texts: dict[str, str]) -> None:
    finding = finding_of(texts)
    assert "(Pipe drained: of a sibling" in finding["title"]
    assert "drains a pipe by read" in finding["chain"][0]
    assert finding["chain"][-1] == "share the memory of the sibling"
    assert finding["advice"][:1] == ["Use shared memory in place of the pipe."]
    assert {row["table"] for row in finding["rows"]} >= {"OSRT_API"}


def test_bottleneck_and_verdict(texts: dict[str, str]) -> None:
    report = json.loads(texts["json"])
    assert report["devices"][0]["verdict"]["id"] == "input-bound"
    assert report["diagnosis"]["bottleneck"] == "input"
    assert finding_of(texts)["bottleneck"] == "input"


def test_rules(added: Added) -> None:
    assert "pipe_read" in added.printed["rules"]
    for words in ("Pipe drained", "read from a pipe", "shared memory", "thread         [read  ][launch]"):
        assert words in added.printed["rule"]
    assert "pipe_read" in added.printed["rules in JSON"]


def test_compare(added: Added) -> None:
    assert "Pipe drained" in added.printed["compared with itself"]
    assert "pipe_read" in added.printed["compared"]


def test_budget_of_a_disabled_cause(added: Added) -> None:
    assert "the cause pipe_read was disabled" in added.printed["without"]


def test_redacted(added: Added, texts: dict[str, str]) -> None:
    """Its words are the program's own, and stay."""
    redacted = added.texts("redacted")
    for suffix in ("json", "md", "txt", "html", "csv", "prom", "perfetto.json"):
        assert ("Pipe drained" in redacted[suffix]) == ("Pipe drained" in texts[suffix]), suffix
    plain, hidden = (json.loads(each["json"])["devices"][0] for each in (texts, redacted))
    assert hidden["ledger"] == plain["ledger"]
    assert hidden["labels"]["pipe_read"] == plain["labels"]["pipe_read"]
    found, before = finding_of(redacted), finding_of(texts)
    assert found["advice"] == before["advice"]
    assert found["title"].endswith("(Pipe drained: of a sibling, in range 2)")
    assert found["chain"][-1] == before["chain"][-1]
    assert "drains a pipe by read" in found["chain"][0]
