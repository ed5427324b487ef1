"""Bounded degrees (recent_increments_in_ivm, section 4.4, after example 4.12)."""

from viewkeep.analysis.reduct import extended_verdict
from viewkeep.analysis.verdict import Verdict
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import dependencies


def bounded_degree(query: ConjunctiveQuery) -> Verdict:
    """Whether the reduct that also follows bounded degrees is q-hierarchical.

    A look-up along a bounded degree finds a constant number of values, where a functional
    dependency finds one: updates stay constant all the same.
    """
    if not query.constraints.degrees:
        return Verdict("bounded_degree", False, "no degree bounds are declared")
    return extended_verdict("bounded_degree", query, list(dependencies(query)))
