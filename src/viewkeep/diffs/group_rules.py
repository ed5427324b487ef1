"""Rules of grouping: sums, counts and averages by what changed; anything by affected groups
(id_based_ivm, tables 7, 9, 11 and 12), with groups that appear and vanish."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viewkeep.diffs.build import (
    antijoin,
    differ,
    join_on,
    keep,
    project,
    select,
    semijoin,
    union_all,
)
from viewkeep.diffs.identify import ROWS, sum_of
from viewkeep.diffs.model import DELETE, INSERT, UPDATE, DiffSchema, post, pre
from viewkeep.diffs.rules import (
    POST,
    PRE,
    Change,
    Operator,
    as_insert,
    compare,
)
from viewkeep.query.algebra import AggregateColumn, Distinct, GroupBy, Node
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal, columns_of, literal
from viewkeep.query.inference import find_field, type_of
from viewkeep.query.types import BIGINT, DOUBLE, FLOAT, VOID

SIGN = "#sign"
EXACT = ("sum", "count", "avg")
"""Aggregates that follow from what came and went, over exact numbers."""


def group_rules(operator: Operator, inputs: Sequence[Sequence[Change]]) -> None:
    """All changes of the input together: one row may be changed by several."""
    node = operator.node
    assert isinstance(node, GroupBy)
    reads = _reads(node)
    changes = [
        change
        for change in inputs[0]
        if change.schema.kind != UPDATE or not reads.isdisjoint(change.schema.changed)
    ]
    if not changes:
        return
    if all(_is_exact(node, each) for each in node.aggregates):
        _incremental(operator, node, changes)
    else:
        _by_groups(operator, node, changes)


def _reads(node: GroupBy) -> frozenset[str]:
    arguments = [a.argument for a in node.aggregates if a.argument is not None]
    return frozenset(node.keys).union(*map(columns_of, arguments))


def _is_exact(node: GroupBy, aggregate: AggregateColumn) -> bool:
    if aggregate.function not in EXACT or aggregate.argument is None:
        return aggregate.function == "count"
    floats = type_of(aggregate.argument, node.child.schema).type in (FLOAT, DOUBLE)
    return aggregate.function == "count" or not floats


# --- the rows that went and that came -------------------------------------------------------------


@dataclass(frozen=True)
class Moves:
    """Input rows before and after the changes, as far as the group-by reads them."""

    before: tuple[Node, ...]
    after: tuple[Node, ...]


def _moves(operator: Operator, node: GroupBy, changes: Sequence[Change]) -> Moves:
    """From the changes themselves where they tell all; else from the input, each row once."""
    reads = [c for c in node.child.names if c in _reads(node)]
    if _tell_all(operator, node, changes, reads):
        return _told(changes, reads)
    ids = operator.plan.ids[node.child]
    wanted = list(dict.fromkeys((*ids, *reads)))
    before = [semijoin(operator.input(node.child, PRE), c.leaf, c.schema.ids) for c in changes]
    after = [semijoin(operator.input(node.child, POST), c.leaf, c.schema.ids) for c in changes]
    rule = "group: rows touched"
    return Moves(
        (operator.helper(rule, _once([keep(rows, wanted) for rows in before])).leaf,),
        (operator.helper(rule, _once([keep(rows, wanted) for rows in after])).leaf,),
    )


def _once(nodes: Sequence[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Distinct(union_all(nodes))


def _tell_all(
    operator: Operator, node: GroupBy, changes: Sequence[Change], reads: Sequence[str]
) -> bool:
    """Whether every change stands for whole rows, of which none is meant by two changes."""
    ids = set(operator.plan.ids[node.child])
    one_source = len(frozenset[int]().union(*(change.sources for change in changes))) == 1
    return one_source and all(
        change.exact
        and set(change.schema.ids) == ids
        and (change.schema.kind == INSERT or change.schema.knows_before(reads))
        and (change.schema.kind == DELETE or change.schema.knows_after(reads))
        for change in changes
    )


def _told(changes: Sequence[Change], reads: Sequence[str]) -> Moves:
    before = [
        project(c.leaf, {name: Column(c.schema.value_before(name)) for name in reads} or _ONE)
        for c in changes
        if c.schema.kind != INSERT
    ]
    after = [
        project(c.leaf, {name: Column(c.schema.value_after(name)) for name in reads} or _ONE)
        for c in changes
        if c.schema.kind != DELETE
    ]
    return Moves(tuple(before), tuple(after))


_ONE: dict[str, Expression] = {"#one": literal(1)}


# --- sums, counts and averages --------------------------------------------------------------------


def _incremental(operator: Operator, node: GroupBy, changes: Sequence[Change]) -> None:
    delta = operator.helper("group: by how much", _delta(operator, node, changes))
    sources = frozenset[int]().union(*(change.sources for change in changes))
    ids, attributes = operator.ids, operator.attributes
    output = project(
        operator.output(PRE),
        {c: Column(c) for c in ids} | {pre(c): Column(c) for c in attributes},
    )
    met = join_on(output, delta.leaf, ids)
    new: dict[str, Expression] = {c: Column(c) for c in (*ids, *map(pre, attributes))}
    new |= {post(a.name): _sum_up(node, a) for a in node.aggregates}
    found = operator.helper("group: groups met", project(met, new))
    if ids:
        _come_and_go(operator, node, found.leaf, delta.leaf, sources)
    stays = Call(">", (Column(post(ROWS)), literal(0))) if ids else literal(True)
    changed = differ((pre(c), post(c)) for c in attributes)
    rows = select(select(found.leaf, stays), changed)
    schema = DiffSchema(UPDATE, ids, attributes, attributes, attributes)
    operator.emit("group u", schema, rows, sources, True)


def _come_and_go(
    operator: Operator, node: GroupBy, found: Node, delta: Node, sources: frozenset[int]
) -> None:
    """Groups vanish with their last row and appear with their first."""
    ids, attributes = operator.ids, operator.attributes
    empty = select(found, Call("=", (Column(post(ROWS)), literal(0))))
    gone = DiffSchema(DELETE, ids, attributes)
    operator.emit("group -", gone, empty, sources, True)
    fresh = antijoin(delta, operator.output(PRE), ids)
    first = {c: Column(c) for c in ids} | {a.name: _start(node, a) for a in node.aggregates}
    rows = select(project(fresh, first), Call(">", (Column(ROWS), literal(0))))
    operator.emit("group +", *as_insert(rows, ids, attributes), sources, True)


def _delta(operator: Operator, node: GroupBy, changes: Sequence[Change]) -> Node:
    """For each group: by how much each sum and count changes."""
    moves = _moves(operator, node, changes)
    signed = [_signed(node, rows, -1) for rows in moves.before]
    signed += [_signed(node, rows, 1) for rows in moves.after]
    columns = [name for name in signed[0].names if name not in node.keys]
    sums = tuple(AggregateColumn(c, "sum", Column(c)) for c in columns)
    return GroupBy(union_all(signed), node.keys, sums)


def _signed(node: GroupBy, rows: Node, sign: int) -> Node:
    values: dict[str, Expression] = {key: Column(key) for key in node.keys}
    one = Cast(literal(sign), BIGINT)
    for each in node.aggregates:
        if each.function == "avg":
            continue
        if each.argument is None:
            values[_by(each)] = one
        elif each.function == "count":
            values[_by(each)] = _if_null(each.argument, Cast(literal(0), BIGINT), one)
        else:
            amount = _if_null(each.argument, literal(0), each.argument)
            kind = find_field(each.name, node.schema).type
            values[_by(each)] = Call("*", (Cast(amount, kind), Cast(literal(sign), BIGINT)))
    return project(rows, values)


def _by(aggregate: AggregateColumn) -> str:
    return f"{aggregate.name}#by"


def _if_null(value: Expression, then: Expression, otherwise: Expression) -> Expression:
    return Call("case", (Call("isnull", (value,)), then, otherwise))


def _sum_up(node: GroupBy, aggregate: AggregateColumn) -> Expression:
    """The value after the change: the old one and what is added to it."""
    names = {a.name: pre(a.name) for a in node.aggregates}
    return _total(node, aggregate, lambda name: Column(names[name]))


def _start(node: GroupBy, aggregate: AggregateColumn) -> Expression:
    """The value of a group that was not there."""
    return _total(node, aggregate, lambda name: literal(0))


def _total(
    node: GroupBy, aggregate: AggregateColumn, old: Callable[[str], Expression]
) -> Expression:
    kind = find_field(aggregate.name, node.schema).type
    if aggregate.function == "count":
        return Cast(Call("+", (old(aggregate.name), _added(node, aggregate.name))), kind)
    values = _counted(node, aggregate)
    count = Call("+", (old(values), _added(node, values)))
    source = sum_of(aggregate.name) if aggregate.function == "avg" else aggregate.name
    amount = Call("+", (_or_zero(node, source, old(source)), _added(node, source)))
    value = Call("/", (amount, count)) if aggregate.function == "avg" else amount
    some = Call(">", (count, literal(0)))
    return Call("case", (some, Cast(value, kind), Cast(Literal(None, VOID), kind)))


def _counted(node: GroupBy, aggregate: AggregateColumn) -> str:
    """The column that counts the values of an aggregate."""
    return next(
        each.name
        for each in node.aggregates
        if each.function == "count" and each.argument == aggregate.argument
    )


def _added(node: GroupBy, name: str) -> Expression:
    """By how much a sum or count changes; without groups there may be nothing to add."""
    return _or_zero(node, name, Column(f"{name}#by"))


def _or_zero(node: GroupBy, name: str, value: Expression) -> Expression:
    kind = find_field(name, node.schema).type
    return Call("coalesce", (Cast(value, kind), Cast(literal(0), kind)))


# --- any aggregate --------------------------------------------------------------------------------


def _by_groups(operator: Operator, node: GroupBy, changes: Sequence[Change]) -> None:
    """The groups that rows left or joined are computed anew from the input."""
    sources = frozenset[int]().union(*(change.sources for change in changes))
    current: Node = operator.input(node.child, POST)
    old: Node = operator.output(PRE)
    if node.keys:
        moves = _moves(operator, node, changes)
        keys = [keep(rows, node.keys) for rows in (*moves.before, *moves.after)]
        affected = operator.helper("group: groups touched", Distinct(union_all(keys)))
        current = semijoin(current, affected.leaf, node.keys)
        old = semijoin(old, affected.leaf, node.keys)
    before = operator.helper("group: before", old)
    after = operator.helper("group: after", GroupBy(current, node.keys, node.aggregates))
    compare(operator, "group any", before.leaf, after.leaf, sources)
