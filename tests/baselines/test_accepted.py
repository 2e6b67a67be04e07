"""What a baseline accepts: a file that people may edit, and that is never lost."""

from __future__ import annotations

import tomllib
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nsysdiag.baselines import FILE, add_accepted, drop_accepted, read_accepted
from nsysdiag.ci.acceptances import Acceptance, acceptance
from nsysdiag.messages import OutputError, UsageError

DAY = date(2099, 3, 1)


def one(what: str = "length:+9%", reason: str = "larger vocabulary") -> Acceptance:
    return acceptance(what, reason, DAY, "--what")


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    assert read_accepted(tmp_path) == []
    for accepted in (one(), one("idle_share > 26%", "other input"), one("ledger.sync:+1.5ms")):
        add_accepted(tmp_path, accepted)
    found = read_accepted(tmp_path)
    assert [(each.expression.text, each.reason, each.until) for each in found] == [
        ("length:+9%", "larger vocabulary", DAY),
        ("idle_share > 26%", "other input", DAY),
        ("ledger.sync:+1.5ms", "larger vocabulary", DAY),
    ]


def test_what_it_was_accepted_from_is_read_back(tmp_path: Path) -> None:
    add_accepted(tmp_path, replace(one(), before_ns={"gpu0": 1_070_000, "host:gpu1": 3}))
    (found,) = read_accepted(tmp_path)
    assert found.before_ns == {"gpu0": 1_070_000, "host:gpu1": 3}


def test_a_baseline_that_restarts_accepts_nothing(tmp_path: Path) -> None:
    assert drop_accepted(tmp_path) == 0
    add_accepted(tmp_path, one())
    add_accepted(tmp_path, one("ledger.sync:+2ms"))
    assert drop_accepted(tmp_path) == 2
    assert read_accepted(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_reason_is_a_string(tmp_path_factory: pytest.TempPathFactory, reason: str) -> None:
    folder = tmp_path_factory.mktemp("accepted")
    add_accepted(folder, one(reason=reason))
    (found,) = read_accepted(folder)
    assert found.reason == reason


def test_what_people_wrote_stays(tmp_path: Path) -> None:
    mine = '# by hand\n[[accepted]]\nwhat = "length:+3%" # small\nreason = "x"\nuntil = 2099-01-01'
    (tmp_path / FILE).write_text(mine)
    add_accepted(tmp_path, one())
    assert (tmp_path / FILE).read_text().startswith(f"{mine}\n\n[[accepted]]\n")
    assert len(read_accepted(tmp_path)) == 2


def test_all_that_are_added_at_once_are_there(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: add_accepted(tmp_path, one(reason=str(at))), range(24)))
    assert sorted(int(each.reason) for each in read_accepted(tmp_path)) == list(range(24))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("accepted = 3", "holds something else"),
        ("[other]\nx = 1", "holds something else"),
        ("[[accepted]]\nwhat = 'length:+9%'", r"accepted\[0\] does not have what, reason and until alone"),
        ("[[accepted]]\nwhat = 'length:+9%'\nreason = 'x'\nuntil = '2099-01-01'", "until must be a day"),
        ("[[accepted]]\nwhat = 'length:+9%'\nreason = 'x'\nuntil = 2099-01-01T00:00:00", "until must be a day"),
        ("[[accepted]]\nwhat = 'length'\nreason = 'x'\nuntil = 2099-01-01", r"accepted\[0\].what"),
        ("[[accepted]]\nwhat = 'idle_ns == 3'\nreason = 'x'\nuntil = 2099-01-01", "says no bound"),
        (
            "[[accepted]]\nwhat = 'length:+9%'\nreason = 'x'\nuntil = 2099-01-01\nbefore_ns = { gpu0 = 1.5 }",
            "before_ns must have ns by GPU",
        ),
        ("what is this", "cannot be read"),
        ("\x00", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_left_as_it_is(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(UsageError, match=told):
        read_accepted(tmp_path)
    with pytest.raises(UsageError, match=told):
        add_accepted(tmp_path, one())
    assert (tmp_path / FILE).read_text() == text


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("")
    (tmp_path / FILE).symlink_to("mine.toml")
    with pytest.raises(OutputError, match="symbolic link"):
        add_accepted(tmp_path, one())
    assert tomllib.loads((tmp_path / "mine.toml").read_text()) == {}
