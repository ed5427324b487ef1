"""From a view to its plan with IDs: the passes before the rules, in one function."""

from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.passes.identify import IdPlan, identify
from viewkeep.diffs.passes.number_copies import number_copies
from viewkeep.diffs.programs.view_tree import with_view_trees
from viewkeep.query.algebra import Node


def id_plan(view: Node) -> IdPlan:
    """View -> better view -> view over sets -> plan with IDs."""
    return identify(number_copies(optimize(view)))


def view_tree_plan(view: Node) -> IdPlan:
    """View -> better view -> view of view trees -> view over sets -> plan with IDs."""
    return identify(number_copies(with_view_trees(optimize(view))))
