"""The idle ledger: every nanosecond of every gap given to one cause."""
