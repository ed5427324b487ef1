"""Rules of joins with any condition, and of cross products (id_based_ivm, tables 4 and 10)."""

from collections.abc import Sequence
from dataclasses import replace

from viewkeep.diffs.model import DELETE, INSERT, UPDATE, DiffSchema, post, pre
from viewkeep.diffs.passes.identify import equal_ids
from viewkeep.diffs.rules.build import (
    antijoin,
    fails,
    join_on,
    project,
    semijoin,
    union_all,
)
from viewkeep.diffs.rules.common import (
    NEW,
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
from viewkeep.query.algebra import Distinct, Join, Node
from viewkeep.query.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
)


def join_rules(operator: Operator, inputs: Sequence[Sequence[Change]]) -> None:
    """Inserts meet the other side; deletes and most updates name the pairs by one side's IDs."""
    node = operator.node
    assert isinstance(node, Join)
    for side, changes, others in zip((node.left, node.right), inputs, inputs[::-1], strict=True):
        for change in changes:
            _propagate_join(operator, node, side, change, others)


def _propagate_join(
    operator: Operator, node: Join, side: Node, change: Change, others: Sequence[Change]
) -> None:
    """The changes of the output for one change of a side; `others` are the changes of the other
    side."""
    schema, reads = change.schema, columns_of(node.condition)
    if schema.kind == INSERT:
        pairs = _rows_met(operator, node, side, insert_rows(change, side.names), POST)
        inserted = as_insert(pairs, operator.ids, operator.attributes)
        operator.emit("join +", *inserted, change.sources, change.exact)
    elif schema.kind == UPDATE and not reads.isdisjoint(schema.changed):
        if _moves_a_bound(operator, node, side, schema):
            _changes_between_bounds(operator, node, side, change, others)
        else:
            recompute(operator, "join u", change.leaf, schema.ids, change.sources)
    elif operator.tuple_based:
        _changes_of_whole_pairs(operator, node, side, change, not others)
    else:
        _changes_naming_pairs(operator, node, change)


def _moves_a_bound(operator: Operator, node: Join, side: Node, schema: DiffSchema) -> bool:
    """Whether a change knows the rows of its side, and no equality would find their partners."""
    by_equality = any(map(_equal_columns, conjuncts(node.condition)))
    whole = schema.knows_before(side.names) and schema.knows_after(side.names)
    return whole and not by_equality and not operator.tuple_based


def _changes_between_bounds(
    operator: Operator, node: Join, side: Node, change: Change, others: Sequence[Change]
) -> None:
    """Delete pairs for which the condition no longer holds, insert those for which it now does, and
    update the rest: only partners between two bounds are read.

    The condition is asked of a partner as it is in one state. One that is updated as well may make
    the difference, together with the row or against it: such pairs are read whatever the condition
    says, on one of the sides, and the pair as it is in the other state decides.
    """
    before, after = change.before(node.condition), change.after(node.condition)
    leaves, enters = conjunction([before, fails(after)]), conjunction([after, fails(before)])
    deleted_rows = _pairs_crossing_bound(operator, node, side, change, PRE, leaves)
    new = _pairs_crossing_bound(operator, node, side, change, POST, enters)
    ids, attributes, sources = operator.ids, operator.attributes, change.sources
    reads = columns_of(node.condition)
    moved = [each for each in others if not reads.isdisjoint(each.schema.changed)]
    if moved and side is node.left:
        both = conjunction([before, after])
        deleted_rows = union_all(
            [deleted_rows, _pairs_crossing_bound(operator, node, side, change, PRE, both, moved)]
        )
        new = union_all(
            [new, _pairs_crossing_bound(operator, node, side, change, POST, both, moved)]
        )
    if others:
        deleted_rows = antijoin(
            deleted_rows, semijoin(operator.output(NEW), deleted_rows, ids), ids
        )
        new = antijoin(new, semijoin(operator.output(PRE), new, ids), ids)
    operator.emit("join u: -", *as_delete(deleted_rows, ids, attributes), sources, True)
    pass_on(operator, change, "join u")
    operator.emit("join u: +", *as_insert(new, ids, attributes), sources, True)


