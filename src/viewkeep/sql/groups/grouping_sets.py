"""ROLLUP, CUBE and GROUPING SETS: every row once for each set of keys, and then one group-by.

A set is part of each group's key, so that no rows give no groups, not even the one of all rows
beside others: that is what Spark answers. The set of no keys alone, `GROUPING SETS (())`, is one
group of all rows, also where there are none.
"""

from collections.abc import Sequence
from itertools import combinations, product

from sqlglot import exp

from viewkeep.query.algebra import Node, Output, Project, UnionAll
from viewkeep.query.expressions import Cast, Column, Expression, Literal, literal
from viewkeep.query.types.data_types import INT, VOID
from viewkeep.query.types.signatures import TypedValue
from viewkeep.sql.blocks.scope import Scalar
from viewkeep.sql.groups.grouping import SET, AggregateCall, GroupKey

Keys = tuple[exp.Expr, ...]


def has_sets(group: exp.Expr) -> bool:
    """Whether GROUP BY names more than one set of keys."""
    kinds = (exp.Rollup, exp.Cube, exp.GroupingSets)
    return any(isinstance(each, kinds) for each in group.expressions) or any(
        group.args.get(part) for part in ("rollup", "cube", "grouping_sets")
    )


def sets_of(group: exp.Expr) -> list[Keys]:
    """The sets of keys that GROUP BY names.

    >>> from sqlglot import parse_one
    >>> group = parse_one("SELECT 1 FROM t GROUP BY a, ROLLUP (b, c)").args["group"]
    >>> [[key.name for key in keys] for keys in sets_of(group)]
    [['a', 'b', 'c'], ['a', 'b'], ['a']]
    """
    keys = tuple(group.expressions)
    if group.args.get("rollup"):
        return _rollup_sets(keys)
    if group.args.get("cube"):
        return _cube_sets(keys)
    if group.args.get("grouping_sets"):  # the keys before it only say which there are
        return [each for sets in group.args["grouping_sets"] for each in _sets_of_node(sets)]
    return [sum(chosen, ()) for chosen in product(*map(_sets_of_node, keys))]


def declared_keys(group: exp.Expr) -> Keys:
    """The keys of `GROUP BY a, b GROUPING SETS (…)`, of which the sets may leave some out."""
    return tuple(group.expressions) if group.args.get("grouping_sets") else ()


def _sets_of_node(node: exp.Expr) -> list[Keys]:
    match node:
        case exp.Rollup():
            return _rollup_sets(node.expressions)
        case exp.Cube():
            return _cube_sets(node.expressions)
        case exp.GroupingSets():
            return [keys for each in node.expressions for keys in _sets_of_node(each)]
    return [_keys_in_brackets(node)]


def _rollup_sets(nodes: Sequence[exp.Expr]) -> list[Keys]:
    units = [_keys_in_brackets(node) for node in nodes]
    return [sum(units[:count], ()) for count in range(len(units), -1, -1)]


def _cube_sets(nodes: Sequence[exp.Expr]) -> list[Keys]:
    units = [_keys_in_brackets(node) for node in nodes]
    counts = range(len(units), -1, -1)
    return [sum(chosen, ()) for count in counts for chosen in combinations(units, count)]


def _keys_in_brackets(node: exp.Expr) -> Keys:
    """The keys of one pair of brackets, which are in a set together or not at all."""
    match node:
        case exp.Tuple():
            return tuple(node.expressions)
        case exp.Paren():
            return (node.this,)
    return (node,)


def expand(
    rows: Node,
    keys: Sequence[GroupKey],
    sets: Sequence[frozenset[str]],
    calls: Sequence[AggregateCall],
) -> tuple[Node, tuple[GroupKey, ...]]:
    """Every row once for each set, in which other keys are NULL; and the keys to group by."""
    branches = [
        _rows_of_grouping_set(rows, number, keys, own, calls) for number, own in enumerate(sets)
    ]
    node: Node = UnionAll(tuple(branches)) if len(branches) > 1 else branches[0]
    columns = [GroupKey(key.name, key.column, key.node) for key in keys]
    return node, (*columns, GroupKey(SET, Scalar(Column(SET), TypedValue(INT, False))))


def _rows_of_grouping_set(
    rows: Node,
    number: int,
    keys: Sequence[GroupKey],
    own: frozenset[str],
    calls: Sequence[AggregateCall],
) -> Node:
    columns_read = {name for call in calls for name in call.reads}
    values: dict[str, Expression] = {
        name: Column(name) for name in rows.names if name in columns_read
    }
    for key in keys:
        null = Cast(Literal(None, VOID), key.scalar.typed.type)
        values[key.name] = key.scalar.expression if key.name in own else null
    values[SET] = literal(number)
    return Project(rows, tuple(Output(name, value) for name, value in values.items()))
