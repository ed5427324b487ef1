"""Insert-only streams (recent_increments_in_ivm, section 4.6)."""

from viewkeep.analysis.access_pattern import fracture
from viewkeep.analysis.alpha_acyclic import alpha_acyclic
from viewkeep.analysis.free_connex import free_connex
from viewkeep.analysis.verdict import Verdict, atom_set
from viewkeep.query.conjunctive import ConjunctiveQuery


def insert_only(query: ConjunctiveQuery) -> Verdict:
    """Whether inserts alone would cost amortized constant time, with constant delay.

    True for alpha-acyclic joins: a tuple becomes live once and never dies, so each is passed up
    the join tree once. A bound variable that several atoms share breaks this: the sum over it
    changes again and again and would have to be passed up every time. Bound variables of a
    single atom are summed where they stand and do no harm. Where inputs are given, a join tree
    must have them on top: else Q(b | a, c) = R(a, b) * S(b, c) would intersect sets in no time.
    """
    name = "insert_only"
    query = fracture(query)
    base = alpha_acyclic(query)
    if not base:
        return Verdict(name, False, f"cyclic: {base.because}", base.variables, base.atoms)
    shared = [v for v in query.bound if len(query.atoms_of[v]) > 1]
    if shared:
        variable = shared[0]
        because = (
            f"bound {variable} is shared by {atom_set(query, query.atoms_of[variable])}: "
            "sums over it change with every insert"
        )
        return Verdict(name, False, because, (variable,))
    inputs_first = free_connex(ConjunctiveQuery(query.name, query.inputs, query.atoms))
    if not inputs_first:
        because = f"the inputs cannot come first: {inputs_first.because}"
        return Verdict(name, False, because, inputs_first.variables, inputs_first.atoms)
    return Verdict(name, True, "an alpha-acyclic join: each tuple becomes live once")
