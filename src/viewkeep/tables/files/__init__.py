"""Parquet files of tables: rows by key, copy on write, work over many of them."""
