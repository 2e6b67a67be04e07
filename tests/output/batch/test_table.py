"""The table of a batch in the terminal: a row a GPU in every width, and nothing from a trace that moves the cursor."""

from __future__ import annotations

import pytest

from nsysdiag.formats import RenderOptions
from nsysdiag.formats.batch.entries import MOST_ROWS, headline, render, rows
from tests.output.batch_samples import BATCHES, entry, summary

WIDTHS = (60, 80, 120)


def lines(sample: str, width: int = 120, *, color: bool = False) -> list[str]:
    return render(BATCHES[sample](), RenderOptions(width=width, color=color)).decode().splitlines()


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("sample", BATCHES)
def test_every_line_fits_and_prints(sample: str, width: int) -> None:
    shown = lines(sample, width)
    assert max(map(len, shown)) <= width
    assert all(line.isprintable() for line in shown)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_each_the_worst_first_with_whole_numbers(width: int) -> None:
    made = BATCHES["states"]()
    table = lines("states", width)[3:9]
    assert [row.mark.word in line for row, line in zip(rows(made), table, strict=True)] == [True] * 6
    assert [line.split()[-2:] for line in table] == [
        ["50.0%", "0/1"],
        ["10.0%", "1/1"],
        ["–", "–"],
        ["99.0%", "1/1"],
        ["20.0%", "1/1"],
        ["–", "–"],
    ]


def test_what_is_known_of_a_gpu() -> None:
    (over,) = [line for line in lines("good") if line.startswith("  runs/over")]
    assert over.split() == ["runs/over", "gpu0", "▲", "Budget", "broken", "sync", "70.0%", "30.0%", "0/3"]
    (bad,) = [line for line in lines("good") if "runs/broken" in line]
    assert bad.split() == ["runs/broken", "–", "✕", "Not", "analyzed", "–", "–", "–", "–"]
    assert headline(BATCHES["good"]()) in " ".join(line.strip() for line in lines("good"))


def test_narrow_terminals_have_room_for_names_instead() -> None:
    heads = [lines("good", width)[2].split() for width in WIDTHS]
    assert [("Busy" in head, "Bound" in head, "Idle" in head) for head in heads] == [
        (False, False, True),
        (False, True, True),
        (True, True, True),
    ]


def test_a_shared_folder_is_named_once() -> None:
    made = summary(entry("a/b/rank0"), entry("a/b/c/rank1"))
    shown = render(made, RenderOptions()).decode().splitlines()
    assert shown[0] == "nsysdiag 0.1.0 · a/b/"
    assert [line.split()[0] for line in shown[3:5]] == ["c/rank1", "rank0"]


@pytest.mark.slow
def test_rows_beyond_the_first_are_counted() -> None:
    shown = lines("many")
    assert sum(" gpu" in line for line in shown) + sum("Not analyzed" in line for line in shown) == MOST_ROWS
    assert f"  {MOST_ROWS} of {len(rows(BATCHES['many']()))} rows, those that come first here." in shown


def test_colours_are_of_the_state() -> None:
    assert [line for line in lines("good", color=True) if "Budget broken" in line and "\x1b[1;31m" in line]
    assert not [line for line in lines("good") if "\x1b" in line]
