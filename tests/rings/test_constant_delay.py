"""Enumeration and delta joins touch only what they must: counted in entries, not in seconds."""

import pytest

from viewkeep.rings import Relation

N = 100_000


class CountingList(list):
    """A list that counts the entries an enumeration touches."""

    touched = 0

    def __iter__(self):
        for entry in super().__iter__():
            self.touched += 1
            yield entry


@pytest.fixture
def relation():
    """One group of 100,000 rows, all removed from the front but the last."""
    relation = Relation.from_rows(("x", "y"), (("x", y) for y in range(N)))
    index = relation.index_on(("x",))
    relation._entries = CountingList(relation._entries)
    index._groups[("x",)] = CountingList(index._groups[("x",)])
    for y in range(N - 1):
        relation.add(("x", y), -1)
    return relation


def test_the_row_that_remains_is_enumerated_by_touching_one_entry(relation):
    assert list(relation.items()) == [(("x", N - 1), 1)]
    assert relation._entries.touched == 1


def test_the_row_that_remains_in_a_group_is_enumerated_by_touching_one_entry(relation):
    index = relation.index_on(("x",))
    assert list(index.matches(("x",))) == [(("x", N - 1), 1)]
    assert index._groups[("x",)].touched == 1


def test_the_first_of_many_rows_comes_after_touching_one_entry():
    relation = Relation.from_rows(("x",), ((x,) for x in range(1000)))
    relation._entries = CountingList(relation._entries)
    next(relation.items())
    assert relation._entries.touched == 1


def test_a_queue_emptied_from_the_front_touches_one_entry_per_row():
    queue = Relation.from_rows(("x",), ((x,) for x in range(1000)))
    queue._entries = CountingList(queue._entries)
    while queue:
        queue.add(next(iter(queue)), -1)
    assert queue._entries.touched == 1000


@pytest.mark.parametrize("delta_schema", [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")])
def test_the_join_of_a_delta_scans_the_delta_and_not_what_is_indexed(delta_schema):
    big = Relation.from_rows(("b", "c"), ((b, c) for b in range(100) for c in range(10)))
    big.index_on(("b",))
    big._entries = CountingList(big._entries)
    delta = Relation.from_mapping(delta_schema, {(7, 7): -1})
    matches = 10 if "a" in delta_schema else 1
    assert len(delta * big) == len(big * delta) == matches
    assert big._entries.touched == 0
