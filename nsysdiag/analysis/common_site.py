"""What many call stacks have in common. Python functions are the same whatever line they have come to."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TypeVar

from nsysdiag.activity.callchains import Frame, Stack
from nsysdiag.model import CallSite, CodeFrame, CodeShare

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
    known = [(source, stack) for source, stack in stacks if stack.own == own]
    told = [(source, _places(stack.frames)) for source, stack in known]
    counts = Counter(place for _, places in told for place in places)
    depth = Counter(dict.fromkeys(counts, 0))
    for _, places in told:
        depth.update(places)
    common = [place for place, count in counts.items() if 2 * count >= len(told)]
    frames = min(
        common or counts,
        key=lambda place: (0 if common else -counts[place], depth[place] / counts[place], -counts[place], repr(place)),
    )
    sources = Counter(source for source, places in told if frames in places)
    seen = Counter(
        stack.frames[places[frames] : places[frames] + MOST_FRAMES]
        for (_, stack), (_, places) in zip(known, told, strict=True)
        if frames in places
    )
    return CallSite(
        frames=[_frame(frame) for frame in _commonest(seen)],
        source=_commonest(sources),
        chains=counts[frames],
        of=len(stacks),
        own=own,
        launch=launch,
    )


def _places(frames: tuple[Frame, ...]) -> dict[tuple[Frame, ...], int]:
    """Every place on a stack, a function with its callers, and how far from the innermost it is first met."""
    functions = tuple(replace(frame, line=None) if frame.python else frame for frame in frames)
    return {functions[at : at + MOST_FRAMES]: at for at in reversed(range(len(functions)))}


def _commonest(counts: Counter[T]) -> T:
    return min(counts, key=lambda each: (-counts[each], repr(each)))


def _frame(frame: Frame) -> CodeFrame:
    return CodeFrame(symbol=frame.symbol, module=frame.module, python=frame.python, line=frame.line)


def leaf_shares(stacks: list[Stack]) -> list[CodeShare]:
    """The innermost functions by their share of the samples; one without a name goes by its module."""
    counts = Counter((stack.leaf.symbol or stack.leaf.module, str(stack.leaf.origin)) for stack in stacks)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMES]
    return [
        CodeShare(symbol=symbol, kind=kind, share=round(count / len(stacks), 4)) for (symbol, kind), count in ranked
    ]
