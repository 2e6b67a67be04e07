"""The progress bar: on a terminal only, and names are shown as they are."""

from __future__ import annotations

import io
import sys

import pytest

from nsysdiag.cli.console import batch_bar, progress_bar


class Terminal(io.StringIO):
    """A stderr that somebody watches."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """The name of the environment's terminal decides too, so it is set."""
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def test_nothing_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with progress_bar(quiet=False) as progress:
        assert progress is None
    assert log.getvalue() == ""


def test_nothing_where_quiet(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar(quiet=True) as progress:
        assert progress is None
    assert terminal.getvalue() == ""


def test_shows_the_step_on_stderr(
    monkeypatch: pytest.MonkeyPatch, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar(quiet=False) as progress:
        assert progress is not None
        progress("kernels of f<[/b]>", 0.5)
    assert "f<[/b]>" in terminal.getvalue()
    assert capsys.readouterr().out == ""


def test_a_batch_shows_what_is_left(monkeypatch: pytest.MonkeyPatch, terminal: Terminal) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    with batch_bar(3, quiet=False) as watch:
        watch(2, ["a[b].sqlite", "c.sqlite"])
    assert "2 left; a[b].sqlite and 1 more" in terminal.getvalue()


@pytest.mark.parametrize("quiet", [True, False])
def test_a_batch_that_nobody_watches_is_silent(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Terminal() if quiet else io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with batch_bar(3, quiet=quiet) as watch:
        watch(2, ["a"])
    assert log.getvalue() == ""
