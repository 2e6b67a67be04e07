"""What to do about something: one text for programs of plain CUDA, and others for the frameworks in which it differs.

```
Advice(
    plain=("Copy from pinned memory with cudaMemcpyAsync.",),
    pytorch=Words(("DataLoader(pin_memory=True), and .to(device, non_blocking=True).",), source="pinned_memory"),
)
```

The text of the first framework that has one replaces the plain one, in the order of `programs.facts.FRAMEWORKS`. Plain
texts speak of CUDA calls, C and C++, and of no framework.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from nsysdiag.programs.facts import FRAMEWORKS, FrameworkId


class Words(Struct, frozen=True):
    """The advice for one framework: sentences, the key of their source (see SOURCES), and the short form that ends a
    causal chain, empty to use the plain one."""

    sentences: tuple[str, ...]
    source: str
    fix: str = ""


class Advice(Struct, frozen=True):
    """Sentences by framework; `plain` are those of all others. Where it is empty, no advice is given."""

    plain: tuple[str, ...] = ()
    pytorch: Words | None = None
    jax: Words | None = None
    tensorflow: Words | None = None
    cupy: Words | None = None
    openacc: Words | None = None
    openmp_target: Words | None = None
    julia: Words | None = None
    mpi: Words | None = None

    def words(self, frameworks: Iterable[str]) -> Words | None:
        """The text of the first of these frameworks that has one, in the order of FRAMEWORKS; None: the plain one."""
        wanted = set(frameworks)
        return next((words for framework, words in self.others() if framework in wanted), None)

    def sentences(self, frameworks: Iterable[str]) -> tuple[str, ...]:
        """The advice for a program that uses these frameworks."""
        words = self.words(frameworks)
        return self.plain if words is None else words.sentences

    def others(self) -> Iterator[tuple[FrameworkId, Words]]:
        """The frameworks with a text of their own, in the order of FRAMEWORKS."""
        for framework in FRAMEWORKS:
            words = getattr(self, framework.replace("-", "_"), None)
            if words is not None:
                yield framework, words

    def __bool__(self) -> bool:
        return bool(self.plain)


PLAIN = Advice()
"""Nothing of its own."""
