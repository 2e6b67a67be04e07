"""What tests share is what they would have made themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import shared as sharing
from tests.shared import Shared, keep_results, made_once
from tests.simulator import EVERYTHING, Capture

CUDA = EVERYTHING.but(osrt=False)


def recorded(into: list[tuple[int, Capture | None]]) -> Callable[..., tuple[int, bool]]:
    """A function as each worker has it, that notes its calls."""

    def make(number: int, capture: Capture | None = None) -> tuple[int, bool]:
        into.append((number, capture))
        if number < 0:
            raise ValueError(number)
        return number, capture is None or capture.osrt

    return made_once(make)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results are kept during a test."""
    monkeypatch.setattr(sharing, "_results_in", [])
    keep_results(Shared(tmp_path / "shared"))
    return tmp_path / "shared"


def test_each_result_is_made_by_one_worker(folder: Path) -> None:
    made: list[tuple[int, Capture | None]] = []
    workers = [recorded(made) for _ in range(2)]
    for _ in range(2):
        assert [each(1) for each in workers] == [(1, True)] * 2
        assert [each(1, CUDA) for each in workers] == [(1, False)] * 2
        assert [each(2, capture=EVERYTHING) for each in workers] == [(2, True)] * 2
    assert made == [(1, None), (1, CUDA), (2, EVERYTHING)]
    assert len([*folder.iterdir()]) == len(made)


def test_without_a_folder_each_process_makes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_results_in", [])
    made: list[tuple[int, Capture | None]] = []
    workers = [recorded(made) for _ in range(2)]
    assert [each(1) for each in workers * 2] == [(1, True)] * 4
    assert made == [(1, None)] * 2


@pytest.mark.usefixtures("folder")
def test_an_error_is_raised_again() -> None:
    made: list[tuple[int, Capture | None]] = []
    for each in [recorded(made)] * 2:
        with pytest.raises(ValueError, match="-1"):
            each(-1)
    assert len(made) == 2


@pytest.mark.usefixtures("folder")
def test_the_function_itself_is_at_hand() -> None:
    made: list[tuple[int, Capture | None]] = []
    found = recorded(made)
    assert found(1) == found.__wrapped__(1) == found(1)  # type: ignore[attr-defined]
    assert made == [(1, None)] * 2
