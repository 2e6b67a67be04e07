"""Pseudonyms for the names in a slice: those of the report, with the words that rules of the analysis need.

```
in the trace                  in the report     in the slice
pt_data_worker                thread 4          thread·4·data_loader      waits for it are waits for input
/opt/venv/lib/libsolver.so    module 2          /lib/module·2             installed: not the program's own code
aten::copy_, seq = 12         range 3 #12       torch::range·3 #12        an operator is no iteration
```

The words come from this file, never from the trace. Each is needed by a rule, and the same rule checks that the
pseudonym gives the same result as the name.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Hashable

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
from nsysdiag.share.slice.sql import Role
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
"""What is left empty where it is none of the public ones."""
_COMMUNICATION = tuple(Settings().communication_patterns)
_WRAPS = {
    Role.API: ("{}", "CUPTI {}"),
    Role.KERNEL: ("{}",),
    Role.SHORT_KERNEL: ("{}", f"nccl{MARK}{{}}", f"kernel{MARK}{{}}"),
    Role.RANGE: ("{}", "torch::{}"),
    Role.SYMBOL: ("{}", "std::{}", "Py_{}", "gc_{}", "[{}]"),
    Role.MODULE: ("{}", "/lib/{}", "libpython-{}", "{}.ko", "[{}]"),
    Role.PYTHON_FILE: ("{}", "/site-packages/{}"),
    Role.THREAD: ("{}", "[NSys {}]"),
}
"""What is put around a pseudonym so that the rules see what they saw; the first that does is taken."""


def _of_loader(text: str) -> bool:
    return OF_LOADERS.search(text) is not None


_READ: dict[Role, Callable[[str], Hashable]] = {
    Role.API: lambda text: text.startswith("CUPTI"),
    Role.KERNEL: is_single_precision,
    Role.SHORT_KERNEL: lambda text: text.lower().startswith(_COMMUNICATION),
    Role.RANGE: lambda text: (OPERATOR.match(text) is not None, _of_loader(text)),
    Role.SYMBOL: lambda text: (has_name(text), origin_of(text, "program"), _of_loader(text)),
    Role.MODULE: lambda text: (origin_of("", text), _of_loader(text)),
    Role.PYTHON_FILE: origin_of_python,
    Role.THREAD: lambda text: (is_of_nsys(text), _of_loader(text)),
}
"""What the rules of the analysis read out of a name."""
_KINDS = {
    Role.API: forms.SYMBOL,
    Role.CALL: forms.SYMBOL,
    Role.GPU: forms.GPU,
    Role.METRIC: "metric",
    Role.METRICS: "metric",
    Role.KERNEL: forms.KERNEL,
    Role.SHORT_KERNEL: forms.KERNEL,
    Role.RANGE: forms.RANGE,
    Role.DOMAIN: "domain",
    Role.SYMBOL: forms.SYMBOL,
    Role.MODULE: forms.MODULE,
    Role.PYTHON_FUNCTION: forms.SYMBOL,
    Role.PYTHON_FILE: forms.MODULE,
    Role.THREAD: forms.THREAD,
    Role.PROCESS: forms.PROCESS,
    Role.FILE: forms.FILE,
    Role.MEMORY: forms.NAME,
}
_STAYS: dict[Role, Callable[[str], bool]] = {
    Role.DOMAIN: lambda text: text in DOMAINS,
    Role.API: is_public_call,
    Role.CALL: is_public_function,
    Role.RANGE: is_public_function,
    Role.SYMBOL: is_public_symbol,
    Role.PYTHON_FUNCTION: is_public_symbol,
    Role.GPU: is_public_gpu,
    Role.METRIC: is_public_metric,
    Role.KERNEL: is_class_of_operation,
    Role.SHORT_KERNEL: is_class_of_operation,
    Role.MODULE: is_public_module,
    Role.PYTHON_FILE: is_public_module,
}
"""Names that the report keeps too, or that a rule of the analysis compares as a whole."""
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
        stays = _STAYS.get(role)
        if stays and stays(shown):
            return text if role is Role.PYTHON_FUNCTION else _telling(role, known, shown)
        # `range 3 #12`: with the mark, and the counters apart.
        token, hash_sign, counters = self._names.of(_KINDS[role], shown).partition(" #")
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
    read = _READ.get(role)
    if read is None:
        return head
    wanted = read(text)
    words = ("", SINGLE_GEMM if role is Role.KERNEL else LOADER)
    possible = (wrap.format(head + word) for word in words for wrap in _WRAPS[role])
    return next((each for each in possible if read(each) == wanted), head)
