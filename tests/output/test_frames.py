"""Data frames: the tables of the CSV output, typed and raw, and every gap there is."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec
import pandas as pd
import pytest

import nsysdiag
from nsysdiag.comparison.show.registry import BY_NAME as OF_COMPARISONS
from nsysdiag.document.columns import Kind
from nsysdiag.formats.frames import _DTYPES, all_gaps, frames
from nsysdiag.formats.tables import BY_NAME, tables
from nsysdiag.messages import InputError, UsageError
from nsysdiag.ranks.show.registry import tables as rank_tables
from nsysdiag.record import to_json
from nsysdiag.share.redaction import redacted
from tests.levels import some
from tests.output import compare_samples, rank_samples
from tests.output.rendered import EVERY_SAMPLE
from tests.output.samples import HOSTILE, SAMPLES, device, pack, report

ROOT = Path(__file__).parent.parent.parent
LIMIT = 0
PLACES = ("nvtx", "previous_op", "next_op")


def test_every_kind_has_a_type() -> None:
    assert set(_DTYPES) == set(get_args(Kind))


@pytest.mark.slow
@pytest.mark.parametrize("sample", some(list(SAMPLES), 3))
def test_same_tables_columns_and_rows_as_csv(sample: str) -> None:
    made = SAMPLES[sample]()
    texts = tables(made)
    for name, frame in frames(made).items():
        header, *body = csv.reader(io.StringIO(texts[name].decode(), newline=""))
        assert list(frame.columns) == header
        assert len(frame) == len(body)
    assert list(frames(made)) == list(texts)


@pytest.mark.sampled(quick=3)
@pytest.mark.parametrize("sample", EVERY_SAMPLE)
def test_types_hold_with_and_without_rows(sample: str) -> None:
    for name, frame in frames(SAMPLES[sample]()).items():
        expected = {column.name: _DTYPES[column.kind] for column in BY_NAME[name].columns}
        assert frame.dtypes.astype(str).replace("str", "string").to_dict() == expected, name


MAY_BE_UNKNOWN = {
    "findings": {"saves_low_ns", "saves_high_ns", "saves_of_ns"},
    "threads": {
        *("on_cpu_ns", "off_cpu_ns", "unknown_ns", "preempted_ns", "on_cpu_estimate_ns"),
        *("worst_stall_ns", "worst_stall_start_ns", "api_ns", "sync_ns", "os_ns"),
    },
    "host_windows": {"sync_p50_ns", "sync_p99_ns", "sync_late_p50_ns"},
    "kernel_families": {"step_ns", "measured_ns"},
    "phases": {"step_median_ns", "step_mean_ns"},
}


def test_types_follow_names() -> None:
    for name, frame in frames(SAMPLES["one_device"]()).items():
        for column, kind in frame.dtypes.items():
            anywhere = column in ("per_iteration_ns", "slow_ns", "saving_ns")
            if anywhere or (name in MAY_BE_UNKNOWN and str(column) in MAY_BE_UNKNOWN[name]):
                assert kind == "Int64", (name, column)
            elif str(column).endswith("_ns") and column not in ("slices_ns", "ledger_ns", "offset_error_ns"):
                assert kind == "int64", (name, column)
            if "share" in str(column).split("_"):
                assert kind == "float64", (name, column)
            if column in ("device", "cause", "nvtx", "evidence"):
                assert kind == "string", (name, column)
            if column in ("sync_drained", "communication", "steady"):
                assert kind == "boolean", (name, column)


def test_what_is_missing() -> None:
    gap = msgspec.structs.replace(device().gaps[0], thread=None, previous_op=None, slices=[])
    made = frames(report([device(gaps=[gap], coverage=None)], []))
    row = made["gaps"].iloc[0]
    assert all(row[name] is pd.NA for name in ("process_id", "thread_id", "thread_name", "previous_op", "cause"))
    assert made["devices"]["coverage"].isna().all()
    assert made["gaps"]["thread_id"].dtype == "Int64"


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["one_device", "several_devices", "never_idle"])
def test_sums_are_those_of_the_report(sample: str) -> None:
    made = SAMPLES[sample]()
    ledger, devices, gaps = frames(made)["ledger"], frames(made)["devices"], frames(made)["gaps"]
    for each in made.devices:
        assert ledger.loc[ledger["device"] == each.key, "idle_ns"].sum() == each.idle_ns
    parts = devices[["compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns"]].sum(axis="columns")
    assert (parts == devices["window_ns"]).all()
    assert (gaps["end_ns"] - gaps["start_ns"] == gaps["length_ns"]).all()


def test_names_are_raw() -> None:
    assert frames(SAMPLES["hostile"]())["kernels"]["name"].to_list() == list(HOSTILE)


class TestAllGaps:
    TYPES = ("category", "int64", "int64", "int64", *["category"] * 4)

    def test_adds_up_on_a_real_report(self, demo: nsysdiag.Report) -> None:
        gaps = all_gaps(demo)
        for each in demo.devices:
            mine = gaps[gaps["device"] == each.key]
            assert len(mine) == each.gap_count
            assert mine["length_ns"].sum() == each.idle_ns
            assert mine["start_ns"].is_monotonic_increasing
            assert {gap.start_ns for gap in each.gaps} <= set(mine["start_ns"])
        assert (gaps["end_ns"] - gaps["start_ns"] == gaps["length_ns"]).all()
        assert gaps["device"].drop_duplicates().to_list() == [each.key for each in demo.devices]

    def test_gaps_of_one_place_are_those_of_its_signature(self, demo: nsysdiag.Report) -> None:
        """The names and sums are those of the table `signatures`, which goes by all gaps itself."""
        keys = ["device", "cause", *PLACES]
        gaps = all_gaps(demo).astype(dict.fromkeys(keys, "string"))
        found = gaps.groupby(keys)["length_ns"].agg(["count", "sum"])
        signatures = frames(demo)["signatures"].set_index(keys)
        assert len(signatures) > 30
        for key, row in signatures.iterrows():
            assert found.loc[key].tolist() == [row["count"], row["total_ns"]]

    def test_it_takes_a_small_part_of_the_report(self, demo: nsysdiag.Report) -> None:
        whole, without = len(to_json(demo)), len(to_json(_without_places(demo)))
        assert without < whole < 1.1 * without

    def test_redaction_replaces_the_names(self, demo: nsysdiag.Report) -> None:
        before, after = all_gaps(demo), all_gaps(redacted(demo))
        assert before["nvtx"].isna().equals(after["nvtx"].isna())
        named = {name for label in before["nvtx"].cat.categories for name in str(label).split(" › ") if name}
        assert named
        assert [label for label in after["nvtx"].cat.categories if set(str(label).split(" › ")) & named] == []

    def test_each_device_names_causes_its_own_way(self) -> None:
        first = device(0, gaps_packed=pack([(5, 2, 1), (9, 1, 0)], ["sync", "dispatch"]))
        second = device(1, gaps_packed=pack([(4, 3, 0)], ["dispatch", "io_wait"]))
        gaps = all_gaps(report([first, second], []))
        assert gaps.astype({"device": "object", "cause": "object"}).to_numpy()[:, :5].tolist() == [
            ["gpu0", 5, 7, 2, "dispatch"],
            ["gpu0", 9, 10, 1, "sync"],
            ["gpu1", 4, 7, 3, "dispatch"],
        ]
        assert gaps["cause"].cat.categories.to_list() == ["sync", "dispatch", "io_wait"]

    @pytest.mark.parametrize("sample", EVERY_SAMPLE)
    def test_types_hold_with_and_without_rows(self, sample: str) -> None:
        made = SAMPLES[sample]()
        gaps = all_gaps(made)
        assert list(gaps.columns) == ["device", "start_ns", "end_ns", "length_ns", "cause", *PLACES]
        assert tuple(str(kind) for kind in gaps.dtypes) == self.TYPES
        assert len(gaps) == sum(each.gaps_packed.count for each in made.devices)

    def test_cause_named_twice(self) -> None:
        gaps = all_gaps(report([device(gaps_packed=pack([(1, 1, 0), (3, 1, 1)], ["sync", "sync"]))], []))
        assert gaps["cause"].to_list() == ["sync", "sync"]

    def test_damage_is_an_input_error(self) -> None:
        packed = msgspec.structs.replace(device().gaps_packed, lengths="x")
        with pytest.raises(InputError):
            all_gaps(report([device(gaps_packed=packed)], []))


def _without_places(report: nsysdiag.Report) -> nsysdiag.Report:
    devices = [
        msgspec.structs.replace(each, gaps_packed=msgspec.structs.replace(each.gaps_packed, places=None))
        for each in report.devices
    ]
    return msgspec.structs.replace(report, devices=devices)


class TestOfRanks:
    def test_same_tables_columns_and_rows_as_csv(self) -> None:
        made = rank_samples.ranks_report()
        texts, found = rank_tables(made), frames(made)
        assert list(found) == list(texts)
        for name, frame in found.items():
            header, *body = csv.reader(io.StringIO(texts[name].decode(), newline=""))
            assert list(frame.columns) == header
            assert len(frame) == len(body)
        assert found["ranks"]["rank"].to_list() == [each.rank for each in made.comparison.ranks]


class TestOfComparisons:
    @pytest.mark.sampled(quick=2)
    @pytest.mark.parametrize("sample", ["comparison", "bare", "mixed", "hostile"])
    def test_types_hold_with_and_without_rows(self, sample: str) -> None:
        found = frames(getattr(compare_samples, sample)())
        assert list(found) == list(OF_COMPARISONS)
        for name, frame in found.items():
            expected = {column.name: _DTYPES[column.kind] for column in OF_COMPARISONS[name].columns}
            assert frame.dtypes.astype(str).replace("str", "string").to_dict() == expected, name

    def test_every_list_of_a_device_has_its_rows(self) -> None:
        made = compare_samples.mixed()
        found = frames(made)
        assert len(made.devices) > 1
        of_lists = {
            **{name: name for name in ("parts", "ledger", "root_ledger", "waterfall", "moves", "workload", "kernels")},
            **{name: name for name in ("signatures", "copies", "findings")},
            "collectives": "communication",
        }
        for name, field in of_lists.items():
            rows = [each.key for each in made.devices for _ in getattr(each, field)]
            assert found[name]["device"].to_list() == rows, name
            assert rows, name
        assert set(found) - set(of_lists) == {"devices", "metrics", "account", "work", "traces"}

    def test_values(self) -> None:
        made = compare_samples.comparison()
        found, device = frames(made), made.devices[0]
        row = found["devices"].iloc[0]
        assert [row["length_before_ns"], row["length_after_ns"]] == [device.length.before_ns, device.length.after_ns]
        assert row["length_before_ns"] + found["waterfall"]["change_ns"].sum() == row["length_after_ns"]
        assert (found["ledger"]["after_ns"] - found["ledger"]["before_ns"] == found["ledger"]["change_ns"]).all()
        assert found["traces"]["side"].to_list() == ["before", "after"]
        assert found["metrics"]["before"].dtype == "float64"

    def test_what_is_missing(self) -> None:
        bare = frames(compare_samples.bare())
        assert bare["devices"]["step_before_ns"].isna().all()
        assert bare["account"].empty


class TestQuery:
    @pytest.mark.slow
    def test_rows_for_which_it_holds(self) -> None:
        made = SAMPLES["one_device"]()
        gaps = frames(made)["gaps"]
        found = made.query("length_ns > 395_000 and cause == 'sync'")
        assert 0 < len(found) < len(gaps)
        pd.testing.assert_frame_equal(found, gaps[(gaps["length_ns"] > 395_000) & (gaps["cause"] == "sync")])
        assert made.query("severity == 'high'", "findings")["id"].to_list() == [
            each.id for each in made.findings if each.severity == "high"
        ]
        assert made.query("idle_ns >= 0", table="ledger").equals(frames(made)["ledger"])

    def test_unknown_is_not_true(self) -> None:
        made = SAMPLES["one_device"]()
        known = frames(made)["gaps"]["root_confidence"].notna().sum()
        assert len(made.query("root_confidence >= 0")) == known < len(made.query("length_ns > 0"))
        assert made.query("cause == 'no@such'").empty

    def test_nothing_to_ask(self) -> None:
        assert SAMPLES["no_device"]().query("length_ns > 0").empty

    @pytest.mark.parametrize(
        "expression",
        [
            *("", "length_ns >", "nope > 1", "length_ns", "length_ns + 1", "cause", "index", "1", "True", "'x'"),
            *("length_ns.sum()", "[1, 0]", "a = 1", "a = length_ns > 1\nb = 2", "device.__class__", "length_ns.nope()"),
            *("__import__('os')", "length_ns > cause", "\x1b[31m\0"),
        ],
    )
    def test_wrong_expressions(self, expression: str) -> None:
        with pytest.raises(UsageError, match="cannot be asked of gaps") as caught:
            SAMPLES["one_device"]().query(expression)
        assert caught.value.message.isprintable()
        assert len(caught.value.message) < 500
        assert "length_ns" in str(caught.value.hint)

    @pytest.mark.parametrize("expression", ["length_ns > @limit", "@pd.isna(cause)", "length_ns > @LIMIT", "@frames"])
    def test_variables_of_python_are_not_known(self, expression: str) -> None:
        limit = 0
        assert limit == LIMIT
        with pytest.raises(UsageError, match="is not defined"):
            SAMPLES["one_device"]().query(expression)

    def test_unknown_table(self) -> None:
        with pytest.raises(UsageError, match="there is no table 'nope'") as caught:
            SAMPLES["one_device"]().query("length_ns > 0", "nope")
        assert "gaps, devices, ledger" in str(caught.value.hint)


@pytest.mark.thorough
def test_command_line_loads_neither_pandas_nor_plotly(tmp_path: Path) -> None:
    code = """
import sys
import nsysdiag.pipeline
from nsysdiag.cli.app import main
try:
    main(["demo", "--quiet", *(word for name in sys.argv[1:] for word in ("-o", name))])
finally:
    assert not {"pandas", "plotly"} & set(sys.modules)
"""
    names = [str(tmp_path / f"report.{suffix}") for suffix in ("html", "json", "md", "txt", "csv")]
    subprocess.run([sys.executable, "-c", code, *names], cwd=ROOT, check=True)
    assert all(Path(name).stat().st_size for name in names)
