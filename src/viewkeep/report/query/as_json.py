"""Analyses as values that `json.dumps` takes; docs/explain.md describes them.

Names are only ever added within one `FORMAT`; a change of meaning raises it.
"""

from collections.abc import Sequence
from typing import Any

from viewkeep.analysis import Analysis, Bounds, VariableOrder, Verdict
from viewkeep.analysis.cascade import Cascade
from viewkeep.analysis.exponents import HALF, Exponent, value_at
from viewkeep.errors import ParseError, ViewkeepError
from viewkeep.query.algebra import Node
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Constraints
from viewkeep.report.query.adaptive import adaptive_json
from viewkeep.report.query.bounds import COSTS
from viewkeep.report.query.costs import UpdateCost, update_costs
from viewkeep.report.query.hints import Hint, hints
from viewkeep.report.query.summary import headline, query_class
from viewkeep.report.query.variable_order import atoms_below
from viewkeep.report.style import kind_of

FORMAT = 1
"""The version of the layout, first in every document."""

Json = dict[str, Any]


def document(queries: Sequence[Json], cascades: Sequence[Cascade] = ()) -> Json:
    """The whole answer, the same for one query and for many."""
    return {
        "format": FORMAT,
        "queries": list(queries),
        "cascades": [
            {
                "rider": each.rider,
                "carriers": list(each.carriers),
                "rewriting": str(each.rewriting),
            }
            for each in cascades
        ],
    }


def analysis_json(analysis: Analysis, no_machine_code: str = "") -> Json:
    """A query that was analysed, and why it cannot be compiled."""
    return {
        "name": analysis.query.name,
        "status": "analyzed",
        **_query_json(analysis.query),
        "class": query_class(analysis),
        "summary": headline(analysis),
        "strategy": {"name": analysis.strategy, "reason": analysis.route.reason},
        "runs": analysis.available.strategy,
        "engine": {
            "name": "reference" if no_machine_code else "compiled",
            "reason": no_machine_code or None,
        },
        "bounds": _bounds_json(analysis.bounds),
        "lower_bound": _lower_bound_json(analysis),
        "verdicts": {name: _verdict_json(each) for name, each in analysis.verdicts.items()},
        "reduct": str(analysis.reduct),
        "fracture": str(analysis.fracture),
        "variable_order": [
            _variable_order_json(analysis.fracture, root) for root in analysis.variable_order
        ],
        "heavy_light": adaptive_json(analysis),
        "update_costs": [_update_cost_json(cost) for cost in update_costs(analysis)],
        "hints": [_hint_json(hint) for hint in hints(analysis)],
    }


def unsupported_json(name: str, tree: Node, reason: ViewkeepError) -> Json:
    """A valid view that is not a conjunctive query."""
    return {
        "name": name,
        "status": "not_conjunctive",
        "reason": _error_json(reason),
        "operators": str(tree),
    }


def failed_json(name: str, error: ViewkeepError) -> Json:
    """A query that could not be read."""
    return {"name": name, "status": "error", "reason": _error_json(error)}


def _error_json(error: ViewkeepError) -> Json:
    if isinstance(error, ParseError):
        return {"message": error.problem, "line": error.line, "column": error.column}
    return {"message": str(error), "line": None, "column": None}


def _query_json(query: ConjunctiveQuery) -> Json:
    return {
        "query": str(query),
        "outputs": list(query.outputs),
        "inputs": list(query.inputs),
        "bound": list(query.bound),
        "atoms": [str(atom) for atom in query.atoms],
        "constraints": _constraints_json(query.constraints),
    }


def _constraints_json(constraints: Constraints) -> Json:
    return {
        "fds": [str(fd) for fd in constraints.fds],
        "keys": [str(key) for key in constraints.keys],
        "foreign_keys": [str(key) for key in constraints.foreign_keys],
        "degrees": [str(degree) for degree in constraints.degrees],
        "static": sorted(constraints.static),
        "insert_only": constraints.insert_only,
    }


def _bounds_json(bounds: Bounds) -> Json:
    best = bounds.best_epsilon
    costs = {name: _exponent_json(name, bounds) for name in COSTS}
    return {
        **costs,
        "amortized": bounds.amortized,
        "logarithmic": bounds.logarithmic,
        "best_epsilon": None if best is None else str(best),
    }


def _exponent_json(cost: str, bounds: Bounds) -> Json:
    exponent: Exponent = getattr(bounds, cost)
    best = bounds.best_epsilon
    value = value_at(exponent, HALF if best is None else best)
    return {"exponent": str(exponent), "order": bounds.order(cost), "value": float(value)}


def _lower_bound_json(analysis: Analysis) -> Json:
    bound = analysis.lower_bound
    return {
        "update": None if bound is None else str(bound.update),
        "delay": None if bound is None else str(bound.delay),
        "conjecture": None if bound is None else bound.conjecture,
        "reason": analysis.lower_bound_reason,
        "reached": analysis.optimal,
    }


def _verdict_json(verdict: Verdict) -> Json:
    return {
        "holds": verdict.holds,
        "because": verdict.because,
        "variables": list(verdict.variables),
        "atoms": list(verdict.atoms),
        "value": verdict.value,
    }


def _variable_order_json(query: ConjunctiveQuery, node: VariableOrder) -> Json:
    return {
        "variable": node.variable,
        "kind": kind_of(query, node.variable),
        "depends_on": list(node.depends_on),
        "atoms": [str(atom) for atom in atoms_below(query, node)],
        "children": [_variable_order_json(query, child) for child in node.children],
    }


def _update_cost_json(cost: UpdateCost) -> Json:
    return {
        "atom": cost.atom,
        "exponent": None if cost.exponent is None else str(cost.exponent),
        "because": str(cost),
    }


def _hint_json(hint: Hint) -> Json:
    return {
        "kind": hint.kind,
        "changes": list(hint.changes),
        "text": str(hint),
        "bounds": _bounds_json(hint.bounds),
    }
