"""Static and dynamic relations (recent_increments_in_ivm, section 4.5)."""

from dataclasses import replace
from fractions import Fraction

from viewkeep.analysis.access_pattern import tractable_access_pattern
from viewkeep.analysis.exponents import order
from viewkeep.analysis.order_search import best_order
from viewkeep.analysis.shape import join_shape
from viewkeep.analysis.variable_order import uncovered_variable
from viewkeep.analysis.verdict import Verdict
from viewkeep.query.conjunctive import ConjunctiveQuery

EXPONENTIAL = "exponential"
"""The preprocessing that precomputes every state the dynamic relations can be in."""


def tractable_with_static(query: ConjunctiveQuery) -> Verdict:
    """Whether constant update time and delay are possible because some relations never change.

    There must be a view tree in which every dynamic atom covers the bags above it, found by the
    search for variable orders, with free variables on top. Otherwise, where static relations
    bound every dynamic one, all its states could be tabulated in exponential time.

    >>> from viewkeep.query.constraints import Constraints
    >>> from viewkeep.query.notation.parse import parse
    >>> query = parse("Q(a, b) = R(a) * S(a, b) * T(b)")
    >>> print(tractable_with_static(query.with_constraints(Constraints.parse(static=["S"]))))
    yes: static S bound the values of every dynamic atom, so all states can be tabulated: \
exponential preprocessing, declined
    """
    name = "tractable_with_static"
    if not query.constraints.static:
        base = tractable_access_pattern(query)
        because = f"no relation is static; {base.because}"
        return Verdict(name, base.holds, because, base.variables, base.atoms)
    shape = replace(join_shape(query), rules=())
    best = best_order(shape)
    if best.update == 0:
        because = f"dynamic atoms cover their views; preprocessing {order(max(best.width, _ONE))}"
        return Verdict(name, True, because)
    variable, atom, missing = uncovered_variable(shape, best.roots)
    if tabulable(query):
        statics = ", ".join(r for r in query.relations if r in query.constraints.static)
        because = (
            f"static {statics} bound the values of every dynamic atom, so all states can be "
            f"tabulated: {EXPONENTIAL} preprocessing, declined"
        )
        return Verdict(name, True, because)
    label = query.labels[atom]
    because = (
        f"in the best view tree, dynamic {label} does not bind {', '.join(missing)} "
        f"in the view of {variable}"
    )
    return Verdict(name, False, because, (variable, *missing), (label,))


def static_preprocessing(query: ConjunctiveQuery) -> Fraction | str | None:
    """The preprocessing that tractability with static relations costs; None if not tractable."""
    best = best_order(replace(join_shape(query), rules=()))
    if best.update == 0:
        return max(best.width, _ONE)
    return EXPONENTIAL if tabulable(query) else None


def tabulable(query: ConjunctiveQuery) -> bool:
    """Whether static relations bound the values of every dynamic atom.

    Bound variables of a single atom do not count: they are summed away where they stand. Only
    finitely many states then matter, known in preprocessing: a table from state and update to
    the next state, with the list of output tuples per state, has constant time for both.
    """
    static = query.constraints.static
    static_variables = {
        v for atom in query.atoms if atom.relation in static for v in atom.variables
    }
    dynamic = {v for atom in query.atoms if atom.relation not in static for v in atom.variables}
    return bool(static) and dynamic - query.local <= static_variables


_ONE = Fraction(1)
