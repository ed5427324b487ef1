"""Files of a table written anew with other columns: without some, renamed, or of wider types."""

from collections.abc import Mapping

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.query.types.data_types import Field
from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.rewrite import write_files
from viewkeep.tables.log.delta import DataFile, LakeTable, Snapshot


def rewrite_columns(
    table: LakeTable, snapshot: Snapshot, columns: Mapping[Field, str | None]
) -> list[DataFile]:
    """All rows of a version, file by file, with these columns of those that it has, by their names
    there; a column of none is NULL."""
    folder, schema = ParquetFolder(table), arrow_schema(columns)
    files: list[DataFile] = []
    for each in snapshot.files:
        rows = folder.read([each], snapshot.fields)
        values = [
            pa.nulls(rows.num_rows, to.type) if old is None else rows[old].cast(to.type)
            for to, old in zip(schema, columns.values(), strict=True)
        ]
        files += write_files(table, pa.Table.from_arrays(values, schema=schema))
    return files
