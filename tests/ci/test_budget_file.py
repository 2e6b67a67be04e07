"""Budgets in a settings file: what they mean, and where a mistake is said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysdiag.ci.budgets import budgets_of
from nsysdiag.config.file import read_file
from nsysdiag.config.settings import Settings
from nsysdiag.messages import UsageError

GOOD = """
gaps = 30
[[budgets]]
fail = "idle_share > 20%"
[[budgets]]
warn = "ledger.sync > 1ms/iter"
device = "gpu0"
nvtx = "forward"
trace = "rank*.sqlite"
"""


def said_of(folder: Path, text: str, name: str = "nsysdiag.toml") -> UsageError:
    (folder / name).write_text(text)
    with pytest.raises(UsageError) as raised:
        budgets_of(read_file(folder / name)[1], name)
    return raised.value


def test_all_of_it(tmp_path: Path) -> None:
    for name, text in (
        ("nsysdiag.toml", GOOD),
        ("pyproject.toml", "[tool.nsysdiag]" + GOOD.replace("[[", "[[tool.nsysdiag.")),
    ):
        (tmp_path / name).write_text(text)
        settings, entries = read_file(tmp_path / name)
        assert settings == Settings(gaps=30, config=name)
        first, second = budgets_of(entries, name)
        assert (first.level, first.source) == ("fail", f"{name}: budgets[0].fail")
        assert (first.device, first.nvtx, first.trace, first.expression.limit) == ("", "", "", 0.2)
        assert (second.level, second.source) == ("warn", f"{name}: budgets[1].warn")
        assert (second.device, second.nvtx, second.trace) == ("gpu0", "forward", "rank*.sqlite")
        assert first.shared
        assert second.expression.per_iteration


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('budgets = "idle_share > 20%"', "budgets must be tables"),
        ("[budgets]\nfail = 'idle_share > 20%'", "budgets must be tables"),
        ("budgets = ['idle_share > 20%']", "budgets[0] is 'idle_share > 20%', but must be a table"),
        ("[[budgets]]\nfail = 3", "budgets[0].fail is 3, but must be text, not empty"),
        ("[[budgets]]\nfail = ''", "budgets[0].fail is '', but must be text, not empty"),
        ("[[budgets]]\nfali = 'idle_ns > 0'", "unknown key budgets[0].fali; did you mean 'fail'?"),
        ("[[budgets]]\ndevice = 'gpu0'", "budgets[0] must have either fail or warn"),
        ("[[budgets]]\nfail = 'idle_ns > 0'\nwarn = 'idle_ns > 0'", "budgets[0] must have either fail or warn"),
        ("[[budgets]]\nfail = 'idle_ns > 0'\n[[budgets]]\nwarn = 'idle_ns > 0'\nnvtx = 3", "budgets[1].nvtx is 3"),
        ("[[budget]]\nfail = 'idle_ns > 0'", "unknown key budget; did you mean 'budgets'?"),
    ],
)
def test_each_mistake_names_its_key(tmp_path: Path, text: str, words: str) -> None:
    assert words in said_of(tmp_path, text).message


def test_a_mistake_in_an_expression_names_file_key_and_place(tmp_path: Path) -> None:
    text = "[[budgets]]\nfail = 'idle_ns > 0'\n" * 2 + "[[budgets]]\nwarn = 'idle_share > 20'"
    error = said_of(tmp_path, text)
    assert error.message == "nsysdiag.toml: budgets[2].warn: a share is from 0 to 1"
    assert error.shown == ("idle_share > 20", "             ^")


@pytest.mark.parametrize(
    "text", ["iterations.p95_ns > 1ms", "findings.high > 0", "root_ledger.sync > 0", "idle_ns:+10%"]
)
def test_what_is_not_known_inside_a_range(tmp_path: Path, text: str) -> None:
    error = said_of(tmp_path, f"[[budgets]]\nfail = '{text}'\nnvtx = 'forward'")
    assert error.message == f"nsysdiag.toml: budgets[0].nvtx: '{text}' is not known inside an NVTX range"
