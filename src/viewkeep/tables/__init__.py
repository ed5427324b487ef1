"""Delta tables and Parquet files: versions, logs, rows, changes."""
