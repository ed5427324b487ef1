"""What no algorithm can beat (recent_increments_in_ivm, theorems 3.4, 4.1 and 4.8)."""

from dataclasses import dataclass
from fractions import Fraction

from viewkeep.analysis.access_pattern import tractable_access_pattern
from viewkeep.analysis.adaptive import find_shape
from viewkeep.analysis.exponents import HALF, Bounds
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import dependencies


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
    if dependencies(query) or constraints.static or constraints.insert_only:
        return None, "none is known under the given constraints"
    if query.has_self_joins:
        return None, "proved for queries without self-joins only"
    assert not tractable_access_pattern(query)  # those have constant bounds
    shape = find_shape(query)
    if shape is not None and shape.name == "triangle count":
        return LowerBound(HALF, Fraction(1), "OuMv", "triangle detection"), "triangle detection"
    source = "not a tractable access pattern" if query.inputs else "not q-hierarchical"
    return LowerBound(HALF, HALF, "OuMv", source), source
