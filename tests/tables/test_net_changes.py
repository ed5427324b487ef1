"""Changes in columns against the same changes in rows."""

import itertools
import json
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.changes.memory_table import difference
from viewkeep.changes import ChangeBatch, ChangeError, Row, compose_batches
from viewkeep.changes.values import same
from viewkeep.errors import SchemaError, ViewkeepError
from viewkeep.query.tables import Table
from viewkeep.tables import feed as feeds
from viewkeep.tables.arrow_rows import to_arrow
from viewkeep.tables.feed import Feed
from viewkeep.tables.files.key_index import KeyIndex
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.net_changes import changes_between, compose_changes, net_feed
from viewkeep.tables.table_changes import TableChanges, rows_schema

T = Table(
    {
        "s": "string",
        "k": "bigint",
        "x": "double",
        "m": "decimal(8, 2)",
        "at": "timestamp",
        "a": "array<int>",
        "j": "string",
    },
    key=["k", "j"],
)
NAN = float("nan")
VALUES = (
    st.sampled_from([None, "", "a"]),
    st.sampled_from([1, 2, 3 * 10**12]),
    st.sampled_from([None, 0.0, -0.0, NAN, 1.5]),
    st.sampled_from([None, Decimal("0.00"), Decimal("-1.50")]),
    st.sampled_from([None, datetime(1969, 1, 1), datetime(2026, 1, 1, 12, 0, 0, 5)]),
    st.sampled_from([None, (), (1, None)]),
    st.sampled_from(["a", "b"]),
)
ROWS = st.lists(st.tuples(*VALUES), unique_by=lambda row: (row[1], row[6]), max_size=6)
ANY_ROWS = st.lists(st.tuples(*VALUES), max_size=5)
GROUPS = st.lists(st.frozensets(st.sampled_from(T.names), min_size=1), max_size=5)
Rows = Sequence[Row]


def arrow(rows: Rows) -> pa.Table:
    return to_arrow(T.columns, list(rows)).cast(rows_schema(T))


def steps(batch: ChangeBatch) -> dict[Any, Any]:
    """The rows before and after by key; printed, they are comparable where they hold NaN."""
    return {_key(old or new or ()): repr((old, new)) for old, new in batch.steps()}


def _key(row: Row) -> tuple[Any, Any]:
    return row[1], row[6]


def outcome(action: Callable[[], Any]) -> Any:
    """What it gives, or the error that it raises."""
    try:
        return action()
    except ViewkeepError as error:
        return type(error), str(error)


@given(ANY_ROWS, ANY_ROWS)
def test_a_difference_in_columns_is_the_difference_in_rows(old: Rows, new: Rows) -> None:
    """Also where two rows have one key: the error names the same key."""
    expected = outcome(lambda: steps(difference("t", T, old, new)))
    assert outcome(lambda: steps(changes_between("t", T, arrow(old), arrow(new)).batch())) == (
        expected
    )


@given(st.lists(ROWS, min_size=1, max_size=5))
def test_changes_compose(states: list[Rows]) -> None:
    pairs = list(itertools.pairwise(states))
    changes = [changes_between("t", T, arrow(old), arrow(new)) for old, new in pairs]
    composed = compose_changes("t", T, changes)
    assert steps(composed.batch()) == steps(
        compose_batches("t", T, [each.batch() for each in changes])
    )
    assert steps(composed.batch()).keys() == steps(
        difference("t", T, states[0], states[-1])
    ).keys()  # fmt: skip


@given(ROWS, ROWS, ROWS, ROWS)
def test_changes_that_do_not_follow_each_other_are_refused(
    first: Rows, second: Rows, third: Rows, fourth: Rows
) -> None:
    batches = [difference("t", T, first, second), difference("t", T, third, fourth)]
    changes = [TableChanges.of_batch(each) for each in batches]
    expected = outcome(lambda: steps(compose_batches("t", T, batches)))
    assert outcome(lambda: steps(compose_changes("t", T, changes).batch())) == expected


@given(ROWS, ROWS, GROUPS)
def test_classes_of_updates_are_those_of_rows(old: Rows, new: Rows, groups: Any) -> None:
    batch = difference("t", T, old, new)
    found = TableChanges.of_batch(batch).by_changed(groups)
    as_rows = {
        columns: steps(TableChanges("t", T, *[arrow([])] * 2, before, after).batch())
        for columns, (before, after) in found.items()
    }
    assert as_rows == {
        columns: steps(ChangeBatch("t", T, updates=updates))
        for columns, updates in batch.by_changed(groups).items()
    }


