"""What the words of a command line say of a program."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from nsysdiag.capture.plan import filled_in, is_python, name_of, require_program, uses_mpi, with_rank
from nsysdiag.messages import UsageError


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["python", "train.py"], "train"),
        (["/usr/bin/python3.12", "-u", "src/train.py", "--lr", "1"], "train"),
        (["torchrun", "--nproc-per-node", "2", "train.py"], "train"),
        (["python", "-m", "models.train", "-x"], "models.train"),
        (["python", "-c", "pass"], "python"),
        (["python3", "-m"], "python3"),
        (["./solver", "-m", "big"], "solver"),
        (["/opt/a b/run (1)"], "run-1"),
        (["..."], "program"),
        ([".hidden.py"], "hidden"),
    ],
)
def test_a_name(words: list[str], name: str) -> None:
    assert name_of(words) == name


class TestPython:
    @pytest.mark.parametrize("words", [["python"], ["python3.11", "x"], ["env", "python", "x"], ["./train.py"]])
    def test_by_its_words(self, words: list[str]) -> None:
        assert is_python(words)

    @pytest.mark.parametrize("words", [["cat", "python-notes"], ["/none/solver"], ["pythonic"]])
    def test_others(self, words: list[str]) -> None:
        assert not is_python(words)

    @pytest.mark.parametrize(
        ("line", "python"),
        [("#!/usr/bin/env python3", True), ("#!/bin/sh # no snake", False), ("\x7fELF python", False)],
    )
    def test_by_the_first_line_of_a_script(self, tmp_path: Path, line: str, python: bool) -> None:
        script = tmp_path / "torchrun"
        script.write_text(f"{line}\n")
        assert is_python([str(script)]) == python


@pytest.mark.parametrize(
    ("words", "environment", "expected"),
    [
        (["mpirun", "-n", "2", "./a"], {}, True),
        (["./a"], {"OMPI_COMM_WORLD_SIZE": "2"}, True),
        (["./a"], {"HOME": "/"}, False),
    ],
)
def test_mpi(words: list[str], environment: dict[str, str], expected: bool) -> None:
    assert uses_mpi(words, environment) == expected


class TestNames:
    @pytest.mark.parametrize(
        ("environment", "name"),
        [
            ({}, "train"),
            ({"RANK": "3", "WORLD_SIZE": "4", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}, "train.rank3"),
            ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "SLURM_PROCID": "0"}, "train.rank1"),
            ({"PMI_RANK": "0", "PMI_SIZE": "2"}, "train.rank0"),
            ({"SLURM_PROCID": "7", "SLURM_STEP_NUM_TASKS": "8"}, "train.rank7"),
            ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, "train"),
            ({"SLURM_PROCID": "0"}, "train"),
            ({"RANK": "high", "WORLD_SIZE": "4"}, "train"),
        ],
    )
    def test_of_ranks(self, environment: dict[str, str], name: str) -> None:
        assert with_rank("train", environment) == name

    def test_patterns_of_nsys(self) -> None:
        name = filled_in("%q{JOB}-%q{N_1}.%h.%p.100%%-%n-%", {"JOB": "a%p", "N_1": ""})
        assert name == f"a%p-.{socket.gethostname()}.{os.getpid()}.100%-%n-%"

    def test_a_variable_that_is_not_set(self) -> None:
        with pytest.raises(UsageError, match="the environment has no JOB"):
            filled_in("%q{JOB}", {})


class TestWhatCannotBeRun:
    def test_what_is_not_there(self) -> None:
        with pytest.raises(UsageError, match="there is no program 'none-such'"):
            require_program(["none-such"])

    @pytest.mark.parametrize(("name", "hint"), [("x.py", "nsysdiag record -- python x.py"), ("x", "chmod +x x")])
    def test_a_file_that_is_no_program(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, hint: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path(name).touch()
        monkeypatch.setenv("PATH", os.fspath(tmp_path))
        with pytest.raises(UsageError, match="cannot be executed") as caught:
            require_program([name])
        assert caught.value.hint == hint
