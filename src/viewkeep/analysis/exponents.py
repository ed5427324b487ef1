"""Costs as exponents of N: exact fractions, or piecewise linear expressions in epsilon."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Linear:
    """`constant + slope * eps`.

    >>> print(Linear(1), Linear(0, 1), Linear(1, -1), Linear(1, 2), Linear(Fraction(1, 2)))
    1 eps 1 - eps 1 + 2 eps 1/2
    """

    constant: Fraction | int
    slope: Fraction | int = 0

    def at(self, epsilon: Fraction | float) -> Fraction:
        """The value for one epsilon."""
        return self.constant + self.slope * Fraction(epsilon)

    def __str__(self) -> str:
        if not self.slope:
            return str(self.constant)
        size = "eps" if abs(self.slope) == 1 else f"{abs(self.slope)} eps"
        if not self.constant:
            return size if self.slope > 0 else f"-{size}"
        return f"{self.constant} {'+' if self.slope > 0 else '-'} {size}"


@dataclass(frozen=True, slots=True)
class EpsilonExponent:
    """The largest or the smallest of linear terms in epsilon.

    >>> update = EpsilonExponent((Linear(0, 1), Linear(1, -1)), largest=True)
    >>> print(update, "=", update.at(HALF))
    max(eps, 1 - eps) = 1/2
    """

    terms: tuple[Linear, ...]
    largest: bool = True

    def at(self, epsilon: Fraction | float) -> Fraction:
        """The value for one epsilon."""
        values = [term.at(epsilon) for term in self.terms]
        return max(values) if self.largest else min(values)

    def __str__(self) -> str:
        if len(self.terms) == 1:
            return str(self.terms[0])
        return f"{'max' if self.largest else 'min'}({', '.join(map(str, self.terms))})"


Exponent: TypeAlias = Fraction | EpsilonExponent


def in_epsilon(*terms: Linear, largest: bool = True) -> Exponent:
    """An exponent from linear terms, as a plain fraction where epsilon plays no part."""
    if len(terms) == 1 and not terms[0].slope:
        return Fraction(terms[0].constant)
    return EpsilonExponent(terms, largest)


def value_at(exponent: Exponent, epsilon: Fraction | float) -> Fraction:
    """The exponent for one epsilon; fractions do not depend on it."""
    return exponent if isinstance(exponent, Fraction) else exponent.at(epsilon)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What maintenance costs: exponents of N, the database size, per cost.

    `update` is per single-tuple update, on average over a sequence if `amortized`; `delay` is the
    wait between two output tuples (recent_increments_in_ivm, figure 1).
    """

    preprocessing: Exponent
    update: Exponent
    delay: Exponent
    space: Exponent
    amortized: bool = False
    logarithmic: bool = False
    """Whether update time and preprocessing have a factor log N: for values kept in order."""

    @property
    def constant(self) -> bool:
        """Whether neither update time nor delay is a power of N: the best possible maintenance."""
        return self.update == 0 and self.delay == 0

    @property
    def best_epsilon(self) -> Fraction | None:
        """The epsilon that makes the larger of update time and delay smallest, if there is one.

        Update rises and delay falls with epsilon (or update alone has its low point at 1/2), so
        a minimum lies where two terms meet.
        """
        if isinstance(self.update, Fraction) and isinstance(self.delay, Fraction):
            return None
        candidates = {
            Fraction(0),
            Fraction(1),
            *_line_crossings(_linear_terms(self.update, self.delay)),
        }
        return min(sorted(candidates), key=lambda eps: self.worst(eps))

    def worst(self, epsilon: Fraction | float) -> Fraction:
        """The larger of update time and delay for one epsilon."""
        return max(value_at(self.update, epsilon), value_at(self.delay, epsilon))

    def at(self, epsilon: Fraction | float) -> "Bounds":
        """The same bounds for one epsilon."""
        return Bounds(
            value_at(self.preprocessing, epsilon),
            value_at(self.update, epsilon),
            value_at(self.delay, epsilon),
            value_at(self.space, epsilon),
            self.amortized,
            self.logarithmic,
        )

    def order(self, cost: str) -> str:
        """One of the costs in big-O notation.

        >>> one, zero = Fraction(1), Fraction(0)
        >>> Bounds(one, zero, zero, one, logarithmic=True).order("update")
        'O(log N)'
        """
        exponent: Exponent = getattr(self, cost)
        return order(exponent, self.logarithmic and cost in ("preprocessing", "update"))

    def __str__(self) -> str:
        average = " amortized" if self.amortized else ""
        return (
            f"preprocessing {self.order('preprocessing')}, update {self.order('update')}{average}, "
            f"delay {self.order('delay')}, space {self.order('space')}"
        )


def order(exponent: Exponent, logarithmic: bool = False) -> str:
    """The exponent in big-O notation, with a factor log N if there is one.

    >>> order(Fraction(0)), order(Fraction(1)), order(HALF), order(in_epsilon(Linear(1, -1)))
    ('O(1)', 'O(N)', 'O(N^1/2)', 'O(N^(1 - eps))')
    """
    factor = " log N" if logarithmic else ""
    if exponent == 0:
        return f"O({factor.strip() or '1'})"
    if exponent == 1:
        return f"O(N{factor})"
    text = str(exponent)
    power = f"({text})" if " " in text and not text.startswith("m") else text
    return f"O(N^{power}{factor})"


def _linear_terms(*exponents: Exponent) -> list[Linear]:
    return [
        term
        for exponent in exponents
        for term in ((Linear(exponent),) if isinstance(exponent, Fraction) else exponent.terms)
    ]


def _line_crossings(terms: list[Linear]) -> list[Fraction]:
    """The epsilons in [0, 1] where two of the lines meet."""
    points = [
        Fraction(second.constant - first.constant) / (first.slope - second.slope)
        for i, first in enumerate(terms)
        for second in terms[:i]
        if first.slope != second.slope
    ]
    return [point for point in points if 0 <= point <= 1]
