"""Changes of users netted in columns, against the same changes played one by one."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from viewkeep import Keeper
from viewkeep.changes import ChangeBatch, Row, RowFormat, net
from viewkeep.changes.values import same
from viewkeep.errors import ViewkeepError
from viewkeep.lake.apply import UserChanges, net_user_changes, user_changes
from viewkeep.query.tables import Table
from viewkeep.tables.arrow_rows import to_arrow, to_rows
from viewkeep.tables.files.key_index import KeyIndex
from viewkeep.tables.files.rewrite import MatchedRows

T = Table(
    {
        "x": "double",
        "k": "int",
        "m": "decimal(6, 2)",
        "s": "string",
        "a": "array<double>",
        "j": "string",
    },
    key=["j", "k"],
)
NAN = float("nan")
KEYS = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([1, 2, 3]))
VALUES = st.fixed_dictionaries(
    {
        "x": st.sampled_from([None, 0.0, -0.0, NAN, 1.5]),
        "m": st.sampled_from([None, Decimal("0.00"), Decimal("1.50")]),
        "s": st.sampled_from([None, "", "a"]),
        "a": st.sampled_from([None, (), (NAN, None)]),
    }
)
KEYED = st.dictionaries(KEYS, VALUES, max_size=6)


@st.composite
def changes(draw: st.DrawFn) -> tuple[list[Row], UserChanges]:
    """Rows, and changes that fit them mostly; the three parts may name the same keys."""
    there = draw(KEYED)
    named = draw(st.sets(st.sampled_from(["x", "m", "s", "a"]), min_size=1))
    touched = st.dictionaries(st.sampled_from(sorted(there)) if there else KEYS, VALUES, max_size=4)
    updates = draw(st.one_of(touched, KEYED) if draw(st.booleans()) else touched)
    deletes = draw(touched if draw(st.booleans()) else KEYED)
    new = draw(KEYED)
    if draw(st.booleans()):
        new = {key: row for key, row in new.items() if key not in there or key in deletes}
    given = user_changes(
        "t",
        T,
        inserts=[_row(key, values) for key, values in new.items()],
        updates=[
            {"j": key[0], "k": key[1], **{name: values[name] for name in named}}
            for key, values in updates.items()
        ],
        deletes=list(deletes),
    )
    return [_row(key, values) for key, values in there.items()], given


def _row(key: Any, values: Any) -> Row:
    named = {**values, "j": key[0], "k": key[1]}
    return tuple(named[name] for name in T.names)


def in_columns(rows: Sequence[Row], given: UserChanges) -> ChangeBatch:
    table, keys = to_arrow(T.columns, rows), KeyIndex(given.keys(T.key))
    places = keys.places(table)
    found = MatchedRows(keys, table.filter(pa.array(places >= 0)), places[places >= 0], None)
    return net_user_changes("t", T, given, found).batch()


def in_rows(rows: Sequence[Row], given: UserChanges) -> ChangeBatch:
    format_ = RowFormat("t", T)
    return net("t", T, {format_.key_of(row): row for row in rows}, given.log(T))


def outcome(action: Callable[[], ChangeBatch]) -> Any:
    """Rows before and after by key, printed since they hold NaN; or the error."""
    try:
        return {repr((old or new or ())[1::4]): repr((old, new)) for old, new in action().steps()}
    except ViewkeepError as error:
        return type(error), str(error)


@given(changes())
def test_netting_in_columns_is_netting_in_rows(case: tuple[list[Row], UserChanges]) -> None:
    """Also where parts name the same keys; and for changes that do not fit, the same error."""
    rows, given = case
    assert outcome(lambda: in_columns(rows, given)) == outcome(lambda: in_rows(rows, given))


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({"deletes": [("b", 9)]}, "key (j = 'b', k = 9): delete, but no row has this key"),
        ({"updates": [{"j": "b", "k": 9, "s": "z"}]}, "update, but no row has this key"),
        ({"inserts": [(None, 1, None, None, None, "a")]}, "insert, but the key is there"),
    ],
)
def test_the_first_change_that_does_not_fit_is_named(parts: Any, error: str) -> None:
    rows: list[Row] = [(1.0, 1, None, "s", None, "a")]
    with pytest.raises(ViewkeepError) as raised:
        in_columns(rows, user_changes("t", T, **parts))
    assert error in str(raised.value)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(changes(), min_size=1, max_size=4), st.sampled_from([1, 2, 1 << 21]))
def test_what_is_applied_is_there(
    tmp_path_factory: pytest.TempPathFactory, cases: list[Any], most: int
) -> None:
    """Rows stay in their files, in whatever number of files they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("viewkeep.tables.files.rewrite.FILE_ROWS", most)
        patch.setattr("viewkeep.tables.files.rewrite.SMALL_BYTES", 0)
        _check_applied(tmp_path_factory.mktemp("lake"), cases)


def _check_applied(place: Path, cases: list[tuple[list[Row], UserChanges]]) -> None:
    keeper, format_ = Keeper(place, durable=False), RowFormat("t", T)
    model = {format_.key_of(row): row for row in cases[0][0]}
    keeper.create_table("t", T, rows=list(model.values()))
    for _, wanted in cases:
        expected = outcome(partial(net, "t", T, model, wanted.log(T)))
        if isinstance(expected, tuple):
            with pytest.raises(expected[0]) as raised:
                keeper.apply("t", wanted.inserts, wanted.updates, wanted.deletes)
            assert str(raised.value) == expected[1]
        else:
            keeper.apply("t", wanted.inserts, wanted.updates, wanted.deletes)
            net("t", T, model, wanted.log(T)).apply_to(model)
        rows = to_rows(keeper.read("t"))
        assert len(rows) == len(model)
        found = {format_.key_of(row): row for row in rows}
        assert found.keys() == model.keys()
        assert all(same(found[key], row) for key, row in model.items())
