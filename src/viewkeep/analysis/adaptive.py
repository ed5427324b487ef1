"""Query shapes that heavy/light partitioning maintains in sublinear time
(triangle_ivm_epsilon, theorem 3 and section 5)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from viewkeep.analysis.delta_rank import delta_rank
from viewkeep.analysis.exponents import Bounds, Linear, in_epsilon
from viewkeep.analysis.verdict import Verdict
from viewkeep.query.aggregates import ORDERED
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery

_ADAPTIVE = Bounds(
    preprocessing=Fraction(3, 2),
    update=in_epsilon(Linear(0, 1), Linear(1, -1)),
    delay=Fraction(0),
    space=in_epsilon(Linear(1, 1), Linear(2, -1), largest=False),
    amortized=True,
)
"""N^max(eps, 1 - eps) update and N^(1 + min(eps, 1 - eps)) space: theorem 3."""

_LISTED = replace(_ADAPTIVE, space=Fraction(3, 2))
"""All triangles that are light in every relation, or heavy in every one, are kept: there can be
N^3/2 of them whatever eps is."""

_FOUR_PATH = replace(
    _ADAPTIVE,
    preprocessing=in_epsilon(Linear(1, 1), Linear(2, -1)),
    space=in_epsilon(Linear(2, -1)),
)
"""The middle of the path is joined over heavy values of its ends: views may have N^(2 - 2 eps)
entries, those over light values N^min(1 + eps, 2 - eps). Loading costs at most N updates."""

_FOUR_CYCLE = Bounds(
    preprocessing=Fraction(5, 3),
    update=Fraction(2, 3),
    delay=Fraction(0),
    space=Fraction(4, 3),
    amortized=True,
)
"""Sublinear by splitting at degree N^1/3, with views over two and three relations of
size N^4/3; loading costs at most N times an update."""


@dataclass(frozen=True, slots=True)
class AdaptiveShape:
    """A named shape, how to recognise it, and its bounds."""

    name: str
    matches: Callable[[ConjunctiveQuery], bool]
    bounds: Bounds


def find_shape(query: ConjunctiveQuery) -> AdaptiveShape | None:
    """The first shape that the query has, up to renaming; counts and sums need a ring."""
    extreme = any(aggregate.function in ORDERED for aggregate in query.aggregates)
    repeated = any(len(atom.variables) != len(atom.schema) for atom in query.atoms)
    if query.inputs or extreme or repeated:
        return None
    # A list has no bound variable at all: to sum away a local one is not planned for lists.
    candidates = (query,) if query.free else (query, _without_local_variables(query))
    return next((s for s in SHAPES if any(map(s.matches, candidates))), None)


def _without_local_variables(query: ConjunctiveQuery) -> ConjunctiveQuery:
    """The query without bound variables of a single atom, which change no bound.

    The ends of a path are such variables too, so a query is also looked at as it stands.
    """
    atoms = tuple(
        Atom(f"{atom.relation}#{i}", tuple(v for v in atom.variables if v not in query.local))
        for i, atom in enumerate(query.atoms)
    )
    return ConjunctiveQuery(query.name, query.outputs, atoms)


def adaptive(query: ConjunctiveQuery) -> Verdict:
    """Whether telling heavy values from light ones is known to help.

    It does for some shapes, and for hierarchical queries that are not q-hierarchical.
    """
    shape = find_shape(query)
    if shape is not None:
        return Verdict("adaptive", True, f"{shape.name}: heavy and light values are told apart")
    rank = delta_rank(query).value
    if rank and not query.inputs:
        because = f"delta_{rank}-hierarchical: heavy and light values are told apart"
        return Verdict("adaptive", True, because)
    names = ", ".join(shape.name for shape in SHAPES)
    return Verdict("adaptive", False, f"neither hierarchical with rank above 0, nor a {names}")


def _is_triangle(query: ConjunctiveQuery) -> bool:
    return _is_loomis_whitney(query) and len(query.atoms) == 3


def _is_loomis_whitney(query: ConjunctiveQuery) -> bool:
    """n atoms over n variables, each lacking another one."""
    size = len(query.variables)
    lacking = {frozenset(query.variables) - atom.schema for atom in query.atoms}
    return 3 <= size == len(query.atoms) == len(lacking) and all(len(v) == 1 for v in lacking)


def _is_path(query: ConjunctiveQuery, length: int) -> bool:
    return len(query.atoms) == length and len(query.variables) == length + 1 and _is_chain(query)


def _is_four_cycle(query: ConjunctiveQuery) -> bool:
    uses_twice = all(len(atoms) == 2 for atoms in query.atoms_of.values())
    return len(query.atoms) == len(query.variables) == 4 and uses_twice and _is_chain(query)


def _is_chain(query: ConjunctiveQuery) -> bool:
    """Binary atoms, connected, with no two on the same variables and no variable in three."""
    binary = all(len(atom.schema) == 2 for atom in query.atoms)
    distinct = len({atom.schema for atom in query.atoms}) == len(query.atoms)
    slender = all(len(atoms) <= 2 for atoms in query.atoms_of.values())
    return binary and distinct and slender and _is_connected(query)


def _is_connected(query: ConjunctiveQuery) -> bool:
    parts = [atom.schema for atom in query.atoms]
    while pair := next(((a, b) for a, b in combinations(parts, 2) if a & b), None):
        parts.remove(pair[0])
        parts.remove(pair[1])
        parts.append(pair[0] | pair[1])
    return len(parts) == 1


def _is_count_of(matches: Callable[[ConjunctiveQuery], bool]) -> Callable[[ConjunctiveQuery], bool]:
    return lambda query: not query.free and matches(query)


SHAPES = (
    AdaptiveShape("triangle count", _is_count_of(_is_triangle), _ADAPTIVE),
    AdaptiveShape("triangle enumeration", lambda q: not q.bound and _is_triangle(q), _LISTED),
    AdaptiveShape("Loomis-Whitney count", _is_count_of(_is_loomis_whitney), _ADAPTIVE),
    AdaptiveShape(
        "count over three relations", _is_count_of(lambda q: len(q.atoms) == 3), _ADAPTIVE
    ),
    AdaptiveShape("4-path count", _is_count_of(lambda q: _is_path(q, 4)), _FOUR_PATH),
    AdaptiveShape("4-cycle count", _is_count_of(_is_four_cycle), _FOUR_CYCLE),
)
"""In order of recognition; a 3-path is a count over three relations."""
