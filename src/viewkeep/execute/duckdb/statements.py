"""DuckDB's text of what an executor does: queries, tables, and the changes of a diff.

Names are quoted, and values never pasted. IDs are compared with IS NOT DISTINCT FROM: NULL is a
value of an ID.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from uuid import uuid4

from viewkeep.diffs.model import DELETE, UPDATE, DiffSchema, post
from viewkeep.diffs.script import Materialized
from viewkeep.execute.duckdb.dialect.queries import DUCKDB
from viewkeep.execute.duckdb.dialect.text import quote_name, type_name
from viewkeep.query.algebra import Leaf, Node
from viewkeep.query.types.data_types import Type
from viewkeep.query.types.inference import Schema
from viewkeep.sql.text import to_sql

Resolve = Callable[[Leaf], str]
"""The DuckDB text of the relation that holds the rows of a leaf."""

_MARK = f"<viewkeep {uuid4()}>"
"""What no text of a user has."""


def query(node: Node, resolve: Resolve) -> str:
    """The query of a node, with its columns cast to the types that the node says."""
    text = to_sql(node, resolve, DUCKDB)
    columns = ", ".join(_typed_column_sql(quote_name(f.name), f.type) for f in node.schema)
    names = ", ".join(map(quote_name, node.names))
    return f"SELECT {columns} FROM ({text}) AS result ({names})"


@dataclass(frozen=True)
class QueryText:
    """The text of a query, made once: between its pieces stand relations, which may be elsewhere
    each time."""

    node: Node
    leaves: tuple[Leaf, ...]
    pieces: tuple[str, ...]

    @staticmethod
    def of(node: Node) -> "QueryText":
        """The text of a node."""
        leaves: list[Leaf] = []

        def mark(leaf: Leaf) -> str:
            leaves.append(leaf)
            return f"{_MARK}{len(leaves) - 1}{_MARK}"

        pieces = query(node, mark).split(_MARK)
        return QueryText(
            node, tuple(leaves[int(each)] for each in pieces[1::2]), tuple(pieces[::2])
        )

    def text(self, resolve: Resolve) -> str:
        """The text with the relations of the leaves."""
        relations = (resolve(leaf) for leaf in self.leaves)
        return "".join(chain(*zip(self.pieces, relations, strict=False), self.pieces[-1:]))


def _typed_column_sql(name: str, type_: Type) -> str:
    return f"{typed_value(name, type_)} AS {name}"


def typed_value(value: str, type_: Type) -> str:
    """A value as one of a type; those that are only carried stay as they are."""
    return value if type_.is_nested else f"CAST({value} AS {type_name(type_)})"


def create_relation(relation: str, schema: Schema, kind: str = "TABLE") -> str:
    """An empty table with the columns of a schema."""
    columns = ", ".join(f"{quote_name(f.name)} {type_name(f.type)}" for f in schema)
    return f"CREATE {kind} {relation} ({columns})"


def counts(relations: Iterable[str]) -> str:
    """The number of rows of every relation, with its place.

    >>> print(counts(["a", "b"]))
    SELECT 0, count(*) FROM a UNION ALL SELECT 1, count(*) FROM b
    """
    return " UNION ALL ".join(f"SELECT {i}, count(*) FROM {r}" for i, r in enumerate(relations))


def conflicts(diff: str, schema: DiffSchema, ids: Iterable[str]) -> str:
    """Rows of a diff that set the same target row differently; an effective diff has none."""
    keys = [quote_name(schema.value_after(name)) for name in ids]
    new_values = [quote_name(schema.value_after(c)) for c in _columns_of_update(schema)]
    distinct = f"SELECT DISTINCT {', '.join([*keys, *new_values])} FROM {diff}"
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT 1 FROM ({distinct}) AS new_values{grouped} HAVING count(*) > 1 LIMIT 1"


def statements_of_diff(
    diff: str, target: str, schema: DiffSchema, materialized: Materialized
) -> list[str]:
    """The statements that change a target by a diff; the last one tells how many rows changed."""
    if schema.kind == DELETE:
        return [_delete_statement(diff, target, {name: name for name in schema.ids})]
    if schema.kind == UPDATE:
        return [_update_statement(diff, target, schema)] if schema.changed else []
    replaced = _delete_statement(
        diff, target, {name: schema.value_after(name) for name in materialized.ids}
    )
    return [replaced, _insert_statement(diff, target, schema, materialized)]


def _columns_of_update(schema: DiffSchema) -> tuple[str, ...]:
    return schema.changed if schema.kind == UPDATE else schema.after


def _equal_ids_of_diff(ids: Mapping[str, str]) -> str:
    """The condition that a diff row targets a row; without IDs it targets every row."""
    equal = [
        f"target.{quote_name(t)} IS NOT DISTINCT FROM diff.{quote_name(d)}" for t, d in ids.items()
    ]
    return " AND ".join(equal) or "TRUE"


def _delete_statement(diff: str, target: str, ids: Mapping[str, str]) -> str:
    match = f"SELECT 1 FROM {diff} AS diff WHERE {_equal_ids_of_diff(ids)}"
    return f"DELETE FROM {target} AS target WHERE EXISTS ({match})"


def _update_statement(diff: str, target: str, schema: DiffSchema) -> str:
    values = [*schema.ids, *map(post, schema.changed)]
    rows = f"SELECT DISTINCT {', '.join(map(quote_name, values))} FROM {diff}"
    sets = ", ".join(f"{quote_name(c)} = diff.{quote_name(post(c))}" for c in schema.changed)
    same = _equal_ids_of_diff({name: name for name in schema.ids})
    return f"UPDATE {target} AS target SET {sets} FROM ({rows}) AS diff WHERE {same}"


def _insert_statement(
    diff: str, target: str, schema: DiffSchema, materialized: Materialized
) -> str:
    columns = ", ".join(map(quote_name, materialized.definition.names))
    values = ", ".join(
        quote_name(schema.value_after(name)) for name in materialized.definition.names
    )
    return f"INSERT INTO {target} ({columns}) SELECT DISTINCT {values} FROM {diff}"
