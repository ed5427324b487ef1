"""Alpha-acyclicity by GYO reduction."""

from collections.abc import Sequence
from dataclasses import dataclass

from viewkeep.analysis.verdict import Verdict
from viewkeep.query.conjunctive import ConjunctiveQuery


@dataclass(frozen=True, slots=True)
class Reduction:
    """What GYO reduction leaves: a join forest (child to parent), or a cyclic core."""

    parents: dict[int, int]
    core: dict[int, frozenset[str]]

    @property
    def acyclic(self) -> bool:
        """Whether nothing was left over."""
        return not self.core


def alpha_acyclic(query: ConjunctiveQuery) -> Verdict:
    """Whether the atoms have a join tree.

    >>> from viewkeep.query.notation.parse import parse
    >>> print(alpha_acyclic(parse("Q() = R(a, b) * S(b, c) * T(c, a)")))
    no: cyclic core R(a, b), S(b, c), T(c, a) is left by GYO reduction
    """
    reduction = reduce_ears([atom.schema for atom in query.atoms])
    if not reduction.acyclic:
        return cyclic_core("alpha_acyclic", query, reduction)
    labels = query.labels
    edges = [f"{labels[child]} under {labels[up]}" for child, up in reduction.parents.items()]
    tree = f"join tree: {', '.join(edges)}" if edges else "no two atoms share a variable"
    return Verdict("alpha_acyclic", True, tree)


def reduce_ears(edges: Sequence[frozenset[str]]) -> Reduction:
    """Drop variables of one edge only and edges inside others, until nothing changes."""
    left = dict(enumerate(edges))
    parents: dict[int, int] = {}
    changed = True
    while changed:
        trimmed = _without_lone_variables(left)
        changed = trimmed != left
        left = trimmed
        ear = _find_ear(left)
        if ear is not None:
            child, parent = ear
            if left[child]:
                parents[child] = parent
            del left[child]
            changed = True
    return Reduction(parents, {i: edge for i, edge in left.items() if edge})


def _without_lone_variables(left: dict[int, frozenset[str]]) -> dict[int, frozenset[str]]:
    """Without the variables that stand in one edge only."""
    uses: dict[str, int] = {}
    for edge in left.values():
        for variable in edge:
            uses[variable] = uses.get(variable, 0) + 1
    return {i: frozenset(v for v in edge if uses[v] > 1) for i, edge in left.items()}


def _find_ear(left: dict[int, frozenset[str]]) -> tuple[int, int] | None:
    """An edge contained in another one, with that other one."""
    for child, edge in left.items():
        for parent, other in left.items():
            if child != parent and edge <= other:
                return child, parent
    return None


def cyclic_core(
    name: str, query: ConjunctiveQuery, reduction: Reduction, prefix: str = ""
) -> Verdict:
    """The "no" that a core left by the reduction gives."""
    atoms = [str(atom) for i, atom in enumerate(query.atoms) if i in reduction.core]
    core = frozenset().union(*reduction.core.values())
    return Verdict(
        name,
        False,
        f"{prefix}cyclic core {', '.join(atoms)} is left by GYO reduction",
        variables=tuple(v for v in query.variables if v in core),
        atoms=tuple(query.labels[i] for i in range(len(query.atoms)) if i in reduction.core),
    )
