"""Rules of the first rows of an order: kept from themselves and from what changes.

At most m rows are kept, and at least k of them where the input has so many: m - k is the reserve.
Before the changes these were the first rows B of the order: all of the input where |B| < k. For
changes of the input:

    candidates   rows of B that no change names, and the rows that changes name, as they are after
    first        candidates that come no later than the last row of B; all, where |B| < k
    short        whether |B| >= k, and there are fewer than k of the first

Rows of the input that are no candidates are as they were, behind the last row of B. So candidates
that come no later are the first rows of the input, and unless they are short, at most m of them
are kept and nothing else is read. Else the first m are taken from the input.
"""

from collections.abc import Sequence

from viewkeep.diffs.model import DELETE
from viewkeep.diffs.rules.affected import are_whole_rows, sources_of, whole_rows_after
from viewkeep.diffs.rules.build import antijoin, keep, project, select, semijoin, union_all
from viewkeep.diffs.rules.common import POST, PRE, Change, Helper, Operator, compare
from viewkeep.query.algebra import AggregateColumn, Distinct, GroupBy, Node, Window
from viewkeep.query.expressions import Call, Column, Expression, literal
from viewkeep.query.windows import WHOLE, WindowColumn

_OLD, _PLACE, _COUNT, _LAST, _FIRST = "#old", "#place", "#count", "#last", "#first"


def top_rules(operator: Operator, changes: Sequence[Change]) -> None:
    """All changes of the input together, some of which can move rows in the order."""
    node = operator.node
    assert isinstance(node, Window)
    candidates = _candidates(operator, node, changes)
    places = operator.helper("top: places", _places(operator, node, candidates))
    short = operator.helper("top: too few", _short(node, places))
    first = keep(select(places.leaf, _is_first(node)), node.child.names)
    few = _numbered(node, antijoin(first, short.leaf, ()))
    many = _numbered(node, semijoin(operator.input(node.child, POST), short.leaf, ()))
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


def _places(operator: Operator, node: Window, candidates: Node) -> Node:
    """Candidates and old rows in one order, with how many are old, and the place of the last."""
    sides = [
        project(rows, {name: Column(name) for name in node.child.names} | {_OLD: literal(is_old)})
        for rows, is_old in ((candidates, 0), (operator.output(PRE), 1))
    ]
    place = WindowColumn(_PLACE, "row_number")
    ordered = Window(union_all(sides), (place,), (), node.order_by, (*node.ties, _OLD))
    old_place = Call("*", (Column(_PLACE), Column(_OLD)))
    bounds = (
        WindowColumn(_COUNT, "sum", (Column(_OLD),), WHOLE),
        WindowColumn(_LAST, "max", (old_place,), WHOLE),
    )
    return Window(ordered, bounds)


def _short(node: Window, places: Helper) -> Node:
    """One row if the candidates are short, else none."""
    ones = project(
        places.leaf,
        {
            _COUNT: Column(_COUNT),
            _FIRST: Call("case", (_is_first(node), literal(1), literal(0))),
        },
    )
    counts = GroupBy(
        ones,
        (),
        (
            AggregateColumn(_COUNT, "max", Column(_COUNT)),
            AggregateColumn(_FIRST, "sum", Column(_FIRST)),
        ),
    )
    is_part = Call(">=", (Column(_COUNT), _least(node)))
    return select(counts, Call("and", (is_part, Call("<", (Column(_FIRST), _least(node))))))


def _is_first(node: Window) -> Expression:
    """Whether a candidate is certainly one of the first rows of the input."""
    is_all = Call("<", (Column(_COUNT), _least(node)))
    is_early = Call("<=", (Column(_PLACE), Column(_LAST)))
    return Call("and", (Call("=", (Column(_OLD), literal(0))), Call("or", (is_all, is_early))))


def _least(node: Window) -> Expression:
    assert node.limit is not None
    return literal(node.limit - node.reserve)


def _numbered(node: Window, rows: Node) -> Node:
    return Window(rows, node.columns, (), node.order_by, node.ties, node.limit)
