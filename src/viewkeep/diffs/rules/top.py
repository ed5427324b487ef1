"""Rules of the first rows of an order: kept from themselves and from what changes.

At most m rows of each partition are kept, and at least k of them where it has so many: m - k is the
reserve. Before the changes these were the first rows B of the partition: all of it where |B| < k.
For changes of the input, in each partition that they touch:

    candidates   rows of B that no change names, and the rows that changes name, as they are after
    first        candidates that come no later than the last row of B; all, where |B| < k
    short        whether |B| >= k, and there are fewer than k of the first

Rows of the partition that are no candidates are as they were, behind the last row of B. So
candidates that come no later are its first rows, and unless they are short, at most m of them are
kept and nothing else is read. Else the first m are taken from the input.
"""

from collections.abc import Sequence
from dataclasses import replace

from viewkeep.diffs.model import DELETE
from viewkeep.diffs.rules.affected import are_whole_rows, sources_of, touched_keys, whole_rows_after
from viewkeep.diffs.rules.build import antijoin, keep, project, select, semijoin, union_all
from viewkeep.diffs.rules.common import POST, PRE, Change, Helper, Operator, compare_states
from viewkeep.query.algebra import AggregateColumn, Distinct, GroupBy, Node, Window
from viewkeep.query.expressions import Call, Column, Expression, literal
from viewkeep.query.windows import WHOLE, WindowColumn

_OLD, _PLACE, _COUNT, _LAST, _FIRST = "#old", "#place", "#count", "#last", "#first"


def top_rules(operator: Operator, changes: Sequence[Change]) -> None:
    """All changes of the input together, some of which can move rows in the order."""
    node = operator.node
    assert isinstance(node, Window)
    by, before = node.partition_by, _top_rows_before(operator, node, changes)
    candidates = _top_candidates(operator, node, before, changes)
    places = operator.helper("top: places", _places_of_candidates(node, before, candidates))
    short = operator.helper("top: too few", _short_partitions(node, places))
    first = keep(select(places.leaf, _is_first_candidate(node)), node.child.names)
    few = antijoin(first, short.leaf, by)
    many = semijoin(operator.input(node.child, POST), short.leaf, by)
    numbered = [replace(node, child=rows, reserve=0) for rows in (few, many)]
    after = operator.helper("top: after", union_all(numbered))
    compare_states(operator, "top", before, after.leaf, sources_of(changes))


def _top_rows_before(operator: Operator, node: Window, changes: Sequence[Change]) -> Node:
    """The rows that are kept, of the partitions that changes touch."""
    rows, by = operator.output(PRE), node.partition_by
    if not by:
        return rows
    keys: dict[str, Expression] = {name: Column(name) for name in by}
    touched = touched_keys(operator, "top: partition", node.child, keys, by, changes)
    return operator.helper("top: before", semijoin(rows, touched.leaf, by)).leaf


def _top_candidates(
    operator: Operator, node: Window, before: Node, changes: Sequence[Change]
) -> Node:
    names, rest = node.child.names, keep(before, node.child.names)
    for change in changes:
        rest = antijoin(rest, change.leaf, change.schema.ids)
    return union_all([rest, *_changed_rows_after(operator, node.child, names, changes)])


def _changed_rows_after(
    operator: Operator, child: Node, names: Sequence[str], changes: Sequence[Change]
) -> Sequence[Node]:
    """The rows that changes name as they are after them, each once."""
    ids = operator.plan.ids[child]
    if are_whole_rows(ids, changes, names):
        return whole_rows_after(changes, names)
    rows = operator.input(child, POST)
    there = [semijoin(rows, c.leaf, c.schema.ids) for c in changes if c.schema.kind != DELETE]
    return there if len(there) <= 1 else [Distinct(union_all(there))]


def _places_of_candidates(node: Window, before: Node, candidates: Node) -> Node:
    """Candidates and old rows in one order, with how many are old, and the place of the last."""
    sides = [
        project(rows, {name: Column(name) for name in node.child.names} | {_OLD: literal(is_old)})
        for rows, is_old in ((candidates, 0), (before, 1))
    ]
    by, place = node.partition_by, WindowColumn(_PLACE, "row_number")
    ordered = Window(union_all(sides), (place,), by, node.order_by, (*node.ties, _OLD))
    old_place = Call("*", (Column(_PLACE), Column(_OLD)))
    bounds = (
        WindowColumn(_COUNT, "sum", (Column(_OLD),), WHOLE),
        WindowColumn(_LAST, "max", (old_place,), WHOLE),
    )
    return Window(ordered, bounds, by)


def _short_partitions(node: Window, places: Helper) -> Node:
    """The partitions in which candidates are short; without partitions one row if they are."""
    by = node.partition_by
    ones: dict[str, Expression] = {name: Column(name) for name in (*by, _COUNT)}
    ones[_FIRST] = Call("case", (_is_first_candidate(node), literal(1), literal(0)))
    count = AggregateColumn(_COUNT, "max", Column(_COUNT))
    first = AggregateColumn(_FIRST, "sum", Column(_FIRST))
    counts = GroupBy(project(places.leaf, ones), by, (count, first))
    is_part = Call(">=", (Column(_COUNT), _smallest_place(node)))
    return select(
        counts, Call("and", (is_part, Call("<", (Column(_FIRST), _smallest_place(node)))))
    )


def _is_first_candidate(node: Window) -> Expression:
    """Whether a candidate is certainly one of the first rows of the input."""
    is_all = Call("<", (Column(_COUNT), _smallest_place(node)))
    is_early = Call("<=", (Column(_PLACE), Column(_LAST)))
    return Call("and", (Call("=", (Column(_OLD), literal(0))), Call("or", (is_all, is_early))))


def _smallest_place(node: Window) -> Expression:
    assert node.limit is not None
    return literal(node.limit - node.reserve)
