"""Rules of the first rows of an order: kept from themselves and from what changes.

Before the changes the first m rows of the order were B, fewer where the input has no more. For
changes of the input:

    candidates   rows of B that no change names, and the rows that changes name, as they are after
    short        whether |B| = m, and fewer than m candidates come no later than the last row of B

Rows of the input that are no candidates are as they were, behind the last row of B. So unless the
candidates are short, the first m of them are the first m of the input, and nothing else of it is
read; else the first m are taken from the input.
"""

from collections.abc import Sequence

from viewkeep.diffs.model import DELETE
from viewkeep.diffs.rules.affected import are_whole_rows, sources_of, whole_rows_after
from viewkeep.diffs.rules.build import antijoin, keep, project, select, semijoin, union_all
from viewkeep.diffs.rules.common import POST, PRE, Change, Helper, Operator, compare
from viewkeep.query.algebra import AggregateColumn, Distinct, GroupBy, Node, Window
from viewkeep.query.expressions import Call, Column, literal
from viewkeep.query.windows import WindowColumn

_OLD, _PLACE, _COUNT, _LAST = "#old", "#place", "#count", "#last"


def top_rules(operator: Operator, changes: Sequence[Change]) -> None:
    """All changes of the input together, some of which can move rows in the order."""
    node = operator.node
    assert isinstance(node, Window)
    candidates = operator.helper("top: candidates", _candidates(operator, node, changes))
    short = operator.helper("top: too few", _short(operator, node, candidates))
    few = _first(node, antijoin(candidates.leaf, short.leaf, ()))
    many = _first(node, semijoin(operator.input(node.child, POST), short.leaf, ()))
    after = operator.helper("top: after", union_all([few, many]))
    compare(operator, "top", operator.output(PRE), after.leaf, sources_of(changes))


def _candidates(operator: Operator, node: Window, changes: Sequence[Change]) -> Node:
    names, rest = node.child.names, keep(operator.output(PRE), node.child.names)
    for change in changes:
        rest = antijoin(rest, change.leaf, change.schema.ids)
    return union_all([rest, *_rows_after(operator, node.child, names, changes)])


def _rows_after(
    operator: Operator, child: Node, names: Sequence[str], changes: Sequence[Change]
) -> Sequence[Node]:
    """The rows that changes name as they are after them, each once."""
    ids = operator.plan.ids[child]
    if are_whole_rows(ids, changes, names):
        return whole_rows_after(changes, names)
    rows = operator.input(child, POST)
    there = [semijoin(rows, c.leaf, c.schema.ids) for c in changes if c.schema.kind != DELETE]
    return there if len(there) <= 1 else [Distinct(union_all(there))]


def _short(operator: Operator, node: Window, candidates: Helper) -> Node:
    """One row if the candidates are short, else none."""
    names = [name for name in node.child.names if name in node.reads] or node.child.names[:1]
    sides = [
        project(rows, {name: Column(name) for name in names} | {_OLD: literal(is_old)})
        for rows, is_old in ((candidates.leaf, 0), (operator.output(PRE), 1))
    ]
    place = WindowColumn(_PLACE, "row_number")
    ties = (*node.ties, _OLD)
    ordered = Window(union_all(sides), (place,), (), node.order_by, ties)
    counts = GroupBy(
        ordered,
        (),
        (
            AggregateColumn(_COUNT, "sum", Column(_OLD)),
            AggregateColumn(_LAST, "max", Call("*", (Column(_PLACE), Column(_OLD)))),
        ),
    )
    assert node.limit is not None
    is_full = Call("=", (Column(_COUNT), literal(node.limit)))
    before_last = Call("-", (Column(_LAST), Column(_COUNT)))
    is_short = Call("<", (before_last, literal(node.limit)))
    return select(counts, Call("and", (is_full, is_short)))


def _first(node: Window, rows: Node) -> Node:
    return Window(rows, node.columns, (), node.order_by, node.ties, node.limit)
