"""The ways in which a name is written: whole, short, without counters. All of them are one name.

```
void at::native::vectorized_elementwise_kernel<4, AbsFunctor<float>>(int)
                 vectorized_elementwise_kernel<AbsFunctor<float>, …>       kernel 7<1>
                 vectorized_elementwise_kernel                             kernel 7
train step 12        train step #                                          range 3 #12, range 3
/data/run/loader.py  loader.py                                             file 2
```
"""

from __future__ import annotations

import re

from msgspec import Struct

from nsysdiag.events.collectives import KINDS, OTHER, kind_of
from nsysdiag.events.program_code import file_name
from nsysdiag.gap_groups.keys import normal_range
from nsysdiag.kernels.names import normal_kernel
from nsysdiag.limits import short_name

KERNEL, RANGE, SYMBOL, MODULE = "kernel", "range", "symbol", "module"
THREAD, PROCESS, FILE, NAME = "thread", "process", "file", "name"
GPU = "GPU"
"""The kinds of names, each numbered for itself; `name` is one of unknown kind."""
LONGEST_COUNTER = 6
_COMMUNICATION = re.compile(r"(nccl|rccl|nvshmem)", re.IGNORECASE)
MOST_COUNTERS = 3
"""Epoch, step and micro-batch; four numbers may well be an address."""
_DIGITS = re.compile(r"[0-9]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")


class Form(Struct, frozen=True):
    """`family` is what all ways of writing share, `variant` distinguishes kernels of one template, `exact` what else
    differs; empty where nothing does. `counters` follow the token as they are."""

    family: str
    variant: str = ""
    exact: str = ""
    counters: str = ""
    label: str = ""


def form_of(kind: str, text: str) -> Form:
    """How a name of a kind is written; `label` is what the kind is called. A long name and its short one are one."""
    text = short_name(text)
    if kind == KERNEL:
        normal = normal_kernel(text)
        family = _function(normal)
        return Form(
            family,
            variant="" if normal == family else normal,
            exact="" if text == normal else text,
            label=_communication(text) or KERNEL,
        )
    if kind == RANGE:
        return Form(normal_range(text), counters=_counters(text), label=kind)
    if kind == SYMBOL:
        family = _function(normal_kernel(text))
        return Form(family, exact="" if text == family else text, label=kind)
    if kind in (MODULE, PROCESS, FILE):
        family = file_name(text) or text
        return Form(family, exact="" if text == family else text, label=kind)
    return Form(text, label=kind)


def _function(normal: str) -> str:
    """A normal name without its template arguments."""
    return normal.partition("<")[0].strip() or normal


def _communication(text: str) -> str:
    """`nccl AllReduce`: the class of a kernel that communicates stays; empty for all others."""
    found = _COMMUNICATION.search(text)
    if found is None:
        return ""
    kind = KINDS[kind_of(text)]
    return f"{found[1].lower()} {'kernel' if kind == OTHER else kind}"


def _counters(text: str) -> str:
    """` #12`: the short numbers of a range, by which iterations are distinguished."""
    numbers = [each for each in _DIGITS.findall(_HEX.sub("", text)) if len(each) <= LONGEST_COUNTER]
    counted = normal_range(text) != text and 0 < len(numbers) <= MOST_COUNTERS
    return f" #{'.'.join(numbers)}" if counted else ""
