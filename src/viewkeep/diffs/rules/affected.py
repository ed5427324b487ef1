"""Affected keys: the general rule of operators whose output is a function of their input per key.

For changes of the input I of such an operator O with keys K (groups, partitions):

    touched   keys of the rows that the changes name, before and after them: only outputs for
              these keys can differ
    before    O as it was, for the keys touched
    after     O over I after the changes, for the keys touched

The difference of the last two is the change of O: rows that went, became different and came, told
apart by their IDs. Without keys any change touches all. NULL is a value of a key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viewkeep.diffs.model import DELETE, INSERT
from viewkeep.diffs.rules.build import keep, project, semijoin, union_all
from viewkeep.diffs.rules.common import POST, PRE, Change, Helper, Operator
from viewkeep.query.algebra import Distinct, Node
from viewkeep.query.expressions import Column, Expression, literal

_ONE: dict[str, Expression] = {"#one": literal(1)}


@dataclass(frozen=True)
class Moves:
    """Input rows before and after the changes, as far as an operator reads them."""

    before: tuple[Node, ...]
    after: tuple[Node, ...]


def sources_of(changes: Sequence[Change]) -> frozenset[int]:
    """The scans that changes come from."""
    return frozenset[int]().union(*(change.sources for change in changes))


def touched_keys(
    operator: Operator,
    name: str,
    child: Node,
    keys: Mapping[str, Expression],
    reads: Sequence[str],
    changes: Sequence[Change],
) -> Helper:
    """The keys, computed from some columns of the input, of rows that changed, each once."""
    rows: Sequence[Node] = [change.leaf for change in changes]
    if reads:
        moves = moved_rows(operator, name, child, reads, changes)
        rows = (*moves.before, *moves.after)
    touched = [project(each, keys) for each in rows]
    return operator.helper(f"{name}s touched", Distinct(union_all(touched)))


def moved_rows(
    operator: Operator, name: str, child: Node, reads: Sequence[str], changes: Sequence[Change]
) -> Moves:
    """The input rows before and after: from the changes where they hold whole rows, else from the
    input."""
    ids = operator.plan.ids[child]
    if are_whole_rows(ids, changes, reads):
        return _moves_of_whole_rows(changes, reads)
    columns = list(dict.fromkeys((*ids, *reads))) or [child.names[0]]
    rule = f"{name.split(':')[0]}: rows touched"
    before = operator.helper(rule, _input_rows_touched(operator, child, changes, PRE, columns))
    if child in operator.cached_nodes:
        return Moves((before.leaf,), (operator.after_changes(child, before.leaf),))
    after = operator.helper(rule, _input_rows_touched(operator, child, changes, POST, columns))
    return Moves((before.leaf,), (after.leaf,))


def _input_rows_touched(
    operator: Operator, child: Node, changes: Sequence[Change], state: str, columns: Sequence[str]
) -> Node:
    """The input rows that some change names, each once."""
    rows = operator.input(child, state)
    return _distinct_union([keep(semijoin(rows, c.leaf, c.schema.ids), columns) for c in changes])


def _distinct_union(nodes: Sequence[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Distinct(union_all(nodes))


def are_whole_rows(ids: Sequence[str], changes: Sequence[Change], reads: Sequence[str]) -> bool:
    """Whether every change has whole rows, and no row is in two changes."""
    return len(sources_of(changes)) == 1 and all(
        change.exact
        and set(change.schema.ids) == set(ids)
        and (change.schema.kind == INSERT or change.schema.knows_before(reads))
        and (change.schema.kind == DELETE or change.schema.knows_after(reads))
        for change in changes
    )


def _moves_of_whole_rows(changes: Sequence[Change], reads: Sequence[str]) -> Moves:
    before = [
        project(c.leaf, {name: Column(c.schema.value_before(name)) for name in reads} or _ONE)
        for c in changes
        if c.schema.kind != INSERT
    ]
    return Moves(tuple(before), whole_rows_after(changes, reads))


def whole_rows_after(changes: Sequence[Change], reads: Sequence[str]) -> tuple[Node, ...]:
    """The rows after changes that stand for whole rows (`are_whole_rows`)."""
    return tuple(
        project(c.leaf, {name: Column(c.schema.value_after(name)) for name in reads} or _ONE)
        for c in changes
        if c.schema.kind != DELETE
    )
