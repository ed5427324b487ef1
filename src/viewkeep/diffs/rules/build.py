"""Pieces of queries that rules are made of."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    Join,
    Node,
    Output,
    Project,
    Select,
    SemiJoin,
    UnionAll,
)
from viewkeep.query.expressions import (
    TRUE,
    Call,
    Column,
    Expression,
    Literal,
    conjunction,
    literal,
    substitute,
)
from viewkeep.query.types.data_types import BOOLEAN
from viewkeep.query.types.inference import Schema, find_field
from viewkeep.query.types.internal_functions import COMPARABLE

FALSE = Literal(False, BOOLEAN)
KEY = "#key"
"""Ends the names of columns that rows are matched by, so that both sides of a join differ."""


def keep(node: Node, names: Iterable[str]) -> Node:
    """Some of the columns."""
    return project(node, {name: Column(name) for name in names})


def project(node: Node, outputs: Mapping[str, Expression]) -> Node:
    """Computed columns by name; the node itself where they are its columns as they are."""
    if is_whole(node, outputs):
        return node
    return Project(node, tuple(Output(name, value) for name, value in outputs.items()))


def is_whole(node: Node, outputs: Mapping[str, Expression]) -> bool:
    """Whether a projection would only repeat the columns of a node, in their order."""
    pairs = zip(outputs.items(), node.schema, strict=False)
    return len(outputs) == len(node.schema) and all(
        name == field.name and value == Column(name) for (name, value), field in pairs
    )


def select(node: Node, condition: Expression) -> Node:
    """The rows for which a condition holds."""
    return node if condition == TRUE else Select(node, condition)


def rename_expression(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The expression over other columns; those not named stay."""
    return substitute(expression, lambda column: Column(names.get(column.name, column.name)))


def holds(condition: Expression) -> Expression:
    """Whether a condition is TRUE, never NULL."""
    return Call("coalesce", (condition, FALSE))


def fails(condition: Expression) -> Expression:
    """Whether a condition is FALSE or NULL."""
    return Call("not", (holds(condition),))


def differ(pairs: Iterable[tuple[str, str]], schema: Schema) -> Expression:
    """Whether some pair of columns has different values; NULL is a value."""
    parts = [
        Call("not", (Call("<=>", (_comparable_column(a, schema), _comparable_column(b, schema))),))
        for a, b in pairs
    ]
    return reduce(lambda a, b: Call("or", (a, b)), parts) if parts else FALSE


def _comparable_column(name: str, schema: Schema) -> Expression:
    """The column, or for a type without comparison a value that is equal where the column is."""
    column = Column(name)
    return Call(COMPARABLE, (column,)) if find_field(name, schema).type.is_nested else column


def equal(left: str, right: str, schema: Schema) -> Expression:
    """Equality that takes NULL for a value, where there can be one."""
    nullable = any(find_field(name, schema).nullable for name in (left, right))
    return Call("<=>" if nullable else "=", (Column(left), Column(right)))


def key_columns(node: Node, columns: Iterable[str], distinct: bool = False) -> Node:
    """The columns that rows are matched by, under names of their own."""
    keys = project(node, {f"{c}{KEY}": Column(c) for c in columns} or {KEY: literal(1)})
    return Distinct(keys) if distinct else keys


def on_columns(left: Node, right: Node, columns: Iterable[str]) -> Expression:
    """The condition that columns of the left equal those of a `key_columns` right side."""
    schema = left.schema + right.schema
    return conjunction(equal(c, f"{c}{KEY}", schema) for c in columns)


def semijoin(left: Node, right: Node, columns: Sequence[str]) -> Node:
    """The left rows that some right row equals in these columns."""
    keys = key_columns(right, columns)
    return SemiJoin(left, keys, on_columns(left, keys, columns))


def antijoin(left: Node, right: Node, columns: Sequence[str]) -> Node:
    """The left rows that no right row equals in these columns."""
    keys = key_columns(right, columns)
    return AntiJoin(left, keys, on_columns(left, keys, columns))


def join_on(left: Node, right: Node, columns: Sequence[str]) -> Node:
    """Pairs of rows that are equal in these columns, which the right side loses."""
    key_names = {c: f"{c}{KEY}" for c in columns}
    right = project(right, {key_names.get(name, name): Column(name) for name in right.names})
    return Join(left, right, on_columns(left, right, columns))


def union_all(nodes: Sequence[Node]) -> Node:
    """All rows of nodes with the same columns."""
    first = nodes[0]
    aligned = tuple(keep(node, first.names) for node in nodes)
    return aligned[0] if len(aligned) == 1 else UnionAll(aligned)
