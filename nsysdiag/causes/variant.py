"""What a cause looks like in detail, as far as it changes what to do: its variants, with their fixes.

A variant is recognised by the label of a slice, by the call or sentence behind it, or by what the launching thread did
just before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nsysdiag.causes.families import Family

AFTER_READ_BACK = "after a read-back"
IN_COLLECTOR, IN_INTERPRETER = "samples in the garbage collector", "samples in the interpreter"


KEEP_ON_DEVICE = (
    "Keep the value on the device: no .item(), .cpu(), float() or print of a tensor in the step; collect on the device and "
    "read every n steps, or copy to pinned memory with non_blocking=True and read it a step later.",
)
"""Advice for read-backs, which block as synchronizations and as copies."""


@dataclass(frozen=True, slots=True)
class Variant:
    """`title` is added to that of the cause, empty for none; `fix` is the short form of `advice` that ends a causal
    chain. `label` and `call` are patterns on a slice's label and text; `hint` is one of the facts above. `family` is the bottleneck to which its time counts,
    None: that of the cause."""

    id: str
    title: str
    fix: str
    advice: tuple[str, ...] = ()
    label: re.Pattern[str] | None = None
    call: re.Pattern[str] | None = None
    hint: str | None = None
    family: Family | None = None

    def matches(self, label: str, call: str, hint: str | None) -> bool:
        """Is this a slice with this label and text (empty: none)?"""
        if self.hint is not None and self.hint != hint:
            return False
        if self.label is not None and not self.label.search(label):
            return False
        return self.call is None or self.call.search(call) is not None


def matching(pattern: str) -> re.Pattern[str]:
    """A pattern for labels or calls, looked for anywhere in them."""
    return re.compile(pattern)
