"""A cause that is added by one file and its place in the registry is known everywhere."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow

SOURCE = '''"""Reading pipes: the thread waits for bytes of another process."""

from __future__ import annotations

import re

from nsysdiag.causes.cause import Cause, Loss, Rows
from nsysdiag.causes.evidence import HostEvidence, Layer, layer_of
from nsysdiag.causes.variant import Variant


def evidence(evidence: HostEvidence) -> list[Layer]:
    """Outermost reads."""
    return [layer_of(evidence.os_calls(re.compile(r"read")), "small reads")]


CAUSE = Cause(
    id="pipe_read",
    title="Pipe drained",
    meaning="The launching thread read from a pipe.",
    side="host",
    tables=("OSRT_API",),
    advice=("Use shared memory in place of the pipe.",),
    color="#123456",
    picture="""
device  [==A==)..............[==next==)
thread         [read  ][launch]
""",
    family="input",
    sources=("nsight_osrt",),
    variants=(Variant("other", "of a sibling", "share the memory of the sibling"),),
    opening="{thread} drains a pipe by {call}",
    loss=Loss.INPUT,
    rows=(Rows.OS_CALL,),
    host=evidence,
)
'''
TITLED = ("json", "md", "txt", "html", "csv", "prom", "perfetto.json", "junit.xml", "sarif", "gitlab.json")


class Added:
    """nsysdiag with the cause, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        package = folder / "site" / "nsysdiag"
        shutil.copytree(ROOT / "nsysdiag", package, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "templates", package / "templates")
        (package / "causes" / "pipe_read.py").write_text(SOURCE)
        registry = package / "causes" / "__init__.py"
        before = registry.read_text()
        after = before.replace("    profiler_overhead,\n", "    profiler_overhead,\n    pipe_read,\n")
        assert after.count("pipe_read") == 2  # the import, and the place in the order
        registry.write_text(after)
        self.trace = folder / "trace.sqlite"
        self.trace.write_bytes(gzip.decompress((ROOT / "nsysdiag" / "data" / "demo.sqlite.gz").read_bytes()))

    def run(self, *arguments: str, code: int = 0) -> str:
        """What the command prints."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "nsysdiag", *arguments],
            env={**os.environ, "PYTHONPATH": str(self.folder / "site")},
            cwd=self.folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def analyzed(self, stem: str, *options: str, code: int = 0) -> dict[str, str]:
        """The text of every format of a report."""
        outputs = {suffix: self.folder / f"{stem}.{suffix}" for suffix in TITLED}
        named = [part for path in outputs.values() for part in ("-o", str(path))]
        self.run("analyze", str(self.trace), *options, *named, "--quiet", code=code)
        return {suffix: path.read_text(encoding="utf-8") for suffix, path in outputs.items()}


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Added:
    return Added(tmp_path_factory.mktemp("added"))


@pytest.fixture(scope="module")
def texts(added: Added) -> dict[str, str]:
    return added.analyzed("plain", "--fail-on", "ledger.pipe_read > 1ms", code=1)


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
    assert "#123456" in {cause["color"] for cause in report["causes"]}


def finding_of(texts: dict[str, str]) -> dict[str, Any]:
    """What the report says of it."""
    found: list[dict[str, Any]] = json.loads(texts["json"])["findings"]
    return next(each for each in found if each["cause"] == "pipe_read")


def test_it_is_a_finding(texts: dict[str, str]) -> None:
    finding = finding_of(texts)
    assert finding["title"].startswith("Pipe drained: of a sibling")
    assert "drains a pipe by read" in finding["chain"][0]
    assert finding["chain"][-1] == "share the memory of the sibling"
    assert finding["advice"] == ["Use shared memory in place of the pipe."]
    assert {row["table"] for row in finding["rows"]} >= {"OSRT_API"}


def test_family_and_verdict(texts: dict[str, str]) -> None:
    device = json.loads(texts["json"])["devices"][0]
    assert device["verdict"]["id"] == "input-bound"
    assert any("pipe drained" in line for kind in device["triage"]["kinds"] for line in kind["evidence"])


def test_rules(added: Added) -> None:
    assert "pipe_read" in added.run("rules")
    page = added.run("rules", "pipe_read")
    for words in ("Pipe drained", "read from a pipe", "shared memory", "thread         [read  ][launch]"):
        assert words in page
    assert "pipe_read" in added.run("rules", "--format", "json")


def test_compare(added: Added, texts: dict[str, str]) -> None:
    added.run("analyze", str(added.trace), "--disable", "pipe_read", "-o", "without.json", "--quiet")
    assert texts
    assert "Pipe drained" in added.run("compare", "plain.json", "plain.json", "-o", "-", "--format", "md")
    assert "pipe_read" in added.run("compare", "without.json", "plain.json", "-o", "-", "--format", "json")


def test_budget_of_a_disabled_cause(added: Added) -> None:
    options = ("--disable", "pipe_read", "--fail-on", "ledger.pipe_read > 1ms")
    assert "the cause pipe_read was disabled" in added.run("analyze", str(added.trace), "-q", *options, code=2)


def test_redacted(added: Added, texts: dict[str, str]) -> None:
    """Its words are the program's own, and stay."""
    redacted = added.analyzed("redacted", "--redact")
    for suffix in ("json", "md", "txt", "html", "csv", "prom", "perfetto.json"):
        assert ("Pipe drained" in redacted[suffix]) == ("Pipe drained" in texts[suffix]), suffix
    plain, hidden = (json.loads(each["json"])["devices"][0] for each in (texts, redacted))
    assert hidden["ledger"] == plain["ledger"]
    assert hidden["labels"]["pipe_read"] == plain["labels"]["pipe_read"]
    found, before = finding_of(redacted), finding_of(texts)
    assert found["advice"] == before["advice"]
    assert found["title"].startswith("Pipe drained: of a sibling")
    assert found["chain"][-1] == before["chain"][-1]
    assert "drains a pipe by read" in found["chain"][0]
