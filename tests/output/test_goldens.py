"""Every format against files that a person has looked at. `scripts/update_goldens` writes them anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from nsysdiag.batch.results import OURS, write_all
from nsysdiag.comparison.show.registry import RENDERERS
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.tables import tables
from nsysdiag.replay.show.blocks import RENDERERS as PREDICTIONS
from tests.output.batch_samples import BATCHES, CAUSES, HISTORIES
from tests.output.compare_samples import COMPARISONS
from tests.output.samples import SAMPLES
from tests.output.whatif_samples import WHATIFS

GOLDENS = Path(__file__).parent / "goldens"
SHOWN = ("one_device", "several_devices", "never_idle", "no_device")
COMPARED = ("one", "bare", "mixed")
PREDICTED = ("one", "listing")
OPTIONS = RenderOptions(width=80, source="traces/train.sqlite", command="nsysdiag analyze traces/train.sqlite")


def scrub(page: bytes) -> bytes:
    """A page without its style, scripts, what is packed, and their hashes: they are files of their own."""
    ours = r'(<(style|script)(?: type="text/plain" id="[\w-]+")?>).*?(</\2>)'
    text = re.sub(ours, r"\1\3", page.decode(), flags=re.DOTALL)
    return re.sub(r"sha256-[\w+/=]+", "sha256-...", text).encode()


def compare(name: str, data: bytes) -> None:
    """Hold `data` against the golden of that name, or make it the golden where that was asked for."""
    golden = GOLDENS / name
    if os.environ.get("NSYSDIAG_UPDATE_GOLDENS") == "1":
        golden.write_bytes(data)
    assert golden.exists(), f"there is no golden {name}: run scripts/update_goldens and read it"
    assert data.decode() == golden.read_bytes().decode()


@pytest.mark.sampled(quick=2)
@pytest.mark.parametrize("sample", SHOWN)
@pytest.mark.parametrize("name", FORMATS)
def test_format(name: str, sample: str) -> None:
    data = FORMATS[name].render(SAMPLES[sample](), OPTIONS)
    compare(f"{sample}{FORMATS[name].suffix}", scrub(data))


@pytest.mark.parametrize("table", tables(SAMPLES["one_device"]()))
def test_table(table: str) -> None:
    compare(f"one_device.{table}.csv", tables(SAMPLES["one_device"]())[table])


@pytest.mark.parametrize("sample", COMPARED)
@pytest.mark.parametrize("name", RENDERERS)
def test_comparison(name: str, sample: str) -> None:
    data = RENDERERS[name](COMPARISONS[sample](), OPTIONS)
    compare(f"compared_{sample}{FORMATS[name].suffix}", scrub(data))


@pytest.mark.parametrize("sample", PREDICTED)
@pytest.mark.parametrize("name", PREDICTIONS)
def test_prediction(name: str, sample: str) -> None:
    data = PREDICTIONS[name](WHATIFS[sample](), OPTIONS)
    compare(f"predicted_{sample}{FORMATS[name].suffix}", scrub(data))


@pytest.mark.parametrize("name", OURS)
def test_batch(name: str) -> None:
    files = write_all(BATCHES["good"](), HISTORIES["good"](), CAUSES)
    compare(f"batch_good.{name}", scrub(files[name]))


def test_no_golden_is_left_over() -> None:
    known = {f"{sample}{known.suffix}" for sample in SHOWN for known in FORMATS.values()}
    known |= {f"compared_{sample}{FORMATS[name].suffix}" for sample in COMPARED for name in RENDERERS}
    known |= {f"predicted_{sample}{FORMATS[name].suffix}" for sample in PREDICTED for name in PREDICTIONS}
    known |= {f"one_device.{table}.csv" for table in tables(SAMPLES["one_device"]())}
    known |= {f"batch_good.{name}" for name in OURS}
    assert {path.name for path in GOLDENS.iterdir()} == {*known, ".gitattributes"}
