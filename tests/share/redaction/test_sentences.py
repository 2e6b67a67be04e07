"""Names inside sentences: known ones, those at places for names, and words that are none of ours."""

from __future__ import annotations

import re
import time

import pytest

from nsysdiag.share.redaction.names import Names
from nsysdiag.share.redaction.sentences import Sentences


@pytest.fixture
def sentences() -> Sentences:
    """Knows a kernel, two ranges of which one is called like words of ours, a function and a thread."""
    made = Sentences(Names())
    made.learn("kernel", "void solver::step_kernel<float>(float*)")
    made.learn("range", "training round 3")
    made.learn("range", "copy")
    made.learn("symbol", "solver::decode_batch(int, float)")
    made.learn("thread", "loader")
    made.learn("thread", "data loader")
    return made


@pytest.mark.parametrize(
    ("plain", "redacted"),
    [
        ("65.1% of the kernels' time is in step_kernel.", "65.1% of the kernels' time is in kernel 1."),
        ("idle before step_kernel<float> in copy", "idle before kernel 1<1> in range 2"),
        ("idle before memcpy HtoD in training round 3", "idle before memcpy HtoD in range 1 #3"),
        ("loader 17, which launches work, could have run", "thread 1 17, which launches work, could have run"),
        ("data loader 3, data loaders, mydata loader", "thread 2 3, data name 1, name 2 loader"),
        ("inside NVTX copy", "inside NVTX range 2"),
        ("inside NVTX never seen before; samples in read", "inside NVTX range 3; samples in read"),
        ("thread 17 'loader' waited 3.10 ms in read", "thread 17 'thread 1' waited 3.10 ms in read"),
        ("process 9 'bob's tool': woke it by futex", "process 9 'process 1': woke it by futex"),
        ("samples in solver::decode_batch(int, float) × 3, poll", "samples in symbol 1 × 3, poll"),
        ("samples in gather<a, b>(int, int) × 12, gather", "samples in symbol 2 × 12, symbol 2"),
        (
            "read 2.00 ms; samples in decode of /data/a.bin, /data/b.bin",
            "read 2.00 ms; samples in symbol 2 of file 1, file 2",
        ),
        (
            "cudaStreamSynchronize × 12 (3.10 ms), cudaSolveHeat (20.0 us)",
            "cudaStreamSynchronize × 12 (3.10 ms), name 1 (20.0 us)",
        ),
        ("read 2.00 ms of /home/ann/data.bin", "read 2.00 ms of file 1"),
        (
            "PyInit_secret (interpreter), _PyEval_EvalFrameDefault (interpreter)",
            "name 1 (interpreter), _PyEval_EvalFrameDefault (interpreter)",
        ),
        (
            "samples in solve × 3, NSYS_OSRT_read_1 (profiler) × 2",
            "samples in symbol 2 × 3, NSYS_OSRT_read_1 (profiler) × 2",
        ),
    ],
)
def test_names_are_replaced(sentences: Sentences, plain: str, redacted: str) -> None:
    assert sentences.without_names(plain) == redacted


@pytest.mark.parametrize(
    "plain",
    [
        "The GPU is idle 41.2% of the time, 80.0% of that waiting for input.",
        "copy back with pinned memory: the copy then runs beside kernels",
        "longest: 3.10 ms in the gap at 1.204 s",
        "on a CPU by scheduling events × 5; samples in [kernel.kallsyms], libcudart.so.12 × 2",
        "waited 3.10 ms for gpu1, late because of: sleep 40.0%",
    ],
)
def test_our_own_words_stay(sentences: Sentences, plain: str) -> None:
    """A range called `copy` does not take the word out of advice."""
    assert sentences.without_names(plain) == plain


def test_a_name_is_replaced_as_a_whole_only(sentences: Sentences) -> None:
    """`step_kernel` is not part of `my_step_kernel_2`, which is a name of its own."""
    assert sentences.without_names("in my_step_kernel_2") == "in name 1"


