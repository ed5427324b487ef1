"""What would help: small changes to a query or its data that make maintenance cheaper.

Each change is really analysed: one relation that never changes, one functional dependency inside an
atom, inserts only, one more variable in the output; where no dependency is enough, also a few keys.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, permutations

from viewkeep.analysis import Analysis, Bounds
from viewkeep.analysis.exponents import HALF, value_at
from viewkeep.analysis.routes import best_route
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.constraints import Constraints, Key, closure, dependencies
from viewkeep.report.query.summary import at_best, describe_costs

BUDGET = 180
"""Each try takes longer the more variables there are: this many divided by theirs are made."""


MOST_SHOWN = 4
"""Of changes that do the same, this many are named."""


MOST_KEYS = 3
"""More keys than this are too much to ask."""


@dataclass(frozen=True, slots=True)
class Hint:
    """Any one of `changes`, all of one kind, gives these bounds; keys do so all together."""

    kind: str
    changes: tuple[str, ...]
    bounds: Bounds

    def __str__(self) -> str:
        return f"if {self.condition}: {self.costs}"

    @property
    def costs(self) -> str:
        """Update time and delay, and preprocessing where it is more than linear."""
        best = at_best(self.bounds)
        loading = (
            f", preprocessing {best.order('preprocessing')}" if best.preprocessing != 1 else ""
        )
        return f"{describe_costs(self.bounds)}{loading}"

    @property
    def condition(self) -> str:
        """What would have to be true."""
        if self.kind == "key":
            return f"{' and '.join(self.changes)} {'are keys' if self.changes[1:] else 'is a key'}"
        any_of = " or ".join(self.changes[:MOST_SHOWN])
        if len(self.changes) > MOST_SHOWN:
            any_of += f" (or {len(self.changes) - MOST_SHOWN} more)"
        return {
            "static": f"{any_of} never changes (static)",
            "fd": f"{any_of} holds (functional dependency)",
            "insert_only": "rows are only inserted",
            "output": f"the output also has {any_of}",
        }[self.kind]


def hints(analysis: Analysis) -> tuple[Hint, ...]:
    """The changes that make updates and delay constant, or else those that lower them."""
    if analysis.bounds.constant:
        return ()
    try_limit = BUDGET // max(1, len(analysis.query.variables))
    tried = [
        (kind, change, best_route(query).bounds)
        for kind, change, query in islice(_query_changes(analysis.query), try_limit)
    ]
    helping = [entry for entry in tried if entry[2].constant]
    keys = (
        ()
        if any(kind == "fd" for kind, *_ in helping)
        else _hint_of_keys(analysis.query, try_limit)
    )
    if not helping and not keys:
        helping = [entry for entry in tried if _worst_cost(entry[2]) < _worst_cost(analysis.bounds)]
    return (*_hints_by_kind(helping), *keys)


def _hint_of_keys(query: ConjunctiveQuery, try_limit: int) -> tuple[Hint, ...]:
    """A few keys, one per relation, that make all constant only together."""
    keys = list(_keys_for_hints(query))
    if not 0 < len(keys) < try_limit or not _bounds_under_keys(query, keys).constant:
        return ()
    for key in reversed(keys):
        fewer = [other for other in keys if other != key]
        keys = fewer if _bounds_under_keys(query, fewer).constant else keys
    if len(keys) > MOST_KEYS:
        return ()
    return (Hint("key", tuple(map(str, keys)), _bounds_under_keys(query, keys)),)


def _keys_for_hints(query: ConjunctiveQuery) -> Iterator[Key]:
    """Of every relation the first column that joins it to others, unless it is known as a key."""
    rules = dependencies(query)
    for relation in query.relations:
        atom = next(atom for atom in query.atoms if atom.relation == relation)
        joining = [i for i, v in enumerate(atom.variables) if len(query.atoms_of[v]) > 1]
        if joining and not atom.schema <= closure({atom.variables[joining[0]]}, rules):
            yield Key(relation, (query.columns_of(relation)[joining[0]],))


def _bounds_under_keys(query: ConjunctiveQuery, keys: list[Key]) -> Bounds:
    return best_route(query.with_constraints(Constraints(keys=tuple(keys)))).bounds


def _hints_by_kind(helping: list[tuple[str, str, Bounds]]) -> tuple[Hint, ...]:
    """One hint per kind of change, with the best bounds that the kind reaches."""
    by_kind: dict[str, Hint] = {}
    for kind, change, bounds in helping:
        best = by_kind.get(kind)
        if best is None or _hint_cost(bounds) < _hint_cost(best.bounds):
            by_kind[kind] = Hint(kind, (change,), bounds)
        elif bounds == best.bounds:
            by_kind[kind] = replace(best, changes=(*best.changes, change))
    return tuple(by_kind.values())


def _query_changes(query: ConjunctiveQuery) -> Iterator[tuple[str, str, ConjunctiveQuery]]:
    """Every change to try: its kind, its name and the changed query."""
    for relation in query.relations:
        others = set(query.relations) - query.constraints.static - {relation}
        if others and relation not in query.constraints.static:
            static = Constraints(static=frozenset({relation}))
            yield "static", relation, query.with_constraints(static)
    if not query.constraints.insert_only:
        yield "insert_only", "", query.with_constraints(Constraints(insert_only=True))
    for variable in query.bound:
        if not query.inputs:
            yield "output", variable, replace(query, outputs=(*query.outputs, variable))
    for fd in _useful_dependencies(query):
        yield "fd", fd, query.with_constraints(Constraints.parse(fds=[fd]))


def _useful_dependencies(query: ConjunctiveQuery) -> Iterator[str]:
    """Dependencies x -> y inside an atom that are new and extend another atom or the head."""
    rules = dependencies(query)
    for x, y in permutations(query.variables, 2):
        together = query.atoms_of[x] & query.atoms_of[y]
        extends = query.atoms_of[x] - query.atoms_of[y] or (x in query.free and y in query.bound)
        if together and extends and y not in closure({x}, rules):
            yield f"{x} -> {y}"


def _worst_cost(bounds: Bounds) -> Fraction:
    return bounds.worst(_best_epsilon(bounds))


def _hint_cost(bounds: Bounds) -> tuple[Fraction, bool, Fraction]:
    preprocessing = value_at(bounds.preprocessing, _best_epsilon(bounds))
    return _worst_cost(bounds), bounds.amortized, preprocessing


def _best_epsilon(bounds: Bounds) -> Fraction:
    return HALF if bounds.best_epsilon is None else bounds.best_epsilon
