"""The keys that a query may look up before the rows that have them are there.

Rows of a later look-up are asked for with those of an earlier one, where the keys of the later one
are certain to be among a few values.
"""

from collections.abc import Callable
from dataclasses import dataclass

from viewkeep.execute.backend import Source
from viewkeep.execute.spark.driver.look_up import Columns, LookUps
from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Project,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
    Unnest,
    Window,
)
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.evaluate.rows import Paired, Rows, key_of, looked_up_columns
from viewkeep.query.expressions import Column


@dataclass(frozen=True)
class Inputs:
    """The relations of queries on the driver, and Spark for inexact operators."""

    look_ups: LookUps
    rows: Callable[[str], Rows | None]
    """The rows of a relation that are on the driver."""
    pending: Callable[[str], Node | None]
    """The query of a relation whose rows are still to come."""
    is_kept: Callable[[str], bool]
    """Whether a relation is large, and rows of it are looked up."""
    has_frame: Callable[[Source], bool]
    """Whether a relation is there at all."""
    in_spark: Callable[[Select | Project, Rows], Rows]
    """An operator over rows, computed without a job."""
    limit: int
    """The most rows of a result."""


class PossibleKeys:
    """For columns of a query, a superset of the values that they will have."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._memory: dict[tuple[Node, Columns], set[Row] | None] = {}

    def values(self, node: Node, columns: Columns) -> set[Row] | None:
        """A superset of the values that some columns will have; None if there is no bound."""
        if (node, columns) not in self._memory:
            self._memory[node, columns] = self._values_of_node(node, columns)
        return self._memory[node, columns]

    def _values_of_node(self, node: Node, columns: Columns) -> set[Row] | None:
        match node:
            case Stored():
                return self._values_of_leaf(node, columns)
            case Project():
                sources = {o.name: o.expression for o in node.outputs}
                own = tuple(e.name for c in columns if isinstance(e := sources[c], Column))
                return self.values(node.child, own) if len(own) == len(columns) else None
            case Select() | Distinct():
                return self.values(node.child, columns)
            case GroupBy():
                inside = set(columns) <= set(node.keys)
                return self.values(node.child, columns) if inside else None
            case Window() | Unnest():
                inside = set(columns) <= set(node.child.names)
                return self.values(node.child, columns) if inside else None
            case UnionAll():
                parts = [self.values(each, columns) for each in node.inputs]
                sets = [each for each in parts if each is not None]
                return set().union(*sets) if len(sets) == len(parts) else None
            case Join() | SemiJoin() | AntiJoin():
                return self._values_of_join(node, columns)
        return None

    def _values_of_leaf(self, leaf: Stored, columns: Columns) -> set[Row] | None:
        rows = self._inputs.rows(leaf.name)
        if rows is not None:
            return set(map(key_of(columns, leaf.schema), rows))
        query = self._inputs.pending(leaf.name)
        return None if query is None else self.values(query, columns)

    def _values_of_join(self, node: Paired, columns: Columns) -> set[Row] | None:
        """The values of one side of a join that has all columns, or columns equal to them."""
        pairs = () if isinstance(node, AntiJoin) else looked_up_columns(node)
        to_left = {right: left for left, right, _ in pairs}
        to_right = {left: right for left, right, _ in pairs}
        for side, equal in ((node.left, to_left), (node.right, to_right)):
            own = [column if column in side.names else equal.get(column) for column in columns]
            names = tuple(column for column in own if column is not None)
            if len(names) == len(columns):
                values = self.values(side, names)
                if values is not None:
                    return values
        return None
