"""What many call stacks have in common. Python functions are the same whatever line they have come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from nsysdiag.events.callchains import Frame, Stack
from nsysdiag.report import CallSite, CodeFrame, CodeShare

MOST_FRAMES = 3
MOST_NAMES = 5
T = TypeVar("T")


def common_site(stacks: list[tuple[str, Stack]], launch: bool) -> CallSite:
    """The innermost place that half the stacks with code of the program's own have in common, else the commonest.

    ```
    stacks  norm  update  train  main        place  update  train  main
            pack  update  train  main
            pack  update  train  main
                          train  main
    ```
    """
    own = any(stack.own for _, stack in stacks)
    known = [(source, stack.frames) for source, stack in stacks if stack.own == own]
    functions = _Functions()
    places = [functions.places(frames) for _, frames in known]
    counts = Counter(place for each in places for place in each)
    depth = Counter(dict.fromkeys(counts, 0))
    for each in places:
        depth.update(each)
    common = [place for place, count in counts.items() if 2 * count >= len(places)]
    scores = {
        each: (0 if common else -counts[each], depth[each] / counts[each], -counts[each]) for each in common or counts
    }
    leading = min(scores.values())
    best = min((each for each, score in scores.items() if score == leading), key=functions.names)
    through = [(*each, at[best]) for each, at in zip(known, places, strict=True) if best in at]
    shown = _commonest(frames[at : at + MOST_FRAMES] for _, frames, at in through)
    return CallSite(
        frames=[
            CodeFrame(symbol=each.symbol, module=each.module, python=each.python, line=each.line) for each in shown
        ],
        source=_commonest(source for source, _, _ in through),
        chains=len(through),
        of=len(stacks),
        own=own,
        launch=launch,
    )


class _Functions:
    """Numbers for functions: comparing places by numbers is many times faster than by names."""

    def __init__(self) -> None:
        self._number: dict[Frame, int] = {}

    def places(self, frames: tuple[Frame, ...]) -> dict[tuple[int, ...], int]:
        """Every place on a stack, a function with its callers, and how far from the innermost it is first met."""
        codes = tuple(map(self._code, frames))
        return {codes[at : at + MOST_FRAMES]: at for at in reversed(range(len(codes)))}

    def names(self, place: tuple[int, ...]) -> list[tuple[str, str]]:
        """The functions of a place and their modules, by which ties are settled whatever the order of the stacks."""
        functions = list(self._number)
        return [(functions[each].symbol, functions[each].module) for each in place]

    def _code(self, frame: Frame) -> int:
        function = replace(frame, line=None) if frame.line is not None else frame
        return self._number.setdefault(function, len(self._number))


def _commonest(values: Iterable[T]) -> T:
    counts = Counter(values)
    return min(counts, key=lambda each: (-counts[each], repr(each)))


def leaf_shares(stacks: list[Stack]) -> list[CodeShare]:
    """The innermost functions by their share of the samples; one without a name has the name of its module."""
    counts = Counter((stack.leaf.symbol or stack.leaf.module, str(stack.leaf.origin)) for stack in stacks)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMES]
    return [
        CodeShare(symbol=symbol, kind=kind, share=round(count / len(stacks), 4)) for (symbol, kind), count in ranked
    ]
