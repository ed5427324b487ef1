"""The net effect of a log: every pair of modifications, what is refused, and the definition."""

from collections.abc import Iterable
from copy import deepcopy
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.changes.memory_table import MemoryTable
from viewkeep.changes import (
    ChangeBatch,
    ChangeError,
    Delete,
    Insert,
    Key,
    Modification,
    Row,
    Update,
    net,
)
from viewkeep.errors import SchemaError, ViewkeepError
from viewkeep.query.tables import Table

PARTS = Table({"pid": "int", "price": "int not null", "maker": "string"}, key=["pid"])
BEFORE: dict[Key, Row] = {(1,): (1, 10, "x"), (2,): (2, 20, None)}


def batch(
    inserts: Iterable[Row] = (),
    deletes: Iterable[Row] = (),
    updates: Iterable[tuple[Row, Row]] = (),
) -> ChangeBatch:
    return ChangeBatch("parts", PARTS, inserts, deletes, updates)


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ([], batch()),
        ([Insert((3, 30, "z")), Delete((3,))], batch()),
        ([Insert((3, 30, "z")), Update((3,), {"price": 31})], batch(inserts=[(3, 31, "z")])),
        (
            [Update((1,), {"price": 11}), Update((1,), {"maker": None})],
            batch(updates=[((1, 10, "x"), (1, 11, None))]),
        ),
        ([Update((1,), {"price": 11}), Delete((1,))], batch(deletes=[(1, 10, "x")])),
        ([Update((1,), {"price": 11}), Update((1,), {"price": 10})], batch()),
        ([Update((1,), {"price": 10})], batch()),
        ([Update((1,), {})], batch()),
        ([Delete((1,)), Insert((1, 10, "x"))], batch()),
        (
            [Delete((1,)), Insert((1, 10, "y"))],
            batch(updates=[((1, 10, "x"), (1, 10, "y"))]),
        ),
        (
            [Update((1,), {"pid": 3, "price": 11})],
            batch(inserts=[(3, 11, "x")], deletes=[(1, 10, "x")]),
        ),
        ([Update((1,), {"pid": 3}), Update((3,), {"pid": 1})], batch()),
        ([Update((1,), {"pid": 3}), Delete((3,))], batch(deletes=[(1, 10, "x")])),
        (
            [Update((1,), {"pid": 3}), Update((2,), {"pid": 1}), Update((3,), {"pid": 2})],
            batch(updates=[((1, 10, "x"), (1, 20, None)), ((2, 20, None), (2, 10, "x"))]),
        ),
        ([Insert({"maker": None, "pid": 3, "price": 30})], batch(inserts=[(3, 30, None)])),
    ],
)
def test_the_net_effect(log: list[Modification], expected: ChangeBatch) -> None:
    assert net("parts", PARTS, BEFORE, log) == expected
    assert net("parts", PARTS, BEFORE.get, iter(log)) == expected


@pytest.mark.parametrize(
    ("entry", "error", "message"),
    [
        (
            Insert((1, 5, "x")),
            ChangeError,
            'table "parts", key (pid = 1): insert, but the key is there; update the row instead',
        ),
        (Update((3,), {"price": 5}), ChangeError, "key (pid = 3): update, but no row has this key"),
        (
            Delete((3,)),
            ChangeError,
            'table "parts", key (pid = 3): delete, but no row has this key',
        ),
        (Update((1,), {"pid": 2}), ChangeError, "(pid = 2): update of key (1,), but a row has"),
        (
            Update((1,), {"prize": 5}),
            SchemaError,
            'key (pid = 1): no column "prize" (pid, price, maker); did you mean "price"?',
        ),
        (
            Insert({"pid": 3, "price": 5, "makr": "x", "maker": "x"}),
            SchemaError,
            'table "parts", key (pid = 3): no column "makr"',
        ),
        (
            Insert({"pid": 3}),
            SchemaError,
            'table "parts", key (pid = 3): no value for price, maker; a new row names all columns',
        ),
        (Insert((3, 5)), SchemaError, "(3, 5) is not a row; give a tuple of 3 values (pid, price,"),
        (Insert((None, 5, "x")), SchemaError, '(pid = None): column "pid" (int): NULL in a key;'),
        (Update((1,), {"pid": None}), SchemaError, 'column "pid" (int): NULL in a key'),
        (Update((None,), {"price": 1}), SchemaError, "NULL in a key"),
        (Delete((None,)), SchemaError, "NULL in a key"),
        (
            Update((1,), {"price": None}),
            SchemaError,
            '(pid = 1): column "price" (int): NULL in a NOT NULL column; give a value',
        ),
        (Insert((3, None, "x")), SchemaError, "NULL in a NOT NULL column"),
        (
            Insert((3, "5", "x")),
            SchemaError,
            "column \"price\" (int): '5' is of type str; give an int",
        ),
        (Update((1,), {"maker": 5}), SchemaError, "5 is of type int; give a str"),
        (Delete(1), SchemaError, "1 is not a key; give a tuple (pid,)"),  # type: ignore[arg-type]
    ],
)
def test_what_is_refused_names_the_row_and_changes_nothing(
    entry: Modification, error: type[ViewkeepError], message: str
) -> None:
    table = MemoryTable("parts", PARTS, BEFORE.values())
    first: list[Modification] = [Insert((9, 90, "z")), Delete((2,)), Update((1,), {"price": 11})]
    with pytest.raises(error) as refused:
        table.play([Update((1,), {"maker": "y"}), entry])
    assert message in str(refused.value)
    with pytest.raises(error):
        table.play([*first, Insert((2, 20, None)), entry])
    assert (table.version, table.rows(0)) == (0, BEFORE)


