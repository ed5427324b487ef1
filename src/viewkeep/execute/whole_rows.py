"""Rows of relations in memory, as Arrow tables and as Python's tuples."""

from collections.abc import Sequence

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.query.evaluate.rows import Rows
from viewkeep.tables.arrow_rows import to_rows
from viewkeep.tables.copies import copy_numbers, with_numbers
from viewkeep.tables.files.key_match import without
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.memory import log_memory
from viewkeep.tables.relations import NumberedRows, OverlaidRows, Relation, StoredRows


def whole_rows(relation: Relation, names: Sequence[str]) -> Rows:
    """Some columns of all rows; those of a version of a table or of a cache, which several views of
    a round read, are read once where logs are remembered."""
    memory = log_memory()
    if memory is None or not isinstance(relation, StoredRows):
        return to_rows(_read_relation(relation, names))
    stored = tuple(relation.names[name] for name in names)
    key = "rows", relation.table.uri, (relation.snapshot.version, stored)
    if key not in memory:
        memory[key] = to_rows(_read_relation(relation, names))
    rows: Rows = memory[key]
    return rows


def _read_relation(relation: Relation, names: Sequence[str]) -> pa.Table:
    """Some columns of a relation, in memory."""
    match relation:
        case StoredRows():
            stored = [relation.names[name] for name in names]
            whole = ParquetFolder(relation.table).read(relation.files, relation.snapshot.fields)
            return whole.select(stored).rename_columns(list(names))
        case OverlaidRows():
            needed = list(dict.fromkeys((*names, *relation.covered.column_names)))
            base = without(_read_relation(relation.base, needed), relation.covered)
            live = relation.live.select(needed).cast(base.schema)
            return pa.concat_tables([base, live]).select(list(names))
        case NumberedRows():
            rows = _read_relation(relation.base, list(relation.base.names))
            return with_numbers(rows, copy_numbers(rows)).select(list(names))
    return relation.select(list(names))
