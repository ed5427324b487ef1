"""Which parts of a key may name rows (id_based_ivm, section 2, "IDs and functional dependencies").

The key of a view falls into components, each of which determines some of its columns: the key of a
table determines the columns of that table. A diff may name rows by any of the components.
"""

from dataclasses import dataclass

from viewkeep.diffs.passes.identify import BRANCH, IdPlan, equal_ids
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
)
from viewkeep.query.expressions import Column, columns_of


@dataclass(frozen=True, slots=True)
class Component:
    """IDs that determine some other columns: `ids -> determined`."""

    ids: tuple[str, ...]
    determined: frozenset[str]

    def __str__(self) -> str:
        return f"{', '.join(self.ids)} -> {', '.join(sorted(self.determined)) or '()'}"


def components(plan: IdPlan, node: Node) -> tuple[Component, ...]:
    """The components of an operator's key."""
    match node:
        case Scan():
            ids = plan.ids[node]
            return (Component(ids, frozenset(node.names).difference(ids)),)
        case Select():
            return components(plan, node.child)
        case Project():
            return tuple(_projected(node, each) for each in components(plan, node.child))
        case Join():
            same = equal_ids(node, plan.ids[node.left], plan.ids[node.right])
            right = (_renamed(each, same) for each in components(plan, node.right))
            return (*components(plan, node.left), *right)
        case SemiJoin() | AntiJoin():
            return components(plan, node.left)
        case UnionAll():
            found = (each for child in node.inputs for each in components(plan, child))
            return tuple(Component((BRANCH, *each.ids), each.determined) for each in found)
        case GroupBy():
            return (Component(node.keys, frozenset(plan.attributes(node))),)
        case Distinct() | Stored():
            return (Component(node.names, frozenset()),)


def _projected(node: Project, component: Component) -> Component:
    """Columns computed from what the component determines are determined too."""
    known = component.determined | set(component.ids)
    names = {o.expression.name: o.name for o in node.outputs if isinstance(o.expression, Column)}
    ids = tuple(names[c] for c in component.ids)
    computed = {o.name for o in node.outputs if columns_of(o.expression) <= known}
    return Component(ids, frozenset(computed).difference(ids))


def _renamed(component: Component, same: dict[str, str]) -> Component:
    gone = frozenset(c for c in component.ids if c in same)
    return Component(tuple(same.get(c, c) for c in component.ids), component.determined | gone)