def test_a_table_without_a_key_is_refused() -> None:
    with pytest.raises(SchemaError, match='table "r" has no key'):
        net("r", Table({"a": "int"}), {}, [])


@pytest.mark.parametrize(
    ("type_", "value", "stored"),
    [
        ("tinyint", -128, -128),
        ("bigint", 2**63 - 1, 2**63 - 1),
        ("double", 3, 3.0),
        ("float", 0.1, 0.10000000149011612),
        ("decimal(10, 2)", 3, Decimal("3.00")),
        ("decimal(10, 2)", Decimal("1.5"), Decimal("1.50")),
        ("decimal(38, 10)", Decimal("9" * 28 + "." + "9" * 10), Decimal("9" * 28 + "." + "9" * 10)),
        ("string", "", ""),
        ("binary", b"\0", b"\0"),
        ("boolean", True, True),
        ("date", date(2024, 2, 29), date(2024, 2, 29)),
        ("timestamp", datetime(2024, 2, 29, 1), datetime(2024, 2, 29, 1)),
        ("timestamp", None, None),
        (
            "timestamp",
            datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
            datetime(2024, 1, 1),
        ),
        ("timestamp", pd.Timestamp("2024-01-01T02:00:00+02:00"), datetime(2024, 1, 1)),
        (
            "timestamp",
            np.datetime64("2024-01-01T00:00:00.000001000"),
            datetime(2024, 1, 1, 0, 0, 0, 1),
        ),
        ("int", 1.0, 1),
        ("int", np.int8(-3), -3),
        ("double", np.float32(0.5), 0.5),
        ("float", float("inf"), float("inf")),
        ("decimal(10, 2)", np.int64(3), Decimal("3.00")),
        ("string", np.str_("x"), "x"),
        ("binary", bytearray(b"x"), b"x"),
        ("boolean", np.bool_(False), False),
        ("date", np.datetime64("2024-02-29"), date(2024, 2, 29)),
    ],
)
def test_values_get_the_form_of_their_type(type_: str, value: object, stored: object) -> None:
    [(_, found)] = net(
        "t", Table({"k": "int", "v": type_}, ["k"]), {}, [Insert((1, value))]
    ).inserts
    assert (type(found), repr(found)) == (type(stored), repr(stored))


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        ("tinyint", 128, "out of range; give an int from -128 to 127"),
        ("int", True, "of type bool; give an int"),
        ("int", 1.5, "1.5 is no whole number; round it"),
        ("int", float("nan"), "no whole number"),
        ("int", float("inf"), "no whole number"),
        ("bigint", 2.0**60, "too large to tell which whole number is meant"),
        ("int", Decimal(1), "of type Decimal; give an int"),
        ("int", "1", "of type str; give an int"),
        ("int", 2**31, "out of range"),
        ("double", Decimal(1), "give a float or an int"),
        ("double", True, "give a float or an int"),
        ("double", 10**400, "too large to be held exactly"),
        ("double", 2**53 + 1, "too large to be held exactly"),
        ("float", 2**24 + 1, "too large to be held exactly"),
        ("float", 1e300, "too large for a float"),
        ("float", 1e-300, "too small for a float"),
        ("decimal(4, 2)", 1.5, "give a Decimal or an int"),
        ("decimal(4, 2)", Decimal("1.234"), "too many digits; round it to 2 after the point"),
        ("decimal(38, 1)", Decimal("9" * 37 + ".99"), "too many digits"),
        ("decimal(4, 2)", 100, "give one above -100 and below 100"),
        ("decimal(4, 2)", Decimal("NaN"), "out of range"),
        ("decimal(4, 2)", Decimal("-Infinity"), "out of range"),
        ("string", b"x", "give a str"),
        ("binary", "x", "give bytes"),
        ("boolean", 1, "give a bool"),
        ("date", datetime(2024, 1, 1), "give a datetime.date"),
        ("date", "2024-01-01", "give a datetime.date"),
        ("timestamp", date(2024, 1, 1), "give a datetime.datetime"),
        ("timestamp", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "out of range"),
        ("timestamp", pd.Timestamp("2024-01-01T00:00:00.000000001"), "parts of a microsecond"),
        ("timestamp", pd.NaT, "give a datetime.datetime"),
        ("string", "\ud800", "half a character"),
        ("int", np.bool_(True), "give an int"),
        ("boolean", np.int64(1), "give a bool"),
        ("date", np.datetime64("2024-01-01T00:00:00"), "give a datetime.date"),
    ],
)
def test_values_of_another_type_are_refused(type_: str, value: object, message: str) -> None:
    with pytest.raises(SchemaError) as refused:
        net("t", Table({"k": "int", "v": type_}, ["k"]), {}, [Insert((1, value))])
    assert message in str(refused.value)
    assert f'table "t", key (k = 1): column "v" ({type_})' in str(refused.value)


