"""Free access patterns: the fracture and tractability (recent_increments_in_ivm, 4.3)."""

from viewkeep.analysis.hierarchical import hierarchical
from viewkeep.analysis.q_hierarchical import dominance_verdict, dominated_pair
from viewkeep.analysis.verdict import Verdict
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery


def fracture(query: ConjunctiveQuery) -> ConjunctiveQuery:
    """The query with its input variables split, one copy per connected component.

    Definition 4.7: every occurrence of an input variable becomes fresh, and then the fresh
    variables of one component that come from the same input become one again.

    >>> from viewkeep.query.notation.parse import parse
    >>> print(fracture(parse("Q(c | a, b) = E(a, b) * E(b, c) * E(c, a)")))
    Q(c | a_1, a_2, b_1, b_2) = E(a_1, b_1) * E(b_2, c) * E(c, a_2)
    """
    parts = fracture_components(query)
    copies = _input_copies(query, parts)
    part_of = {atom: i for i, part in enumerate(parts) for atom in part}
    atoms = tuple(
        Atom(atom.relation, tuple(copies.get((v, part_of[i]), v) for v in atom.variables))
        for i, atom in enumerate(query.atoms)
    )
    inputs = tuple(name for (v, _), name in copies.items())
    return ConjunctiveQuery(query.name, query.outputs, atoms, inputs)


def fracture_components(query: ConjunctiveQuery) -> list[frozenset[int]]:
    """The atoms connected by variables that are not inputs."""
    parts: list[tuple[frozenset[int], frozenset[str]]] = []
    for i, atom in enumerate(query.atoms):
        members, variables = frozenset({i}), atom.schema - set(query.inputs)
        rest = []
        for part in parts:
            if part[1] & variables:
                members, variables = members | part[0], variables | part[1]
            else:
                rest.append(part)
        parts = [*rest, (members, variables)]
    return sorted((members for members, _ in parts), key=min)


def _input_copies(
    query: ConjunctiveQuery, parts: list[frozenset[int]]
) -> dict[tuple[str, int], str]:
    """A name for each input variable in each component, numbered where there are several."""
    copies: dict[tuple[str, int], str] = {}
    names = set(query.variables)
    for variable in query.inputs:
        used = [i for i, part in enumerate(parts) if part & query.atoms_of[variable]]
        for number, part in enumerate(used, start=1):
            name = variable if len(used) == 1 else f"{variable}_{number}"
            while name != variable and name in names:
                name += "_"
            names.add(name)
            copies[variable, part] = name
    return copies


def tractable_access_pattern(query: ConjunctiveQuery) -> Verdict:
    """Whether the fracture is hierarchical, free-dominant and input-dominant (definition 4.7).

    Without inputs this is the same as q-hierarchical.
    """
    name = "tractable_access_pattern"
    split = fracture(query)
    where = f"fracture {split}: " if query.inputs else ""
    base = hierarchical(split)
    if base:
        bound_pair = dominated_pair(split, split.free)
        input_pair = dominated_pair(split, split.inputs)
        if bound_pair is not None:
            base = dominance_verdict(name, split, bound_pair, ("bound", "free"))
        elif input_pair is not None:
            base = dominance_verdict(name, split, input_pair, ("non-input", "input"))
        else:
            base = Verdict(name, True, "hierarchical, free-dominant and input-dominant")
    return Verdict(name, base.holds, where + base.because, base.variables, base.atoms)
