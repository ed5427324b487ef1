"""Fractional edge covers: how many values a set of variables can take in a join.

If every atom has at most N tuples, the variables F take at most N^rho*(F) values in the join,
where rho*(F) is the least total weight on the atoms such that every variable of F has weight at
least one (Atserias, Grohe, Marx). The dual packs weights on the variables with at most one per
atom; it starts feasible at zero, so a plain simplex in exact fractions solves it.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

Edge = frozenset[str]


def edge_cover(target: frozenset[str], edges: Iterable[Edge]) -> Fraction:
    """rho*(target): the fractional edge cover number of the target by the edges.

    >>> triangle = [frozenset("ab"), frozenset("bc"), frozenset("ca")]
    >>> edge_cover(frozenset("abc"), triangle)
    Fraction(3, 2)
    """
    return _cover(target, _maximal({edge & target for edge in edges}))


@lru_cache(maxsize=100_000)
def _cover(target: frozenset[str], edges: frozenset[Edge]) -> Fraction:
    if not target:
        return Fraction(0)
    if target in edges:
        return Fraction(1)
    missing = target.difference(*edges)
    if missing:
        raise ValueError(f"no edge covers {', '.join(sorted(missing))}")
    return _largest_packing(sorted(target), sorted(edges, key=sorted))


def _maximal(edges: set[Edge]) -> frozenset[Edge]:
    """The edges that no other edge contains: the others never help to cover."""
    return frozenset(e for e in edges if e and not any(e < other for other in edges))


def _largest_packing(variables: list[str], edges: list[Edge]) -> Fraction:
    """Maximise the sum of variable weights with at most one per edge, by the simplex method.

    Bland's rule (the first column that improves, the first row that ties) prevents cycling.
    """
    width = len(variables) + len(edges)
    rows = [
        [Fraction(v in edge) for v in variables]
        + [Fraction(i == j) for j in range(len(edges))]
        + [Fraction(1)]
        for i, edge in enumerate(edges)
    ]
    basis = list(range(len(variables), width))
    objective = [Fraction(-1)] * len(variables) + [Fraction(0)] * (len(edges) + 1)
    while (column := next((j for j in range(width) if objective[j] < 0), None)) is not None:
        ratios = [
            (row[-1] / row[column], basis[i], i) for i, row in enumerate(rows) if row[column] > 0
        ]
        _, _, pivot = min(ratios)
        _eliminate(rows, objective, pivot, column)
        basis[pivot] = column
    return objective[-1]


def _eliminate(
    rows: list[list[Fraction]], objective: list[Fraction], pivot: int, column: int
) -> None:
    scale = rows[pivot][column]
    rows[pivot] = [value / scale for value in rows[pivot]]
    for row in (*rows[:pivot], *rows[pivot + 1 :], objective):
        factor = row[column]
        if factor:
            row[:] = [value - factor * p for value, p in zip(row, rows[pivot], strict=True)]
