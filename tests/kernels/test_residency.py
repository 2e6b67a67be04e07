"""Blocks an SM and waves, against numbers worked out by hand from the published limits of each chip."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from nsysdiag.events.gpus import Gpu, SmLimits
from nsysdiag.events.operations import LaunchShapes
from nsysdiag.kernels.limits import LIMITS, Residency, limit_name, residency

KIB = 1024
VOLTA = Gpu("V100", 80, SmLimits(64, 32, 65_536, 96 * KIB, compute=(7, 0)))
TURING = Gpu("T4", 40, SmLimits(32, 16, 65_536, 64 * KIB, compute=(7, 5)))
PASCAL = Gpu("P100", 56, SmLimits(64, 32, 65_536, 64 * KIB, compute=(6, 0)))
AMPERE = Gpu("A100", 108, SmLimits(64, 32, 65_536, 164 * KIB, compute=(8, 0)))
GEFORCE = Gpu("RTX 3080", 68, SmLimits(48, 16, 65_536, 100 * KIB, compute=(8, 6)))
HOPPER = Gpu("H100", 132, SmLimits(64, 32, 65_536, 228 * KIB, compute=(9, 0)))


def shape(threads: int, registers: int = 16, shared: int = 0, blocks: int = 1) -> LaunchShapes:
    return LaunchShapes(*(np.array([value]) for value in (blocks, threads, registers, shared)))


def found(gpu: Gpu, launched: LaunchShapes) -> Residency:
    residencies = residency(launched, gpu)
    assert residencies is not None
    return residencies


def blocks_and_limit(gpu: Gpu, launched: LaunchShapes) -> tuple[int, str]:
    its = found(gpu, launched)
    return int(its.blocks_per_sm[0]), LIMITS[int(its.limit[0])]


@pytest.mark.parametrize(
    ("gpu", "launched", "blocks", "limit"),
    [
        # The CUDA C++ Best Practices Guide: with 37 registers a thread, 12 blocks of 128 threads (75%) fit on an SM of
        # compute capability 7.0, and four of 320 (63%).
        (VOLTA, shape(128, 37), 12, "registers"),
        (VOLTA, shape(320, 37), 4, "registers"),
        (VOLTA, shape(256, 32), 8, "warps"),
        # 256 threads are 8 warps of 64; 1024 threads are 32 of 64, of 32 on Turing and of 48 on GA102.
        (AMPERE, shape(256, 32), 8, "warps"),
        (AMPERE, shape(1024, 32), 2, "warps"),
        (TURING, shape(1024, 32), 1, "warps"),
        (GEFORCE, shape(1024, 32), 1, "warps"),
        # 33 threads are two warps.
        (AMPERE, shape(33), 32, "warps"),
        # 32 blocks of one warp leave half of the warps unused; 16 blocks on GA102.
        (AMPERE, shape(32), 32, "blocks"),
        (GEFORCE, shape(32), 16, "blocks"),
        # 64 registers: 2,048 a warp, 32 warps. 33 registers: 1,056, rounded up to 1,280; 51 warps, rounded down to 48.
        (AMPERE, shape(256, 64), 4, "registers"),
        (AMPERE, shape(256, 33), 6, "registers"),
        (AMPERE, shape(32 * 17, 33), 2, "registers"),
        # 255 registers: 8,192 a warp with rounding, 8 warps.
        (AMPERE, shape(128, 255), 2, "registers"),
        (AMPERE, shape(512, 255), 0, "registers"),
        # Two partitions alone in 6.0: 51 warps, rounded down to 50.
        (PASCAL, shape(64, 33), 25, "registers"),
        (VOLTA, shape(64, 33), 24, "registers"),
        # 48 KiB and the KiB that the system takes from 8.0 on: 3 of 164 KiB, where 2 of 96 KiB took it without.
        (AMPERE, shape(64, 16, 48 * KIB), 3, "shared memory"),
        (VOLTA, shape(64, 16, 48 * KIB), 2, "shared memory"),
        # 54,000 B and 1,024 are rounded up to 55,040; three are 165,120 of 167,936.
        (AMPERE, shape(64, 16, 54_000), 3, "shared memory"),
        # 55,000 B make 56,064: three would be 168,192.
        (AMPERE, shape(64, 16, 55_000), 2, "shared memory"),
        # Without any of its own a block still takes the KiB: 100 KiB hold 16 blocks on GA102 easily.
        (GEFORCE, shape(64), 16, "blocks"),
        # 300 B in units of 256 are 512: 128 of 64 KiB.
        (TURING, shape(64, 16, 300), 16, "warps"),
        (HOPPER, shape(384, 168, 213_180), 1, "registers"),
        (HOPPER, shape(128, 168, 213_180), 1, "shared memory"),
    ],
)
def test_blocks_on_an_sm(gpu: Gpu, launched: LaunchShapes, blocks: int, limit: str) -> None:
    assert blocks_and_limit(gpu, launched) == (blocks, limit)


@pytest.mark.parametrize(
    ("blocks", "waves", "sm_share", "resident_share"),
    [
        (1, 1 / 864, 1 / 108, 1 / 864),
        (54, 54 / 864, 0.5, 54 / 864),
        (108, 0.125, 1.0, 0.125),
        (864, 1.0, 1.0, 1.0),
        (865, 865 / 864, (1 + 1 / 108) / 2, 865 / 1728),
        (2160, 2.5, 1.0, 2160 / 2592),
        (1_000_000, 1_000_000 / 864, (1157 + 352 / 352) / 1158, 1_000_000 / (1158 * 864)),
    ],
)
def test_waves_and_what_they_fill(blocks: int, waves: float, sm_share: float, resident_share: float) -> None:
    """8 blocks on each of 108 SMs: 864 at a time."""
    its = found(AMPERE, shape(256, 32, 0, blocks))
    shares = (its.waves[0], its.sm_share[0], its.resident_share[0])
    assert shares == pytest.approx((waves, sm_share, resident_share))


def test_the_picture() -> None:
    """4 SMs with 2 blocks each, 19 blocks: three waves, the last one of 3."""
    its = found(Gpu("small", 4, SmLimits(2, 2)), shape(32, blocks=19))
    assert its.waves[0] == 2.375
    assert its.sm_share[0] == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert its.resident_share[0] == pytest.approx(19 / 24)


def test_what_limits_is_the_grid_where_that_ends_first() -> None:
    for blocks, limit in ((863, "grid too small"), (864, "warps"), (865, "warps")):
        launched = shape(256, 32, 0, blocks)
        assert limit_name(found(AMPERE, launched), launched, 0) == limit


def test_a_block_that_does_not_fit_fills_nothing_that_is_known() -> None:
    its = found(AMPERE, shape(64, 16, 200 * KIB))
    assert its.blocks_per_sm[0] == 0
    assert np.isnan([its.waves[0], its.sm_share[0], its.resident_share[0]]).all()


def test_what_the_export_does_not_say_does_not_limit() -> None:
    bare = Gpu("old", 72, SmLimits(warps=32))
    assert blocks_and_limit(bare, shape(32, 255, 64 * KIB)) == (32, "warps")


@pytest.mark.parametrize(
    "gpu",
    [
        Gpu("GPU", None),
        Gpu("GPU", None, AMPERE.limits),
        Gpu("GPU", 2**62, AMPERE.limits),
        Gpu("GPU", 108, SmLimits(warps=2**62)),
    ],
)
def test_without_the_chip_nothing_is_known(gpu: Gpu) -> None:
    assert residency(shape(256), gpu) is None


def test_a_grid_that_leaves_sms_empty_shows_how_many_without_the_chips_limits() -> None:
    """Of 108 SMs 54 hold a block, whatever one could hold; a larger grid may or may not be a wave."""
    bare = Gpu("GPU", 108)
    its = found(bare, shape(256, blocks=54))
    assert its.sm_share.tolist() == [0.5]
    assert np.isnan([its.waves[0], its.resident_share[0]]).all()
    assert limit_name(its, shape(256, blocks=54), 0) == "grid too small"
    larger = shape(256, blocks=109)
    assert np.isnan(found(bare, larger).sm_share[0])
    assert limit_name(found(bare, larger), larger, 0) is None


def test_without_registers_a_shape_shows_no_more_than_its_grid() -> None:
    """Traces of AMD's GPUs lack them: what a multiprocessor holds is unknown, but 54 blocks leave half of 108 empty."""
    launched = LaunchShapes(np.array([54, 864, 864]), np.array([256] * 3), np.array([0, 0, 32]), np.array([0] * 3))
    its = found(AMPERE, launched)
    assert its.blocks_per_sm.tolist() == [0, 0, 8]
    assert [its.sm_share[0], its.sm_share[2]] == [0.5, 1.0]
    assert np.isnan([its.sm_share[1], *its.waves[:2], *its.resident_share[:2]]).all()
    assert limit_name(its, launched, 1) is None


def test_shapes_side_by_side_do_not_mix() -> None:
    together = LaunchShapes(np.array([54, 1]), np.array([256, 32]), np.array([32, 255]), np.array([0, 0]))
    its = found(AMPERE, together)
    assert its.blocks_per_sm.tolist() == [8, 8]
    assert its.limit.tolist() == [LIMITS.index("warps"), LIMITS.index("registers")]
    assert its.sm_share.tolist() == [0.5, 1 / 108]


def test_limits_are_hashable() -> None:
    """GPUs that are the same are told to be so by a set of them."""
    assert len({AMPERE, structs.replace(AMPERE), HOPPER}) == 2