def test_keys_are_found_in_the_form_of_their_type() -> None:
    table = Table({"k": "decimal(4, 1)", "d": "double"}, key=["d", "k"])
    found = net("t", table, {(2.0, Decimal("1.0")): (Decimal("1.0"), 2.0)}, [Delete((2, 1))])
    assert found.deletes == ((Decimal("1.0"), 2.0),)
    with pytest.raises(SchemaError, match="NaN in a key"):
        net("t", table, {}, [Insert((1, float("nan")))])


def test_nan_equals_itself() -> None:
    table = Table({"k": "int", "d": "double"}, key=["k"])
    before = {(1,): (1, float("nan"))}
    assert net("t", table, before, [Update((1,), {"d": -float("nan")})]).is_empty
    assert net("t", table, before, [Update((1,), {"d": 1})]).size == 1


# The definition: a log, played one by one by the plainest code there is.

KEYS = st.integers(1, 4)
PRICES = st.integers(0, 2)
MAKERS = st.sampled_from([None, "x", "y"])
ROWS = st.tuples(KEYS, PRICES, MAKERS)
TABLES = st.lists(ROWS, unique_by=lambda row: row[0]).map(
    lambda rows: {row[:1]: row for row in rows}
)
LOGS = st.lists(
    st.one_of(
        ROWS.map(Insert),
        st.builds(
            Update,
            st.tuples(KEYS),
            st.fixed_dictionaries({}, optional={"pid": KEYS, "price": PRICES, "maker": MAKERS}),
        ),
        st.tuples(KEYS).map(Delete),
    ),
    max_size=12,
)


def played(rows: dict[Any, Any], entry: Any) -> dict[Any, Any] | None:
    """The rows after one modification, or None where it is an error."""
    match entry:
        case Insert(tuple() as row):
            return None if row[:1] in rows else {**rows, row[:1]: row}
        case Delete(key):
            return None if key not in rows else {k: r for k, r in rows.items() if k != key}
        case Update(key, values) if key in rows:
            new = {**dict(zip(PARTS.names, rows[key], strict=True)), **values}
            others = {k: r for k, r in rows.items() if k != key}
            new_key = (new["pid"],)
            return None if new_key in others else {**others, new_key: tuple(new.values())}
    return None


@given(TABLES, LOGS)
def test_net_changes_are_the_log_played_one_by_one(
    before: dict[Any, Any], log: list[Modification]
) -> None:
    after = before
    valid: list[Modification] = []
    untouched = deepcopy(before)
    for entry in log:
        step = played(after, entry)
        if step is None:
            with pytest.raises(ChangeError):
                net("parts", PARTS, before, [*valid, entry])
        else:
            after, valid = step, [*valid, entry]
    found = net("parts", PARTS, before, valid)
    assert found.apply(before) == after
    assert before == untouched
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    assert found.size == len(changed)


@given(TABLES, LOGS)
def test_a_log_is_all_or_nothing(before: dict[Any, Any], log: list[Modification]) -> None:
    table = MemoryTable("parts", PARTS, before.values())
    try:
        version = table.play(log)
    except ChangeError:
        assert (table.versions, table.rows(0)) == (range(1), before)
    else:
        assert version == 1
        assert table.rows(1) == table.changes(0, 1).apply(before)
        assert table.rows(0) == before
