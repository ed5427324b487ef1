"""From a view to its plan with IDs: the passes before the rules, in one function."""

from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.passes.identify import IdPlan, identify
from viewkeep.diffs.passes.number_copies import number_copies
from viewkeep.query.algebra import Node


def id_plan(view: Node) -> IdPlan:
    """View -> better view -> view over sets -> plan with IDs."""
    return identify(number_copies(optimize(view)))
