"""`nsysdiag rules`: causes and rules of findings as tables, and one of them in full."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from nsysdiag.causes import CAUSES
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.findings.rules import FINDING_RULES, sources_of, thresholds_of
from tests.levels import crossed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Result

RULES = [*CAUSES, *FINDING_RULES]


def test_lists_every_cause_in_order_then_findings_and_their_settings(cli: Callable[..., Result]) -> None:
    result = cli("rules")
    causes, findings, limits = result.stdout.decode().split("\n\n")
    header, *rows = causes.splitlines()
    assert (result.code, header.split()) == (0, ["order", "id", "title", "tables"])
    assert [row.split()[:2] for row in rows] == [[str(n), id] for n, id in enumerate(CAUSES, 1)]
    assert [row.split()[0] for row in findings.splitlines()[2:]] == list(FINDING_RULES)
    settings = [f"findings.{name}" for name in FindingThresholds.__struct_fields__]
    assert [row.split()[0] for row in limits.splitlines()[2:]] == settings
    assert re.search(r"findings\.smallest +1% ", limits)


@pytest.mark.parametrize("rule", RULES)
def test_one_rule_in_full(cli: Callable[..., Result], rule: str) -> None:
    result = cli("rules", rule)
    text = result.stdout.decode()
    known = CAUSES.get(rule) or FINDING_RULES[rule]
    assert result.code == 0
    assert all(part in text for part in (known.title, known.meaning, *known.tables, *known.advice.plain))
    assert all(each in text for _, words in known.advice.others() for each in words.sentences)
    assert all(line.rstrip() in text for line in known.words.picture.strip("\n").splitlines())
    assert all(kind.fix in text for kind in (CAUSES[rule].variants if rule in CAUSES else ()) if kind.title)


@pytest.mark.parametrize(("rule", "format_name"), crossed(RULES, ["text", "md", "json"], 3))
def test_thresholds_and_sources_in_every_format(cli: Callable[..., Result], rule: str, format_name: str) -> None:
    text = cli("rules", rule, "--format", format_name).stdout.decode()
    assert sources_of(rule)
    assert all(source.chapter in text and (source.url or "") in text for source in sources_of(rule))
    assert any(threshold.name.startswith("findings.") for threshold in thresholds_of(rule))
    assert all(part in text for threshold in thresholds_of(rule) for part in (threshold.name, threshold.value))


def test_json(cli: Callable[..., Result]) -> None:
    records = json.loads(cli("rules", "--format", "json").stdout)
    assert [record["id"] for record in records] == RULES
    assert [record["order"] for record in records if record["order"]] == list(range(1, len(CAUSES) + 1))
    assert json.loads(cli("rules", "sync", "--format", "json").stdout) in records


def test_markdown(cli: Callable[..., Result]) -> None:
    causes, _, findings, _, _ = cli("rules", "--format", "md").stdout.decode().split("\n\n")
    assert len(causes.splitlines()) == len(CAUSES) + 2
    assert {line.count(" | ") for line in causes.splitlines()} == {4}
    assert len(findings.splitlines()) == len(FINDING_RULES) + 2
    assert cli("rules", "sync", "--format", "md").stdout.decode().startswith("## `sync`: ")


@pytest.mark.parametrize(("wrong", "right"), [("lock_weit", "lock_wait"), ("slow_iteration", "slow_iterations")])
def test_unknown_rule(cli: Callable[..., Result], wrong: str, right: str) -> None:
    result = cli("rules", wrong)
    assert result.code == 2
    assert f"did you mean '{right}'" in result.stderr


def test_unknown_format(cli: Callable[..., Result]) -> None:
    result = cli("rules", "--format", "yaml")
    assert result.code == 2
    assert "'yaml' is not one of 'text', 'md', 'json'" in result.stderr
