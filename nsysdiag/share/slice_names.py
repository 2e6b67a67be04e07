"""Pseudonyms for the names in a slice: those of the report, with the words that rules of the analysis need.

```
in the trace                  in the report     in the slice
pt_data_worker                thread 4          thread·4·data_loader      waits for it are waits for input
/opt/venv/lib/libsolver.so    module 2          /lib/module·2             installed: not the program's own code
aten::copy_, seq = 12         range 3 #12       torch::range·3 #12        an operator is not an iteration
```

The words come from this file, never from the trace. Each is needed by a rule, and the same rule checks that the
pseudonym gives the same result as the name.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Hashable

from msgspec import Struct

from nsysdiag.config.settings import Settings
from nsysdiag.events.callchains import file_name, has_name, name_of, origin_of, origin_of_python
from nsysdiag.events.calls import clean_api_name
from nsysdiag.events.identity import is_of_nsys
from nsysdiag.events.nvtx import COMMUNICATION_DOMAIN, GIL_DOMAIN, MPI_DOMAIN, PYTHON_DOMAIN
from nsysdiag.iterations.named import OPERATOR
from nsysdiag.kernels.names import is_single_precision
from nsysdiag.names import MARK
from nsysdiag.share import names as forms
from nsysdiag.share.names import (
    Names,
    is_bus_address,
    is_class_of_operation,
    is_public_call,
    is_public_chip,
    is_public_enumeration,
    is_public_function,
    is_public_gpu,
    is_public_metric,
    is_public_module,
    is_public_symbol,
    is_public_version,
)
from nsysdiag.share.target import Role
from nsysdiag.trace.capabilities import tells_of_loss
from nsysdiag.wakeups.loaders import NAMES as OF_LOADERS

DOMAINS = frozenset((COMMUNICATION_DOMAIN, MPI_DOMAIN, GIL_DOMAIN, PYTHON_DOMAIN))
"""NVTX domains that mean something to the analysis."""
LOST, WITHHELD = "lost: (withheld)", "(withheld)"
LOADER, SINGLE_GEMM = f"{MARK}data_loader", f"{MARK}sgemm"
_LISTED = {
    Role.ADDRESS: is_bus_address,
    Role.VERSION: is_public_version,
    Role.ENUMERATION: is_public_enumeration,
    Role.CHIP: is_public_chip,
}
"""What is left empty if it is none of the public ones."""
_COMMUNICATION = tuple(Settings().communication_patterns)


def _of_loader(text: str) -> bool:
    return OF_LOADERS.search(text) is not None


class _NameRule(Struct, frozen=True):
    """What becomes of names in a role: pseudonyms of a `kind`, but for those that `stays` knows. The report keeps these
    too, or a rule of the analysis compares them as a whole.

    `read` is what the rules of the analysis read out of a name. One of `wraps` is put around the pseudonym so that they
    read the same: the first that does."""

    kind: str
    stays: Callable[[str], bool] = lambda _text: False
    read: Callable[[str], Hashable] | None = None
    wraps: tuple[str, ...] = ("{}",)


_RULES = {
    Role.API: _NameRule(forms.SYMBOL, is_public_call, lambda text: text.startswith("CUPTI"), ("{}", "CUPTI {}")),
    Role.CALL: _NameRule(forms.SYMBOL, is_public_function),
    Role.GPU: _NameRule(forms.GPU, is_public_gpu),
    Role.METRIC: _NameRule("metric", is_public_metric),
    Role.METRICS: _NameRule("metric"),
    Role.KERNEL: _NameRule(forms.KERNEL, is_class_of_operation, is_single_precision),
    Role.SHORT_KERNEL: _NameRule(
        forms.KERNEL,
        is_class_of_operation,
        lambda text: text.lower().startswith(_COMMUNICATION),
        ("{}", f"nccl{MARK}{{}}", f"kernel{MARK}{{}}"),
    ),
    Role.RANGE: _NameRule(
        forms.RANGE,
        is_public_function,
        lambda text: (OPERATOR.match(text) is not None, _of_loader(text)),
        ("{}", "torch::{}"),
    ),
    Role.DOMAIN: _NameRule("domain", DOMAINS.__contains__),
    Role.SYMBOL: _NameRule(
        forms.SYMBOL,
        is_public_symbol,
        lambda text: (has_name(text), origin_of(text, "program"), _of_loader(text)),
        ("{}", "std::{}", "Py_{}", "gc_{}", "[{}]"),
    ),
    Role.MODULE: _NameRule(
        forms.MODULE,
        is_public_module,
        lambda text: (origin_of("", text), _of_loader(text)),
        ("{}", "/lib/{}", "libpython-{}", "{}.ko", "[{}]"),
    ),
    Role.PYTHON_FUNCTION: _NameRule(forms.SYMBOL, is_public_symbol),
    Role.PYTHON_FILE: _NameRule(forms.MODULE, is_public_module, origin_of_python, ("{}", "/site-packages/{}")),
    Role.THREAD: _NameRule(
        forms.THREAD, read=lambda text: (is_of_nsys(text), _of_loader(text)), wraps=("{}", "[NSys {}]")
    ),
    Role.PROCESS: _NameRule(forms.PROCESS),
    Role.FILE: _NameRule(forms.FILE),
    Role.MEMORY: _NameRule(forms.NAME),
}
_PATHS = (Role.MODULE, Role.PYTHON_FILE, Role.PROCESS)
"""The report shows their last part."""


class SliceNames:
    """Names of a slice by those of its report, which must have been redacted with the same `names` before."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._done: dict[tuple[Role, str], str] = {}

    def of(self, role: Role, text: str) -> str:
        """What a name becomes."""
        if (role, text) not in self._done:
            self._done[role, text] = self._of(role, text)
        return self._done[role, text]

    def _of(self, role: Role, text: str) -> str:
        if role is Role.OWN or not text:
            return text
        if listed := _LISTED.get(role):
            return text if listed(text) else ""
        if role is Role.MESSAGE:
            return LOST if tells_of_loss(text) else WITHHELD
        known = html.unescape(text) if role in (Role.PYTHON_FUNCTION, Role.PYTHON_FILE) else text
        shown = _shown(role, known)
        if _RULES[role].stays(shown):
            return text if role is Role.PYTHON_FUNCTION else _telling(role, known, shown)
        # `range 3 #12`: with the mark, and the counters apart.
        token, hash_sign, counters = self._names.of(_RULES[role].kind, shown).partition(" #")
        return _telling(role, known, token.replace(" ", MARK)) + hash_sign + counters


def _shown(role: Role, text: str) -> str:
    """How the report writes a name."""
    if role in _PATHS:
        return file_name(text)
    if role is Role.API:
        return text if is_public_call(text) else clean_api_name(text)
    return name_of(text) or text if role is Role.SYMBOL else text


def _telling(role: Role, text: str, head: str) -> str:
    """The pseudonym with what the rules read in the name."""
    read, wraps = _RULES[role].read, _RULES[role].wraps
    if read is None:
        return head
    wanted = read(text)
    words = ("", SINGLE_GEMM if role is Role.KERNEL else LOADER)
    possible = (wrap.format(head + word) for word in words for wrap in wraps)
    return next((each for each in possible if read(each) == wanted), head)
