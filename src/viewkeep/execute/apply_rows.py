"""A diff applied to rows in memory (id_based_ivm, section 2): what it sets for each key, and the
rows after it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.diffs.model import DELETE, INSERT, DiffSchema
from viewkeep.diffs.script import Materialized
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.evaluate.rows import Rows, key_of
from viewkeep.query.types.data_types import BOOLEAN, DATE, DOUBLE, INTEGRAL, STRING
from viewkeep.query.types.inference import Schema, find_field
from viewkeep.tables.arrow_rows import arrow_schema, to_arrow, to_rows

Pairs = list[tuple[Row, Row]]
_SAME = frozenset({*INTEGRAL, STRING, BOOLEAN, DATE, DOUBLE})
"""Types whose values in rows are those that Arrow gives back."""


def matched_ids(target: Materialized, schema: DiffSchema) -> tuple[str, ...]:
    """The IDs that rows are found by: an insert replaces by all of them."""
    return target.ids if schema.kind == INSERT else schema.ids


def keys_and_values(target: Materialized, schema: DiffSchema, diff: pa.Table) -> Pairs:
    """The key of each row of a diff and the values that it sets, in the types of the relation; an
    error of Arrow where a value does not fit them."""
    ids, sets, fields = _ids_and_set_columns(target, schema)
    names = [each.name for each in fields]
    columns = diff.select([schema.value_after(name) for name in names]).rename_columns(names)
    nullable = pa.schema([each.with_nullable(True) for each in arrow_schema(fields)])
    key, values = key_of(ids, fields), key_of(sets, fields)
    return [(key(row), values(row)) for row in to_rows(columns.cast(nullable))]


def keys_and_values_of_rows(
    target: Materialized, schema: DiffSchema, columns: Schema, rows: Rows
) -> Pairs:
    """The same of a diff in rows with these columns."""
    ids, sets, fields = _ids_and_set_columns(target, schema)
    own = [find_field(schema.value_after(each.name), columns) for each in fields]
    if any(a.type != b.type or a.type not in _SAME for a, b in zip(own, fields, strict=True)):
        nullable = [replace(each, nullable=True) for each in columns]
        return keys_and_values(target, schema, to_arrow(nullable, rows))
    key = key_of([schema.value_after(name) for name in ids], columns)
    values = key_of([schema.value_after(name) for name in sets], columns)
    return [(key(row), values(row)) for row in rows]


def _ids_and_set_columns(
    target: Materialized, schema: DiffSchema
) -> tuple[tuple[str, ...], tuple[str, ...], Schema]:
    """The IDs that rows are found by, the columns that a diff sets, and all of them."""
    ids = matched_ids(target, schema)
    sets = {INSERT: target.definition.names, DELETE: ()}.get(schema.kind, schema.changed)
    names = dict.fromkeys((*ids, *sets))
    return ids, tuple(sets), tuple(find_field(name, target.definition.schema) for name in names)


def apply_to_rows(
    target: Materialized, schema: DiffSchema, values: Mapping[Row, Row], rows: Rows
) -> tuple[Rows, int]:
    """Rows changed by one diff, given the values that it sets for each key; and how many it
    changed."""
    key = key_of(matched_ids(target, schema), target.definition.schema)
    hits = [key(row) in values for row in rows]
    rest = [row for row, hit in zip(rows, hits, strict=True) if not hit]
    if schema.kind == DELETE:
        return rest, sum(hits)
    if schema.kind == INSERT:
        return rest + list(values.values()), len(values)
    places = [target.definition.names.index(name) for name in schema.changed]
    return [_updated_row(row, values.get(key(row)), places) for row in rows], sum(hits)


def _updated_row(row: Row, values: Row | None, places: Iterable[int]) -> Row:
    if values is None:
        return row
    new = list(row)
    for place, value in zip(places, values, strict=True):
        new[place] = value
    return tuple(new)
