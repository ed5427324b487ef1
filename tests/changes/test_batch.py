"""Batches: their algebra, their classes of updates, and what a batch may not be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.changes.memory_table import difference
from tests.diffs.diff_columns import delete_columns, insert_columns, update_columns
from viewkeep.changes import ChangeBatch, ChangeError, compose_batches
from viewkeep.errors import SchemaError, ViewkeepError
from viewkeep.query.tables import Table

T = Table({"a": "int", "k": "int", "b": "int", "c": "int"}, key=["k"])
COLUMNS = ("a", "b", "c")
VALUES = st.sampled_from([None, 1, 2])
ROWS = st.lists(st.tuples(VALUES, st.integers(1, 4), VALUES, VALUES), unique_by=lambda row: row[1])
GROUPS = st.lists(st.frozensets(st.sampled_from(["k", *COLUMNS])), max_size=4)


def keyed(rows: list[Any]) -> dict[Any, Any]:
    return {(row[1],): row for row in rows}


@given(ROWS, ROWS)
def test_a_difference_leads_from_one_state_to_the_other_and_back(old: Any, new: Any) -> None:
    batch = difference("t", T, old, new)
    assert batch.apply(keyed(old)) == keyed(new)
    assert batch.inverse().apply(keyed(new)) == keyed(old)
    assert batch.inverse().inverse() == batch
    assert batch.is_empty == (batch.size == 0) == (keyed(old) == keyed(new))
    assert hash(batch) == hash(difference("t", T, old, new))


@given(ROWS, ROWS, ROWS, ROWS)
def test_batches_compose(first: Any, second: Any, third: Any, fourth: Any) -> None:
    ab, bc, cd = (
        difference("t", T, old, new)
        for old, new in ((first, second), (second, third), (third, fourth))
    )
    whole = difference("t", T, first, fourth)
    for composed in (
        ab.then(bc).then(cd),
        ab.then(bc.then(cd)),
        compose_batches("t", T, (ab, bc, cd)),
    ):
        assert parts(composed) == parts(whole)
    assert ab.then(ab.inverse()).is_empty
    assert parts(ab.then(ChangeBatch("t", T))) == parts(ab)


def parts(batch: ChangeBatch) -> tuple[set[Any], ...]:
    return set(batch.inserts), set(batch.deletes), set(batch.updates)


@given(ROWS, ROWS, GROUPS)
def test_every_update_is_in_exactly_one_class(old: Any, new: Any, groups: Any) -> None:
    batch = difference("t", T, old, new)
    classes = batch.by_changed(groups)
    placed = [update for members in classes.values() for update in members]
    assert len(set(placed)) == len(placed)
    for class_, members in classes.items():
        for update in members:
            changed = {n for n in COLUMNS if value(update.old, n) != value(update.new, n)}
            hit = [group for group in groups if group & changed]
            assert hit
            assert class_ == frozenset().union(*hit)
    for update in set(batch.updates) - set(placed):
        assert not any(batch.changed_columns(update) & group for group in groups)


def value(row: Any, name: str) -> Any:
    return row[T.names.index(name)]


def test_classes_of_updates() -> None:
    start = (0, 1, 0, 0)
    changes = {"only a": (5, 1, 0, 0), "a and b": (5, 1, 5, 0), "only c": (0, 1, 0, 5)}
    groups = [frozenset("a"), frozenset("ab")]
    found = {
        name: list(ChangeBatch("t", T, updates=[(start, new)]).by_changed(groups))
        for name, new in changes.items()
    }
    assert found == {"only a": [frozenset("ab")], "a and b": [frozenset("ab")], "only c": []}


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        (
            {"inserts": [(0, 1, 0, 0)], "deletes": [(0, 1, 0, 1)]},
            ChangeError,
            'table "t", key (k = 1): changed twice in one batch; net the changes first',
        ),
        ({"inserts": [(0, 1, 0, 0), (0, 1, 0, 0)]}, ChangeError, "changed twice"),
        ({"updates": [((0, 1, 0, 0), (0, 2, 0, 0))]}, ChangeError, "an update keeps its key"),
        ({"updates": [((0, 1, 0, 0), (0, 1, 0, 0))]}, ChangeError, "an update changes nothing"),
        ({"inserts": [(0, 1)]}, SchemaError, 'table "t": (0, 1) has not 4 columns'),
    ],
)
def test_batches_that_are_not_effective_are_refused(
    parts: dict[str, Any], error: type[ViewkeepError], message: str
) -> None:
    with pytest.raises(error) as refused:
        ChangeBatch("t", T, **parts)
    assert message in str(refused.value)


@pytest.mark.parametrize("there", [None, (0, 1, 0, 7)])
def test_a_batch_is_applied_only_to_the_state_it_starts_from(there: Any) -> None:
    rows = {(2,): (0, 2, 0, 0)} | ({} if there is None else {(1,): there})
    before = dict(rows)
    batch = ChangeBatch("t", T, deletes=[(0, 2, 0, 0)], updates=[((0, 1, 0, 0), (0, 1, 0, 5))])
    with pytest.raises(ChangeError, match=r'table "t", key \(k = 1\): the batch starts from'):
        batch.apply_to(rows)
    assert rows == before


def test_batches_that_do_not_follow_each_other_are_refused() -> None:
    insert = ChangeBatch("t", T, inserts=[(0, 1, 0, 0)])
    with pytest.raises(ChangeError, match="starts from no row, but the row"):
        insert.then(insert)
    with pytest.raises(ChangeError, match='changes of table "s" cannot follow'):
        insert.then(ChangeBatch("s", T))


def test_groups_name_columns_of_the_table() -> None:
    with pytest.raises(SchemaError, match='table "t", group of columns: no column "x"'):
        ChangeBatch("t", T).by_changed([frozenset("ax")])


def test_parts_as_columns() -> None:
    rows, updates = [(5, 1, 6, None)], [((5, 1, 6, None), (5, 1, 7, 8))]
    assert insert_columns(T, rows) == {"k": [1], "a#post": [5], "b#post": [6], "c#post": [None]}
    assert delete_columns(T, rows) == {"k": [1], "a#pre": [5], "b#pre": [6], "c#pre": [None]}
    assert update_columns(T, updates, before=["b"], after=["c", "b"]) == {
        "k": [1],
        "b#pre": [6],
        "c#post": [8],
        "b#post": [7],
    }
    names = ["k", "a#pre", "b#pre", "c#pre", "a#post", "b#post", "c#post"]
    assert list(update_columns(T, [])) == names
    assert list(insert_columns(T, [])) == ["k", "a#post", "b#post", "c#post"]
