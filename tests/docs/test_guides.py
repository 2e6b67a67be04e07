"""Guides: their programs run, their manifests start commands that exist."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml

from nsysdiag.capture.plan import filled_in
from tests.docs.pages import DOCS, ROOT, fenced, page, text
from tests.docs.test_examples import understood

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

RANGES = [f"step {number}" for number in range(60)]


def test_the_example_for_jax_names_sixty_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """With modules in the place of JAX and nvtx, which are not installed here."""
    (code,) = fenced(page("guide-jax.md"), "python")
    named: list[str] = []

    def annotate(name: str) -> AbstractContextManager[None]:
        named.append(name)
        return nullcontext()

    jax, numpy, nvtx = ModuleType("jax"), ModuleType("jax.numpy"), ModuleType("nvtx")
    vars(jax).update(jit=lambda function: function, block_until_ready=lambda _: None, numpy=numpy)
    vars(numpy).update(zeros=np.zeros, ones=np.ones, tanh=np.tanh)
    vars(nvtx).update(annotate=annotate)
    for module in (jax, numpy, nvtx):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    names: dict[str, Any] = {}
    exec(compile(code, "guide-jax.md", "exec"), names)
    assert named == RANGES
    assert names["state"] == pytest.approx(60 * 300 * 300)


MANIFESTS = [yaml.safe_load(each) for each in fenced(page("guide-kubernetes.md"), "yaml")]


def pod(manifest: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = manifest["spec"]
    return spec["template"]["spec"] if manifest["kind"] == "Job" else spec


def test_manifests_start_commands_that_exist() -> None:
    containers = [container for manifest in MANIFESTS for container in pod(manifest)["containers"]]
    started = [shlex.join([*each["command"], *each.get("args", [])]) for each in containers]
    ours = [line for line in started if line.startswith("nsysdiag ")]
    assert len(ours) == 2
    for line in ours:
        understood(line)


def test_manifests_mount_the_volumes_that_they_have() -> None:
    for spec in map(pod, MANIFESTS):
        mounted = {each["name"] for container in spec["containers"] for each in container["volumeMounts"]}
        assert mounted == {each["name"] for each in spec["volumes"]}


def test_a_pod_of_an_indexed_job_has_a_name_of_its_own() -> None:
    (job,) = (each for each in MANIFESTS if each["kind"] == "Job")
    (container,) = pod(job)["containers"]
    words = [*container["command"], *container["args"]]
    kept = words[words.index("--keep") + 1]
    names = {filled_in(kept, {"JOB_COMPLETION_INDEX": str(number)}) for number in range(job["spec"]["completions"])}
    assert names == {f"/traces/train.rank{number}.nsys-rep" for number in range(4)}


@pytest.mark.parametrize("path", sorted(DOCS.glob("guide-*.md")), ids=lambda path: path.name)
def test_commands_inside_of_other_commands_are_understood(path: Path) -> None:
    """Behind `srun`, `mpirun` and `kubectl exec`."""
    lines = "".join(fenced(text(path), "sh")).replace("\\\n", " ").splitlines()
    for line in lines:
        before, found, rest = line.partition("nsysdiag ")
        if found and before:
            understood(found + rest)


HEADER = "inline void cudaProfilerStart() {}\ninline void cudaProfilerStop() {}\n"
BODY = "\nvoid step(int number) { volatile double x = 0; for (int i = 0; i < 100000; ++i) x = x + i * number; }\n"


@pytest.mark.slow
@pytest.mark.nsys
def test_the_example_for_cpp_has_sixty_ranges_in_its_trace(tmp_path: Path) -> None:
    """Built with the headers of NVTX that nsys has, and without CUDA."""
    compiler = shutil.which("g++")
    nsys = shutil.which(os.environ["NSYSDIAG_NSYS"])
    assert nsys
    headers = next(iter(sorted(Path(nsys).resolve().parent.rglob("nvtx3/nvToolsExt.h"))), None)
    if compiler is None or headers is None:
        pytest.skip("no g++, or no headers of NVTX next to nsys")
    (code,) = fenced(page("guide-cpp.md"), "cpp")
    (tmp_path / "cuda_profiler_api.h").write_text(HEADER, encoding="utf-8")
    (tmp_path / "solver.cpp").write_text(code + BODY, encoding="utf-8")
    include = [f"-I{folder}" for folder in (tmp_path, headers.parents[1])]
    subprocess.run([compiler, "-O1", "solver.cpp", *include, "-o", "solver", "-ldl"], cwd=tmp_path, check=True)
    record = [
        sys.executable,
        "-P",
        "-m",
        "nsysdiag",
        "record",
        "--nsys",
        nsys,
        "--keep",
        "a.nsys-rep",
        "--",
        "./solver",
    ]
    subprocess.run(record, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=True)
    export = [nsys, "export", "--type", "sqlite", "--output", "a.sqlite", "a.nsys-rep"]
    subprocess.run(export, cwd=tmp_path, capture_output=True, check=True)
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as trace:
        found = [name for (name,) in trace.execute("SELECT text FROM NVTX_EVENTS ORDER BY start")]
    assert found == RANGES
