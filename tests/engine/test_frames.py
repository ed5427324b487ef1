"""Tables of every make and encoding: both engines read the same rows, or refuse them alike."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import viewkeep as vk
from viewkeep.engine.compiled.engine import CompiledEngine


@pytest.fixture(scope="module", autouse=True)
def engine() -> Iterator[None]:
    """These tests name their engines; code is compiled quickly, since it runs on few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIEWKEEP_OPTIMIZE", "0")
        yield


# --- encodings ------------------------------------------------------------------------------------

WORDS = pa.array(["x", "y", "x", None])
ARROW = {
    "dictionary": WORDS.dictionary_encode(),
    "dictionary of integers": pa.array([1, 2, 1]).dictionary_encode(),
    "dictionary of floats": pa.array([1.0, 2.5, 1.0]).dictionary_encode(),
    "dictionary of decimals": pa.array([Decimal("1.5"), Decimal(2)]).dictionary_encode(),
    "dictionary that holds null": pa.DictionaryArray.from_arrays([0, 1, 0], ["x", None]),
    "dictionary with a null index": pa.DictionaryArray.from_arrays(
        pa.array([0, None], pa.int8()), ["x", "y"]
    ),
    "dictionary with equal values": pa.DictionaryArray.from_arrays([0, 1, 2], ["x", "x", "y"]),
    "dictionary with unused values": pa.DictionaryArray.from_arrays([0, 0], [1.5, float("nan")]),
    "dictionary of large strings": WORDS.cast(pa.large_string()).dictionary_encode(),
    "slice": WORDS.slice(1, 2),
    "slice of a dictionary": WORDS.dictionary_encode().slice(1),
    "slice of views": pa.array(["x", None, "a string that does not fit"], pa.string_view()).slice(
        1
    ),
    "slice of runs": pa.RunEndEncodedArray.from_arrays([2, 3, 9], ["x", None, "y"]).slice(1, 4),
    "empty dictionary": pa.array([], pa.dictionary(pa.int32(), pa.string())),
    "chunks with dictionaries of their own": pa.chunked_array(
        [pa.array(["x", "y"]).dictionary_encode(), pa.array(["z", "y"]).dictionary_encode()]
    ),
    "chunks": pa.chunked_array([[1, 2], [], [3]]),
    "no chunks": pa.chunked_array([], pa.string()),
    "large string": pa.array(["x", "y"], pa.large_string()),
    "string view": pa.array(["x", "y", None], pa.string_view()),
    "binary view": pa.array([b"x", b"y"], pa.binary_view()),
    "fixed binary": pa.array([b"ab", b"cd"], pa.binary(2)),
    "null": pa.nulls(3),
    "runs of strings": pa.RunEndEncodedArray.from_arrays([2, 3], ["x", "y"]),
    "runs of integers": pa.RunEndEncodedArray.from_arrays([2, 3], [1, 2]),
    "runs of a dictionary": pa.RunEndEncodedArray.from_arrays(
        [2, 3], pa.array(["x", "y"]).dictionary_encode()
    ),
    "uuid": pa.array([b"0" * 16, b"1" * 16], pa.binary(16)).cast(pa.uuid()),
    "list": pa.array([[1], [2]]),
    "struct": pa.array([{"x": 1}, {"x": 2}]),
    "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    "sparse union": pa.UnionArray.from_sparse(
        pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]
    ),
    "integers": pa.array([1, 2, 3], pa.int8()),
    "integers with nulls": pa.array([1, None, 3]),
    "unsigned": pa.array([2**63 + 1, 2], pa.uint64()),
    "floats that are whole": pa.array([2.0**53, 1.0]),
    "floats with nulls": pa.array([1.5, None, 2.0]),
    "float with nan": pa.array([1.5, float("nan")]),
    "half floats": pa.array([1.5, 2.0]).cast(pa.float16()),
    "floats of 32 bits": pa.array([1.1, 2.0], pa.float32()),
    "booleans": pa.array([True, False, None]),
    "decimals": pa.array([Decimal("1.50"), Decimal("2.00")]),
    "decimals that are whole": pa.array([Decimal("2.00"), Decimal("4.00")]),
    "long decimals": pa.array([Decimal("1.50"), None], pa.decimal256(50, 2)),
    "dates": pa.array([date(2020, 1, 1), None]),
    "timestamps": pa.array([datetime(2020, 1, 1), None]),
    "timestamps of a zone": pa.array([datetime(2020, 1, 1, tzinfo=UTC), None]),
    "nanoseconds": pa.array([1577836800000000000, 1577836800000000001], pa.timestamp("ns")),
    "times": pa.array([time(1), None]),
    "durations": pa.array([timedelta(1), None]),
    "intervals": pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
}
PANDAS = {
    "categories": pd.Series(["x", None, "x"], dtype="category"),
    "categories of integers": pd.Series([3, 1, 3], dtype="category"),
    "categories of floats": pd.Series([3.0, 1.5, 3.0], dtype="category"),
    "objects": pd.Series([1, "x", 2.5, None], dtype=object),
    "numpy objects": pd.Series([np.int64(1), np.float64(2.5)], dtype=object),
    "strings": pd.Series(["x", "y"], dtype="string"),
    "integers that may be missing": pd.Series([1, 2], dtype="Int64"),
    "missing integers": pd.Series([1, None], dtype="Int64"),
    "missing times": pd.Series([pd.Timestamp(2020, 1, 1), pd.NaT]),
    "times": pd.Series([pd.Timestamp(2020, 1, 1), pd.Timestamp(2020, 1, 2, 3)]),
    "periods": pd.Series(pd.period_range("2020", periods=2, freq="Y")),
    "arrow strings": pd.Series(["x", "y"], dtype=pd.ArrowDtype(pa.string())),
    "arrow dictionary": pd.Series(pd.arrays.ArrowExtensionArray(WORDS.dictionary_encode())),
    "arrow decimals": pd.Series([Decimal("1.5")], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
    "booleans": pd.Series([True, False]),
    "floats that are whole": pd.Series([2.0**53, 1.0]),
    "nan": pd.Series([1.5, None]),
}
POLARS = {
    "strings": pl.Series(["x", "y", None]),
    "categories": pl.Series(["x", "y", "x"], dtype=pl.Categorical),
    "enum": pl.Series(["x", "y", "x"], dtype=pl.Enum(["x", "y", "z"])),
    "integers": pl.Series([1, 2, 3]),
    "unsigned": pl.Series([2**63 + 1, 2], dtype=pl.UInt64),
    "floats": pl.Series([1.0, 2.5, None]),
    "decimals": pl.Series([Decimal("1.5"), Decimal("2.0")]),
    "times": pl.Series([datetime(2020, 1, 1), None]),
    "durations": pl.Series([timedelta(1), None]),
    "booleans": pl.Series([True, None]),
    "nothing": pl.Series([None, None]),
    "lists": pl.Series([[1], [2]]),
    "structs": pl.Series([{"x": 1}, {"x": 2}]),
}


def arrow_frame(column: Any) -> pa.Table:
    return pa.table({"a": column, "b": pa.array(range(len(column)))})


def pandas_frame(column: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({"a": column, "b": range(len(column))})


def polars_frame(column: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"a": column, "b": list(range(len(column)))})


FRAMES = {
    **{f"arrow: {name}": arrow_frame(column) for name, column in ARROW.items()},
    **{f"pandas: {name}": pandas_frame(column) for name, column in PANDAS.items()},
    **{f"polars: {name}": polars_frame(column) for name, column in POLARS.items()},
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("text", ["Q(a, b) = R(a, b)", "Q(b; sum(a), avg(a)) = R(a, b)"])
def test_both_engines_read_a_frame_alike(name, text):
    frame, counts = FRAMES[name], [2] * len(FRAMES[name])
    found = []
    for kind in ("reference", "compiled"):
        live = vk.maintain(text, engine=kind)
        found.append(
            [
                outcome(lambda live=live: live.load({"R": frame})),
                outcome(lambda live=live: live.update_batch("R", frame, counts)),
                sorted(live.enumerate(), key=repr),
            ]
        )
    reference, compiled = found
    assert compiled == reference
    kinds = [[[type(v) for v in (*r, *p)] for r, p in each[2]] for each in found if "sum" in text]
    assert not kinds or kinds[0] == kinds[1]


def outcome(action: Callable[[], None]) -> str:
    """Errors must be the project's own."""
    try:
        action()
    except vk.ViewkeepError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["dictionary", "runs of integers", "string view", "null"])
def test_encoded_columns_need_no_loop_over_rows(name):
    live = vk.maintain("Q(a, b) = R(a, b)", engine="compiled")
    assert isinstance(live.engine, CompiledEngine)
    assert live.engine.batches("R", arrow_frame(ARROW[name]), None) is not None


# --- names ----------------------------------------------------------------------------------------

MAKES: dict[str, Callable[[dict[str, list[int]]], Any]] = {
    "arrow": pa.table,
    "record batch": pa.RecordBatch.from_pydict,
    "reader": lambda columns: pa.table(columns).to_reader(),
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
}
ways = pytest.mark.parametrize("way", ["load", "update_batch", "workload"])
engines = pytest.mark.parametrize("kind", ["reference", "compiled"])
makes = pytest.mark.parametrize("make", MAKES)


def give(frame: Any, way: str, kind: str, query: Any = "Q(a, b, c) = R(a, b, c)") -> Any:
    """The rows that a maintainer reads from a frame."""
    if way == "workload":
        work = vk.maintain([query], engine=kind)
        work.update_batch("R", frame)
        return sorted(row for row, _ in work["Q"].enumerate())
    live = vk.maintain(query, engine=kind)
    live.load({"R": frame}) if way == "load" else live.update_batch("R", frame)
    return sorted(row for row, _ in live.enumerate())


@ways
@engines
@makes
def test_columns_are_found_by_all_names_or_by_position(way, kind, make):
    columns = {"a": [1, 2], "b": [3, 4], "c": [5, 6], "more": [7, 8]}
    for names in permutations(columns):
        frame = MAKES[make]({name: columns[name] for name in names})
        assert give(frame, way, kind) == [(1, 3, 5), (2, 4, 6)]
    frame = MAKES[make]({"x": [1, 2], "y": [3, 4], "z": [5, 6]})
    assert give(frame, way, kind) == [(1, 3, 5), (2, 4, 6)]


@ways
@engines
@makes
@pytest.mark.parametrize("names", ["bax", "xac", "bxy", "xyzc", "ab", "c"])
def test_columns_of_which_some_are_named_are_refused(way, kind, make, names):
    frame = MAKES[make]({name: [1, 2] for name in names})
    missing = ", ".join(name for name in "abc" if name not in names)
    with pytest.raises(vk.SchemaError, match=rf"R\(a, b, c\).*but not {missing}"):
        give(frame, way, kind)


@engines
def test_columns_that_come_twice_are_refused(kind):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["a", "b", "b"])
    for frame in (table, table.to_pandas()):
        with pytest.raises(vk.SchemaError, match="b more than once"):
            give(frame, "load", kind, "Q(a, b) = R(a, b)")


