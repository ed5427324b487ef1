"""What FROM gives a query block: rows, and the names of their columns."""

from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeep.query.algebra import Node
from viewkeep.query.types.inference import type_of
from viewkeep.sql.blocks.context import Context
from viewkeep.sql.blocks.scope import Scalar, ScopeColumn


@dataclass(frozen=True, slots=True)
class Relation:
    """A part of FROM: its rows, and what its columns are called in the query."""

    node: Node
    columns: tuple[ScopeColumn, ...]


def check_alias(left: Relation, alias: str, table: exp.Expr, context: Context) -> None:
    """Refuse a second table of one name."""
    if alias and alias.lower() in {column.qualifier.lower() for column in left.columns}:
        problem = f'two tables in FROM are called "{alias}"; give one an alias'
        raise context.source.error(problem, table)


def with_types(relation: Relation) -> Relation:
    """The columns with the nullability they have after an outer join."""
    schema = relation.node.schema
    columns = [
        replace(c, scalar=Scalar(c.scalar.expression, type_of(c.scalar.expression, schema)))
        for c in relation.columns
    ]
    return Relation(relation.node, tuple(columns))
