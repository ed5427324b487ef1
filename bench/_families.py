"""Adversarial databases: one heavy value, 0, whose degree grows with the size.

In every family some variables are spread over 1, ..., N and all others stay at 0, so that each
relation in turn gets a value with N partners, joined with all, with few or with none of the rows
of its neighbours.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

import viewkeep as vk

Row = tuple[int, ...]
Change = tuple[str, Row, int]
"""A relation, a row, and how many copies of it come (or go)."""

HEAVY = 0


@dataclass(frozen=True)
class Limit:
    """At most so many rows of the relation agree at these positions: a key, or a degree."""

    relation: str
    positions: tuple[int, ...]
    bound: int = 1

    def key(self, row: Row) -> Row:
        """What rows have to agree on to count together."""
        return tuple([row[i] for i in self.positions])


@dataclass
class Database:
    """Sets of rows by relation that respect the limits."""

    name: str
    limits: Sequence[Limit] = ()
    rows: dict[str, dict[Row, None]] = field(default_factory=dict)
    _agreeing: dict[tuple[Limit, Row], list[Row]] = field(default_factory=dict)

    def add(self, relation: str, row: Row) -> None:
        """Insert a row, unless it is there or a limit forbids it."""
        if row in self.rows.setdefault(relation, {}) or self.in_the_way(relation, row):
            return
        self.rows[relation][row] = None
        for limit in self._limits(relation):
            self._agreeing.setdefault((limit, limit.key(row)), []).append(row)

    def in_the_way(self, relation: str, row: Row) -> list[Row]:
        """The rows that must go before this one may come."""
        full = [
            rows
            for limit in self._limits(relation)
            if len(rows := self._agreeing.get((limit, limit.key(row)), [])) >= limit.bound
        ]
        return list(dict.fromkeys(rows[-1] for rows in full))

    def _limits(self, relation: str) -> list[Limit]:
        return [limit for limit in self.limits if limit.relation == relation]


def databases(query: vk.ConjunctiveQuery, limits: Sequence[Limit], size: int) -> Iterator[Database]:
    """One relation heavy at a time, then all of them, then mixes."""
    for spread in spreads(query):
        touched = [r for r in query.relations if spread & _variables(query, r)]
        for relations in [*([each] for each in touched), query.relations]:
            name = f"{' '.join(sorted(spread))} spread in {', '.join(relations)}"
            found = Database(name, limits)
            _spread(found, query, spread, relations, size)
            yield found
    yield mixture(query, limits, size)
    yield grid(query, limits, size)


def joined_databases(
    query: vk.ConjunctiveQuery, limits: Sequence[Limit], size: int
) -> Iterator[Database]:
    """Only those in which every row has its partners, as foreign keys demand."""
    for spread in spreads(query):
        found = Database(f"{' '.join(sorted(spread))} spread", limits)
        _spread(found, query, spread, query.relations, size)
        yield found


def spreads(query: vk.ConjunctiveQuery) -> list[frozenset[str]]:
    """Each variable, each two neighbours, and all variables together."""
    singles = [frozenset({v}) for v in query.variables]
    pairs = [
        frozenset(pair)
        for pair in combinations(query.variables, 2)
        if any(set(pair) <= atom.schema for atom in query.atoms)
    ]
    found = [*singles, *(pairs if len(query.variables) < 5 else []), frozenset(query.variables)]
    return list(dict.fromkeys(found))


def mixture(query: vk.ConjunctiveQuery, limits: Sequence[Limit], size: int) -> Database:
    """All families at once: the value 0 is heavy wherever the limits let it be."""
    found = Database("mixed", limits)
    for spread in spreads(query):
        _spread(found, query, spread, query.relations, size)
    return found


def grid(query: vk.ConjunctiveQuery, limits: Sequence[Limit], size: int) -> Database:
    """Every combination of few values: many join partners everywhere."""
    found = Database("grid", limits)
    for atom in query.atoms:
        side = round(size ** (1 / max(len(atom.variables), 1)))
        for row in product(range(side), repeat=len(atom.variables)):
            found.add(atom.relation, row)
    return found


def _spread(
    found: Database,
    query: vk.ConjunctiveQuery,
    spread: frozenset[str],
    relations: Iterable[str],
    size: int,
) -> None:
    for atom in query.atoms:
        last = size if atom.relation in relations and spread & atom.schema else 0
        for i in range(last + 1):
            found.add(atom.relation, tuple(i if v in spread else HEAVY for v in atom.variables))


def _variables(query: vk.ConjunctiveQuery, relation: str) -> set[str]:
    return {v for atom in query.atoms if atom.relation == relation for v in atom.variables}


def visits(database: Database, relation: str, arity: int, size: int) -> Iterator[list[Change]]:
    """Short sequences of single updates that end where they began.

    They insert, repeat and delete rows made of the heavy value, a light one and a new one; what
    a limit puts in the way goes first and comes back last.
    """
    there = database.rows.get(relation, {})
    for row in product((HEAVY, 1, size + 1), repeat=arity):
        if row in there:
            yield [(relation, row, change) for change in (-1, 1, 1, -1)]
        else:
            before = [(relation, other, -1) for other in database.in_the_way(relation, row)]
            after = [(relation, other, 1) for _, other, _ in before]
            yield [*before, (relation, row, 1), (relation, row, -1), *after]


def orders(database: Database) -> Iterator[list[Change]]:
    """The inserts of a whole database: relation by relation in several orders, and shuffled."""
    names = list(database.rows)
    rotations = [names[i:] + names[:i] for i in range(len(names))]
    for order in [*rotations, names[::-1]]:
        yield [(name, row, 1) for name in order for row in database.rows[name]]
    shuffled = [(name, row, 1) for name in names for row in database.rows[name]]
    random.Random(0).shuffle(shuffled)
    yield shuffled
