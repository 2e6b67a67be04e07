"""Runs the steps of an analysis; the steps themselves are independent of threads and memory.

A step is a function named after its result. Its parameters are named after its inputs: results of earlier steps, or
arguments of the stage.

```
steps = Steps()

@steps.step()
def split(device: DeviceTimeline, window: AnalysisWindow) -> WindowSplit: ...

@steps.step(background=True)
def kernels(device: DeviceTimeline, inside: BoolArray, strings: Strings) -> list[KernelRow]: ...
```

Steps run in the order of the source, background steps in a second thread.

A deferred step runs when a later step first needs it. A result is dropped after the last step that needs it, and after
each step spilled arrays leave memory. The steps for the items of a list run item by item. A joined step runs once for
all items, from the list of a step's results:

```
@each_device.joined("signal")
def phases(signals: list[DeviceSignal], first_call: FirstCall) -> Phases: ...
```
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial, wraps
from typing import Any, TypeVar

from msgspec import Struct

from nsysdiag.arrays.background import Background
from nsysdiag.arrays.spill import evict, spill, trim

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])
Progress = Callable[[str, float], None]
"""Takes what is done next, and the share of the work that is done, 0 to 1."""


class Each(Struct, frozen=True):
    """Makes a list: what `steps` make for each element of the list named `of`, which they call `item`."""

    item: str
    of: str
    steps: list[Stage]


class Stage(Struct, frozen=True):
    """Makes `name` out of `needs`. What a step with `spills` makes is large and long needed: its arrays are in files.
    One with `trims` leaves much free memory behind, which goes back to the system. Of one that is `deferred` later
    steps get a function that makes it at its first call. One that `joins` another is made once for all items of a
    list: its first parameter is what that step made for each. `progress` is reported first."""

    name: str
    needs: tuple[str, ...]
    make: Callable[..., Any] | Each
    background: bool = False
    deferred: bool = False
    spills: bool = False
    trims: bool = False
    progress: tuple[str, float] | None = None
    joins: str | None = None


class Stages(list[Stage]):
    """Steps in the order in which they run."""

    def step(
        self,
        *,
        background: bool = False,
        deferred: bool = False,
        spills: bool = False,
        trims: bool = False,
        progress: tuple[str, float] | None = None,
    ) -> Callable[[Function], Function]:
        """Add a function as the next step, and leave it as it is."""

        def added(make: Function) -> Function:
            needs = tuple(inspect.signature(make).parameters)
            self.append(Stage(make.__name__, needs, make, background, deferred, spills, trims, progress))
            return make

        return added

    def joined(self, name: str) -> Callable[[Function], Function]:
        """Add a function as the next step, made once from what the step `name` made for all items of a list."""

        def added(make: Function) -> Function:
            _, *others = inspect.signature(make).parameters

            @wraps(make)
            def called(**values: Any) -> Any:
                return make(values.pop(name), **values)

            self.append(Stage(make.__name__, (name, *others), called, joins=name))
            return make

        return added

    def for_each(self, name: str, item: str, of: str, steps: Stages, goal: Callable[..., Any]) -> None:
        """Add a step that makes the list `name`: the `goal` of other steps for each `item` of the list `of`. These
        steps may need what was made here."""
        inner = steps.leading_to(goal)
        made = {item, *(step.name for step in inner)}
        needs = dict.fromkeys(need for step in inner for need in step.needs if need not in made)
        self.append(Stage(name, (of, *needs), Each(item, of, inner)))

    def leading_to(self, goal: Callable[..., Any]) -> Stages:
        """The steps that `goal`, one of them, cannot do without, and itself last."""
        wanted, found = {goal.__name__}, Stages()
        for step in reversed(self):
            if step.name in wanted:
                wanted.update(step.needs)
                found.append(step)
        found.reverse()
        return found

    def run(self, goal: Callable[..., T], progress: Progress | None = None, **given: Any) -> T:
        """What the step `goal` makes of what is `given`. Raises what any of the steps raises."""
        with Background() as background:
            made: list[T] = _StageRun(background, progress).results(self.leading_to(goal), [given])
        return made[0]


class _StageRun(Struct, frozen=True):
    background: Background
    progress: Progress | None

    def results(self, steps: list[Stage], items: list[dict[str, Any]]) -> list[Any]:
        """What the last step makes for each of the items: the values by name that its steps begin with, used up."""
        last_use = {name: at for at, step in enumerate(steps) for name in step.needs}
        first = 0
        for join in [*(at for at, step in enumerate(steps) if step.joins), len(steps)]:
            for values in items:
                self._run(steps, range(first, join), last_use, values)
            if join < len(steps) and items:
                self._join(steps[join], [self._needs(steps[join], join, last_use, values) for values in items], items)
            first = join + 1
        return [_finished(values[steps[-1].name]) for values in items]

    def _run(self, steps: list[Stage], which: range, last_use: dict[str, int], values: dict[str, Any]) -> None:
        for at in which:
            step = steps[at]
            if step.progress is not None and self.progress is not None:
                self.progress(*step.progress)
            needs = self._needs(step, at, last_use, values)
            if step.background:
                values[step.name] = self.background.begin(self._made, step, needs)
            elif step.deferred:
                values[step.name] = cache(partial(self._made, step, needs))
            else:
                values[step.name] = self._made(step, needs)

    def _needs(self, step: Stage, at: int, last_use: dict[str, int], values: dict[str, Any]) -> dict[str, Any]:
        return {name: values[name] if last_use[name] > at else values.pop(name) for name in step.needs}

    def _join(self, step: Stage, needs: list[dict[str, Any]], items: list[dict[str, Any]]) -> None:
        """What else a joined step needs is the same for all items."""
        name = step.joins or ""
        made = self._made(step, {**needs[-1], name: [_finished(each[name]) for each in needs]})
        for values in items:
            values[step.name] = made

    def _made(self, step: Stage, needs: dict[str, Any]) -> Any:
        if isinstance(step.make, Each):
            each = step.make
            items = _finished(needs.pop(each.of))
            values = [{**needs, each.item: item} for item in items]
            needs.clear()  # the last item uses up what all share
            return self.results(each.steps, values)
        arguments = {name: _finished(value) for name, value in needs.items()}
        needs.clear()  # or what no later step needs would stay until the next one has begun
        made = step.make(**arguments)
        made = spill(made, arguments.values()) if step.spills else made
        del arguments
        trim() if step.trims else evict()
        return made


def _finished(value: Any) -> Any:
    """Waits for what the second thread makes, which begins nothing before it has finished what was begun earlier."""
    return value.result() if isinstance(value, Future) else value
