"""Rules of semijoins and antisemijoins (id_based_ivm, table 13)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from viewkeep.diffs.model import DELETE, INSERT, UPDATE
from viewkeep.diffs.rules.build import keep, project, semijoin
from viewkeep.diffs.rules.common import (
    POST,
    PRE,
    Change,
    Operator,
    as_insert,
    insert_rows,
    pass_on,
    recompute,
)
from viewkeep.query.algebra import AntiJoin, Node, SemiJoin
from viewkeep.query.expressions import Column, columns_of


def semijoin_rules(operator: Operator, inputs: Sequence[Sequence[Change]]) -> None:
    """Left changes pass unless the condition is touched; right changes may bring and take any
    left row that meets what changed."""
    node = operator.node
    assert isinstance(node, SemiJoin | AntiJoin)
    left, right = inputs
    for change in left:
        _semijoin_from_left(operator, node, change)
    for change in right:
        _semijoin_from_right(operator, node, change)


def _semijoin_from_left(operator: Operator, node: SemiJoin | AntiJoin, change: Change) -> None:
    schema, reads = change.schema, columns_of(node.condition)
    if schema.kind == INSERT:
        rows = insert_rows(change, node.left.names)
        left_rows = replace(node, left=rows, right=operator.input(node.right, POST))
        inserted = as_insert(left_rows, operator.ids, operator.attributes)
        operator.emit("semijoin +", *inserted, change.sources, change.exact)
    elif schema.kind == UPDATE and not reads.isdisjoint(schema.changed):
        recompute(operator, "semijoin u", change.leaf, schema.ids, change.sources)
    else:
        pass_on(operator, change, f"semijoin {schema.kind}")


def _semijoin_from_right(operator: Operator, node: SemiJoin | AntiJoin, change: Change) -> None:
    schema = change.schema
    reads = [c for c in node.right.names if c in columns_of(node.condition)]
    if schema.kind == UPDATE and set(reads).isdisjoint(schema.changed):
        return
    current = operator.input(node.left, POST)
    for touched in _right_rows_touched(operator, node, change, reads):
        matches = SemiJoin(current, touched, node.condition)
        keys = operator.helper("semijoin right", keep(matches, operator.ids or node.left.names[:1]))
        recompute(operator, "semijoin right", keys.leaf, operator.ids, change.sources)


def _right_rows_touched(
    operator: Operator, node: SemiJoin | AntiJoin, change: Change, reads: Sequence[str]
) -> Iterator[Node]:
    """The right rows that went and that came, as far as the condition reads them."""
    schema = change.schema
    columns = reads or list(node.right.names[:1])
    if schema.kind != INSERT:
        if schema.knows_before(columns):
            values = {c: Column(schema.value_before(c)) for c in columns}
            yield project(change.leaf, values)
        else:
            rows = semijoin(operator.input(node.right, PRE), change.leaf, schema.ids)
            yield keep(rows, columns)
    if schema.kind != DELETE:
        if schema.knows_after(columns):
            values = {c: Column(schema.value_after(c)) for c in columns}
            yield project(change.leaf, values)
        else:
            rows = semijoin(operator.input(node.right, POST), change.leaf, schema.ids)
            yield keep(rows, columns)
