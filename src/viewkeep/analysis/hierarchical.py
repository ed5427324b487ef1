"""Hierarchical queries (recent_increments_in_ivm, definition 4.2)."""

from itertools import combinations

from viewkeep.analysis.verdict import Verdict, atom_labels, atom_set
from viewkeep.query.conjunctive import ConjunctiveQuery


def hierarchical(query: ConjunctiveQuery) -> Verdict:
    """Whether any two variables have atom sets that are disjoint or nested.

    >>> from viewkeep.query.notation.parse import parse
    >>> print(hierarchical(parse("Q() = R(x) * S(x, y) * T(y)")))
    no: x and y: atoms {R, S} and {S, T} overlap, neither contains the other
    """
    pair = crossing_pair(query)
    if pair is None:
        because = "any two variables have disjoint or nested sets of atoms"
        return Verdict("hierarchical", True, because)
    first, second = pair
    atoms = query.atoms_of
    return Verdict(
        "hierarchical",
        False,
        f"{first} and {second}: atoms {atom_set(query, atoms[first])} and "
        f"{atom_set(query, atoms[second])} overlap, neither contains the other",
        variables=pair,
        atoms=atom_labels(query, atoms[first] | atoms[second]),
    )


def crossing_pair(query: ConjunctiveQuery) -> tuple[str, str] | None:
    """Two variables whose atom sets overlap without one containing the other."""
    for first, second in combinations(query.variables, 2):
        a, b = query.atoms_of[first], query.atoms_of[second]
        if a & b and not a <= b and not b <= a:
            return first, second
    return None
