"""What stands in for names: one number a name however it is written."""

from __future__ import annotations

import pytest

from nsysdiag.share.names import Names

WHOLE = "void at::native::vectorized_elementwise_kernel<4, at::native::AbsFunctor<float>, int>(int, float*)"
OTHER = "void at::native::vectorized_elementwise_kernel<8, at::native::AbsFunctor<float>, int>(int, float*)"
NORMAL = "vectorized_elementwise_kernel<AbsFunctor<float>, int, …>"


def test_numbers_go_by_first_appearance_and_by_kind() -> None:
    names = Names()
    assert [names.of("symbol", text) for text in ("solve", "main", "solve")] == ["symbol 1", "symbol 2", "symbol 1"]
    assert names.of("thread", "solve") == "thread 1"
    assert names.of("thread", "") == ""


def test_a_kernel_has_one_number_however_it_is_written() -> None:
    """Whole name, name without counters, short name; a second instance of the template is told apart."""
    names = Names()
    assert names.of("kernel", WHOLE) == "kernel 1<1>"
    assert names.of("kernel", "vectorized_elementwise_kernel") == "kernel 1"
    assert names.of("kernel", OTHER) == "kernel 1<1>.2"
    assert names.of("kernel", "void at::native::vectorized_elementwise_kernel<4, Sin>(int)") == "kernel 1<2>"
    assert names.of("kernel", "other_kernel(int)") == "kernel 2"


def test_kernels_of_one_template_with_counters() -> None:
    names = Names()
    texts = ("triton_add_17", "triton_add_18", "triton_add_#", "triton_mul_17")
    assert [names.of("kernel", text) for text in texts] == ["kernel 1", "kernel 1.2", "kernel 1", "kernel 2"]


@pytest.mark.parametrize(
    ("name", "token"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", "nccl AllReduce 1"),
        ("ncclKernel_SendRecv_RING_SIMPLE", "nccl SendRecv 1"),
        ("nvshmemi_transfer", "nvshmem kernel 1"),
    ],
)
def test_the_class_of_a_collective_stays(name: str, token: str) -> None:
    assert Names().of("kernel", name) == token


def test_ranges_keep_their_counters() -> None:
    """`step 12` and `step 13` are one place in the program; an address or a long number is none of the counters."""
    names = Names()
    texts = ("train step 12", "train step 13", "train step #", "epoch 1 batch 20", "order 123456789", "at 0x7f01")
    assert [names.of("range", text) for text in texts] == [
        *("range 1 #12", "range 1 #13", "range 1", "range 2 #1.20", "range 3", "range 4"),
    ]
    assert [names.of("range", text) for text in ("host 10.0.0.1", "epoch 1 step 2 part 3")] == [
        *("range 5", "range 6 #1.2.3"),
    ]


def test_a_path_and_its_last_part_share_a_number() -> None:
    names = Names()
    assert names.of("module", "/opt/secret/libsolver.so") == "module 1"
    assert names.of("module", "libsolver.so") == "module 1"
