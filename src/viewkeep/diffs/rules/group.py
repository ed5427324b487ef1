"""Rules of grouping: sums, counts and averages by what changed; anything by affected groups
(id_based_ivm, tables 7, 9, 11 and 12), with groups that appear and vanish."""

from collections.abc import Callable, Collection, Sequence

from viewkeep.diffs.model import DELETE, UPDATE, DiffSchema, post, pre
from viewkeep.diffs.passes.identify import ALL, ROWS, sum_of, value_columns
from viewkeep.diffs.rules.affected import (
    are_whole_rows,
    moved_rows,
    sources_of,
    touched_keys,
)
from viewkeep.diffs.rules.build import (
    antijoin,
    differ,
    join_on,
    keep,
    project,
    rename_expression,
    select,
    semijoin,
    union_all,
)
from viewkeep.diffs.rules.common import (
    POST,
    PRE,
    Change,
    Operator,
    as_insert,
    compare_states,
)
from viewkeep.query.algebra import AggregateColumn, GroupBy, Node
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal, columns_of, literal
from viewkeep.query.types.data_types import BIGINT, DECIMAL, DOUBLE, FLOAT, VOID, Type
from viewkeep.query.types.inference import find_field, type_of

EXACT = ("sum", "count", "avg")
"""Aggregates that follow from what came and went, over exact numbers."""
WIDEST, SUMMED, SURE_SCALE = 38, 10, 6
"""Decimals have up to 38 digits, sums 10 more than what they add up; where a sum of two decimals
would have more than 38, digits after the sixth behind the point are lost."""
AVERAGED, DIVIDED = 20, 25
"""Averages of decimals of up to 20 digits follow from their sum, as one of 25 digits: it is divided
with nine digits more than an average has, so that rounding twice gives what rounding once does for
groups of up to a billion rows. A larger sum is an error, and the view is computed anew."""


def group_rules(operator: Operator, inputs: Sequence[Sequence[Change]]) -> None:
    """All changes of the input together: one row may be changed by several."""
    node = operator.node
    assert isinstance(node, GroupBy)
    reads = _columns_of_group(node)
    changes = [
        change
        for change in inputs[0]
        if change.schema.kind != UPDATE or not reads.isdisjoint(change.schema.changed)
    ]
    if not changes:
        return
    if not all(_is_exact_aggregate(node, each) for each in node.aggregates):
        _recomputed_groups(operator, node, changes)
    elif len(changes) == 1 and _stays_in_its_group(node, changes[0]):
        _updated_groups(operator, node, changes[0])
    else:
        _incremental_groups(operator, node, changes)


def _stays_in_its_group(node: GroupBy, change: Change) -> bool:
    schema = change.schema
    return schema.kind == UPDATE and set(node.keys).isdisjoint(schema.changed)


def _columns_of_group(node: GroupBy) -> frozenset[str]:
    return frozenset(node.keys).union(*(each.reads for each in node.aggregates))


def _ordered_columns_of_group(node: GroupBy) -> list[str]:
    reads = _columns_of_group(node)
    return [name for name in node.child.names if name in reads]


def _is_exact_aggregate(node: GroupBy, aggregate: AggregateColumn) -> bool:
    if aggregate.function not in EXACT or aggregate.argument is None:
        return aggregate.function == "count"
    kind = type_of(aggregate.argument, node.child.schema).type
    if aggregate.function == "count" or kind.precision is None or kind.scale is None:
        return aggregate.function == "count" or kind not in (FLOAT, DOUBLE)
    if aggregate.function == "avg":
        return kind.precision <= AVERAGED
    return kind.precision + SUMMED < WIDEST or kind.scale <= SURE_SCALE


# --- sums, counts and averages --------------------------------------------------------------------


def _incremental_groups(operator: Operator, node: GroupBy, changes: Sequence[Change]) -> None:
    delta = operator.helper("group: by how much", _group_delta(operator, node, changes))
    sources = sources_of(changes)
    ids, attributes = operator.ids, operator.attributes
    output = project(
        operator.output(PRE),
        {c: Column(c) for c in ids} | {pre(c): Column(c) for c in attributes},
    )
    matches = join_on(output, delta.leaf, ids)
    new: dict[str, Expression] = {c: Column(c) for c in (*ids, *map(pre, attributes))}
    new |= {post(a.name): _aggregate_after_change(node, a) for a in value_columns(node)}
    groups = operator.helper("group: groups met", project(matches, new))
    if node.keys:
        _groups_come_and_go(operator, node, groups.leaf, delta.leaf, sources)
    stays = Call(">", (Column(post(ROWS)), literal(0))) if node.keys else literal(True)
    changed = differ([(pre(c), post(c)) for c in attributes], groups.leaf.schema)
    rows = select(select(groups.leaf, stays), changed)
    schema = DiffSchema(UPDATE, ids, attributes, attributes, attributes)
    operator.emit("group u", schema, rows, sources, True)


