"""What no algorithm can beat (recent_increments_in_ivm, theorems 3.4, 4.1 and 4.8)."""

from dataclasses import dataclass
from fractions import Fraction

from viewkeep.analysis.access_pattern import tractable_access_pattern
from viewkeep.analysis.adaptive import find_shape
from viewkeep.analysis.exponents import HALF, Bounds
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.constraints import dependencies
from viewkeep.query.expressions import Call, Column, Expression, Literal, columns_of, conjuncts


@dataclass(frozen=True, slots=True)
class LowerBound:
    """No algorithm has both update time below N^update and delay below N^delay."""

    update: Fraction
    delay: Fraction
    conjecture: str | None
    source: str

    def matched_by(self, bounds: Bounds) -> bool:
        """Whether the upper bound reaches this one: neither cost can then fall without the
        other rising (weak Pareto optimality)."""
        epsilon = bounds.best_epsilon
        return bounds.worst(HALF if epsilon is None else epsilon) <= max(self.update, HALF)

    def __str__(self) -> str:
        if self.conjecture is None:
            return "constant time, which nothing can beat"
        return (
            f"not both update O(N^({self.update} - g)) and delay O(N^({self.delay} - g)) "
            f"for any g > 0, unless the {self.conjecture} conjecture fails ({self.source})"
        )


def lower_bound(query: ConjunctiveQuery, bounds: Bounds) -> tuple[LowerBound | None, str]:
    """The lower bound, or None and why nothing is known."""
    if bounds.constant:
        trivial = LowerBound(Fraction(0), Fraction(0), None, "trivial")
        return trivial, "reached: constant update time and delay"
    constraints = query.constraints
    constrained = constraints.foreign_keys or constraints.static or constraints.insert_only
    if constrained or dependencies(query):
        return None, "none is known under the given constraints"
    if bounds.logarithmic and tractable_access_pattern(query):
        return None, "none is known for min and max under deletes"
    if query.has_self_joins:
        return None, "proved for queries without self-joins only"
    assert not tractable_access_pattern(query)  # those have constant bounds
    query = _query_without_conditions(query)
    if tractable_access_pattern(query):
        return None, "none is known under the given conditions"
    shape = find_shape(query)
    if shape is not None and shape.name == "triangle count":
        return LowerBound(HALF, Fraction(1), "OuMv", "triangle detection"), "triangle detection"
    source = "not a tractable access pattern" if query.inputs else "not q-hierarchical"
    return LowerBound(HALF, HALF, "OuMv", source), source


def _query_without_conditions(query: ConjunctiveQuery) -> ConjunctiveQuery:
    """The query without the variables that conditions confine.

    Fixed to values that satisfy the conditions, they leave a query that is no harder. Conditions
    that leave endlessly many values to a single variable do not stand in a reduction's way.
    """
    parts = [part for condition in query.conditions for part in conjuncts(condition)]
    limited = [name for part in parts if (name := _variable_limited(part))]
    confined = {name for name in limited if limited.count(name) > 1}
    confined.update(
        name
        for part in parts
        if not _is_harmless_condition(part) and not _variable_limited(part)
        for name in columns_of(part)
    )
    left = {v for v in query.variables if v not in confined}
    return ConjunctiveQuery(
        query.name,
        tuple(v for v in query.outputs if v in left),
        tuple(Atom(a.relation, tuple(v for v in a.variables if v in left)) for a in query.atoms),
        tuple(v for v in query.inputs if v in left),
    )


def _is_harmless_condition(condition: Expression) -> bool:
    """Whether all but a few values of one variable satisfy the condition."""
    match condition:
        case Call("isnotnull", (Column(),)):
            return True
        case Call("<>", (Column(), Literal()) | (Literal(), Column())):
            return True
    return False


def _variable_limited(condition: Expression) -> str | None:
    """The variable that a condition limits on one side: `c > 3`."""
    match condition:
        case Call("<" | "<=" | ">" | ">=", (Column(name), Literal()) | (Literal(), Column(name))):
            return name
    return None
