"""The collected diffs of one relation, joined into as few as can be: each costs Spark a join."""

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.changes.values import same
from viewkeep.diffs.model import DELETE, INSERT, DiffSchema
from viewkeep.diffs.script import Materialized
from viewkeep.execute.apply_rows import matched_ids
from viewkeep.execute.errors import RunError
from viewkeep.execute.spark.apply_diff import Part
from viewkeep.execute.spark.driver.collect import Relation, distinct_frame, local
from viewkeep.execute.spark.versions import union
from viewkeep.query.expressions import back_quote
from viewkeep.tables.arrow_rows import to_rows

Key = tuple[Any, ...]


def merge_diffs(spark: SparkSession, target: Materialized, parts: list[Part]) -> list[Part]:
    """Merge diffs of equal kind, IDs and columns; of rows with the same IDs, the later wins."""
    groups: dict[object, list[Part]] = {}
    for part in parts:
        alone = not matched_ids(target, part.schema)
        groups.setdefault(id(part) if alone else _diff_signature(target, part), []).append(part)
    return [_merged_diff(spark, target, group) for group in groups.values()]


def check_effective(target: Materialized, part: Part) -> None:
    """Which of two different values a row gets would depend on the order of the diff's rows."""
    ids, values = matched_ids(target, part.schema), set_columns(part.schema)
    if part.schema.kind == DELETE or not (ids or values):
        return
    names = tuple(dict.fromkeys((*ids, *values)))
    conflict = _has_conflict_in_spark if part.diff.table is None else _has_conflict
    if conflict(part, names, len(ids)):
        raise RunError(f"{part.name}: two rows of the diff set the same row differently")


def _has_conflict(part: Part, names: tuple[str, ...], ids: int) -> bool:
    values_by_key: dict[Key, Key] = {}
    rows = ((row[:ids], row[ids:]) for row in to_rows(_diff_columns(part, names)))
    return any(not same(values_by_key.setdefault(key, values), values) for key, values in rows)


def _has_conflict_in_spark(part: Part, names: tuple[str, ...], ids: int) -> bool:
    columns = [back_quote(part.schema.value_after(name)) for name in names]
    rows = distinct_frame(part.diff.frame.selectExpr(*columns))
    counts = rows.groupBy(*map(F.col, columns[:ids])).count()
    return not counts.where("count > 1").isEmpty()


def set_columns(schema: DiffSchema) -> tuple[str, ...]:
    """The columns that a diff sets."""
    return schema.after if schema.kind == INSERT else schema.changed


def _diff_signature(target: Materialized, part: Part) -> object:
    """Kind, IDs, columns and types: diffs are merged where these are equal."""
    ids = matched_ids(target, part.schema)
    values = tuple(sorted(set(set_columns(part.schema)) - set(ids)))
    by_name = {field.name: field.type for field in part.diff.schema}
    types = tuple(by_name[part.schema.value_after(name)] for name in (*sorted(ids), *values))
    return part.schema.kind, frozenset(ids), values, types


def _merged_diff(spark: SparkSession, target: Materialized, group: list[Part]) -> Part:
    if len(group) == 1:
        return group[0]
    first = group[0]
    ids = matched_ids(target, first.schema)
    values = tuple(name for name in set_columns(first.schema) if name not in ids)
    schema = DiffSchema(first.schema.kind, ids, (), values, values)
    name = " and ".join(part.name for part in group)
    if any(part.diff.table is None for part in group):
        return Part(name, schema, Relation(_merged_frame(group, schema, (*ids, *values))))
    # Without the tables' schemas, which may differ in what can be NULL.
    picked = [_diff_columns(part, (*ids, *values)).columns for part in group]
    tables = [pa.Table.from_arrays(columns, list(schema.columns)) for columns in picked]
    table = pa.concat_tables(tables)
    last = {row[: len(ids)]: i for i, row in enumerate(to_rows(table))}
    return Part(name, schema, local(spark, table.take(list(last.values()))))


def _merged_frame(group: list[Part], schema: DiffSchema, names: tuple[str, ...]) -> DataFrame:
    """Merge diffs in Spark that are too large to collect; rows with the same IDs are equal."""
    frames = []
    for part in group:
        sources = map(part.schema.value_after, names)
        pairs = zip(sources, schema.columns, strict=True)
        frames.append(
            part.diff.frame.selectExpr(*(f"{back_quote(a)} AS {back_quote(b)}" for a, b in pairs))
        )
    return union(frames)


def _diff_columns(part: Part, names: tuple[str, ...]) -> pa.Table:
    assert part.diff.table is not None
    return part.diff.table.select([part.schema.value_after(name) for name in names])
