"""A kept relation with its diffs applied: deletes, then updates, then inserts.

Nothing is written here. `new` is the whole relation after the changes; `gone` and `came` are only
the rows that change, as they were and as they are now, so that storage can write little.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.diffs.model import DELETE, INSERT, UPDATE, DiffSchema
from viewkeep.diffs.script import Materialized
from viewkeep.diffs.sql_text import quote
from viewkeep.query.inference import find_field
from viewkeep.spark.keys import Keys, is_listable, meets, misses
from viewkeep.spark.local import Relation

_MATCHED = "viewkeep#matched"


@dataclass(frozen=True)
class Part:
    """A diff that is applied to a relation."""

    name: str
    schema: DiffSchema
    diff: Relation


@dataclass(frozen=True)
class Changed:
    """A relation that a refresh changes. Its frames are lazy, and made when they are asked for."""

    kept: Materialized
    old: DataFrame
    parts: tuple[Part, ...]

    @cached_property
    def new(self) -> DataFrame:
        """All rows after the changes."""
        return self.applied(self.old)

    @cached_property
    def gone(self) -> DataFrame:
        """The old rows that are deleted, updated or replaced, as they were."""
        rest, found = self.old, []
        for part in self.parts:
            found.append(matching(rest, self.kept, part))
            rest = matching(rest, self.kept, part, kind="left_anti")
        return reduce(DataFrame.union, found)

    @cached_property
    def came(self) -> DataFrame:
        """The updated and the inserted rows, as they are now."""
        return self.applied(self.gone)

    def applied(self, rows: DataFrame) -> DataFrame:
        """Some old rows after the changes, with the inserted ones."""
        for part in self.parts:
            rows = apply(rows, self.kept, part)
        return rows


def apply(rows: DataFrame, kept: Materialized, part: Part) -> DataFrame:
    """Rows changed by one diff."""
    if part.schema.kind == UPDATE:
        return _updated(rows, kept, part)
    rest = matching(rows, kept, part, kind="left_anti")
    return rest if part.schema.kind == DELETE else rest.union(inserted(kept, part))


def inserted(kept: Materialized, part: Part) -> DataFrame:
    """The rows of an insert; identical ones count once."""
    names = kept.definition.names
    columns = [_cast(kept, part.schema.value_after(name), name, name) for name in names]
    return part.diff.frame.selectExpr(*columns).distinct()


def matching(rows: DataFrame, kept: Materialized, part: Part, kind: str = "left_semi") -> DataFrame:
    """The rows that a diff means, or (`left_anti`) the others; NULL is a value of an ID."""
    sources = {name: part.schema.value_after(name) for name in matched_ids(kept, part.schema)}
    if not sources:  # it means all rows, since it has one
        return rows if kind == "left_semi" else rows.where(F.lit(False))
    table = part.diff.table
    exact = False
    if table is not None:
        for name, source in sources.items():
            if is_listable(table.schema.field(source).type):
                met, listed = meets(name, Keys(table[source], True), null_safe=True)
                exact = listed and len(sources) == 1
                if exact or kind == "left_semi":
                    rows = rows.where(met if kind == "left_semi" else misses(met))
    return rows if exact else _joined(rows, kept, part, sources, kind)


def matched_ids(kept: Materialized, schema: DiffSchema) -> tuple[str, ...]:
    """The IDs that rows are found by: an insert replaces by all of them."""
    return kept.ids if schema.kind == INSERT else schema.ids


def _joined(
    rows: DataFrame, kept: Materialized, part: Part, sources: dict[str, str], kind: str
) -> DataFrame:
    keys = [_cast(kept, source, name, _key(i)) for i, (name, source) in enumerate(sources.items())]
    right = part.diff.frame.selectExpr(*keys).distinct()
    return rows.join(_hinted(right, part), F.expr(_same(list(sources))), kind)


def _updated(rows: DataFrame, kept: Materialized, part: Part) -> DataFrame:
    """Matched rows take the new values, which may be NULL: a flag tells them from the others."""
    schema = part.schema
    if not schema.changed:
        return rows
    keys = [_cast(kept, name, name, _key(i)) for i, name in enumerate(schema.ids)]
    values = [
        _cast(kept, schema.value_after(name), name, _value(i))
        for i, name in enumerate(schema.changed)
    ]
    right = part.diff.frame.selectExpr(*keys, *values).distinct()
    right = _hinted(right.selectExpr("*", f"TRUE AS {quote(_MATCHED)}"), part)
    joined = rows.join(right, F.expr(_same(schema.ids)), "left")
    return joined.selectExpr(*(_new_value(schema, name) for name in kept.definition.names))


def _new_value(schema: DiffSchema, name: str) -> str:
    if name not in schema.changed:
        return quote(name)
    new, flag = quote(_value(schema.changed.index(name))), quote(_MATCHED)
    return f"CASE WHEN {flag} THEN {new} ELSE {quote(name)} END AS {quote(name)}"


def _hinted(right: DataFrame, part: Part) -> DataFrame:
    return right if part.diff.table is None else F.broadcast(right)


def _same(ids: Sequence[str]) -> str:
    equal = [f"{quote(name)} <=> {quote(_key(i))}" for i, name in enumerate(ids)]
    return " AND ".join(equal) or "TRUE"


def _cast(kept: Materialized, source: str, column: str, name: str) -> str:
    kind = find_field(column, kept.definition.schema).type
    return f"CAST({quote(source)} AS {kind}) AS {quote(name)}"


def _key(number: int) -> str:
    return f"viewkeep#key{number}"


def _value(number: int) -> str:
    return f"viewkeep#value{number}"
