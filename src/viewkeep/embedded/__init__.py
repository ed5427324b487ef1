"""Runs delta scripts in DuckDB, in process."""
