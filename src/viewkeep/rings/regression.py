"""Linear regression from an element of the degree-m matrix ring, without the data."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from viewkeep.errors import RingError
from viewkeep.rings.matrix import MatrixRing, Moments


@dataclass(frozen=True)
class LinearModel:
    """label = intercept + sum of weight * feature."""

    intercept: float
    weights: Mapping[str, float]

    def predict(self, features: Mapping[str, float]) -> float:
        """The label of one data point."""
        return self.intercept + sum(w * features[name] for name, w in self.weights.items())


def least_squares(
    ring: MatrixRing, element: Moments, label: str, ridge: float = 0.0
) -> LinearModel:
    """Minimise sum (label - prediction)^2 + ridge * sum weight^2 by the normal equations.

    >>> ring = MatrixRing(("x", "y"))
    >>> points = [(0, 1), (1, 3), (2, 5)]
    >>> total = ring.zero
    >>> for x, y in points:
    ...     total = ring.add(total, ring.multiply(ring.lift("x")(x), ring.lift("y")(y)))
    >>> least_squares(ring, total, label="y")
    LinearModel(intercept=1.0, weights={'x': 2.0})
    """
    features = [variable for variable in ring.variables if variable != label]
    sums = [Fraction(ring.sum_of(element, f)) for f in features]
    first = [Fraction(ring.count_of(element)), *sums, Fraction(ring.sum_of(element, label))]
    rows = [first]
    for feature, total in zip(features, sums, strict=True):
        cells = [Fraction(ring.sum_of_products(element, feature, f)) for f in (*features, label)]
        cells[features.index(feature)] += Fraction(ridge)
        rows.append([total, *cells])
    intercept, *weights = map(float, _solve_equations(rows))
    return LinearModel(intercept, dict(zip(features, weights, strict=True)))


def _solve_equations(rows: list[list[Fraction]]) -> list[Fraction]:
    """Gauss-Jordan elimination of [A | b]; in fractions, so that "singular" is a fact."""
    for i in range(len(rows)):
        pivot = next((j for j in range(i, len(rows)) if rows[j][i]), None)
        if pivot is None:
            raise RingError(
                "the regression has no unique solution: too few points, or features that depend "
                "on each other; give a ridge term"
            )
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [cell / rows[i][i] for cell in rows[i]]
        for j, row in enumerate(rows):
            if j != i and row[i]:
                rows[j] = [cell - row[i] * base for cell, base in zip(row, rows[i], strict=True)]
    return [row[-1] for row in rows]