@engines
def test_too_many_columns_of_which_none_is_named_are_refused(kind):
    with pytest.raises(vk.SchemaError, match="give 2 columns in this order"):
        give(pa.table({"x": [1], "y": [2], "z": [3]}), "load", kind, "Q(a, b) = R(a, b)")


@engines
def test_names_cannot_tell_repeated_columns_apart(kind):
    frame = pa.table({"a": [1, 2], "x": [1, 3]})
    assert give(frame, "load", kind, "Q(a) = R(a, a)") == [(1,)]


@engines
def test_columns_of_the_table_that_the_query_does_not_use_count_as_names(kind):
    table = vk.Table({"id": "int", "x": "int", "y": "int"})
    query = vk.from_sql("SELECT id, y FROM r", tables={"r": table})
    live = vk.maintain(query, engine=kind)
    live.load({"r": pa.table({"y": [3], "x": [2], "id": [1]})})
    live.load({"r": pa.table({"0": [4], "1": [5], "2": [6]})})
    assert sorted(row for row, _ in live.enumerate()) == [(1, 3), (4, 6)]
    for names in ("x", "x z", "id x", "x z w"):
        with pytest.raises(vk.SchemaError, match="but not"):
            live.load({"r": pa.table({name: [1] for name in names.split()})})


@engines
@pytest.mark.parametrize("data", [pa.array([1]), {"a": [1]}])
def test_what_is_no_table_is_refused(kind, data):
    with pytest.raises(vk.SchemaError, match="R"):
        give(data, "load", kind, "Q(a) = R(a)")
