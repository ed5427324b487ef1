"""How the rows of a subquery belong to those of the query around it: by equal values.

Conditions `inner = outer` alone tell which rows of the subquery belong to an outer row. With other
conditions the distinct outer values are joined to the subquery first, which then has them as
columns (unnesting of arbitrary queries: the domain of a dependent join).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeep.query.algebra import Distinct, Join, Node, Output, Project
from viewkeep.query.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    substitute,
)
from viewkeep.query.types.data_types import INTEGRAL, Type
from viewkeep.query.types.inference import Schema, find_field, type_of


@dataclass(frozen=True, slots=True)
class Link:
    """An expression over the subquery that equals one over the query around it."""

    inner: Expression
    operator: str
    outer: Expression


@dataclass(frozen=True, slots=True)
class LinkedRows:
    """The rows of a subquery, with the links by which they belong to outer rows."""

    node: Node
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Outer:
    """The query around: its rows, and what the columns that a subquery may read are over them."""

    rows: Node
    schema: Schema
    values: Mapping[str, Expression]


def link(
    node: Node, conditions: tuple[Expression, ...], outer: Outer, alias: str
) -> LinkedRows | None:
    """The rows of a subquery that is correlated by conditions; None if they read anything else."""
    own = set(node.names)
    read = sorted({c for part in conditions for c in columns_of(part)} - own)
    outer_columns = {field.name for field in outer.schema}
    if not outer_columns.issuperset(read):
        return None
    pairs = [_correlated_pair(part, node, outer.schema) for part in conditions]
    links = [pair for pair in pairs if pair is not None]
    if len(links) == len(pairs):
        return LinkedRows(node, tuple(dict.fromkeys(links)))
    return _correlation_by_domain(node, conditions, read, outer, alias)


def _correlated_pair(condition: Expression, node: Node, outer: Schema) -> Link | None:
    own = set(node.names)
    match condition:
        case Call("=" | "<=>" as operator, (left, right)):
            for inner, other in ((left, right), (right, left)):
                inside = columns_of(inner) and columns_of(inner) <= own
                if inside and columns_of(other) and not columns_of(other) & own:
                    types = type_of(inner, node.schema).type, type_of(other, outer).type
                    return Link(inner, operator, other) if _correlates_one_value(*types) else None
    return None


def _correlates_one_value(inner: Type, outer: Type) -> bool:
    """Whether at most one value of a type equals one of the other."""
    return inner == outer or (inner in INTEGRAL and outer in INTEGRAL)


def _correlation_by_domain(
    node: Node, conditions: tuple[Expression, ...], read: list[str], outer: Outer, alias: str
) -> LinkedRows | None:
    fields = [find_field(column, outer.schema) for column in read]
    values = [outer.values.get(column, Column(column)) for column in read]
    outer_columns = set(outer.rows.names)
    if any(f.type.has_map for f in fields) or any(columns_of(v) - outer_columns for v in values):
        return None
    names = {column: f"{alias}.{i}" for i, column in enumerate(read, start=1)}
    outputs = tuple(map(Output, names.values(), values))
    domain = Distinct(Project(outer.rows, outputs))
    inside = [substitute(c, lambda x: Column(names.get(x.name, x.name))) for c in conditions]
    links = tuple(
        Link(Column(names[f.name]), "<=>" if f.nullable else "=", Column(f.name)) for f in fields
    )
    return LinkedRows(Join(domain, node, conjunction(inside)), links)
