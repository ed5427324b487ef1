"""Free-connexity: alpha-acyclic also with the head as one more atom."""

from viewkeep.analysis.alpha_acyclic import alpha_acyclic, cyclic_core, reduce_ears
from viewkeep.analysis.verdict import Verdict
from viewkeep.query.conjunctive import ConjunctiveQuery


def free_connex(query: ConjunctiveQuery) -> Verdict:
    """Whether the query is alpha-acyclic, also with its head as one more atom.

    >>> from viewkeep.query.notation.parse import parse
    >>> print(free_connex(parse("Q(a, c) = R(a, b) * S(b, c)")))
    no: with the head (a, c) as an atom, a cyclic core R(a, b), S(b, c) is left by GYO reduction
    """
    base = alpha_acyclic(query)
    if not base:
        return Verdict("free_connex", False, f"cyclic: {base.because}", base.variables, base.atoms)
    head = frozenset(query.free)
    reduction = reduce_ears([*(atom.schema for atom in query.atoms), head])
    if reduction.acyclic:
        because = "alpha-acyclic, and still so with the head as an atom"
        return Verdict("free_connex", True, because)
    prefix = f"with the head ({', '.join(query.free)}) as an atom, a "
    return cyclic_core("free_connex", query, reduction, prefix)
