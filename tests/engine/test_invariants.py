"""Every map holds what its printed definition says, no zeros, and indexes that agree with it."""

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewkeep as vk
from tests.engine.streams import ANY, VALUES, Database, streams
from tests.strategies import queries
from viewkeep.maintainer import Maintainer
from viewkeep.plan.program import Map
from viewkeep.rings import INTEGERS, Relation

Row = tuple[Any, ...]
WAYS = (
    {"strategy": "viewtree", "output": "factorized"},
    {"strategy": "viewtree", "output": "list"},
    {"strategy": "delta"},
    {"strategy": "recursive"},
    {"strategy": "recompute"},
)


class Definitions:
    """Recomputes maps from the maps that their definitions name."""

    def __init__(self, live: Maintainer) -> None:
        self.maps, self.ring = live.engine.maps, live.payload.ring
        self.inputs = [each for each in live.program.maps if each.definition == "input"]

    def expected(self, each: Map) -> dict[Row, Any]:
        """The entries that a map must have."""
        definition, *_ = re.sub(r"^sum_\S* ", "", each.definition).split(" for each ")
        if each.definition == "the output as a list":
            atoms = [(m.name, m.key) for m in self.inputs]
            return self._join(atoms, each.key, weigh=True)
        match = re.fullmatch(r"(all live in|number of \S+ live in|number of) (.*)", definition)
        factors = [
            (name, tuple(filter(None, key.split(", "))))
            for name, key in re.findall(r"([^\s*(]+)\(([^)]*)\)", match[2] if match else definition)
        ]
        return self._join(factors, each.key, weigh=match is None)

    def from_inputs(self, each: Map) -> dict[Row, Any]:
        """The join of the atoms that a map depends on, summed down to its key."""
        atoms = [(m.name, m.key) for m in self.inputs if m.atoms <= each.atoms]
        return self._join(atoms, each.key, weigh=True)

    def _join(
        self, factors: list[tuple[str, Row]], key: tuple[str, ...], weigh: bool
    ) -> dict[Row, Any]:
        ring = self.ring if weigh else INTEGERS
        names = list(dict.fromkeys(v for _, columns in factors for v in columns))
        total: dict[Row, Any] = {}
        for values in product(VALUES, repeat=len(names)):
            binding = dict(zip(names, values, strict=True))
            payload = ring.one
            for name, columns in factors:
                found = self.maps[name].lookup(tuple(binding[v] for v in columns))
                factor = found if weigh else int(not self.maps[name].ring.is_zero(found))
                payload = ring.multiply(payload, factor)
            row = tuple(binding[v] for v in key)
            total[row] = ring.add(total.get(row, ring.zero), payload)
        return {row: payload for row, payload in total.items() if not ring.is_zero(payload)}


def assert_invariants(live: Maintainer) -> None:
    definitions = Definitions(live)
    for each in live.program.maps:
        relation = live.engine.maps[each.name]
        content = dict(relation.items())
        assert not any(map(relation.ring.is_zero, content.values())), f"{each.name} stores a zero"
        for columns in each.indexes:
            assert_index_agrees(relation, columns)
        if each.definition != "input":
            assert content == definitions.expected(each), each
            if not each.live:
                assert content == definitions.from_inputs(each), each


def assert_index_agrees(relation: Relation[Any], columns: tuple[str, ...]) -> None:
    index = relation.index_on(columns)
    places = [relation.schema.index(column) for column in columns]
    groups: dict[Row, dict[Row, Any]] = {}
    for row, payload in relation.items():
        groups.setdefault(tuple(row[i] for i in places), {})[row] = payload
    assert len(index) == len(groups)
    for key, group in groups.items():
        assert dict(index.matches(key)) == group
        assert index.group_size(key) == len(group)


@given(
    query=queries(max_atoms=4, variables=tuple("abcd"), aggregates=False, conditions=False),
    data=st.data(),
)
@settings(max_examples=25)
def test_every_map_is_what_its_definition_says_after_every_update(query, data):
    stream = data.draw(streams(query, max_size=10))
    for way in WAYS:
        live = vk.maintain(query, **way)
        for update in stream:
            live.update(*update)
            assert_invariants(live)


@given(
    query=queries(max_atoms=4, variables=tuple("abcd"), aggregates=False, conditions=False),
    data=st.data(),
)
@settings(max_examples=25)
def test_loading_fills_every_map_as_updates_do(query, data):
    database = Database().apply(data.draw(streams(query, (1, 2, 3))))
    for way in WAYS:
        loaded, updated = vk.maintain(query, **way), vk.maintain(query, **way)
        loaded.load(database.rows())
        for relation, content in database.items():
            for row, count in content.items():
                updated.update(relation, row, count)
        assert_invariants(loaded)
        for name, relation in loaded.engine.maps.items():
            assert relation == updated.engine.maps[name], name


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way.values()))
def test_aggregates_keep_the_invariants(way):
    query = vk.parse("Q(a; sum(b * c), count()) = R(a, b) * S(b, c) * T(c)")
    live = vk.maintain(query, **way)
    rows = {"R": product(VALUES, VALUES), "S": product(VALUES, VALUES), "T": product(VALUES)}
    updates = [(r, row, m) for r, content in rows.items() for row in content for m in ANY[4:]]
    for step in range(0, 8 * len(updates), 8):  # all of them, in a mixed order
        live.update(*updates[step % len(updates)])
        assert_invariants(live)
