"""The directory of names: whatever goes in comes out of the page's block, and counters cost next to nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysdiag.document.names import clip
from nsysdiag.formats.html.assets import Blob
from nsysdiag.formats.html.timeline_data import LONGEST_NAME, Directory
from nsysdiag.messages import InputError
from tests.output.timeline.samples import packed
from tests.output.timeline.test_data import Block

counters = st.integers(0, 10**17).map(str) | st.sampled_from(["007", "0", "1", "12"])
words = st.text(max_size=6) | st.sampled_from(["step ", "op_id = ", "a<b>::c(", ")", "\n"])
names = st.lists(words | counters, max_size=6).map("".join)


def listed(*names: str) -> str:
    return packed(json.dumps(list(names)).encode("utf-8", "surrogatepass"))


def written(directory: Directory) -> list[str]:
    blob = Blob()
    value = directory.written(blob)
    return Block({"bytes": blob.text()}).names(json.loads(json.dumps(value)))


@given(st.lists(names, unique=True, max_size=12))
def test_every_name_comes_back(some: list[str]) -> None:
    directory = Directory()
    assert directory.places(listed(*some)).tolist() == list(range(len(some)))
    assert written(directory) == [clip(name, LONGEST_NAME) for name in some]


def test_devices_share_names() -> None:
    directory = Directory()
    directory.places(listed("a", "step 1"))
    assert directory.places(listed("step 1", "b", "a")).tolist() == [1, 2, 0]
    assert written(directory) == ["a", "step 1", "b"]


def test_names_that_differ_by_counters_are_one_form() -> None:
    """
    ```
    add, seq = 5, id = 70 | to, id = 71 | add, seq = 6, id = 74    seq: 5 +1    id: 70 +1 +3
    ```
    """
    directory, blob = Directory(), Blob()
    directory.places(listed("add, seq = 5, id = 70", "to, id = 71", "add, seq = 6, id = 74", "to, id = 60"))
    value = directory.written(blob)
    block = Block({"bytes": blob.text()})
    assert json.loads(block.at(value["forms"])) == [["add, seq = \n, id = \n", 0, 1], ["to, id = \n", 1]]  # type: ignore[arg-type]
    assert [block.numbers(list(place), count) for place, count in value["columns"]] == [[10, 2], [140, 2, 6, 27]]  # type: ignore[attr-defined]


@pytest.mark.slow
def test_thousands_of_counted_names_take_little_room() -> None:
    directory, blob = Directory(), Blob()
    directory.places(
        listed(*(f"aten::op_{at % 40}_, seq = {7 * at}, op_id = {10**6 + 11 * at}" for at in range(9_000)))
    )
    directory.written(blob)
    assert len(blob.text()) < 9_000


def test_damage_is_told() -> None:
    with pytest.raises(InputError, match="damaged"):
        Directory().places(packed(b"[no JSON"))
