"""Variants of a cause that need different fixes.

A variant is recognised by the label of a slice, by its call or evidence text, or by what the launching thread did just
before.
"""

from __future__ import annotations

import re

from msgspec import Struct

from nsysdiag.causes.advice import PLAIN, Advice, Words
from nsysdiag.causes.families import Family

AFTER_READ_BACK = "after a read-back"
IN_COLLECTOR, IN_INTERPRETER = "samples in the garbage collector", "samples in the interpreter"


KEEP_ON_DEVICE = Advice(
    plain=(
        "Keep the value on the device and let a kernel use it there. Where the host needs it, copy it to pinned memory "
        "with cudaMemcpyAsync. Read it a step later, or only every n steps.",
    ),
    pytorch=Words(
        (
            "Keep the value on the device: no .item(), .cpu(), float() or print of a tensor in the step. Collect on "
            "the device and read every n steps. Or copy to pinned memory with non_blocking=True and read it a step "
            "later.",
        ),
        source="tuning_guide",
    ),
    jax=Words(
        (
            "Keep the value a jax.Array: no float(), .item(), numpy.asarray or print of it in the step. Call "
            "copy_to_host_async() and read it a step later, or read every n steps.",
        ),
        source="jax_async",
    ),
    tensorflow=Words(
        (
            "Keep the value a tensor inside the tf.function: no .numpy(), float() or print of it in the step. Collect "
            "in a tf.Variable or a metric, and read every n steps.",
        ),
        source="tf_gpu",
    ),
    cupy=Words(
        (
            "Keep the value a CuPy array: no float(), .get(), .item() or print of it in the step. Copy into pinned "
            "memory (cupyx.empty_pinned) on a stream and read it a step later, or read every n steps.",
        ),
        source="cupy_memory",
    ),
    openacc=Words(
        (
            "Keep the value on the device (data region, declare create), or fetch it with update self(...) async and "
            "wait for it a step later. A reduction variable that the host reads is copied back after each loop.",
        ),
        source="openacc",
    ),
    openmp_target=Words(
        (
            "Keep the value on the device (target data, declare target), or fetch it with target update from(...) "
            "nowait and wait for it a step later. A reduction variable that the host reads is copied back after "
            "each construct.",
        ),
        source="openmp",
    ),
    julia=Words(
        (
            "Keep the value in a CuArray: no scalar indexing, sum(...) to a number or println of it in the step. "
            "Read it every n steps.",
        ),
        source="julia",
    ),
)
"""Advice for read-backs, which block as synchronizations and as copies."""


class Variant(Struct, frozen=True):
    """`title` is added to that of the cause, empty for none. `fix` is the short form of the plain `advice`, which ends
    a causal chain; without `advice`, that of the cause is used. `label` and `call` are patterns on a slice's label and
    text; `hint` is one of the facts above. `family` is the bottleneck of its time; None means that of the cause."""

    id: str
    title: str
    fix: str
    advice: Advice = PLAIN
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
