"""Primary and foreign keys under valid batches (recent_increments_in_ivm, section 4.4)."""

from viewkeep.analysis.verdict import Verdict, atom_set
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import ForeignKey, positions_in_atoms


def foreign_key_join(query: ConjunctiveQuery) -> Verdict:
    """Whether, in each connected part, one atom refers to all others by foreign keys.

    Then each of its rows meets exactly one row of every other atom, and a batch that leads from
    one consistent database to another costs amortized constant time per update, in any order:
    a referenced row that comes late costs one step per row that waited for it (example 4.13).
    A referenced row that is replaced under its own key is not covered: it costs one step per
    row that refers to it.
    """
    name = "foreign_key_join"
    if not query.constraints.foreign_keys:
        return Verdict(name, False, "no foreign keys are declared")
    links = _foreign_key_links(query)
    reasons = []
    for part in _foreign_key_components(query):
        root = max(sorted(part), key=lambda atom: len(_atoms_by_foreign_keys(atom, links)))
        missed = part - _atoms_by_foreign_keys(root, links)
        if missed:
            because = (
                f"no atom refers to all others by foreign keys: from {query.labels[root]}, "
                f"{atom_set(query, missed)} cannot be reached"
            )
            return Verdict(name, False, because, atoms=tuple(query.labels[i] for i in missed))
        reasons.append(f"{query.labels[root]} refers to {atom_set(query, part - {root})}")
    return Verdict(
        name,
        True,
        f"{'; '.join(reasons)} by foreign keys; counted per batch between "
        "consistent states that replaces no referenced row in place",
    )


def referring_atoms(query: ConjunctiveQuery) -> frozenset[int]:
    """In each connected part, the atom that refers to most others."""
    links = _foreign_key_links(query)
    return frozenset(
        max(sorted(part), key=lambda atom: len(_atoms_by_foreign_keys(atom, links)))
        for part in _foreign_key_components(query)
    )


def _foreign_key_links(query: ConjunctiveQuery) -> dict[int, set[int]]:
    """For each atom, the atoms it refers to on equal variables."""
    links: dict[int, set[int]] = {i: set() for i in range(len(query.atoms))}
    for key in query.constraints.foreign_keys:
        for i in links:
            links[i] |= {j for j in links if i != j and _refers_to_atom(query, key, i, j)}
    return links


def _refers_to_atom(query: ConjunctiveQuery, key: ForeignKey, i: int, j: int) -> bool:
    child, parent = query.atoms[i], query.atoms[j]
    if (child.relation, parent.relation) != (key.relation, key.referenced):
        return False
    here = positions_in_atoms(query, key.relation, key.columns)
    there = positions_in_atoms(query, key.referenced, key.referenced_columns)
    return all(child.variables[a] == parent.variables[b] for a, b in zip(here, there, strict=True))


def _foreign_key_components(query: ConjunctiveQuery) -> list[frozenset[int]]:
    """The atoms that variables connect."""
    shared = {
        i: {j for atoms in query.atoms_of.values() if i in atoms for j in atoms}
        for i in range(len(query.atoms))
    }
    parts = {_atoms_by_foreign_keys(i, shared) for i in shared}
    return sorted(parts, key=min)


def _atoms_by_foreign_keys(start: int, links: dict[int, set[int]]) -> frozenset[int]:
    reached, frontier = {start}, {start}
    while frontier:
        frontier = {j for i in frontier for j in links[i]} - reached
        reached |= frontier
    return frozenset(reached)