def test_text_that_looks_like_our_marks_does_no_harm(sentences: Sentences) -> None:
    assert sentences.without_names("inside NVTX \ue0000\ue001") == "inside NVTX range 3 #0"


SHAPES = (
    "acme::Layer118<Patient118>::decode_batch(int, float)",
    "acme::Layer118<Patient118>::decode_batch",
    "acme::Layer<Patient 7, acme::Foo>::forward(const acme::Bar&) const",
    "acme::copy::step",
    "acme.layers.Layer1.forward",
    "_ZN4acme5Layer7forwardEi",
    "_RNvCs1234_4acme5layer",
    "C:\\acme\\train.py",
    "/home/acme/copy.bin",
    "https://acme:pw@host.acme.com/%61cme?q=acme#acme",
    "acme@acme.example",
    "пациент_acme",
    "acme\u0301",
    "ａｃｍｅacme",
    "cudaInitAcmeEngine",
    "libnccl-acme.so",
    "MPI_Send_acme",
    "0xacme",
    "12ms_acme",
    "gpu0.acme",
    "step_kernel::acme",
    "acme::step_kernel<float>",
    "step_kernel(acme)",
    "copy(acme)",
    "\ue0000\ue001acme",
    "kernel-acme",
    "KERNEL_ACME",
    "acme" * 200,
)
PLACES = (
    "idle before {} in {}",
    "inside NVTX {}; samples in {} × 3",
    "samples in read, {} × 3 of {}",
    "thread 17 '{}' waited 3.10 ms in {}",
    "{} (3.10 ms), {} × 2",
    "thread 17 computes: {}, poll",
    "100 instances of “{}”: {}",
    "{}",
    "({}) [{}] <{}>",
    "ranges named '{}', each; {}: {}",
)


@pytest.mark.parametrize("place", PLACES)
def test_nothing_of_a_name_stays_wherever_it_stands(sentences: Sentences, place: str) -> None:
    """Whether it was learnt or not."""
    made = []
    for name in SHAPES:
        text = place.replace("{}", name)
        made.append(sentences.without_names(text))
        for kind in ("kernel", "range", "symbol", "thread", "file"):
            sentences.learn(kind, name)
        made += [Sentences(Names()).without_names(text), Sentences(Names("a key")).without_names(text, "symbol")]
    assert [text for text in made if re.search("acme|ａｃｍｅ|пациент|Patient|Layer", text, re.IGNORECASE)] == []


@pytest.mark.parametrize(
    ("plain", "redacted"),
    [
        ("samples in acme::Foo<a, b>::decode_batch(int, T<c>) const × 3, poll", "samples in symbol 1.2 × 3, poll"),
        ("is late in acme::copy::step (3.10 ms)", "is late in name 1 (3.10 ms)"),
        ("waits for acme::Foo<Patient 7, Bar>::run(int) const, then", "waits for name 1, then"),
        ("65% is in acme::step_kernel.", "65% is in kernel 1."),
        ("COPY and Copy and copy", "name 1 and Copy and copy"),
    ],
)
def test_a_qualified_name_is_one_name(sentences: Sentences, plain: str, redacted: str) -> None:
    """Of the family of the function that it ends in, where that is known."""
    assert sentences.without_names(plain) == redacted


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "a, ",
        "thread 1 '",
        "ranges named '",
        " of a.b;",
        "a<",
        "f(",
        "instances of “",
        "inside NVTX ",
        "copy ",
        "a::b<c>",
    ],
)
def test_the_time_grows_with_the_length_of_a_name(part: str) -> None:
    """Four times the length is four times the work, not sixteen times."""

    def seconds(length: int) -> float:
        text = (part * length)[:length]
        made = Sentences(Names())
        made.learn("symbol", "a known name")
        begin = time.process_time()
        made.without_names(f"samples in {text}; inside NVTX {text}")
        return time.process_time() - begin

    short = max(min(seconds(10_000) for _ in range(3)), 1e-3)
    assert min(seconds(40_000) for _ in range(2)) < 10 * short
