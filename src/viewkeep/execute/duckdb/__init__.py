"""The backend on the driver: DuckDB."""
