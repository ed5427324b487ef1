"""A target relation with its diffs applied: deletes, then updates, then inserts.

Nothing is written here. `new` is the whole relation after the changes; `gone` and `came` are only
the rows that change, as they were and as they are now, so that storage can write little.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.diffs.model import DELETE, UPDATE, DiffSchema
from viewkeep.diffs.script import Materialized
from viewkeep.execute.apply_rows import matched_ids
from viewkeep.execute.spark.driver.collect import Relation, distinct_frame
from viewkeep.execute.spark.driver.key_filter import Keys, is_listable, meets, misses
from viewkeep.query.expressions import back_quote
from viewkeep.query.types.inference import find_field

_MATCHED = "viewkeep#matched"


@dataclass(frozen=True)
class Part:
    """A diff that is applied to a relation."""

    name: str
    schema: DiffSchema
    diff: Relation


@dataclass(frozen=True)
class TargetChanges:
    """The diffs that a refresh applies to a target; frames of its rows are lazy."""

    target: Materialized
    make_old: Callable[[], DataFrame] = field(repr=False)
    parts: tuple[Part, ...]

    @cached_property
    def before(self) -> DataFrame:
        """All rows before the changes."""
        return self.make_old()

    @cached_property
    def after(self) -> DataFrame:
        """All rows after the changes."""
        return self.applied(self.before)

    @cached_property
    def old_rows(self) -> DataFrame:
        """The old rows that are deleted, updated or replaced, as they were."""
        if len(self.parts) == 1:
            return target_rows(self.before, self.target, self.parts[0])
        return matching_any(self.before, self.target, self.parts)

    @cached_property
    def new_rows(self) -> DataFrame:
        """The updated and the inserted rows, as they are now."""
        return self.applied(self.old_rows)

    def applied(self, rows: DataFrame) -> DataFrame:
        """Some old rows after the changes, with the inserted ones."""
        for part in self.parts:
            rows = apply_diff(rows, self.target, part)
        return rows


def apply_diff(rows: DataFrame, target: Materialized, part: Part) -> DataFrame:
    """Rows changed by one diff."""
    if part.schema.kind == UPDATE:
        return _updated_frame(rows, target, part)
    rest = target_rows(rows, target, part, kind="left_anti")
    return rest if part.schema.kind == DELETE else rest.union(rows_of_insert(target, part))


def rows_of_insert(target: Materialized, part: Part) -> DataFrame:
    """The rows of an insert; identical ones count once."""
    names = target.definition.names
    columns = [_cast_column(target, part.schema.value_after(name), name, name) for name in names]
    return distinct_frame(part.diff.frame.selectExpr(*columns))


def target_rows(
    rows: DataFrame, target: Materialized, part: Part, kind: str = "left_semi"
) -> DataFrame:
    """The rows that a diff means, or (`left_anti`) the others; NULL is a value of an ID."""
    sources = _id_sources(target, part)
    if not sources:  # it means all rows, since it has one
        return rows if kind == "left_semi" else rows.where(F.lit(False))
    near, exact = _target_filters(sources, part)
    if exact or kind == "left_semi":
        for near_filter in near:
            rows = rows.where(near_filter if kind == "left_semi" else misses(near_filter))
    return rows if exact else _join_diff(rows, target, part, sources, kind)


def matching_any(rows: DataFrame, target: Materialized, parts: Sequence[Part]) -> DataFrame:
    """The rows that some of several diffs mean; every diff is joined once."""
    conditions = []
    for number, part in enumerate(parts):
        sources = _id_sources(target, part)
        near, exact = _target_filters(sources, part)
        if not sources:
            return rows.selectExpr(*map(back_quote, target.definition.names))
        if exact:
            conditions += near
            continue
        keys = _diff_keys(target, part, sources, start=len(target.ids) * number)
        flag = back_quote(f"{_MATCHED}{number}")
        right = _broadcast_hint(keys.selectExpr("*", f"TRUE AS {flag}"), part)
        rows = rows.join(
            right, F.expr(_equal_keys_condition(list(sources), len(target.ids) * number)), "left"
        )
        conditions.append(F.expr(flag))
    matches = rows.where(reduce(operator.or_, conditions))
    return matches.selectExpr(*map(back_quote, target.definition.names))


def _id_sources(target: Materialized, part: Part) -> dict[str, str]:
    """The IDs that rows are found by, and the diff's columns that have them."""
    return {name: part.schema.value_after(name) for name in matched_ids(target, part.schema)}


def _target_filters(sources: dict[str, str], part: Part) -> tuple[list[Column], bool]:
    """Filters that every row targeted by a collected diff passes, and whether they are exact."""
    table = part.diff.table
    filters = [
        meets(name, Keys(table[source], True), null_safe=True)
        for name, source in sources.items()
        if table is not None and is_listable(table.schema.field(source).type)
    ]
    return [near_filter for near_filter, _ in filters], len(sources) == 1 and any(
        listed for _, listed in filters
    )


def _join_diff(
    rows: DataFrame, target: Materialized, part: Part, sources: dict[str, str], kind: str
) -> DataFrame:
    right = _diff_keys(target, part, sources)
    return rows.join(
        _broadcast_hint(right, part), F.expr(_equal_keys_condition(list(sources))), kind
    )


def _diff_keys(
    target: Materialized, part: Part, sources: dict[str, str], start: int = 0
) -> DataFrame:
    """The keys of a diff, each once, under names that number from `start`."""
    numbered_sources = enumerate(sources.items(), start)
    keys = [
        _cast_column(target, source, name, _key_name(i)) for i, (name, source) in numbered_sources
    ]
    return part.diff.frame.selectExpr(*keys).distinct()


def _updated_frame(rows: DataFrame, target: Materialized, part: Part) -> DataFrame:
    """Matched rows take the new values, which may be NULL: a flag tells them from the others."""
    schema = part.schema
    if not schema.changed:
        return rows
    keys = [_cast_column(target, name, name, _key_name(i)) for i, name in enumerate(schema.ids)]
    values = [
        _cast_column(target, schema.value_after(name), name, _value_name(i))
        for i, name in enumerate(schema.changed)
    ]
    right = distinct_frame(part.diff.frame.selectExpr(*keys, *values))
    right = _broadcast_hint(right.selectExpr("*", f"TRUE AS {back_quote(_MATCHED)}"), part)
    joined = rows.join(right, F.expr(_equal_keys_condition(schema.ids)), "left")
    return joined.selectExpr(*(_new_value_column(schema, name) for name in target.definition.names))


def _new_value_column(schema: DiffSchema, name: str) -> str:
    if name not in schema.changed:
        return back_quote(name)
    new, flag = back_quote(_value_name(schema.changed.index(name))), back_quote(_MATCHED)
    return f"CASE WHEN {flag} THEN {new} ELSE {back_quote(name)} END AS {back_quote(name)}"


def _broadcast_hint(right: DataFrame, part: Part) -> DataFrame:
    return right if part.diff.table is None else F.broadcast(right)


def _equal_keys_condition(ids: Sequence[str], start: int = 0) -> str:
    equal = [
        f"{back_quote(name)} <=> {back_quote(_key_name(i))}" for i, name in enumerate(ids, start)
    ]
    return " AND ".join(equal) or "TRUE"


def _cast_column(target: Materialized, source: str, column: str, name: str) -> str:
    kind = find_field(column, target.definition.schema).type
    return f"CAST({back_quote(source)} AS {kind}) AS {back_quote(name)}"


def _key_name(number: int) -> str:
    return f"viewkeep#key{number}"


def _value_name(number: int) -> str:
    return f"viewkeep#value{number}"