def _groups_come_and_go(
    operator: Operator, node: GroupBy, groups: Node, delta: Node, sources: frozenset[int]
) -> None:
    """Delete groups with their last row, and insert them with their first."""
    ids, attributes = operator.ids, operator.attributes
    empty = select(groups, Call("=", (Column(post(ROWS)), literal(0))))
    deletes = DiffSchema(DELETE, ids, attributes)
    operator.emit("group -", deletes, empty, sources, True)
    fresh = antijoin(delta, operator.output(PRE), ids)
    first = {c: Column(c) for c in ids} | {
        a.name: _aggregate_of_new_group(node, a) for a in node.aggregates
    }
    rows = select(project(fresh, first), Call(">", (Column(ROWS), literal(0))))
    operator.emit("group +", *as_insert(rows, ids, attributes), sources, True)


def _group_delta(operator: Operator, node: GroupBy, changes: Sequence[Change]) -> Node:
    """For each group: by how much each sum and count changes."""
    moves = moved_rows(operator, "group", node.child, _ordered_columns_of_group(node), changes)
    signed = [_signed_rows(node, rows, -1) for rows in moves.before]
    signed += [_signed_rows(node, rows, 1) for rows in moves.after]
    columns = [name for name in signed[0].names if name not in operator.ids]
    sums = tuple(AggregateColumn(c, "sum", Column(c)) for c in columns)
    return GroupBy(union_all(signed), operator.ids, sums)


def _group_of(node: GroupBy) -> dict[str, Expression]:
    """The ID of a row's group; without groups the same for all rows, so that no rows give none."""
    return {key: Column(key) for key in node.keys} or {ALL: Cast(literal(0), BIGINT)}


def _signed_rows(node: GroupBy, rows: Node, sign: int) -> Node:
    values = _group_of(node)
    one = Cast(literal(sign), BIGINT)
    for each in value_columns(node):
        if each.function == "avg":
            continue
        if each.argument is None:
            values[_delta_column(each)] = one
        elif each.function == "count":
            values[_delta_column(each)] = _if_null_expression(
                each.argument, Cast(literal(0), BIGINT), one
            )
        else:
            amount = _if_null_expression(each.argument, literal(0), each.argument)
            kind = find_field(each.name, node.schema).type
            moved = Cast(amount, kind)  # a product with a sign would have fewer digits
            values[_delta_column(each)] = Call("negate", (moved,)) if sign < 0 else moved
    return project(rows, values)


def _delta_column(aggregate: AggregateColumn) -> str:
    return f"{aggregate.name}#by"


def _if_null_expression(value: Expression, then: Expression, otherwise: Expression) -> Expression:
    return Call("case", (Call("isnull", (value,)), then, otherwise))


def _aggregate_after_change(
    node: GroupBy, aggregate: AggregateColumn, added: Collection[str] | None = None
) -> Expression:
    """The value after the change: the old one and what is added to it."""
    return _total_of_old_and_new(node, aggregate, lambda name: Column(pre(name)), added)


def _aggregate_of_new_group(node: GroupBy, aggregate: AggregateColumn) -> Expression:
    """The value of a group that was not there."""
    return _total_of_old_and_new(node, aggregate, lambda name: literal(0))


def _total_of_old_and_new(
    node: GroupBy,
    aggregate: AggregateColumn,
    old: Callable[[str], Expression],
    added: Collection[str] | None = None,
) -> Expression:
    """Old and new together; `added` are the differences that there are, all if None."""

    def plus(name: str) -> Expression:
        if added is not None and f"{name}#by" not in added:
            return old(name)
        return Call(
            "+", (_difference_or_zero(node, name, old(name)), _aggregate_difference(node, name))
        )

    kind = find_field(aggregate.name, node.schema).type
    if aggregate.function == "count" or (aggregate.name == ROWS and node.keys):
        return Cast(plus(aggregate.name), kind)
    count = plus(_column_of_count(node, aggregate))
    amount = plus(sum_of(aggregate.name) if aggregate.function == "avg" else aggregate.name)
    value = amount
    if aggregate.function == "avg":
        value = average(amount, find_field(sum_of(aggregate.name), node.schema).type, count)
    some = Call(">", (count, literal(0)))
    return Call("case", (some, Cast(value, kind), Cast(Literal(None, VOID), kind)))


def average(amount: Expression, kind: Type, count: Expression) -> Expression:
    """A sum of type `kind` divided by the number of values."""
    if kind.precision is not None and kind.precision > DIVIDED:
        amount = Cast(amount, DECIMAL(DIVIDED, kind.scale or 0))
    return Call("/", (amount, count))


