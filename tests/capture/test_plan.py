"""Which options a recording gets, by what nsys, the kernel and the user's rights permit, and what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from nsysdiag.capture.plan import Plan, RecordedSpan, in_words, planned
from nsysdiag.capture.run import Host, Nsys, find_nsys, probe, this_host
from nsysdiag.messages import UsageError
from tests.capture.stand_in import GPUS, HELP, STATUS, StandIn

if TYPE_CHECKING:
    from pathlib import Path

USER, ROOT = Host(2, root=False), Host(4, root=True)


@pytest.fixture
def nsys(tmp_path: Path) -> Nsys:
    return probe(str(StandIn(tmp_path / "bin").path), tmp_path)


def plan(
    nsys: Nsys, host: Host = USER, span: RecordedSpan | None = None, *, python: bool = False, mpi: bool = False
) -> Plan:
    return planned(nsys, host, span or RecordedSpan(), python=python, mpi=mpi)


class TestProbe:
    @pytest.mark.slow
    def test_what_it_says(self, nsys: Nsys) -> None:
        assert nsys.version == "2025.1.1.103"
        assert {"--cuda-graph-trace", "--gpu-metrics-devices", "--trace"} <= nsys.options
        assert nsys.traceable == {"cuda", "nvtx", "cublas", "cublas-verbose", "mpi", "osrt", "cudnn", "none"}
        assert (nsys.status.strip(), nsys.metrics.strip()) == (STATUS.strip(), GPUS.strip())
        assert nsys.exports_blobs

    def test_another_program(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is not Nsight Systems"):
            probe("/bin/true", tmp_path)

    def test_none_on_the_path(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(UsageError, match="no `nsys` on the PATH") as caught:
            find_nsys(None)
        assert "--nsys PROGRAM" in (caught.value.hint or "")

    def test_one_that_is_named_need_not_be_on_the_path(self, tmp_path: Path) -> None:
        path = StandIn(tmp_path / "bin").path
        assert find_nsys(str(path)) == str(path)
        with pytest.raises(UsageError, match="there is no program"):
            find_nsys(str(path) + "2")


class TestAllThatIsPermitted:
    @pytest.mark.slow
    def test_options(self, nsys: Nsys) -> None:
        found = plan(nsys, python=True, mpi=True)
        assert found.options == [
            "--trace=cuda,nvtx,osrt,cublas,cudnn,mpi",
            "--cpuctxsw=process-tree",
            "--sample=process-tree",
            "--cuda-graph-trace=node",
            "--cuda-memory-usage=true",
            "--cudabacktrace=all",
            "--gpu-metrics-devices=all",
            "--python-sampling=true",
            "--python-backtrace=cuda",
        ]
        assert found.left_out == []
        assert len(found.brings) == 12

    @pytest.mark.slow
    def test_neither_python_nor_mpi_is_asked_of_a_program_without(self, nsys: Nsys) -> None:
        found = plan(nsys)
        assert not any("python" in option or "mpi" in option for option in found.options)
        assert found.left_out == []

    @pytest.mark.slow
    def test_root_needs_no_permission_of_the_kernel(self, nsys: Nsys) -> None:
        assert plan(nsys, ROOT).options == plan(nsys).options

    def test_this_machine_has_an_answer(self) -> None:
        assert isinstance(this_host().root, bool)


class TestWhatIsLeftOut:
    """Each has a sentence: what, why, and what would permit it."""

    @pytest.mark.slow
    def test_a_paranoid_kernel(self, nsys: Nsys) -> None:
        found = plan(nsys, Host(4, root=False))
        assert {"--cpuctxsw=none", "--sample=none"} < set(found.options)
        assert "--cudabacktrace=all" not in found.options
        assert found.left_out == [
            "without scheduling and CPU samples: the kernel's perf_event_paranoid is 4; "
            "'sudo sysctl kernel.perf_event_paranoid=2' permits it, and root needs no permission"
        ]

    @pytest.mark.slow
    def test_a_kernel_without_perf_events(self, nsys: Nsys) -> None:
        (sentence,) = plan(nsys, Host(None, root=False)).left_out
        assert sentence.endswith("this kernel has no perf events")

    @pytest.mark.slow
    @pytest.mark.parametrize("host", [USER, ROOT])
    def test_a_container_that_forbids_the_call(self, nsys: Nsys, host: Host) -> None:
        status = STATUS.replace("syscall available: OK", "syscall available: Fail")
        (sentence,) = plan(replace(nsys, status=status), host).left_out
        assert "scheduling and CPU samples" in sentence
        assert "--cap-add=SYS_ADMIN" in sentence

    @pytest.mark.slow
    def test_a_machine_without_an_event_to_sample_by(self, nsys: Nsys) -> None:
        status = STATUS.replace("(process-tree): OK", "(process-tree): Fail")
        found = plan(replace(nsys, status=status))
        assert {"--cpuctxsw=process-tree", "--sample=none"} < set(found.options)
        (sentence,) = found.left_out
        assert sentence.startswith("without CPU samples: nsys finds no event")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("said", "why"),
        [
            ("NVIDIA GPUs not found, feature is not available", "finds no GPU"),
            ("", "finds no GPU"),
            ("Insufficient privilege, see https://developer.nvidia.com/ERR_NVGPUCTRPERM", "NVreg_Restrict"),
        ],
    )
    def test_gpu_metrics(self, nsys: Nsys, said: str, why: str) -> None:
        found = plan(replace(nsys, metrics=said))
        (sentence,) = found.left_out
        assert sentence.startswith("without GPU metrics: ")
        assert why in sentence
        assert not any("metrics" in option for option in found.options)

    @pytest.mark.slow
    def test_the_older_name_of_an_option(self, tmp_path: Path) -> None:
        stand_in = StandIn(tmp_path / "bin")
        stand_in.says(help=HELP.replace("--gpu-metrics-devices=", "--gpu-metrics-device="))
        assert "--gpu-metrics-device=all" in plan(probe(str(stand_in.path), tmp_path)).options

    @pytest.mark.slow
    @pytest.mark.parametrize("option", ["--cuda-graph-trace", "--cuda-memory-usage", "--cudabacktrace"])
    def test_options_that_a_version_lacks(self, nsys: Nsys, option: str) -> None:
        found = plan(replace(nsys, options=nsys.options - {option}))
        assert not any(each.startswith(option) for each in found.options)
        (sentence,) = found.left_out
        assert sentence.endswith(f"nsys 2025.1.1.103 has no option {option}")

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("lacks", "blobs", "verb"),
        [({"--python-sampling", "--python-backtrace"}, True, "record"), (set(), False, "export")],
    )
    def test_python(self, nsys: Nsys, lacks: set[str], blobs: bool, verb: str) -> None:
        """Stacks that the export does not hold would only slow the program down."""
        found = plan(replace(nsys, options=nsys.options - lacks, exports_blobs=blobs), python=True)
        assert not any("python" in option for option in found.options)
        assert found.left_out == [f"without Python functions: nsys 2025.1.1.103 cannot {verb} them, newer versions can"]

    @pytest.mark.slow
    def test_what_it_cannot_trace(self, nsys: Nsys) -> None:
        found = plan(replace(nsys, traceable=frozenset({"cuda", "nvtx", "osrt"})), mpi=True)
        assert found.options[0] == "--trace=cuda,nvtx,osrt"

    @pytest.mark.slow
    def test_help_that_is_not_understood(self, nsys: Nsys) -> None:
        found = plan(replace(nsys, options=frozenset(), traceable=frozenset()), python=True)
        assert found.options == ["--trace=cuda,nvtx,osrt", "--cpuctxsw=process-tree", "--sample=process-tree"]
        assert len(found.left_out) == 5


class TestSpan:
    @pytest.mark.slow
    def test_times(self, nsys: Nsys) -> None:
        options = plan(nsys, span=RecordedSpan(delay=30, duration=0.5)).options
        assert {"--delay=30", "--duration=0.5", "--kill=sigterm"} < set(options)

    @pytest.mark.slow
    def test_the_calls_of_cuda(self, nsys: Nsys) -> None:
        span = RecordedSpan(capture_range="cudaProfilerApi")
        options = plan(nsys, span=span).options
        assert {"--capture-range=cudaProfilerApi", "--capture-range-end=stop-shutdown"} < set(options)
        assert span.environment == {}

    @pytest.mark.slow
    def test_a_range_in_any_domain(self, nsys: Nsys) -> None:
        span = RecordedSpan(capture_range="a@b")
        assert {"--capture-range=nvtx", r"--nvtx-capture=a\@b@*"} < set(plan(nsys, span=span).options)
        assert span.environment == {"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"}

    @pytest.mark.slow
    def test_all_of_it(self, nsys: Nsys) -> None:
        assert not any("kill" in option or "delay" in option for option in plan(nsys).options)
        assert (
            RecordedSpan().ends_program,
            RecordedSpan(delay=3).ends_program,
            RecordedSpan(duration=3).ends_program,
        ) == (False, False, True)


@pytest.mark.slow
def test_the_basic_options_are_those_of_any_version(nsys: Nsys) -> None:
    found = plan(nsys, span=RecordedSpan(delay=1), python=True).basic()
    assert [option.partition("=")[0] for option in found.options] == ["--trace", "--cpuctxsw", "--sample", "--delay"]


def test_in_words() -> None:
    assert (in_words(["a"]), in_words(["a", "b", "c"])) == ("a", "a, b and c")
