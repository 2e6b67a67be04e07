"""Advice: one text for plain CUDA and others by framework, and no framework's word where it was not seen."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Semaphore
from time import sleep
from types import ModuleType
from typing import Any

import msgspec
import pytest
from msgspec import toml
from msgspec.structs import replace

from nsysdiag import analyze
from nsysdiag.causes import CAUSES
from nsysdiag.causes.cause import DATA, Advice, Cause, FrameworkAdvice, Variant, sources, words_of
from nsysdiag.findings.rules import FINDING_RULES, sources_of, words_about
from nsysdiag.findings.text import advice_and_fix as told
from nsysdiag.host import report as shortage
from nsysdiag.memory import show as memory_show
from nsysdiag.memory import words as memory_words
from nsysdiag.programs.facts import FRAMEWORKS, TITLES
from nsysdiag.report import Report
from tests.builder import TraceBuilder
from tests.causes.example import late
from tests.ledger.traces import report_of

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
RULES = [*CAUSES, *FINDING_RULES]
PYTORCH = re.compile(
    r"torch|\.item\(|\.cpu\(|\bfloat\(|DataLoader|num_workers|prefetch_factor|persistent_workers|non_blocking|pin_memory"
    r"|channels_last|DistributedDataParallel|FSDP|bucket_cap|autocast|zero_grad|empty_cache|set_to_none|inductor"
    r"|backward pass|optimizer|data loader|cudnn\.benchmark|reduce-overhead",
    re.IGNORECASE,
)
OTHERS = re.compile(r"\b(jax|xla|tensorflow|tf\.|keras|cupyx?|openacc|nvc:|data region)\b|\bMPI_|mpirun", re.IGNORECASE)
ABOUT_MPI = ("exposed_mpi",)
"""Rules that hold in programs of MPI alone."""


def plain_texts(rule: str) -> Iterator[str]:
    for advice in words_about(rule).every_advice():
        yield from advice.plain
    known = CAUSES.get(rule) or FINDING_RULES[rule]
    yield from (known.title, known.meaning)
    yield from (kind.fix for kind in CAUSES[rule].variants) if rule in CAUSES else (FINDING_RULES[rule].fix,)


def test_each_rule_has_a_file() -> None:
    assert sorted(path.stem for path in (DATA / "rules").iterdir()) == sorted(RULES)
    used = {name for rule in RULES for name in words_of(rule).sources}
    used |= {each.source for rule in RULES for advice in words_of(rule).every_advice() for _, each in advice.others()}
    assert used <= sources().keys()


@pytest.mark.parametrize("cause", CAUSES.values(), ids=lambda cause: cause.id)
def test_advice_is_for_variants_that_there_are(cause: Cause) -> None:
    assert cause.words.variants.keys() <= {each.id for each in cause.variants}


def test_exposed_copies_have_the_advice_to_copy_less() -> None:
    words = words_of("exposed_copy")
    fewer = words.advice_for("fewer_bytes")
    for framework in ("", *(name for name, _ in fewer.others())):
        assert set(fewer.sentences([framework])) <= set(words.advice_for().sentences([framework]))


@pytest.mark.parametrize("rule", RULES)
class TestTexts:
    def test_plain_ones_name_no_framework(self, rule: str) -> None:
        texts = list(plain_texts(rule))
        assert len(texts) > 2
        assert [text for text in texts if PYTORCH.search(text)] == []
        if rule not in ABOUT_MPI:
            assert [text for text in texts if OTHERS.search(text)] == []

    def test_each_is_a_sentence_with_a_source(self, rule: str) -> None:
        every = words_about(rule).every_advice()
        sentences = [text for advice in every for text in advice.plain]
        for advice in every:
            for framework, words in advice.others():
                assert words.source in sources(), (framework, words.source)
                assert sources()[words.source] in sources_of(rule)
                assert words.sentences
                assert words.sentences != advice.plain or advice == words_of("exposed_copy").advice_for("fewer_bytes")
                sentences += words.sentences
        assert all(text[0].isupper() or text[0].islower() for text in sentences)
        assert [text for text in sentences if not text.endswith(".")] == []

    def test_a_framework_s_words_stay_in_its_own_text(self, rule: str) -> None:
        for advice in words_about(rule).every_advice():
            for framework, words in advice.others():
                if framework in ("openacc", "mpi"):
                    assert [text for text in words.sentences if PYTORCH.search(text)] == []


@pytest.mark.parametrize("module", [memory_words, shortage, memory_show], ids=lambda module: str(module.__name__))
def test_words_beside_findings_name_no_framework(module: ModuleType) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    words = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert len(words) > 10
    assert [text for text in words if PYTORCH.search(text) or OTHERS.search(text)] == []


class TestChoice:
    ADVICE = Advice(
        plain=("Plain.",),
        pytorch=FrameworkAdvice(("With PyTorch.",), source="allocator", fix="as PyTorch does"),
        mpi=FrameworkAdvice(("With MPI.",), source="mpi_cuda"),
    )

    @pytest.mark.parametrize(
        ("frameworks", "sentence"),
        [
            ((), "Plain."),
            (("julia",), "Plain."),
            (("mpi",), "With MPI."),
            (("mpi", "pytorch"), "With PyTorch."),
            (("triton", "pytorch"), "With PyTorch."),
        ],
    )
    def test_the_first_framework_with_a_text(self, frameworks: tuple[str, ...], sentence: str) -> None:
        assert self.ADVICE.sentences(frameworks) == (sentence,)

    def test_nothing_of_its_own_is_false(self) -> None:
        assert (bool(Advice()), bool(self.ADVICE)) == (False, True)

    @pytest.mark.parametrize(
        ("frameworks", "sentence", "fix"),
        [
            (("pytorch",), "With PyTorch.", "as PyTorch does"),
            (("mpi",), "With MPI.", "plain fix"),
            ((), "Plain.", "plain fix"),
        ],
    )
    def test_short_form_by_framework(self, frameworks: tuple[str, ...], sentence: str, fix: str) -> None:
        kind = Variant("x", "X", "plain fix", self.ADVICE)
        cause = replace(CAUSES["sync"], picture="[=]", advice=Advice(("The cause.",)), variants=(kind,))
        assert told(kind, cause, frameworks) == ([sentence], fix)

    def test_a_kind_without_advice_has_its_cause_s(self) -> None:
        cause = CAUSES["launch_call"]
        last = cause.variants[-1]
        sentences, fix = told(last, cause, ("pytorch",))
        assert "torch.compile" in sentences[0]
        assert "torch.compile" in fix
        assert told(last, cause, ()) == (list(cause.words.advice_for().plain), last.fix)

    def test_frameworks_have_titles(self) -> None:
        every = [advice for rule in RULES for advice in words_about(rule).every_advice()]
        named = {framework for advice in every for framework, _ in advice.others()}
        assert named <= set(FRAMEWORKS)
        assert {"pytorch", "jax", "tensorflow", "cupy", "openacc", "mpi"} <= named
        assert all(TITLES[framework] for framework in named)


def sentences_in(report: Report) -> list[str]:
    """All texts of the report that are more than a name."""
    return [text for text in _texts(msgspec.to_builtins(report)) if " " in text]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for each in value.values() for text in _texts(each))
    elif isinstance(value, list | tuple):
        yield from (text for each in value for text in _texts(each))


class TestReports:
    def read_back(self) -> TraceBuilder:
        trace = late().memcpy(112_000, 113_000, kind="DtoH", host="pageable", size=4, launch=(105_000, 200_000))
        return trace.osrt("read", 210_000, 260_000)

    @pytest.mark.parametrize("mpi", [False, True])
    def test_no_word_of_pytorch_in_a_program_of_c(self, mpi: bool, tmp_path: Path) -> None:
        trace = self.read_back()
        if mpi:
            trace.thread_name("MPI Rank 0")
        report = report_of(trace, tmp_path)
        assert len(report.findings) > 2
        assert [text for text in sentences_in(report) if PYTORCH.search(text)] == []

    def test_words_of_pytorch_in_one_of_pytorch(self, tmp_path: Path) -> None:
        report = report_of(self.read_back().thread_name("pt_main_thread"), tmp_path)
        assert any(".item()" in text for finding in report.findings for text in finding.advice)

    @pytest.mark.sampled(normal=3)
    @pytest.mark.real
    @pytest.mark.parametrize(
        "name", ["pipit_saxpy-mpi", "gpubootcamp", "pipit_cloverleaf", "nways_jacobi", "awsgpu", "mordred"]
    )
    def test_no_word_of_pytorch_in_real_ones(self, name: str) -> None:
        found = [path for path in FOLDER.glob("*.sqlite") if path.name.startswith(name)]
        if not found:
            pytest.skip(f"{name} is not at hand")
        report = analyze(found[0])
        texts = sentences_in(report)
        assert len(texts) > 30
        assert [text for text in texts if PYTORCH.search(text)] == []


def test_one_thread_at_a_time_reads_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """msgspec crashes now and then if two threads decode a class that no thread has decoded before."""
    words_of.cache_clear()
    decode, inside, together = toml.decode, Semaphore(1), []

    def watched(data: bytes, **options: Any) -> Any:
        together.append(not inside.acquire(blocking=False))
        sleep(0.01)
        inside.release()
        return decode(data, **options)

    monkeypatch.setattr("nsysdiag.causes.cause.toml.decode", watched)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(words_of, ["sync", "sleep", "io_wait", "lock_wait"]))
    assert together == [False] * 4


@pytest.mark.parametrize(
    ("framework", "option"),
    [("vllm", "--enforce-eager"), ("sglang", "--cuda-graph-max-bs"), ("tensorrt-llm", "cuda_graph_config")],
)
def test_engines_are_advised_by_their_own_options(framework: str, option: str) -> None:
    """A program cannot compile the model that the engine runs, and inference has no gradients."""
    made_with = (framework, "pytorch")
    operators = words_of("host_compute").advice_for("operators").sentences(made_with)
    gradients = words_of("exposed_comm").advice_for("gradients").sentences(made_with)
    assert option in operators[0]
    assert not any("torch." in text or "gradients" in text for text in (*operators, *gradients))
