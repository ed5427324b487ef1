"""Rule: conditions go down to the rows they are about, and into the joins on their way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from viewkeep.diffs.optimize.cannot_fail import cannot_fail
from viewkeep.diffs.optimize.truth import (
    FALSE,
    disjunction,
    disjuncts,
    never_true,
    simplify_condition,
)
from viewkeep.diffs.rules.build import select
from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from viewkeep.query.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    substitute,
)
from viewkeep.query.traversal import inputs_of, walk, with_children
from viewkeep.query.types.inference import Schema

Conditions = tuple[Expression, ...]


@dataclass(frozen=True)
class PushedConditions:
    """What becomes of the conditions that reach an operator.

    `below` are those for each input, None for an input of a union that has no rows left; `own` is
    the condition of a join; `above` cannot pass the operator.
    """

    below: tuple[Conditions | None, ...] = ()
    own: Conditions = ()
    above: Conditions = ()


def push_selections(root: Node) -> Node:
    """Every condition as far down as it may go.

    A subtree that is used in several places (an outer join uses each side twice) stays shared: only
    what all places ask for goes into it. Branches of unions in which a condition never holds fall
    away, so a condition on the optional side of an outer join makes it an inner one.
    """
    requests: dict[Node, list[Conditions]] = {root: [()]}
    pushed: dict[Node, PushedConditions] = {}
    for node in reversed(list(walk(root))):  # operators come before their inputs
        if node in requests:
            pushed[node] = _pushed_below(node, _common_conditions(node, requests[node]))
            for child, below in zip(inputs_of(node), pushed[node].below, strict=True):
                if below is not None:
                    requests.setdefault(child, []).append(below)
    return _tree_with_selections(
        root, pushed, {node: _common_conditions(node, each) for node, each in requests.items()}
    )


def _common_conditions(node: Node, requests: Sequence[Conditions]) -> Conditions:
    """The conditions of all uses of an operator, where these agree; else the common ones that
    cannot fail."""
    if all(set(other) == set(requests[0]) for other in requests[1:]):
        return requests[0]
    common = (part for part in requests[0] if all(part in other for other in requests[1:]))
    return tuple(part for part in common if cannot_fail(part, node.schema))


def _tree_with_selections(
    root: Node, pushed: dict[Node, PushedConditions], placed: dict[Node, Conditions]
) -> Node:
    results: dict[Node, Node] = {}

    def visit(node: Node) -> Node:
        if node not in results:
            inputs = [
                _node_with_selection(visit(child), [c for c in below if c not in placed[child]])
                for child, below in zip(inputs_of(node), pushed[node].below, strict=True)
                if below is not None
            ]
            results[node] = _node_with_selection(
                _node_with_pushed(node, inputs, pushed[node]), pushed[node].above
            )
        return results[node]

    return visit(root)


def _node_with_selection(node: Node, conditions: Sequence[Expression]) -> Node:
    parts = simplify_condition(conjunction(conditions), node.schema)
    return select(node, FALSE if FALSE in parts else conjunction(parts))


def _node_with_pushed(node: Node, inputs: list[Node], pushed: PushedConditions) -> Node:
    match node:
        case Select():
            return inputs[0]
        case UnionAll() if len(inputs) == 1:
            return inputs[0]
        case UnionAll():
            return UnionAll(tuple(inputs))
        case Join() | SemiJoin() | AntiJoin():
            left, right = inputs
            return replace(node, left=left, right=right, condition=conjunction(pushed.own))
    return with_children(node, tuple(inputs))


# --- one operator ---------------------------------------------------------------------------------


def _pushed_below(node: Node, conditions: Conditions) -> PushedConditions:
    match node:
        case Scan() | Stored() | Values():
            return PushedConditions(above=conditions)
        case Select():
            own = simplify_condition(node.condition, node.schema)
            return PushedConditions(below=(_distinct_conditions(*own, *conditions),))
        case Project():
            return PushedConditions(below=(_conditions_over_inputs(node, conditions),))
        case Distinct():
            return PushedConditions(below=(conditions,))
        case UnionAll():
            return PushedConditions(below=_pushed_into_branches(node, conditions))
        case GroupBy():
            return _pushed_through_groups(node, node.keys, conditions)
        case Window():
            return _pushed_through_groups(node, node.partition_by, conditions)
        case Unnest():
            return _pushed_through_groups(node, node.child.names, conditions)
        case Join():
            return _pushed_into_join(node, conditions)
        case SemiJoin() | AntiJoin():
            return _pushed_beside_semijoin(node, conditions)


def _conditions_over_inputs(node: Project, conditions: Conditions) -> Conditions:
    values = {output.name: output.expression for output in node.outputs}
    return tuple(substitute(each, lambda column: values[column.name]) for each in conditions)


def _pushed_into_branches(node: UnionAll, conditions: Conditions) -> tuple[Conditions | None, ...]:
    below = tuple(
        None if _is_empty_branch(each, conditions) else conditions for each in node.inputs
    )
    return below if any(each is not None for each in below) else ((FALSE,), *below[1:])


def _is_empty_branch(node: Node, conditions: Conditions) -> bool:
    """Whether the conditions leave no row of an input of a union, as far as can be told."""
    match node:
        case Project():
            return _is_empty_branch(node.child, _conditions_over_inputs(node, conditions))
        case Join() if _columns_tested_for_null(conditions) & _columns_never_null(node.condition):
            return True
    return any(never_true(part, node.schema) for part in conditions)


def _pushed_through_groups(
    node: GroupBy | Window | Unnest, names: Sequence[str], conditions: Conditions
) -> PushedConditions:
    """Push conditions on keys below: they hold for all rows of a group, partition or array, or for
    none."""
    keys = set(names)
    passing = [c for c in conditions if keys and columns_of(c) <= keys]
    if len(passing) < len(conditions):
        passing = [c for c in passing if cannot_fail(c, node.schema)]
    above = tuple(c for c in conditions if c not in passing)
    return PushedConditions(below=(tuple(passing),), above=above)


# --- joins ----------------------------------------------------------------------------------------


def _pushed_into_join(node: Join, conditions: Conditions) -> PushedConditions:
    """Conditions on one side go there, others become conditions of the join.

    Those that can fail go only where they tie two inputs together, as they do in Spark, and come
    after the conditions of the join; on rows of one input they wait for what the joins leave.
    """
    own = simplify_condition(node.condition, node.schema)
    arriving = tuple(c for c in conditions if c not in own)
    above = tuple(c for c in arriving if not _may_enter_join(c, node))
    inside = (*own, *(c for c in arriving if c not in above))
    left, right = _conditions_for_side(inside, node.left), _conditions_for_side(inside, node.right)
    stay = tuple(c for c in inside if c not in left and c not in right)
    below = tuple(
        _distinct_conditions(*sent, *_implied_conditions(stay, side))
        for sent, side in ((left, node.left), (right, node.right))
    )
    return PushedConditions(below=below, own=stay, above=above)


def _may_enter_join(condition: Expression, node: Node) -> bool:
    """Whether a condition may be checked inside a join: it cannot fail, or it ties two inputs and
    is no disjunction."""
    if cannot_fail(condition, node.schema):
        return True
    if not isinstance(node, Join) or len(disjuncts(condition)) > 1:
        return False
    sides = [side for side in (node.left, node.right) if columns_of(condition) <= set(side.names)]
    return not sides or any(_may_enter_join(condition, side) for side in sides)


def _conditions_for_side(conditions: Sequence[Expression], side: Node) -> Conditions:
    return tuple(c for c in _conditions_on_side(conditions, side) if _may_enter_join(c, side))


def _pushed_beside_semijoin(node: SemiJoin | AntiJoin, conditions: Conditions) -> PushedConditions:
    """Conditions on the right side restrict what may match; those on the left side restrict the
    output, unless they belong to an antijoin, which keeps the rows for which they fail."""
    schema: Schema = node.left.schema + node.right.schema
    own = simplify_condition(node.condition, schema)
    movable = [c for c in own if cannot_fail(c, schema)]
    right = _conditions_on_side(movable, node.right)
    left = _conditions_on_side(movable, node.left) if isinstance(node, SemiJoin) else ()
    stay = tuple(c for c in own if c not in left and c not in right)
    firm = tuple(c for c in conditions if cannot_fail(c, node.schema))
    above = tuple(c for c in conditions if c not in firm)
    return PushedConditions(
        below=(_distinct_conditions(*firm, *left), right), own=stay, above=above
    )


def _conditions_on_side(conditions: Sequence[Expression], side: Node) -> Conditions:
    return tuple(c for c in conditions if columns_of(c) <= set(side.names))


def _implied_conditions(conditions: Conditions, side: Node) -> Conditions:
    """What disjunctions over both sides say of one: `(a = 1 and b = 2) or (a = 3 and b = 4)`
    says `a = 1 or a = 3`."""
    implied = []
    for condition in conditions:
        parts = [_conditions_on_side(conjuncts(part), side) for part in disjuncts(condition)]
        safe = all(cannot_fail(c, side.schema) for part in parts for c in part)
        if len(parts) > 1 and all(parts) and safe:
            implied.append(disjunction(_distinct_conditions(*map(conjunction, parts))))
    return tuple(implied)


def _columns_tested_for_null(conditions: Conditions) -> set[str]:
    names = set()
    for condition in conditions:
        match condition:
            case Call("isnull", (Column(name),)):
                names.add(name)
    return names


def _columns_never_null(condition: Expression) -> set[str]:
    """The columns that are compared in such a way that NULL never passes."""
    names = set()
    for part in conjuncts(condition):
        match part:
            case Call("=" | "<>" | "<" | "<=" | ">" | ">=", sides):
                names |= {side.name for side in sides if isinstance(side, Column)}
    return names


def _distinct_conditions(*conditions: Expression) -> Conditions:
    return tuple(dict.fromkeys(conditions))
