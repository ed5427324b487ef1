"""Q-hierarchical queries (recent_increments_in_ivm, definition 4.2 and theorem 4.1)."""

from collections.abc import Collection
from itertools import permutations

from viewkeep.analysis.hierarchical import hierarchical
from viewkeep.analysis.verdict import Verdict, atom_labels, atom_set
from viewkeep.query.conjunctive import ConjunctiveQuery


def q_hierarchical(query: ConjunctiveQuery) -> Verdict:
    """Whether the query is hierarchical and no bound variable dominates a free one.

    >>> from viewkeep.query.notation.parse import parse
    >>> print(q_hierarchical(parse("Q(x) = R(x, y) * S(y)")))
    no: bound y dominates free x: atoms {R, S} strictly contain {R}
    """
    base = hierarchical(query)
    if not base:
        because = f"not hierarchical: {base.because}"
        return Verdict("q_hierarchical", False, because, base.variables, base.atoms)
    pair = dominated_pair(query, query.free)
    if pair is None:
        because = "hierarchical, and every variable that dominates a free variable is free"
        return Verdict("q_hierarchical", True, because)
    return dominance_verdict("q_hierarchical", query, pair, ("bound", "free"))


def dominated_pair(query: ConjunctiveQuery, inside: Collection[str]) -> tuple[str, str] | None:
    """A variable outside the set that dominates one inside: atoms(X) strictly contain atoms(Y)."""
    for x, y in permutations(query.variables, 2):
        if x not in inside and y in inside and query.atoms_of[y] < query.atoms_of[x]:
            return x, y
    return None


def dominance_verdict(
    name: str, query: ConjunctiveQuery, pair: tuple[str, str], kinds: tuple[str, str]
) -> Verdict:
    """The "no" that a dominating variable of the wrong kind gives."""
    x, y = pair
    above, below = query.atoms_of[x], query.atoms_of[y]
    return Verdict(
        name,
        False,
        f"{kinds[0]} {x} dominates {kinds[1]} {y}: atoms {atom_set(query, above)} "
        f"strictly contain {atom_set(query, below)}",
        variables=pair,
        atoms=atom_labels(query, above),
    )
