"""Steps for the items of a list, and steps in which these meet."""

from __future__ import annotations

from nsysdiag.pipeline.stages import Stages

each = Stages()
all_items = Stages()
calls: list[str] = []


@each.step()
def own(item: int, shared: int) -> int:
    calls.append(f"own {item}")
    return item * shared


@each.step(background=True)
def beside(item: int) -> int:
    return -item


@each.joined("own")
def together(own: list[int], shared: int) -> int:
    calls.append(f"together {own}")
    return sum(own) + shared


@each.step()
def end(item: int, own: int, beside: int, together: int) -> tuple[int, int, int, int]:
    calls.append(f"end {item}")
    return item, own, beside, together


all_items.for_each("ends", "item", "items", each, end)


@all_items.step()
def result(ends: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    return ends


def test_items_meet_in_a_joined_step_and_go_on_one_by_one() -> None:
    calls.clear()
    assert all_items.run(result, items=[1, 2, 3], shared=10) == [(1, 10, -1, 70), (2, 20, -2, 70), (3, 30, -3, 70)]
    assert calls == ["own 1", "own 2", "own 3", "together [10, 20, 30]", "end 1", "end 2", "end 3"]


def test_one_item_meets_itself() -> None:
    assert all_items.run(result, items=[4], shared=1) == [(4, 4, -4, 5)]


def test_no_items_make_an_empty_list() -> None:
    calls.clear()
    assert all_items.run(result, items=[], shared=10) == []
    assert calls == []
