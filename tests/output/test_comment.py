"""Comments on pull requests: found again by their keys, never too long, and nothing in a name acts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nsysdiag.comparison.facts import Accepted, BaselineUse, Comparison
from nsysdiag.comparison.show.registry import RENDERERS
from nsysdiag.document.blocks import EVERYWHERE, Column, Details, Lines, Paragraph, Section, Table
from nsysdiag.document.columns import TEXT
from nsysdiag.document.markup import COMMENT_KEY, MOST_BYTES, Piece, comment, comment_marker
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.batch.summary import render_comment
from nsysdiag.formats.prose import is_markdown
from tests.output.batch_samples import BATCHES, budget, entry, failed, summary, unjudged
from tests.output.compare_samples import COMPARISONS
from tests.output.rendered import EVERY_SAMPLE
from tests.output.samples import HOSTILE, SAMPLES
from tests.output.test_markdown import TRIGGERS, Shape, drawn

TAGS = re.compile(r"^</?details>$|^<summary>[^<>\n]*</summary>$", re.MULTILINE)
OWN = {"h3", "h4", "h5", "h6", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "pre", "ul", "ol"}
OPTIONS = RenderOptions(
    comment="train",
    budgets=(budget(), budget("x > 1", level="warn"), budget("y > 1", broken=False)),
    unjudged=(unjudged(),),
    accept={"b-idle_share > 25%": "nsysdiag baseline accept main --what 'idle_share > 31%'"},
)


def shape_of(data: bytes) -> Shape:
    """What a reader draws, once our own folds are taken out, which must be balanced."""
    text = data.decode()
    assert text.count("\n<details>\n") == text.count("\n</details>\n")
    shape = drawn(TAGS.sub("", text))
    assert set(shape.elements) <= OWN | {"li", "hr", "blockquote"}
    assert not [plain for plain in shape.plain if TRIGGERS.search(plain)]
    return shape


def checked(data: bytes, key: str = "train") -> str:
    text = data.decode()
    assert len(data) <= MOST_BYTES < 65_536
    assert text.splitlines()[:2] == ["<!-- nsysdiag report -->", f"<!-- nsysdiag comment: {key} -->"]
    assert text.count(comment_marker(key)) == 1
    assert is_markdown(data)
    shape_of(data)
    return text


@pytest.mark.sampled(quick=8, normal=3)
@pytest.mark.parametrize("sample", EVERY_SAMPLE)
@pytest.mark.parametrize("details", [False, True])
def test_of_a_report(sample: str, details: bool) -> None:
    text = checked(FORMATS["md"].render(SAMPLES[sample](), replace(OPTIONS, details=details)))
    assert "| `idle_share > 25%` | ▲ fails | Idle share is 30.0%, over the limit of 25.0% on gpu0. |" in text
    assert "It cannot be judged: nothing repeats in it" in text
    assert "`y > 1`" not in text


@pytest.mark.parametrize("sample", COMPARISONS)
def test_of_a_comparison(sample: str) -> None:
    text = checked(RENDERERS["md"](COMPARISONS[sample](), OPTIONS))
    assert "```sh\nnsysdiag baseline accept main --what 'idle_share > 31%'\n```" in text


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize("sample", BATCHES)
def test_of_a_batch(sample: str) -> None:
    checked(render_comment(BATCHES[sample](), "train"))


def with_baseline(made: Comparison, *, name: str = "main", reason: str = "known") -> Comparison:
    accepted = [
        Accepted(what="length:+9%", reason=reason, until="2099-03-01", status=status, sentence=f"{status} of {reason}")
        for status in ("unused", "used", "expired", "exceeded")
    ]
    use = BaselineUse(name=name, runs=4, spread=0.012, sentence=f"Baseline {name} has 4 runs.", accepted=accepted)
    return replace(made, baseline=use)


@pytest.mark.parametrize("name", ["md", "txt", "html"])
def test_the_baseline_is_in_every_format_the_worst_first(name: str) -> None:
    for options in (RenderOptions(), RenderOptions(details=True)):
        text = RENDERERS[name](with_baseline(COMPARISONS["one"]()), options).decode()
        places = [
            text.index(word) for word in ("Baseline main has 4 runs.", "more than accepted", "expired", "not needed")
        ]
        assert places == sorted(places)


@pytest.mark.parametrize("bad", [HOSTILE, "</details><!-- -->|`\n# x", "@me #1 http://x"])
def test_reasons_and_names_do_not_act(bad: str) -> None:
    checked(RENDERERS["md"](with_baseline(COMPARISONS["hostile"](), name=bad, reason=bad), OPTIONS))


COLUMNS = (Column("Name", TEXT, head=True, length=300), Column("What", TEXT, length=400))


def rows(count: int, word: str) -> Section:
    return Section(
        word, word, [Table("", COLUMNS, [(f"{word} {at}", "x" * 300) for at in range(count)], limit=EVERYWHERE)]
    )


class TestTooLong:
    def test_the_least_important_goes_first(self) -> None:
        pieces = [Piece(rows(60, "first"), 0), Piece(rows(60, "second"), 1), Piece(rows(300, "third"), 2, folded=True)]
        text = checked(comment("train", "x", pieces, ["nsysdiag"]))
        assert text.count("| first ") == text.count("| second ") == 60
        assert 0 < text.count("| third ") <= 50
        assert "50 of 300 rows." in text

    def test_what_is_left_out_is_named(self) -> None:
        pieces = [Piece(rows(190, "first"), 0), Piece(rows(50, "second"), 1), Piece(rows(300, "third"), 2)]
        text = checked(comment("train", "x", pieces, ["nsysdiag"]))
        assert text.count("| first ") == 190
        assert "Left out, as it would be too long for a comment: third." in text
        assert 0 < text.count("| second ") <= 10

    @pytest.mark.thorough
    def test_the_first_is_cut_and_never_left_out(self) -> None:
        text = checked(
            comment("train", "x", [Piece(rows(5000, "first"), 0), Piece(rows(5, "second"), 3)], ["nsysdiag"])
        )
        assert text.count("| first ") == 50
        assert "second" in text

    def test_other_blocks_are_cut_too(self) -> None:
        lines = Section("lines", "lines", [Details("inside", [Lines(["y" * 300] * 500)], limit=EVERYWHERE)])
        text = checked(comment("train", "x", [Piece(Section("a", "", [Paragraph("kept")]), 0), Piece(lines, 1)], ["n"]))
        assert text.count("- yyy") == 50

    @pytest.mark.thorough
    @settings(max_examples=40)
    @given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), st.booleans()), max_size=6))
    def test_whatever_there_is(self, sizes: list[tuple[int, int, bool]]) -> None:
        pieces = [Piece(rows(count, f"piece{at}"), weight, folded) for at, (count, weight, folded) in enumerate(sizes)]
        checked(comment("train", "x", pieces, ["nsysdiag"]))

    @pytest.mark.slow
    def test_many_traces(self) -> None:
        entries = [entry(f"runs/{at:04}", budgets=[budget(sentence="é" * 600)]) for at in range(400)]
        text = checked(render_comment(summary(*entries, *(failed(f"bad/{at}") for at in range(300))), "train"))
        assert "Budgets broken" in text or "Some not analyzed" in text
        assert "All traces, worst first" in text


@pytest.mark.parametrize("key", ["a", "train", "train-8gpu", "a/b.c_d", "x" * 100])
def test_keys(key: str) -> None:
    assert COMMENT_KEY.fullmatch(key)
    assert comment_marker(key).count("--") == 2


@pytest.mark.parametrize("key", ["", "-a", "a-", "a--b", "a>b", "a b", "ä", "x" * 101, "a\n"])
def test_keys_that_are_none(key: str) -> None:
    assert not COMMENT_KEY.fullmatch(key)
