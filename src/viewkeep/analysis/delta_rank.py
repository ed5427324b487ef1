"""The delta rank of hierarchical queries (ivm_lecture, part 3: delta_1-hierarchical queries)."""

from viewkeep.analysis.hierarchical import crossing_pair
from viewkeep.analysis.verdict import Verdict, atom_labels, atom_set
from viewkeep.query.conjunctive import ConjunctiveQuery


def delta_rank(query: ConjunctiveQuery) -> Verdict:
    """The least i such that, for every bound variable X and atom A of X, i further atoms of X
    and A together have all free variables that occur in the atoms of X.

    Rank 0 is q-hierarchical. Only hierarchical queries have a rank.

    >>> from viewkeep.query.notation.parse import parse
    >>> print(delta_rank(parse("Q(a) = R(a, b) * S(b)")).because)
    rank 1: b is bound, and beside S the free variable a needs 1 more atom of {R, S}
    """
    crossing = crossing_pair(query)
    if crossing is not None:
        because = f"only hierarchical queries have a rank: {' and '.join(crossing)} cross"
        return Verdict("delta_rank", False, because, crossing)
    ranks = [
        (_further_atoms(query, variable, atom), variable, atom)
        for variable in query.bound
        for atom in sorted(query.atoms_of[variable])
    ]
    rank, variable, atom = max(ranks, key=lambda entry: entry[0], default=(0, "", 0))
    if rank == 0:
        return Verdict(
            "delta_rank", True, "rank 0: no bound variable dominates a free one", value=0
        )
    return _rank_verdict(query, rank, variable, atom)


def _rank_verdict(query: ConjunctiveQuery, rank: int, variable: str, atom: int) -> Verdict:
    missing, atoms = _variables_lacking(query, variable, atom), query.atoms_of[variable]
    needs = (
        f"variables {', '.join(missing)} need" if missing[1:] else f"variable {missing[0]} needs"
    )
    because = (
        f"rank {rank}: {variable} is bound, and beside {query.labels[atom]} the free {needs} "
        f"{rank} more atom{'s' if rank > 1 else ''} of {atom_set(query, atoms)}"
    )
    labels = atom_labels(query, atoms)
    return Verdict("delta_rank", True, because, (variable, *missing), labels, rank)


def _variables_lacking(query: ConjunctiveQuery, variable: str, atom: int) -> list[str]:
    """The free variables in the atoms of `variable` that `atom` lacks."""
    atoms = query.atoms_of[variable]
    return [v for v in query.free if query.atoms_of[v] & atoms and atom not in query.atoms_of[v]]


def _further_atoms(query: ConjunctiveQuery, variable: str, atom: int) -> int:
    """How many further atoms cover what is missing.

    In a hierarchical query atom sets are nested or disjoint, so the least hitting set takes one
    atom from each minimal set, and the minimal sets are disjoint.
    """
    sets = {query.atoms_of[v] for v in _variables_lacking(query, variable, atom)}
    return sum(not any(other < each for other in sets) for each in sets)
