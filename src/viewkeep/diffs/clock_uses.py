"""What of a view depends on the clock: which rows there are, or also their values."""

from collections.abc import Iterator

from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from viewkeep.query.clock import CLOCK, CLOCK_TABLE
from viewkeep.query.columns_read import aggregates_needed, needed_columns, outputs_needed
from viewkeep.query.expressions import columns_of
from viewkeep.query.traversal import walk


def clock_columns(view: Node) -> frozenset[str]:
    """The columns of the clock that a view reads; a change of others does not concern it."""
    needs = needed_columns(view)
    scans = [node for node in needs if isinstance(node, Scan) and node.name == CLOCK]
    names = {name.removeprefix(f"{scan.alias}.") for scan in scans for name in needs[scan]}
    return frozenset(names.difference(CLOCK_TABLE.key))


def shows_clock(view: Node) -> bool:
    """Whether values depend on the clock, and not only conditions: all rows change with it."""
    values: dict[Node, frozenset[str]] = {view: frozenset(view.names)}
    for node in reversed(list(walk(view))):
        if isinstance(node, Scan) and node.name == CLOCK and values[node]:
            return True
        for child, names in _value_columns(node, values[node]):
            values[child] = values.get(child, frozenset()) | names
    return False


def _value_columns(node: Node, columns: frozenset[str]) -> Iterator[tuple[Node, frozenset[str]]]:
    """The columns of the inputs that some columns are computed from, conditions left out."""
    match node:
        case Scan() | Stored() | Values():
            return
        case Select():
            yield node.child, columns
        case Project():
            parts = (columns_of(each.expression) for each in outputs_needed(node, columns))
            yield node.child, frozenset[str]().union(*parts)
        case Join():
            yield node.left, columns.intersection(node.left.names)
            yield node.right, columns.intersection(node.right.names)
        case SemiJoin() | AntiJoin():
            yield node.left, columns
            yield node.right, frozenset()
        case UnionAll():
            for child in node.inputs:
                yield child, columns
        case GroupBy():
            reads = (each.reads for each in aggregates_needed(node, columns))
            yield node.child, frozenset(node.keys).union(*reads)
        case Distinct():
            yield node.child, frozenset(node.child.names)
        case Unnest():
            yield node.child, columns.intersection(node.child.names) | {node.column}
        case Window():
            yield node.child, columns.intersection(node.child.names) | node.reads
