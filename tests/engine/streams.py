"""Random updates, and the comparison of whatever maintains a query with recomputation."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice, product
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

import viewkeep as vk
from tests.oracle import UNREADABLE, Row, of_nothing, recompute
from viewkeep.query.conjunctive import ConjunctiveQuery

Update = tuple[str, Row, int]
"""A relation, a row and by how much its multiplicity changes."""

VALUES = (0, 1, 2)
ANY = (1, 1, 1, 1, 2, 3, -1, -1, -2)
"""Multiplicities that often go below zero, and come back."""
INSERTS = (1, 1, 1, 2)

STRATEGIES = ("viewtree", "delta", "recursive", "recompute", "auto")
WAYS = tuple(
    {"strategy": strategy, "output": output, "mode": mode}
    for strategy in STRATEGIES
    for output in (("factorized", "list") if strategy in ("viewtree", "auto") else ("list",))
    for mode in ("eager", "lazy")
)
"""Every way to maintain a query; strategies without a factorized form keep a list anyway."""


class Database(dict[str, dict[Row, int]]):
    """Relations as plain dicts, changed by plain additions."""

    def apply(self, updates: Iterable[Update]) -> "Database":
        for relation, row, multiplicity in updates:
            content = self.setdefault(relation, {})
            content[row] = content.get(row, 0) + multiplicity
        return self

    def rows(self) -> dict[str, list[Row]]:
        """What `load` takes; all multiplicities must be positive."""
        return {
            relation: [row for row, count in content.items() for _ in range(count)]
            for relation, content in self.items()
        }


class Replica:
    """The output as a subscriber sees it who knows nothing but the changes."""

    def __init__(self, live: Any) -> None:
        self.content: dict[Row, Any] = {}
        self.calls = 0
        live.subscribe(self.hear)

    def hear(self, changes: list[vk.OutputChange]) -> None:
        self.calls += 1
        assert changes, "told of nothing"
        assert len({change.row for change in changes}) == len(changes)
        for change in changes:
            assert change.before != change.after
            assert self.content.get(change.row) == change.before
            if change.after is None:
                del self.content[change.row]
            else:
                self.content[change.row] = change.after


@st.composite
def streams(
    draw: DrawFn,
    query: ConjunctiveQuery,
    multiplicities: tuple[int, ...] = ANY,
    admits: Callable[[str, Row], bool] = lambda relation, row: True,
    relations: tuple[str, ...] | None = None,
    max_size: int = 8,
    values: tuple[Any, ...] = VALUES,
) -> list[Update]:
    """Updates of the query's relations, or of some of them, with the rows that are admitted.

    Some rows are made to join, since long joins of random rows have no results.
    """
    value = st.sampled_from(values)
    bindings = st.fixed_dictionaries(dict.fromkeys(query.variables, value))
    joining = [
        (atom.relation, tuple(binding[v] for v in atom.variables))
        for binding in draw(st.lists(bindings, min_size=1, max_size=3))
        for atom in query.atoms
    ]
    anywhere = st.sampled_from(query.atoms).flatmap(
        lambda atom: st.tuples(st.just(atom.relation), st.tuples(*[value] * len(atom.variables)))
    )
    rows = [
        (relation, row)
        for relation, row in (*joining, *draw(st.lists(anywhere, max_size=max_size)))
        if admits(relation, row) and (relations is None or relation in relations)
    ]
    return [(*each, draw(st.sampled_from(multiplicities))) for each in draw(st.permutations(rows))]


def given_values(query: ConjunctiveQuery) -> SearchStrategy[dict[str, int]]:
    """Values for the inputs of an access pattern; nothing for queries without."""
    return st.fixed_dictionaries({v: st.sampled_from(VALUES) for v in query.inputs})


def assert_equals_recomputation(
    live: Any, query: ConjunctiveQuery, database: Database, given: Mapping[str, Any] | None = None
) -> None:
    """Enumeration, look-ups of present and absent tuples, and the value of scalars."""
    expected = recompute(query, database, given)
    if any(UNREADABLE in result for result in expected.values() if query.aggregates):
        with pytest.raises(vk.RingError):
            list(live.enumerate(given))
    else:
        found = list(live.enumerate(given))
        assert dict(found) == expected
        assert len(found) == len(expected), "an output tuple came twice"
    absent = None if query.aggregates else 0
    for row in (*islice(expected, 4), *islice(product(VALUES, repeat=len(query.outputs)), 6)):
        _assert_reads(lambda row=row: live.lookup(row, given), expected.get(row, absent))
    if not query.outputs:
        _assert_reads(lambda: live.value(given), expected.get((), of_nothing(query)))


def _assert_reads(read: Callable[[], Any], expected: Any) -> None:
    if isinstance(expected, tuple) and UNREADABLE in expected:
        with pytest.raises(vk.RingError):
            read()
    else:
        assert read() == expected
