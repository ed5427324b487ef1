"""Keys looked up in vectors: the same places as a dictionary of Python."""

from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeep.tables.files import key_index
from viewkeep.tables.files.key_index import KeyIndex

LEAST, MOST = -(1 << 63), (1 << 63) - 1
NUMBERS = st.one_of(
    st.integers(-20, 20),
    st.integers(-300, 300),
    st.sampled_from([LEAST, LEAST + 1, MOST, MOST - 1]),
    st.none(),
)


def places_of_dictionary(keys: list[Any], rows: list[Any]) -> list[int]:
    """The place of the first equal key for each row."""
    first: dict[Any, int] = {}
    for place, key in enumerate(keys):
        first.setdefault(key, place)
    return [first.get(row, -1) for row in rows]


@pytest.fixture(params=["dense", "filter", "hash"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way that whole numbers may be looked up in, of as few as a test has."""
    if request.param != "dense":
        monkeypatch.setattr(key_index, "DENSE_LEAST", 0)
        monkeypatch.setattr(key_index, "DENSE_SHARE", 0)
    monkeypatch.setattr(key_index, "FILTER_SHARE", 10_000 if request.param == "filter" else 0)


@given(st.lists(NUMBERS, max_size=12), st.lists(NUMBERS, max_size=40))
def test_numbers(keys: list[int | None], rows: list[int | None]) -> None:
    index = KeyIndex(pa.table({"a": pa.array(keys, pa.int64())}))
    found = index.places(pa.table({"a": pa.chunked_array([pa.array(rows, pa.int64())])}))
    assert found.tolist() == places_of_dictionary(keys, rows)


@given(
    st.lists(st.tuples(st.integers(-9, 90), NUMBERS), max_size=12),
    st.lists(st.tuples(st.integers(-9, 90), NUMBERS), max_size=40),
)
def test_pairs_of_numbers(keys: list[tuple[Any, Any]], rows: list[tuple[Any, Any]]) -> None:
    def table(pairs: list[tuple[Any, Any]]) -> pa.Table:
        columns = list(zip(*pairs, strict=True)) or [(), ()]
        return pa.table({"a": pa.array(columns[0], pa.int8()), "b": pa.array(columns[1])}).cast(
            pa.schema([("a", pa.int8()), ("b", pa.int64())])
        )

    found = KeyIndex(table(keys)).places(table(rows))
    assert found.tolist() == places_of_dictionary(keys, rows)


@given(st.lists(st.integers(-9000, 9000), max_size=9), st.lists(st.integers(-9000, 9000)))
def test_dates(keys: list[int], rows: list[int]) -> None:
    def days(numbers: list[int]) -> pa.Table:
        epoch = date(1970, 1, 1)
        return pa.table({"d": pa.array([epoch + timedelta(n) for n in numbers], pa.date32())})

    found = KeyIndex(days(keys)).places(days(rows))
    assert found.tolist() == places_of_dictionary(keys, rows)
