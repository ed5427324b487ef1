"""Rules of joins with any condition, and of cross products (id_based_ivm, tables 4 and 10)."""

from collections.abc import Sequence

from viewkeep.diffs.build import join_on, project, semijoin
from viewkeep.diffs.model import DELETE, INSERT, UPDATE, DiffSchema, post, pre
from viewkeep.diffs.rules import (
    POST,
    PRE,
    Change,
    Operator,
    as_delete,
    as_insert,
    insert_rows,
    pass_on,
    recompute,
)
from viewkeep.query.algebra import Join, Node
from viewkeep.query.expressions import Call, Column, Expression, columns_of, conjuncts


def join_rules(operator: Operator, inputs: Sequence[Sequence[Change]]) -> None:
    """Inserts meet the other side; deletes and most updates name the pairs by one side's IDs."""
    node = operator.node
    assert isinstance(node, Join)
    for side, changes in zip((node.left, node.right), inputs, strict=True):
        for change in changes:
            _propagate(operator, node, side, change)


def _propagate(operator: Operator, node: Join, side: Node, change: Change) -> None:
    schema, reads = change.schema, columns_of(node.condition)
    if schema.kind == INSERT:
        pairs = _meet(operator, node, side, insert_rows(change, side.names), POST)
        inserted = as_insert(pairs, operator.ids, operator.attributes)
        operator.emit("join +", *inserted, change.sources, change.exact)
    elif schema.kind == UPDATE and not reads.isdisjoint(schema.changed):
        recompute(operator, "join u", change.leaf, schema.ids, change.sources)
    elif operator.tuple_based:
        _whole_pairs(operator, node, side, change)
    else:
        pass_on(operator, change, f"join {schema.kind}")


def _meet(operator: Operator, node: Join, side: Node, rows: Node, state: str) -> Node:
    """Rows of one side joined with the other, of which only what they can meet is read."""
    other = node.right if side is node.left else node.left
    partners: Node = operator.input(other, state)
    pairs = [p for p in map(_equality, conjuncts(node.condition)) if p is not None]
    equal = [(a, b) if a in side.names else (b, a) for a, b in pairs]
    equal = [(a, b) for a, b in equal if a in side.names and b in other.names]
    if equal:
        values = project(rows, {b: Column(a) for a, b in equal})
        partners = semijoin(partners, values, values.names)
    left, right = (rows, partners) if side is node.left else (partners, rows)
    return Join(left, right, node.condition)


def _equality(condition: Expression) -> tuple[str, str] | None:
    match condition:
        case Call("=" | "<=>", (Column(first), Column(second))):
            return first, second
    return None


def _whole_pairs(operator: Operator, node: Join, side: Node, change: Change) -> None:
    """A tuple-based diff has a row for each pair: it is joined with the other side."""
    schema = change.schema
    state = PRE if schema.kind == DELETE else POST
    current = semijoin(operator.input(side, state), change.leaf, schema.ids)
    pairs = _meet(operator, node, side, current, state)
    ids, attributes = operator.ids, operator.attributes
    if schema.kind == DELETE:
        operator.emit("join -", *as_delete(pairs, ids, attributes), change.sources, True)
        return
    values = {c: Column(c) for c in ids} | {post(c): Column(c) for c in attributes}
    new = project(pairs, values)
    old = project(
        change.leaf,
        {c: Column(c) for c in schema.ids} | {pre(c): Column(pre(c)) for c in schema.before},
    )
    both = join_on(new, old, schema.ids)
    made = DiffSchema(UPDATE, ids, schema.before, attributes, schema.changed)
    operator.emit("join u", made, both, change.sources)