def _column_of_count(node: GroupBy, aggregate: AggregateColumn) -> str:
    """The column that counts the values of an aggregate: that of rows where none is NULL."""
    counts = (
        each.name
        for each in node.aggregates
        if each.function == "count" and each.argument == aggregate.argument
    )
    return next(counts, ROWS)


def _aggregate_difference(node: GroupBy, name: str) -> Expression:
    """By how much a sum or count changes."""
    return _difference_or_zero(node, name, Column(f"{name}#by"))


def _difference_or_zero(node: GroupBy, name: str, value: Expression) -> Expression:
    kind = find_field(name, node.schema).type
    return Call("coalesce", (Cast(value, kind), Cast(literal(0), kind)))


# --- values that change within their groups -------------------------------------------------------


def _updated_groups(operator: Operator, node: GroupBy, change: Change) -> None:
    """Update groups by differences of sums, where no row changes its group."""
    schema, ids = change.schema, operator.ids
    moved = tuple(a for a in node.aggregates if _reads_any(a, schema.changed))
    rows, after = _old_rows_beside_new(operator, node, change)
    values = _group_of(node)
    values |= {
        _delta_column(a): _difference_of_update(node, a, after)
        for a in moved
        if a.function != "avg"
    }
    sums = tuple(AggregateColumn(n, "sum", Column(n)) for n in values if n not in ids)
    delta = operator.helper("group: by how much", GroupBy(project(rows, values), ids, sums))
    names = tuple(a.name for a in moved)
    read = (*names, *(_column_of_count(node, a) for a in moved if a.function != "count"))
    group_values = {c: Column(c) for c in ids} | {pre(c): Column(c) for c in dict.fromkeys(read)}
    matches = join_on(project(operator.output(PRE), group_values), delta.leaf, ids)
    new: dict[str, Expression] = {c: Column(c) for c in (*ids, *map(pre, names))}
    new |= {
        post(a.name): _aggregate_after_change(node, a, {_delta_column(m) for m in moved})
        for a in moved
    }
    output_schema = DiffSchema(UPDATE, ids, names, names, names)
    computed = project(matches, new)
    changed = select(computed, differ([(pre(c), post(c)) for c in names], computed.schema))
    operator.emit("group u", output_schema, changed, change.sources, True)


def _reads_any(aggregate: AggregateColumn, columns: Sequence[str]) -> bool:
    argument = aggregate.argument
    return argument is not None and not columns_of(argument).isdisjoint(columns)


def _old_rows_beside_new(
    operator: Operator, node: GroupBy, change: Change
) -> tuple[Node, Callable[[Expression], Expression]]:
    """The old rows beside their new values, and the renaming of expressions to the new values."""
    schema, reads = change.schema, _ordered_columns_of_group(node)
    changed = {c: post(c) for c in schema.changed if c in reads}
    if are_whole_rows(operator.plan.ids[node.child], [change], reads):
        values = {c: Column(schema.value_before(c)) for c in reads}
        values |= {new: Column(new) for new in changed.values()}
        return project(change.leaf, values), lambda e: rename_expression(e, changed)
    old = keep(operator.input(node.child, PRE), dict.fromkeys((*schema.ids, *reads)))
    new = keep(change.leaf, (*schema.ids, *changed.values()))
    return join_on(old, new, schema.ids), lambda e: rename_expression(e, changed)


def _difference_of_update(
    node: GroupBy, aggregate: AggregateColumn, after: Callable[[Expression], Expression]
) -> Expression:
    old, kind = aggregate.argument, find_field(aggregate.name, node.schema).type
    assert old is not None
    one, none = Cast(literal(1), BIGINT), Cast(literal(0), BIGINT)
    if aggregate.function == "count":
        return Call(
            "-", (_if_null_expression(after(old), none, one), _if_null_expression(old, none, one))
        )
    new, before = (Cast(_if_null_expression(e, literal(0), e), kind) for e in (after(old), old))
    return Call("-", (new, before))


# --- any aggregate --------------------------------------------------------------------------------


def _recomputed_groups(operator: Operator, node: GroupBy, changes: Sequence[Change]) -> None:
    """Recompute the groups that rows left or joined from the input."""
    sources = sources_of(changes)
    reads = _ordered_columns_of_group(node) if node.keys else ()
    affected = touched_keys(operator, "group: group", node.child, _group_of(node), reads, changes)
    old = semijoin(operator.output(PRE), affected.leaf, operator.ids)
    before = operator.helper("group: before", old)
    current: Node = operator.input(node.child, POST)
    if node.keys:
        current = semijoin(current, affected.leaf, node.keys)
    new: Node = GroupBy(current, node.keys, node.aggregates)
    if not node.keys:
        new = semijoin(new, affected.leaf, operator.ids)
    after = operator.helper("group: after", new)
    compare_states(operator, "group any", before.leaf, after.leaf, sources)
