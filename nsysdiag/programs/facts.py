"""The frameworks of the programs in a trace as plain data."""

from __future__ import annotations

from nsysdiag.fields import OwnText, Sentence
from nsysdiag.record import Record

TITLES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrt-llm": "TensorRT-LLM",
    "pytorch": "PyTorch",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
    "cupy": "CuPy",
    "triton": "Triton",
    "tensorrt": "TensorRT",
    "openacc": "OpenACC",
    "openmp-target": "OpenMP target offload",
    "kokkos": "Kokkos",
    "julia": "Julia",
    "rocm": "ROCm",
    "mpi": "MPI",
}
"""Frameworks that can be detected, by id; a program with none of them is plain CUDA. In the order of display and of
precedence of their advice: frameworks that a program is written in come before its launchers."""
FRAMEWORKS = tuple(TITLES)


class Framework(Record, frozen=True):
    """A framework that a trace shows, and by what: one sentence for each kind of name, with a name that was found."""

    id: OwnText
    evidence: list[Sentence]
