"""The frameworks of the programs in a trace as plain data."""

from __future__ import annotations

from typing import Literal, get_args

from nsysdiag.fields import OwnText, Sentence
from nsysdiag.record import Record

FrameworkId = Literal[
    "vllm",
    "sglang",
    "tensorrt-llm",
    "pytorch",
    "jax",
    "tensorflow",
    "cupy",
    "triton",
    "tensorrt",
    "openacc",
    "openmp-target",
    "kokkos",
    "julia",
    "rocm",
    "mpi",
]
"""Frameworks that can be detected. A program with none of them is plain CUDA."""
FRAMEWORKS: tuple[FrameworkId, ...] = get_args(FrameworkId)
"""In the order of display and of precedence of their advice: frameworks that a program is written in come before its
launchers."""
TITLES: dict[FrameworkId, str] = {
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


class Framework(Record, frozen=True):
    """A framework that a trace shows, and by what: one sentence for each kind of name, with a name that was found."""

    id: OwnText
    evidence: list[Sentence]
