"""Traces as folders of Parquet files, one a table, as `nsys export --type parquetdir` writes them."""
