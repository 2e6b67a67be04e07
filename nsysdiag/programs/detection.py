"""Which frameworks a program uses, by names alone: a pure function."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from nsysdiag import typed
from nsysdiag.fields import Text
from nsysdiag.programs.facts import FRAMEWORKS, TITLES, Framework
from nsysdiag.programs.rules import COMPILED_BY_XLA, MADE_WITH, RULES, Rule


class Names(Struct, frozen=True):
    """Distinct names in a trace, in any order: whole kernel names, NVTX ranges and domains, file names of modules in
    call chains, programs, threads, and tables with rows."""

    kernels: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


class _Kind(Struct, frozen=True):
    """A kind of name: the field of `Names`, that of `Rule`, and how the evidence is worded."""

    names: str
    rule: str
    words: Callable[[str], str]


_KINDS = (
    _Kind("kernels", "kernel", lambda name: f"kernel {typed.kernel(name)}"),
    _Kind("ranges", "range", lambda name: f"NVTX range {typed.nvtx(name)}"),
    _Kind("domains", "domain", lambda name: f"NVTX domain {typed.nvtx(name)}"),
    _Kind("modules", "module", lambda name: f"library {typed.name(Text.MODULE, name)} in call chains"),
    _Kind("processes", "process", lambda name: f"process {typed.process(name)}"),
    _Kind("threads", "process", lambda name: f"thread {typed.thread(name)}"),
    _Kind("tables", "table", lambda name: f"rows in {name}"),
)


def frameworks_of(names: Names) -> list[Framework]:
    """The frameworks that the names tell, in the order of FRAMEWORKS; none for plain CUDA."""
    found = {framework: _evidence(rule, names) for framework, rule in RULES.items()}
    if found["tensorflow"] and all(each.startswith("kernel ") for each in found[COMPILED_BY_XLA]):
        found[COMPILED_BY_XLA] = []
    for framework, basis in MADE_WITH.items():
        if found[framework] and not found[basis]:
            found[basis] = [f"{TITLES[framework]} is made with it"]
    return [Framework(id=each, evidence=found[each]) for each in FRAMEWORKS if found[each]]


def ids_of(found: Iterable[Framework]) -> list[str]:
    """Their ids, in the same order."""
    return [each.id for each in found]


def _evidence(rule: Rule, names: Names) -> list[str]:
    """A sentence for each kind of name that tells, with the first name that does, by the alphabet."""
    said = []
    for kind in _KINDS:
        pattern = getattr(rule, kind.rule)
        every: tuple[str, ...] = getattr(names, kind.names)
        telling = min(filter(pattern.search, every), default=None) if pattern is not None else None
        said += [] if telling is None else [kind.words(telling)]
    return said