def test_there_may_be_more_groups_than_bits() -> None:
    names = [f"c{number}" for number in range(100)]
    table = Table({"k": "int", **dict.fromkeys(names, "int")}, key=["k"])
    updates = [((n, *[0] * 100), (n, *[0] * n, 1, *[0] * (99 - n))) for n in (3, 70, 99)]
    changes = TableChanges.of_batch(ChangeBatch("t", table, updates=updates))
    found = changes.by_changed([frozenset({name}) for name in names])
    assert {key: after["k"].to_pylist() for key, (_, after) in found.items()} == {
        frozenset({f"c{n}"}): [n] for n in (3, 70, 99)
    }


def test_groups_name_columns_of_the_table() -> None:
    with pytest.raises(SchemaError, match='no column "z"'):
        TableChanges.none("t", T).by_changed([frozenset("z")])


@pytest.mark.parametrize("inline", [0, 1 << 20])
@given(ROWS, ROWS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_what_is_written_down_is_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline: int, old: Rows, new: Rows
) -> None:
    """In files, or in log entries, which are JSON."""
    monkeypatch.setattr(feeds, "INLINE_BYTES", inline)
    changes = changes_between("t", T, arrow(old), arrow(new))
    feed = Feed(None, "t", T, LakeTable(str(tmp_path)))  # type: ignore[arg-type]  # needs no Spark
    notes = json.loads(json.dumps(feed.write(changes)))
    assert notes["changed_rows"] == changes.size
    if notes["changes"] is not None:
        assert isinstance(notes["changes"], dict if inline else str)
        read = feed.read(notes["changes"])
        assert (read.size, steps(read.batch())) == (changes.size, steps(changes.batch()))


@given(st.lists(ROWS, min_size=2, max_size=5))
def test_a_feed_is_netted_from_its_first_to_its_last_commit(states: list[Rows]) -> None:
    rows: list[Row] = []
    is_old: list[bool] = []
    commits: list[int] = []
    for number, (old, new) in enumerate(itertools.pairwise(states)):
        for before, after in difference("t", T, old, new).steps():
            for row, side in ((before, True), (after, False)):
                if row is not None:
                    rows.insert(0, row)
                    is_old.insert(0, side)
                    commits.insert(0, number)
    found = net_feed("t", T, arrow(rows), np.array(is_old, bool), np.array(commits, np.int64))
    assert steps(found.batch()).keys() == steps(
        difference("t", T, states[0], states[-1])
    ).keys()  # fmt: skip


def test_a_feed_with_one_key_twice_in_a_commit_is_refused() -> None:
    row = (None, 1, None, None, None, None, "a")
    with pytest.raises(ChangeError, match="two rows have this key"):
        net_feed("t", T, arrow([row, row]), np.array([False, False]), np.array([4, 4]))


KEY_VALUES: dict[str, list[Any]] = {
    "int": [None, 1, 2, -5, 2**31 - 1],
    "bigint": [None, 0, -(2**63), 2**63 - 1],
    "double": [None, 0.0, -0.0, NAN, 1.0],
    "float": [None, 0.0, -0.0, NAN],
    "string": [None, "", "a", "A"],
    "binary": [None, b"", b"a"],
    "boolean": [None, True, False],
    "date": [None, date(1, 1, 1), date(2026, 1, 1), date(2026, 1, 2)],
    "timestamp": [None, datetime(1600, 1, 1), datetime(2026, 1, 1)],
    "decimal(38, 3)": [None, Decimal("0.001"), Decimal("-1.000")],
}


@st.composite
def keys_and_rows(draw: st.DrawFn) -> tuple[Table, Rows, Rows]:
    kinds = draw(st.lists(st.sampled_from(list(KEY_VALUES)), min_size=1, max_size=4))
    table = Table({f"c{number}": kind for number, kind in enumerate(kinds)})
    row = st.tuples(*(st.sampled_from(KEY_VALUES[kind]) for kind in kinds))
    return table, draw(st.lists(row, max_size=8)), draw(st.lists(row, max_size=8))


@given(keys_and_rows())
@example((Table({"c": "bigint"}), [(2**63 - 1,)], [(-(2**63),), (2**63 - 1,), (None,)]))
def test_an_index_finds_the_first_equal_key(case: tuple[Table, Rows, Rows]) -> None:
    table, keys, rows = case
    index = KeyIndex(to_arrow(table.columns, keys))

    def first(row: Row) -> int:
        return next((place for place, key in enumerate(keys) if same(key, row)), -1)

    assert index.places(to_arrow(table.columns, rows)).tolist() == list(map(first, rows))
    assert index.own_places.tolist() == list(map(first, keys))
    again = [place for place, key in enumerate(keys) if first(key) < place]
    assert index.repeated == (again[0] if again else None)
    assert index.count == len(keys) - len(again)