def _pairs_crossing_bound(
    operator: Operator,
    node: Join,
    side: Node,
    change: Change,
    state: str,
    condition: Expression,
    near: Sequence[Change] | None = None,
) -> Node:
    """The pairs of changed rows and partners of one state that meet a condition on both states;
    of the partners that some changes name, if they are given."""
    other = node.right if side is node.left else node.left
    partners: Node = operator.input(other, state)
    if near is not None:
        near_partners = [semijoin(partners, each.leaf, each.schema.ids) for each in near]
        partners = (
            near_partners[0] if len(near_partners) == 1 else Distinct(union_all(near_partners))
        )
    value = change.schema.value_before if state == PRE else change.schema.value_after
    pairs = Join(partners, change.leaf, condition)
    values = {name: Column(value(name) if name in side.names else name) for name in node.names}
    return operator.helper("join u: crossing", project(pairs, values)).leaf


def _changes_naming_pairs(operator: Operator, node: Join, change: Change) -> None:
    """Pass on a change that names pairs by the IDs of its side; an ID equal to one of the other
    side takes the name that stands for both."""
    ids = operator.plan.ids
    same = equal_ids(node, ids[node.left], ids[node.right])
    replaced_ids = [c for c in change.schema.ids if c in same]
    if not replaced_ids:
        pass_on(operator, change, f"join {change.schema.kind}")
        return
    schema = change.schema
    after = schema.after if schema.kind == DELETE else (*schema.after, *replaced_ids)
    pair_ids = tuple(same.get(c, c) for c in schema.ids)
    output_schema = replace(
        schema, ids=pair_ids, before=(*schema.before, *replaced_ids), after=after
    )
    values = {same.get(c, c): Column(c) for c in schema.ids}
    values |= {pre(c): Column(schema.value_before(c)) for c in output_schema.before}
    values |= {post(c): Column(schema.value_after(c)) for c in output_schema.after}
    rows = project(change.leaf, values)
    operator.emit(f"join {schema.kind}", output_schema, rows, change.sources)


def _rows_met(operator: Operator, node: Join, side: Node, rows: Node, state: str) -> Node:
    """Rows of one side joined with the other, of which only what they can meet is read."""
    other = node.right if side is node.left else node.left
    partners: Node = operator.input(other, state)
    pairs = [p for p in map(_equal_columns, conjuncts(node.condition)) if p is not None]
    equal = [(a, b) if a in side.names else (b, a) for a, b in pairs]
    equal = [(a, b) for a, b in equal if a in side.names and b in other.names]
    if equal:
        values = project(rows, {b: Column(a) for a, b in equal})
        partners = semijoin(partners, values, values.names)
    left, right = (rows, partners) if side is node.left else (partners, rows)
    return Join(left, right, node.condition)


def _equal_columns(condition: Expression) -> tuple[str, str] | None:
    match condition:
        case Call("=" | "<=>", (Column(first), Column(second))):
            return first, second
    return None


def _changes_of_whole_pairs(
    operator: Operator, node: Join, side: Node, change: Change, alone: bool
) -> None:
    """A tuple-based diff with a row for each pair: the change joined with the other side, whose old
    values are its new ones if nothing changes there (`alone`)."""
    schema = change.schema
    state = PRE if schema.kind == DELETE else POST
    pairs = _rows_met(operator, node, side, _rows_of_change(operator, side, change, state), state)
    ids, attributes = operator.ids, operator.attributes
    if schema.kind == DELETE:
        deleted = as_delete(pairs, ids, attributes)
        operator.emit("join -", *deleted, change.sources, change.exact)
        return
    plan_ids = operator.plan.ids
    same = equal_ids(node, plan_ids[node.left], plan_ids[node.right])
    pair_ids = {same.get(c, c): Column(c) for c in schema.ids}
    old = project(change.leaf, pair_ids | {pre(c): Column(pre(c)) for c in schema.before})
    both = join_on(pairs, old, tuple(pair_ids))
    stays = {c for c in attributes if alone and c not in side.names}
    before = tuple(c for c in attributes if c in schema.before or c in stays)
    values: dict[str, Expression] = {c: Column(c) for c in ids}
    values |= {pre(c): Column(c if c in stays else pre(c)) for c in before}
    values |= {post(c): Column(c) for c in attributes}
    output_schema = DiffSchema(UPDATE, ids, before, attributes, schema.changed)
    exact = change.exact and alone
    operator.emit("join u", output_schema, project(both, values), change.sources, exact)


def _rows_of_change(operator: Operator, side: Node, change: Change, state: str) -> Node:
    """The rows that a change names: from itself where it knows them, else from its side."""
    schema, before = change.schema, state == PRE
    if schema.knows_before(side.names) if before else schema.knows_after(side.names):
        value = schema.value_before if before else schema.value_after
        return project(change.leaf, {name: Column(value(name)) for name in side.names})
    return semijoin(operator.input(side, state), change.leaf, schema.ids)
