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
    return _cover_number(target, _maximal_edges({edge & target for edge in edges}))


@lru_cache(maxsize=100_000)
def _cover_number(target: frozenset[str], edges: frozenset[Edge]) -> Fraction:
    if not target:
        return Fraction(0)
    if target in edges:
        return Fraction(1)
    missing = target.difference(*edges)
    if missing:
        raise ValueError(f"no edge covers {', '.join(sorted(missing))}")
    return _largest_packing(_scarce_variables(target, edges), sorted(edges, key=sorted))


def _maximal_edges(edges: set[Edge]) -> frozenset[Edge]:
    """The edges that no other edge contains: the others never help to cover."""
    return frozenset(e for e in edges if e and not any(e < other for other in edges))


def _scarce_variables(target: frozenset[str], edges: frozenset[Edge]) -> list[str]:
    """One variable for each minimal set of edges: whatever covers it covers the others too."""
    holders = {v: frozenset(edge for edge in edges if v in edge) for v in sorted(target)}
    first = {holder_edges: v for v, holder_edges in reversed(holders.items())}
    return [
        v for holder_edges, v in first.items() if not any(other < holder_edges for other in first)
    ]


def _largest_packing(variables: list[str], edges: list[Edge]) -> Fraction:
    """Maximise the sum of variable weights with at most one per edge, by the simplex method.

    The tableau holds integers over one common denominator, so every division is exact. Columns
    stand for what is zero, rows for what is not; pivoting swaps the two. Bland's rule (always the
    smallest name that will do) prevents cycling.
    """
    rows = [[int(v in edge) for v in variables] + [1] for edge in edges]
    rows.append([-1] * len(variables) + [0])
    outside = list(range(len(variables)))
    inside = list(range(len(variables), len(variables) + len(edges)))
    denominator = 1
    while entering := [j for j in range(len(variables)) if rows[-1][j] < 0]:
        column = min(entering, key=lambda j: outside[j])
        candidates = [i for i in range(len(edges)) if rows[i][column] > 0]
        pivot = min(candidates, key=lambda i: (Fraction(rows[i][-1], rows[i][column]), inside[i]))
        denominator = _simplex_pivot(rows, pivot, column, denominator)
        inside[pivot], outside[column] = outside[column], inside[pivot]
    return Fraction(rows[-1][-1], denominator)


def _simplex_pivot(rows: list[list[int]], pivot: int, column: int, denominator: int) -> int:
    """Swap the row and the column; returns the new common denominator."""
    scale, pivot_row = rows[pivot][column], rows[pivot]
    for i, row in enumerate(rows):
        factor = row[column]
        if i != pivot:
            rows[i] = [
                (value * scale - factor * p) // denominator
                for value, p in zip(row, pivot_row, strict=True)
            ]
            rows[i][column] = -factor
    pivot_row[column] = denominator
    return scale
