"""What is kept besides the view: the output of group-bys, and their input where that pays
(id_based_ivm, section 4, pass 3)."""

from viewkeep.diffs.passes.identify import IdPlan
from viewkeep.query.algebra import GroupBy, Join, Node, Project, Scan, Select, Window
from viewkeep.query.expressions import Call, Column, conjuncts
from viewkeep.query.traversal import inputs_of, walk


def caches(plan: IdPlan, tuple_based: bool) -> dict[Node, str]:
    """The operators whose rows are kept, each with the reason; the view is not among them."""
    reasons: dict[Node, str] = {}
    for node in plan.nodes:
        if isinstance(node, GroupBy):
            child = node.child
            if not tuple_based and child not in reasons and is_worth_keeping(plan, child):
                reasons[child] = "input of a group-by, joined by keys"
            if node is not plan.root:
                reasons[node] = "output of a group-by"
        elif isinstance(node, Window) and node.limit is not None and node is not plan.root:
            reasons[node] = "the first rows of an order"
    return reasons


def is_worth_keeping(plan: IdPlan, node: Node) -> bool:
    """Whether reading the rows of a join from a cache is cheaper than joining again: not if rows
    multiply (multi-valued dependencies), which a join on the key of one side rules out."""
    joins = [each for each in walk(node) if isinstance(each, Join)]
    plain = all(isinstance(each, Scan | Select | Project | Join) for each in walk(node))
    return bool(joins) and plain and all(_joins_on_key(plan, join) for join in joins)


def _joins_on_key(plan: IdPlan, join: Join) -> bool:
    pairs = [
        {first, second}
        for part in conjuncts(join.condition)
        if isinstance(part, Call) and part.function == "="
        for first, second in [part.arguments]
        if isinstance(first, Column) and isinstance(second, Column)
    ]
    equated = {column.name for pair in pairs for column in pair}
    return any(set(plan.ids[side]) <= equated for side in inputs_of(join))
