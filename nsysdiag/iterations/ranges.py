"""Names of ranges: what they are without their counters, and which count the parts of a model."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from nsysdiag.arrays.intervals import BoolArray, IntArray
from nsysdiag.events.nvtx import NvtxRanges
from nsysdiag.pseudonyms import pseudonym

_COUNTER = re.compile(r"\d+")
# What frameworks write around every operator: one may well be as long as a step, and is none.
OPERATOR = re.compile(r"(aten|autograd|c10d?|torch|prims)::|.*, (seq|op_id|sizes) = ")
_DETAILS = re.compile(r", (seq|op_id|sizes) = .*")
_STEP = re.compile(
    r"(?<![a-z])(step|iter|iters|iteration|epoch|batch|minibatch|frame|token|sample|request|query|cycle)s?\W*\d"
)
_PART = r"(layer|block|resblock|module|feature|expert|head|model|net|backbone|encoder|decoder|transformer)s?"
# blocks.3, layers[12], layer_12, Layer 12, (h.3.attn), encoder.layers.0
_MODULE = re.compile(
    rf"(?<![a-z]){_PART}[ _.\[-]?\d+|(?<![a-z])h\.\d+|[a-z_]\w*\.[a-z_]\w*\.\d+(?!\w)|[a-z_]\w*\.\d+\.[a-z_]"
)


_WHOLE_STEP = re.compile(r"(?<![a-z])(step|iter|iteration|epoch|frame|request)s?(?![a-z])")
_PART_OF_STEP = re.compile(r"micro|mini|sub|inner|accum|layer|block|sweep|solve|stage|forward|backward|optimi|loss")


def is_step(name: str) -> bool:
    """Whether a range is called a whole step: `train_step #`, no `micro_step #`, no `optimizer.step`."""
    lower = name.lower()
    return _WHOLE_STEP.search(lower) is not None and _PART_OF_STEP.search(lower) is None


class Kinds(Struct, frozen=True):
    """For each name of a range: the code of the name without its counters, and whether it is that of an operator.
    `part` is the code of the name with its counters where these number parts of a model, else -1."""

    code: IntArray
    operator: BoolArray
    part: IntArray
    words: list[str]
    parts: list[str]

    @classmethod
    def of(cls, ranges: NvtxRanges) -> Kinds:
        """The kinds of the names of `ranges`."""
        words: dict[str, int] = {}
        code = [words.setdefault(pseudonym(name) or _COUNTER.sub("#", name), len(words)) for name in ranges.names]
        operator = np.array([OPERATOR.match(word) is not None for word in words], dtype=np.bool_)
        modules = np.array([_numbers(word) for word in words], dtype=np.bool_)
        codes = np.array(code, dtype=np.int64)
        parts: dict[str, int] = {}
        part = [
            parts.setdefault(_DETAILS.sub("", name), len(parts)) if modules[at] else -1
            for at, name in zip(code, ranges.names, strict=True)
        ]
        numbered = np.array(part, dtype=np.int64)
        return cls(codes, operator[codes] & (numbered < 0), numbered, list(words), list(parts))


def _numbers(word: str) -> bool:
    """Whether the first counter of a name, `#`, is that of a part of a model: `blocks.#`, `layer_#`."""
    name = word.replace("#", "0").lower()
    return _MODULE.search(name) is not None and _STEP.search(name) is None
