"""Reads traces into typed columns: SQLite and Parquet exports of nsys, and JSON of the PyTorch profiler."""
