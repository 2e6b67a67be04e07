"""The steps of the analysis fit together: each gets what it names, of the type that it says; none is useless."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from nsysdiag.config.settings import Settings
from nsysdiag.pipeline import device
from nsysdiag.pipeline import trace as trace_steps
from nsysdiag.pipeline.stages import Each, Stage, Stages
from nsysdiag.trace.trace import Trace

GIVEN = {"trace": Trace, "settings": Settings}


def wired(steps: list[Stage], given: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The type of everything that is given or made, by name, and what is wrong with it."""
    types, wrong = dict(given), []
    for step in steps:
        needs = dict(get_type_hints(inspect.unwrap(step.make))) if callable(step.make) else {}
        made = needs.pop("return", None)
        if step.joins:
            first = next(iter(needs))
            needs = {step.joins: needs.pop(first), **needs}
        if isinstance(step.make, Each):
            items, needs = types.get(step.make.of), {}
            if get_origin(items) is not list:
                wrong.append(f"{step.name} is made for each of {step.make.of}, which is no list")
                continue
            inner, inside = wired(step.make.steps, types | {step.make.item: get_args(items)[0]})
            wrong += inside
            made = list[inner[step.make.steps[-1].name]]  # type: ignore[misc]
        for name in step.needs:
            if name not in types:
                wrong.append(f"{step.name} needs {name}, which nothing makes before it")
            elif name in needs and needs[name] != (list[types[name]] if name == step.joins else types[name]):
                wrong.append(f"{step.name} takes {name} for {needs[name]}, and it is {types[name]}")
        if step.deferred:
            made = Callable[[], made]
        if step.name in types:
            wrong.append(f"{step.name} is made twice")
        types[step.name] = made
    return types, wrong


def unused(steps: Stages, *goals: Callable[..., Any]) -> set[str]:
    """The steps that lead to none of the goals."""
    return {step.name for step in steps} - {step.name for goal in goals for step in steps.leading_to(goal)}


def test_every_step_gets_what_it_names() -> None:
    types, wrong = wired(trace_steps.steps, GIVEN)
    assert wrong == []
    assert len(types) > 30


def test_no_step_is_for_nothing() -> None:
    assert unused(trace_steps.steps, trace_steps.report, trace_steps.trace_result) == set()
    assert unused(device.steps, device.result) == set()


def test_ranks_need_neither_the_host_nor_the_timeline() -> None:
    done = {step.name for step in trace_steps.steps.leading_to(trace_steps.trace_result)}
    assert "results" in done
    assert done.isdisjoint({"host_report", "timeline", "report"})


class TestWhatIsFound:
    """A wrong wiring is seen by these tests."""

    @staticmethod
    def steps() -> Stages:
        steps = Stages()

        @steps.step()
        def number(text: str) -> int:
            return int(text)

        return steps

    def test_a_name_that_is_misspelt_or_made_later(self) -> None:
        steps = self.steps()

        @steps.step()
        def early(nmber: int, late: int) -> int:
            return nmber + late

        @steps.step()
        def late(number: int) -> int:
            return number

        assert wired(steps, {"text": str})[1] == [
            "early needs nmber, which nothing makes before it",
            "early needs late, which nothing makes before it",
        ]
        assert unused(steps, late) == {"early"}

    def test_another_type(self) -> None:
        steps = self.steps()

        @steps.step()
        def longer(number: int | None) -> int:
            return number or 0

        (error,) = wired(steps, {"text": str})[1]
        assert error.startswith("longer takes number for int | None")

    def test_a_name_twice(self) -> None:
        steps = self.steps()
        steps.append(steps[0])
        assert wired(steps, {"text": str})[1] == ["number is made twice"]

    def test_what_is_deferred_is_no_result_but_makes_one(self) -> None:
        steps = self.steps()

        @steps.step(deferred=True)
        def later(number: int) -> int:
            return number

        @steps.step()
        def called(later: Callable[[], int]) -> int:
            return later()

        @steps.step()
        def taken(later: int) -> int:
            return later

        (error,) = wired(steps, {"text": str})[1]
        assert error.startswith("taken takes later for <class 'int'>")

    def test_a_joined_step_takes_a_list(self) -> None:
        steps = self.steps()

        @steps.joined("number")
        def total(numbers: list[int], text: str) -> int:
            return sum(numbers) + len(text)

        @steps.joined("number")
        def one(number: int) -> int:
            return number

        types, (error,) = wired(steps, {"text": str})
        assert error.startswith("one takes number for <class 'int'>")
        assert types["total"] is int

    @pytest.mark.parametrize(("items", "wrong"), [(list[str], 0), (list[int], 1), (str, 1)])
    def test_items_of_another_type(self, items: Any, wrong: int) -> None:
        outer, inner = Stages(), self.steps()
        outer.for_each("numbers", "text", "texts", inner, inner[0].make)  # type: ignore[arg-type]
        assert len(wired(outer, {"texts": items})[1]) == wrong
