"""Cascades: a query that rides on the enumeration of another (recent_increments_in_ivm, 4.2)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from viewkeep.analysis.access_pattern import tractable_access_pattern
from viewkeep.query.conjunctive import Atom, ConjunctiveQuery
from viewkeep.query.expressions import columns_of, rename_columns


@dataclass(frozen=True, slots=True)
class Cascade:
    """`rider` has constant update time and delay if `carriers` are enumerated before it."""

    rider: str
    carriers: tuple[str, ...]
    rewriting: ConjunctiveQuery

    def __str__(self) -> str:
        first = " and ".join(self.carriers)
        return f"{self.rider} rides on {first} (enumerate {first} first): {self.rewriting}"


def find_cascades(
    queries: Sequence[ConjunctiveQuery], tractable: Mapping[str, bool]
) -> tuple[Cascade, ...]:
    """For each query that is not tractable alone, a tractable rewriting over others.

    Without inputs, tractable is q-hierarchical. Carriers are tractable queries and, in turn,
    queries that ride themselves; none that is called like a relation, which it would hide.
    """
    relations = {relation for query in queries for relation in query.relations}
    carriers = [q for q in queries if tractable[q.name] and q.name not in relations]
    waiting = [query for query in queries if not tractable[query.name]]
    cascades: list[Cascade] = []
    progress = True
    while progress:
        progress = False
        for query in list(waiting):
            cascade = next(_rewritings(query, query, carriers, ()), None)
            if cascade is not None:
                cascades.append(cascade)
                carriers += [query] if query.name not in relations else []
                waiting.remove(query)
                progress = True
    return tuple(cascades)


def _rewritings(
    rider: ConjunctiveQuery,
    current: ConjunctiveQuery,
    carriers: Sequence[ConjunctiveQuery],
    used: tuple[str, ...],
) -> Iterator[Cascade]:
    """Rewritings with one carrier more after another, few carriers first."""
    steps = [
        (carrier, rewriting)
        for carrier in carriers
        if carrier.name not in used
        for rewriting in rewritings_with(current, carrier)
    ]
    for carrier, rewriting in steps:
        if tractable_access_pattern(rewriting):
            yield Cascade(rider.name, (*used, carrier.name), rewriting)
    for carrier, rewriting in steps:
        if len(rewriting.atoms) < len(current.atoms):
            yield from _rewritings(rider, rewriting, carriers, (*used, carrier.name))


def rewritings_with(
    query: ConjunctiveQuery, carrier: ConjunctiveQuery
) -> Iterator[ConjunctiveQuery]:
    """The query with some of its atoms replaced by the carrier's output, in every way.

    For payloads to come out right, the homomorphism must map the carrier's atoms to different
    atoms and its bound variables to different bound variables that occur nowhere else.
    """
    if carrier.inputs or carrier.aggregates:
        return
    for mapping, covered in _embeddings(carrier, query, 0, {}, ()):
        if not _sums_agree(carrier, query, mapping, covered):
            continue
        image = Atom(carrier.name, tuple(mapping[v] for v in carrier.outputs))
        rest = [atom for i, atom in enumerate(query.atoms) if i not in covered]
        rewriting = _rewrite(query, carrier, mapping, (image, *rest))
        if rewriting is not None:
            yield rewriting


def _embeddings(
    carrier: ConjunctiveQuery,
    query: ConjunctiveQuery,
    position: int,
    mapping: dict[str, str],
    covered: tuple[int, ...],
) -> Iterator[tuple[dict[str, str], tuple[int, ...]]]:
    if position == len(carrier.atoms):
        yield mapping, covered
        return
    atom = carrier.atoms[position]
    for i, target in enumerate(query.atoms):
        if i not in covered and _same_columns(carrier, atom, query, target):
            pairs = dict(zip(atom.variables, target.variables, strict=True))
            extended = mapping | pairs
            consistent = all(extended[v] == mapping.get(v, extended[v]) for v in pairs)
            if consistent and tuple(extended[v] for v in atom.variables) == target.variables:
                yield from _embeddings(carrier, query, position + 1, extended, (*covered, i))


def _same_columns(
    carrier: ConjunctiveQuery, atom: Atom, query: ConjunctiveQuery, target: Atom
) -> bool:
    """Whether two atoms are over the same columns of the same relation."""
    column_lists = (
        dict(carrier.columns).get(atom.relation),
        dict(query.columns).get(target.relation),
    )
    return (
        atom.relation == target.relation
        and len(atom.variables) == len(target.variables)
        and (None in column_lists or column_lists[0] == column_lists[1])
    )


def _sums_agree(
    carrier: ConjunctiveQuery,
    query: ConjunctiveQuery,
    mapping: dict[str, str],
    covered: tuple[int, ...],
) -> bool:
    images = [mapping[v] for v in carrier.bound]
    kept = {mapping[v] for v in carrier.outputs}
    return (
        len(set(images)) == len(images)
        and kept.isdisjoint(images)
        and all(v in query.bound and query.atoms_of[v] <= set(covered) for v in images)
    )


def _rewrite(
    query: ConjunctiveQuery,
    carrier: ConjunctiveQuery,
    mapping: dict[str, str],
    atoms: tuple[Atom, ...],
) -> ConjunctiveQuery | None:
    """The rewriting, unless it would lose a condition or a variable that is still needed."""
    done = {rename_columns(condition, lambda v: mapping[v]) for condition in carrier.conditions}
    if not done <= set(query.conditions):
        return None
    conditions = tuple(c for c in query.conditions if c not in done)
    needed = list(conditions) + [a.argument for a in query.aggregates if a.argument]
    if not all(any(columns_of(c) <= atom.schema for atom in atoms) for c in needed):
        return None
    return ConjunctiveQuery(
        query.name, query.outputs, atoms, query.inputs, query.aggregates, conditions
    )
