"""Every cause and every rule of findings has a page, made of its record, with all that is asked of one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from nsysdiag.causes import CAUSES, color_of
from nsysdiag.causes.cause import Cause
from nsysdiag.findings.rules import FINDING_RULES
from scripts._rule_pages import examples, write
from tests.docs.pages import DOCS, text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("docs")
    for name in ("causes.md", "cause-examples.md"):
        shutil.copy(DOCS / name, made)
    write(made)
    return made


def test_every_rule_has_a_page_and_a_link_to_it(folder: Path) -> None:
    wanted = {f"causes/{name}.md" for name in CAUSES} | {f"findings/{name}.md" for name in FINDING_RULES}
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*/*.md")} == wanted
    index = text(folder / "causes.md")
    assert set(re.findall(r"^\| \[`\w+`\]\((.*?)\) \|", index, re.MULTILINE)) == wanted
    assert [name for name in wanted if f"\n{name.removesuffix('.md')}\n" not in index] == []


@pytest.mark.parametrize("cause", CAUSES.values(), ids=lambda cause: cause.id)
def test_a_page_has_all_that_is_asked_of_one(folder: Path, cause: Cause) -> None:
    page = text(folder / "causes" / f"{cause.id}.md")
    headings = ["On the timeline", "How to confirm it", "Before and after a fix"]
    headings += ["What to do", "What it is confused with", "Sources"]
    assert [each for each in headings if f"\n## {each}\n" not in page] == []
    assert page.startswith(f"# `{cause.id}`: {cause.title}\n")
    assert all(part in page for part in (cause.meaning, cause.words.picture, color_of(cause.id), *cause.words.confirm))
    assert all(difference in page for difference in cause.words.confused_with.values())


def test_a_cause_without_an_example_says_so(tmp_path: Path) -> None:
    text_of_page = "<!-- example sync: made by x -->\n\nA pair.\n\n<!-- end -->\n"
    (tmp_path / "cause-examples.md").write_text(text_of_page, encoding="utf-8")
    found = examples(tmp_path)
    assert found["sync"] == "A pair."
    assert found["sleep"] == "The tests have no pair of programs that shows `sleep` before and after a fix."
    assert found.keys() == CAUSES.keys()


@pytest.mark.parametrize("cause", CAUSES.values(), ids=lambda cause: cause.id)
def test_a_cause_says_how_to_confirm_it_and_what_looks_like_it(cause: Cause) -> None:
    assert cause.words.confirm
    assert cause.words.confused_with
    assert cause.words.confused_with.keys() <= CAUSES.keys() - {cause.id}


def test_sentences_are_short() -> None:
    """At most 30 words, so that they are read."""
    sentences = [
        sentence
        for cause in CAUSES.values()
        for part in (*cause.words.confirm, *cause.words.confused_with.values())
        for sentence in re.split(r"(?<=[.:]) ", part)
    ]
    assert len(sentences) > 150
    assert [each for each in sentences if len(each.split()) > 30] == []
