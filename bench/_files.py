"""The files of tables, as a rival reads them."""

from pathlib import Path

from deltalake import DeltaTable


def parquet_files(table: Path) -> list[str]:
    """The files of a Delta table, the largest first: DuckDB plans a query by the first one."""
    return sorted(DeltaTable(table).file_uris(), key=lambda each: -Path(each).stat().st_size)
