"""Bounded degrees (recent_increments_in_ivm, section 4.4, after example 4.12)."""

from viewkeep.analysis.q_hierarchical import q_hierarchical
from viewkeep.analysis.reduct import degree_reduct
from viewkeep.analysis.verdict import Verdict
from viewkeep.query.conjunctive import ConjunctiveQuery


def bounded_degree(query: ConjunctiveQuery) -> Verdict:
    """Whether the reduct that also follows bounded degrees is q-hierarchical.

    A look-up along a bounded degree finds a constant number of values, where a functional
    dependency finds one: updates stay constant all the same.
    """
    if not query.constraints.degrees:
        return Verdict("bounded_degree", False, "no degree bounds are declared")
    extended = degree_reduct(query)
    base = q_hierarchical(extended)
    because = f"{extended}: {base.because}"
    return Verdict("bounded_degree", base.holds, because, base.variables, base.atoms)
