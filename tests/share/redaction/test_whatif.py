"""Predictions without names: what a change is about is hidden by what it is, its option and factor stay."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nsysdiag.replay.facts import Transform, text_of
from nsysdiag.share.redaction import redacted
from tests.output.whatif_samples import GEMM, LOAD, SYNC, listing, whatif


@pytest.mark.parametrize(
    ("transform", "shown"),
    [
        (SYNC, "--without sync"),
        (Transform(option="async-copies"), "--async-copies"),
        (Transform(option="overlap", of="copies"), "--overlap copies"),
        (Transform(option="rank-like", of="median"), "--rank-like median"),
        (Transform(option="finding", of="f-sync"), "--finding f-sync"),
        (Transform(option="finding", of="f-sync-0a1b2c"), "--finding f-sync-1"),
        (GEMM, "--kernel 'kernel 1*0.5'"),
        (Transform(option="kernel", of="*", factor=0.5), "--kernel '**0.5'"),
        (LOAD, "--host 'range 1*0.5'"),
        (Transform(option="graphs", of="acme step"), "--graphs 'range 1'"),
        (Transform(option="merge", of="acme_kernel"), "--merge 'kernel 1'"),
        (Transform(option="stream", of="acme_kernel"), "--stream 'kernel 1'"),
        (Transform(option="ahead", factor=2.0), "--ahead 2"),
        (Transform(option="unheard", of="acme"), "--unheard 'range 1'"),
    ],
)
def test_what_a_change_is_about(transform: Transform, shown: str) -> None:
    assert text_of(redacted(whatif([transform])).transforms) == shown


def test_findings_in_a_listing_keep_one_id() -> None:
    plain = listing()
    made = redacted(plain)
    assert [each.finding for each in made.savings] == ["f-sync-1", "f-data_loading-1", "f-lock_wait-1", None]
    assert made.savings[3].findings == ["f-sync-1", "f-data_loading-1"]
    assert text_of(made.savings[0].transforms) == "--finding f-sync-1"
    assert made.savings[0].title == "Synchronization in range 1"


def test_figures_stay_and_files_go() -> None:
    plain = replace(whatif(), settings={"nvtx": "acme*"})
    made = redacted(plain)
    assert (made.devices, made.waterfall, made.predicted_ns) == (plain.devices, plain.waterfall, plain.predicted_ns)
    assert "train" not in made.trace.file
    assert "acme" not in str(made.settings)
    assert made.settings["redacted"] == "numbered"
