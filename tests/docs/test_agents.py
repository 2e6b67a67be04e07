"""The skill, the manifests of plugins and llms.txt: formats that others read, and commands that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from nsysdiag.cli.app import app
from nsysdiag.queries.answers import SUBJECTS
from nsysdiag.queries.server import TOOLS
from nsysdiag.version import __version__

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SKILL = DOCS / "skills" / "nsysdiag" / "SKILL.md"
AGENTS = DOCS / "agents.md"
APART = {"index", "contributing", "architecture", "testing", "security", "changelog", "beside-nsys", "performance"}
"""Pages that are for people who work on nsysdiag, or compare it."""


def test_the_skill_has_the_fields_of_the_format() -> None:
    _, front, body = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    fields = yaml.safe_load(front)
    assert fields["name"] == SKILL.parent.name
    assert 0 < len(fields["description"]) <= 1024
    assert len(body.splitlines()) < 500


@pytest.mark.parametrize("page", [SKILL, AGENTS], ids=["skill", "page"])
def test_commands_and_options_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    commands = get_command(app).commands  # type: ignore[attr-defined]
    said = re.findall(r"nsysdiag ([a-z]+)((?: [^`\n]*)?)", text)
    named = [(name, rest) for name, rest in said if name in commands or f"`nsysdiag {name}" in text]
    assert len(named) > 1
    for name, rest in named:
        options = {option for each in commands[name].params for option in each.opts}
        given = rest.partition(" -- ")[0]
        assert [word for word in re.findall(r"(?<=\s)--[a-z-]+", given) if word not in options] == []


def test_subjects_and_tools_are_listed() -> None:
    text = AGENTS.read_text(encoding="utf-8")
    assert [name for name in SUBJECTS if f"| `{name}` |" not in text] == []
    assert [name for name in TOOLS if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize("agent", ["claude", "codex", "cursor"])
def test_manifests_name_what_is_there(agent: str) -> None:
    plugin = json.loads((ROOT / f".{agent}-plugin" / "plugin.json").read_text(encoding="utf-8"))
    assert (plugin["name"], plugin["version"]) == ("nsysdiag", __version__)
    assert [each.parent.name for each in (ROOT / plugin["skills"]).glob("*/SKILL.md")] == ["nsysdiag"]
    (run,) = json.loads((ROOT / plugin["mcpServers"]).read_text(encoding="utf-8"))["mcpServers"].values()
    assert run["command"] == "nsysdiag"
    command = get_command(app).commands[run["args"][0]]  # type: ignore[attr-defined]
    assert run["args"][1] in {option for each in command.params for option in each.opts}


def test_the_marketplace_has_the_plugin() -> None:
    plugin = json.loads((ROOT / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8"))
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8"))
    assert [each["name"] for each in market["plugins"]] == [plugin["name"]]


def test_llms_lists_the_pages() -> None:
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([a-z-]+)\.html\)", text))
    pages = {each.stem for each in DOCS.glob("*.md")}
    assert linked <= pages
    assert pages - linked - APART <= {"tutorial", "ledger", "wake-ups", "measures", "diagnosis"}
    assert text.startswith("# nsysdiag\n\n> ")
