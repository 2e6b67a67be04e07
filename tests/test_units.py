"""Numbers to text and back."""

from __future__ import annotations

import pytest

from nsysdiag.messages import UsageError
from nsysdiag.units import (
    format_bytes,
    format_exact_ns,
    format_hertz,
    format_moment,
    format_money,
    format_ns,
    format_share,
    format_signed_ns,
    format_signed_share,
    format_transfer,
    parse_bytes,
    parse_time,
    uncapitalized,
)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (999_499, "999 µs"),
        (999_999, "1.00 ms"),
        (12_345_678, "12.3 ms"),
        (99_960_000, "100 ms"),
        (1_500_000_000, "1.50 s"),
        (-2_000_000, "-2.00 ms"),
        (7_200_000_000_000, "7,200 s"),
    ],
)
def test_durations_have_three_digits(ns: int, text: str) -> None:
    assert format_ns(ns) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 10, "0.0%"),
        (1, 100_000, "<0.1%"),
        (1, 3, "33.3%"),
        (99_999, 100_000, "99.9%"),
        (5, 5, "100.0%"),
        (1, 0, "–"),
    ],
)
def test_a_share_never_rounds_to_nothing_or_all(part: int, whole: int, text: str) -> None:
    assert format_share(part, whole) == text


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1500", 1500),
        ("1.5us", 1500),
        ("20 ms", 20_000_000),
        ("3s", 3_000_000_000),
        ("0.000000001s", 1),
        ("2µs", 2_000),
        ("-1ms", -1_000_000),
        ("9007199254740993ns", 9007199254740993),
    ],
)
def test_times_are_read_exactly(text: str, ns: int) -> None:
    assert parse_time(text) == ns


@pytest.mark.parametrize("text", ["", "ms", "1 h", "1e9", "1,5ms", "ten", "1ms2", "0x10"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        parse_time(text)


def test_other_units() -> None:
    assert format_exact_ns(1_234_567) == "1,234,567 ns"
    assert format_moment(12_345_678_901) == "12.345678901 s"
    assert format_moment(-5) == "-0.000000005 s"
    assert [format_bytes(size) for size in (0, 1023, 1536, 5 << 30)] == ["0 B", "1023 B", "1.50 KiB", "5.00 GiB"]


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0.0, "0 EUR"),
        (0.00000347222, "0.00000347 EUR"),
        (0.0733412, "0.0733 EUR"),
        (0.5, "0.500 EUR"),
        (0.9949, "0.995 EUR"),
        (0.996, "1.00 EUR"),
        (2.5, "2.50 EUR"),
        (1234.567, "1,234.57 EUR"),
        (9_999.49, "9,999.49 EUR"),
        (1_234_567.8, "1,234,568 EUR"),
    ],
)
def test_money(amount: float, text: str) -> None:
    assert format_money(amount, "EUR") == text


@pytest.mark.parametrize(
    ("change", "before", "time", "share"),
    [
        (1_000, 10_000, "+1.00 µs", "+10.0%"),
        (-5_000, 10_000, "-5.00 µs", "-50.0%"),
        (0, 10_000, "0 ns", "0.0%"),
        (-1, 10_000, "-1 ns", "<0.1%"),
        (7, 0, "+7 ns", "new"),
        (0, 0, "0 ns", "–"),
    ],
)
def test_changes_have_a_sign(change: int, before: int, time: str, share: str) -> None:
    assert format_signed_ns(change) == time
    assert format_signed_share(change, before) == share


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1500", 1500),
        ("10 B", 10),
        ("500MB", 500_000_000),
        ("2GB", 2_000_000_000),
        ("2GiB", 2 << 30),
        ("2g", 2 << 30),
        ("1.5KiB", 1536),
        ("0.1TB", 100_000_000_000),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GB", "2 XB", "-1GB", "1e9", "2GBs", "1,5GB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("frequency", "text"),
    [
        (0, "0 Hz"),
        (999, "999 Hz"),
        (999.6, "1.00 kHz"),
        (210e6, "210 MHz"),
        (999.4e6, "999 MHz"),
        (999.6e6, "1.00 GHz"),
        (1.41e9, "1.41 GHz"),
    ],
)
def test_clocks_have_three_significant_digits(frequency: float, text: str) -> None:
    assert format_hertz(frequency) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        *[(12, "12 B"), (1_500, "1.50 kB"), (246_200_000, "246 MB"), (999_999_999, "1.00 GB")],
        *[(4_531_000_000, "4.53 GB"), (3_350_000_000_000, "3.35 TB")],
    ],
)
def test_transfers_are_in_powers_of_ten(size: int, text: str) -> None:
    assert format_transfer(size) == text


@pytest.mark.parametrize(
    ("title", "inside"),
    [
        ("Another process had the GPU", "another process had the GPU"),
        ("Other CUDA calls", "other CUDA calls"),
        ("OS memory calls", "OS memory calls"),
        ("", ""),
    ],
)
def test_titles_inside_sentences_keep_the_names_in_them(title: str, inside: str) -> None:
    assert uncapitalized(title) == inside
