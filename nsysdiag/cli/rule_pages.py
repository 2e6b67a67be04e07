"""The pages of `nsysdiag rules`: each cause and each rule of findings with all that is known of it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from nsysdiag.bottlenecks import BOTTLENECKS, title_of
from nsysdiag.causes import CAUSES, color_of
from nsysdiag.causes.evidence import setting
from nsysdiag.cli.console import aligned, as_json, markdown
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.findings.rules import FINDING_RULES, sources_of, thresholds_of
from nsysdiag.messages import UsageError
from nsysdiag.programs.facts import TITLES
from nsysdiag.trace.capabilities import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nsysdiag.causes.cause import Advice, Cause, RuleWords, SourceDocument, Variant
    from nsysdiag.causes.evidence import Threshold
    from nsysdiag.findings.rules import FindingRule

SEVERAL = "Findings that are not causes"
LIMITS = "Thresholds of findings"
OPTIONS = {table: kind.recapture for kind in KINDS.values() for table in kind.tables if kind.recapture}
"""The option of nsys that brings a table."""


class RulePage(Struct, frozen=True):
    """A cause, or a rule of findings: those have no place in the order of precedence."""

    order: int | None
    id: str
    title: str
    meaning: str
    words: RuleWords
    tables: tuple[str, ...]
    thresholds: tuple[Threshold, ...]
    sources: tuple[SourceDocument, ...]
    color: str
    side: str = "finding"
    kinds: tuple[Variant, ...] = ()
    unresolved: bool = False
    bottleneck: str | None = None

    @property
    def picture(self) -> str:
        """The timeline, without the line ends around it."""
        return self.words.picture.strip("\n")

    def record(self) -> dict[str, object]:
        """The page as JSON has it."""
        plain = {name: getattr(self, name) for name in self.__struct_fields__ if name not in ("words", "kinds")}
        looks = [{"cause": cause, "difference": text} for cause, text in self.words.confused_with.items()]
        kinds = [
            {"id": kind.id, "title": kind.title, "fix": kind.fix, **_advice_record(self.words.advice_for(kind.id))}
            for kind in self.kinds
        ]
        return {
            **to_builtins(plain),
            **_advice_record(self.words.advice_for()),
            "picture": self.picture,
            "confirm": list(self.words.confirm),
            "confused_with": looks,
            "kinds": kinds,
        }


def _advice_record(advice: Advice) -> dict[str, object]:
    frameworks = {
        framework: {"advice": list(words.sentences), "fix": words.fix or None, "source": words.source}
        for framework, words in advice.others()
    }
    return {"advice": list(advice.plain), "advice_by_framework": frameworks}


def pages() -> list[RulePage]:
    """All causes in the order of precedence, then the rules of findings."""
    causes = [
        _page(
            cause,
            order,
            color_of(cause.id),
            side=cause.side,
            kinds=cause.variants,
            unresolved=cause.unresolved,
            bottleneck=cause.bottleneck,
        )
        for order, cause in enumerate(CAUSES.values(), 1)
    ]
    return causes + [_page(rule, None, BOTTLENECKS[rule.bottleneck].color) for rule in FINDING_RULES.values()]


def _page(rule: Cause | FindingRule, order: int | None, color: str, **of_cause: Any) -> RulePage:
    return RulePage(
        order=order,
        id=rule.id,
        title=rule.title,
        meaning=rule.meaning,
        words=rule.words,
        tables=rule.tables,
        thresholds=thresholds_of(rule.id),
        sources=sources_of(rule.id),
        color=color,
        **of_cause,
    )


def page_of(rule_id: str) -> RulePage:
    """The page of a cause or a rule of findings. Raises UsageError like `known_id`."""
    known_id(rule_id, [*CAUSES, *FINDING_RULES], "rule")
    return next(page for page in pages() if page.id == rule_id)


def known_id(wanted: str, ids: Iterable[str], what: str) -> str:
    """The id itself, if it is one of these. Raises UsageError with the nearest ids, and all of them as the hint."""
    known = list(ids)
    if wanted in known:
        return wanted
    nearest = get_close_matches(wanted, known, n=1) or [each for each in known if wanted in each.split("_")]
    suggestion = f"; did you mean '{nearest[0]}'?" if nearest else ""
    raise UsageError(f"unknown {what} '{wanted}'{suggestion}", hint=f"{what}s: {', '.join(known)}")


def all_text() -> str:
    """Every rule in a line, and what makes something a finding."""
    causes = [(str(page.order), page.id, page.title, ", ".join(page.tables) or "-") for page in pages() if page.order]
    findings = [(page.id, page.title, ", ".join(page.tables)) for page in pages() if not page.order]
    return "\n".join(
        (
            aligned(("order", "id", "title", "tables"), causes),
            f"{SEVERAL}\n" + aligned(("id", "title", "tables"), findings, indent="  "),
            f"{LIMITS}\n" + aligned(("setting", "default", "meaning"), _limits(), indent="  "),
        )
    )


def _limits() -> list[tuple[str, str, str]]:
    every = (setting(name) for name in FindingThresholds.__struct_fields__)
    return [(threshold.name, threshold.value, threshold.meaning) for threshold in every]


def all_markdown() -> str:
    """The same as tables, with what each rule means."""
    causes = [
        (str(page.order), f"`{page.id}`", page.title, page.meaning, _code(page.tables))
        for page in pages()
        if page.order
    ]
    findings = [(f"`{page.id}`", page.title, page.meaning, _code(page.tables)) for page in pages() if not page.order]
    limits = [(f"`{name}`", value, meaning) for name, value, meaning in _limits()]
    return "\n".join(
        (
            markdown(("order", "id", "title", "meaning", "tables"), causes),
            f"{SEVERAL}:\n\n" + markdown(("id", "title", "meaning", "tables"), findings),
            f"{LIMITS}:\n\n" + markdown(("setting", "default", "meaning"), limits),
        )
    )


def all_json() -> str:
    """Every rule as one record."""
    return as_json([page.record() for page in pages()])


def one_text(page: RulePage) -> str:
    """One rule in full."""
    place = f"order {page.order}, side {page.side}" if page.order else "a finding that is not a cause"
    lines = [f"{page.id}: {page.title}", place, "", page.meaning, ""]
    lines += [f"  {line}".rstrip() for line in page.picture.splitlines()]
    lines += ["", "evidence tables", *(f"  {table}" for table in page.tables)]
    lines += [] if page.tables else ["  none: it is what remains"]
    lines += ["", "how to confirm it", *(f"  - {each}" for each in page.words.confirm)] if page.words.confirm else []
    lines += ["", "confused with"] if page.words.confused_with else []
    lines += [f"  - {cause}: {difference}" for cause, difference in page.words.confused_with.items()]
    rows = [(each.name, each.value, each.meaning) for each in page.thresholds]
    lines += ["", "thresholds", *aligned(("name", "default", "meaning"), rows, indent="  ").splitlines()]
    lines += ["", "advice", *_listed(page.words.advice_for(), "  ")]
    titled = [kind for kind in page.kinds if kind.title]
    lines += ["", "kinds, each with its fix"] if titled else []
    for kind in titled:
        lines += [f"  - {kind.title}: {kind.fix}", *_listed(page.words.advice_for(kind.id), "      ")]
    lines += ["", "sources", *(f"  - {source}" + (f" <{source.url}>" if source.url else "") for source in page.sources)]
    return "\n".join(lines) + "\n"


def one_markdown(page: RulePage) -> str:
    """One rule in full, under a heading, each part under one below it."""
    parts = [f"## `{page.id}`: {page.title}", page.meaning, *_place(page)]
    parts += ["### On the timeline", f"```text\n{page.picture}\n```"]
    parts += ["### How to confirm it", _bullets(page.words.confirm)] if page.words.confirm else []
    advice = page.words.advice_for()
    parts += ["### What to do", *_advice(advice)] if advice else []
    for kind in (each for each in page.kinds if each.title):
        parts += [f"### Variant: {kind.title}", f"In short: {kind.fix}.", *_advice(page.words.advice_for(kind.id))]
    looks = [f"`{cause}` ({CAUSES[cause].title}): {text}" for cause, text in page.words.confused_with.items()]
    parts += ["### What it is confused with", _bullets(looks)] if looks else []
    tables = [f"`{table}`" + (f" (`{OPTIONS[table]}`)" if table in OPTIONS else "") for table in page.tables]
    parts += ["### Evidence and thresholds"]
    parts += ["Tables of the export, and the nsys options that record them:", _bullets(tables)] if tables else []
    parts += [
        markdown(("threshold", "default", "meaning"), [(f"`{t.name}`", t.value, t.meaning) for t in page.thresholds])
    ]
    sources = [f"[{source}]({source.url})" if source.url else str(source) for source in page.sources]
    return "\n\n".join([*(part.rstrip("\n") for part in parts), "### Sources", _bullets(sources)]) + "\n"


def _place(page: RulePage) -> list[str]:
    """Where it belongs, in a sentence."""
    if page.order is None:
        return ["A finding that is not a cause."]
    counts = f"Its time is charged to the bottleneck *{title_of(page.bottleneck or 'unknown')}*"
    varies = " unless a variant says otherwise" if any(kind.bottleneck for kind in page.kinds) else ""
    return [f"{counts}{varies}. It is number {page.order} in the order of precedence."]


def _advice(advice: Advice) -> list[str]:
    """The plain sentences, then those of each framework under its name."""
    parts = [_bullets(advice.plain)] if advice.plain else []
    for framework, words in advice.others():
        parts += [f"**{TITLES[framework]}**", _bullets(words.sentences)]
    return parts


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"* {sentence}" for sentence in sentences)


def _listed(advice: Advice, indent: str) -> list[str]:
    """The plain sentences, then those of each framework under its name."""
    lines = [f"{indent}- {sentence}" for sentence in advice.plain]
    for framework, words in advice.others():
        lines += [f"{indent}{TITLES[framework]}", *(f"{indent}  - {sentence}" for sentence in words.sentences)]
    return lines


def _code(tables: tuple[str, ...]) -> str:
    return ", ".join(f"`{table}`" for table in tables) or "none"


def one_json(page: RulePage) -> str:
    """One rule as its record."""
    return as_json(page.record())


PRINTED: dict[str, tuple[Callable[[], str], Callable[[RulePage], str]]] = {
    "text": (all_text, one_text),
    "md": (all_markdown, one_markdown),
    "json": (all_json, one_json),
}
"""What shows all rules, and what one of them, by format."""
