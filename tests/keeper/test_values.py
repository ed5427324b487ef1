"""What fits a column: one answer for every kind of input, and nothing that is given is lost."""

import csv
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from viewkeep import Keeper, SchemaError, Table
from viewkeep.csv_input import CsvFile, read_declared
from viewkeep.execute.spark.exact_cast import exact_columns
from viewkeep.tables.arrow_rows import to_rows
from viewkeep.tables.user_rows import read_user_rows

TYPES = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary",
    "date", "timestamp", "decimal(5, 2)", "decimal(38, 0)", "decimal(38, 20)",
)  # fmt: skip
REFUSED = "refused"
Rows = Callable[[Any], Any]


def _polars(value: Any) -> Any:
    import polars as pl

    return pl.DataFrame({"k": [1], "v": pl.Series([value], strict=True)})


KINDS: dict[str, Rows] = {
    "tuples": lambda v: [(1, v)],
    "dicts": lambda v: [{"v": v, "k": 1}],
    "arrow": lambda v: pa.table({"k": [1], "v": pa.array([v])}),
    "dictionary": lambda v: pa.table({"k": [1], "v": pa.array([v]).dictionary_encode()}),
    "batch": lambda v: pa.record_batch({"k": [1], "v": pa.array([v])}),
    "pandas": lambda v: pd.DataFrame({"k": [1], "v": pd.Series([v])}),
    "pandas objects": lambda v: pd.DataFrame({"k": [1], "v": pd.Series([v], dtype=object)}),
    "pandas of Arrow": lambda v: pd.DataFrame(
        {"k": [1], "v": pd.Series([v], dtype=pd.ArrowDtype(pa.array([v]).type))}
    ),
    "polars": _polars,
}


def stored(type_: str, rows: Any, key: tuple[str, ...] = ("k",)) -> Any:
    """The value of the column v that is stored, or that it is refused."""
    table = Table({"k": "int", "v": type_}, key=key)
    try:
        [[_, value]] = to_rows(read_user_rows("t", "inserts", rows, table, table.names))
    except SchemaError as error:
        problem = str(error)
    else:
        return value
    assert 'table "t", inserts, key (' in problem
    assert f'column "v" ({type_.removesuffix(" not null")}): ' in problem
    assert "; " in problem, "it says what to do"
    return REFUSED


def says_the_same(type_: str, given_: Any, kept: Any) -> bool:
    """Whether a value that is kept is what was given; written apart from the code."""
    if isinstance(given_, datetime):
        moment = given_ if given_.tzinfo else given_.replace(tzinfo=UTC)
        return type_ == "timestamp" and kept.replace(tzinfo=UTC) == moment
    if isinstance(given_, bool | str | bytes | date):
        return bool(type(kept) is type(given_) and kept == given_)
    if isinstance(given_, float) and not isfinite(given_):
        return isinstance(kept, float) and repr(kept) == repr(given_)
    if type_ == "float" and isinstance(given_, float):
        return bool(kept == float(np.float32(given_)))
    return not isinstance(kept, bool) and Fraction(kept) == Fraction(given_)


EAST = timezone(timedelta(hours=14))
VALUES = [
    True, 0, 1, -128, 128, 2**24, 2**24 + 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63),
    0.0, 1.0, 1.5, 0.1, -0.1, 1e300, -1e300, 1e-300, 3.4028235e38, 3.4028236e38, 2.0**53, 2.0**60,
    inf, -inf, Decimal(5), Decimal("1.50"), Decimal("1.505"), Decimal("-999.99"), Decimal(1000),
    Decimal("9" * 38), Decimal("0." + "1" * 20), "", "1", "x", "\U0001f600", b"", b"1", b"\xff",
    date(2026, 1, 2), date.min, date.max, datetime(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 6),
    datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=EAST), datetime.min, datetime.max,
]  # fmt: skip

ANY_VALUE = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-300, 300),
    st.floats(allow_nan=False),
    st.floats(width=32, allow_nan=False),
    st.integers(-(2**54), 2**54).map(float),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-2000, max_value=2000),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.dates(),
    st.datetimes(),
    st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(EAST)),
)


def compare_kinds(value: Any) -> int:
    """In every column, all kinds of input get one answer; how many columns take the value."""
    taken = 0
    for type_ in TYPES:
        found = {kind: stored(type_, make(value)) for kind, make in _possible(value).items()}
        assert len({repr(each) for each in found.values()}) == 1, (type_, value, found)
        if found["tuples"] is not REFUSED:
            taken += 1
            assert says_the_same(type_, value, found["tuples"]), (type_, value, found)
    return taken


def _possible(value: Any) -> dict[str, Rows]:
    """The kinds of input that can hold the value itself: some change it before they hand it on."""
    kinds = dict(KINDS)
    if isinstance(value, Decimal):
        del kinds["polars"]  # pads them with zeros
    if isinstance(value, datetime) and not 1678 < value.year < 2262:
        for kind in ("pandas", "pandas objects", "pandas of Arrow"):
            del kinds[kind]  # of nanoseconds, for which the years are too many
    if isinstance(value, datetime) and value.tzinfo:
        del kinds["polars"]  # takes zones with names only
    return kinds


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_one_answer_for_every_kind_of_input(value: Any) -> None:
    assert compare_kinds(value) > 0


@settings(max_examples=60)
@given(ANY_VALUE)
def test_random_values_get_one_answer(value: Any) -> None:
    compare_kinds(value)


NUMPY = (
    np.bool_(True), np.int8(-5), np.uint64(2**63), np.int64(2**53 + 1), np.float16(0.5),
    np.float32(0.1), np.float64(1e300), np.float64(7.0), np.str_("x"), np.bytes_(b"x"),
    np.datetime64("2026-01-02"), np.datetime64("2026-01-02T03:04:05.678"),
)  # fmt: skip


@pytest.mark.parametrize("scalar", NUMPY, ids=repr)
def test_scalars_of_numpy_are_their_values(scalar: Any) -> None:
    for type_ in TYPES:
        answers = {
            kind: repr(stored(type_, KINDS[kind](each)))
            for kind in ("tuples", "dicts", "pandas objects")
            for each in (scalar, scalar.item())
        }
        assert len(set(answers.values())) == 1, (type_, scalar, answers)


@pytest.mark.parametrize("type_", TYPES)
def test_null_in_every_kind(type_: str) -> None:
    for kind, make in KINDS.items():
        assert stored(type_, make(None)) is None, kind
        assert stored(f"{type_} not null", make(None)) is REFUSED, kind
        assert stored(type_, make(None), key=("v",)) is REFUSED, kind


def test_nan() -> None:
    """A value of doubles, but of no key, where it could not be named; NULL in pandas, as there."""
    for kind, make in KINDS.items():
        found = stored("double", make(nan))
        if kind in ("pandas", "pandas objects"):
            assert found is None
        elif kind != "pandas of Arrow":  # which changes with the version of pandas
            assert isnan(found)
            assert stored("double", make(nan), key=("v",)) is REFUSED
        if found is not None:
            assert stored("int", make(nan)) is REFUSED
    assert stored("decimal(5, 2)", [(1, Decimal("NaN"))]) is REFUSED
    assert stored("decimal(5, 2)", [(1, Decimal("sNaN"))]) is REFUSED


@pytest.mark.parametrize("kind", ["s", "ms", "us", "ns"])
def test_times_of_all_units(kind: str) -> None:
    for zone in (None, "UTC", "Europe/Zurich"):
        whole = pa.array([10**6], pa.int64()).cast(pa.timestamp(kind, zone))
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind]
        expected = datetime(1970, 1, 1) + timedelta(microseconds=10**6 * 10**6 // per_second)
        assert stored("timestamp", pa.table({"k": [1], "v": whole})) == expected
        assert stored("date", pa.table({"k": [1], "v": whole})) is REFUSED
    lost = pa.array([10**6 + 1], pa.int64()).cast(pa.timestamp("ns"))
    assert stored("timestamp", pa.table({"k": [1], "v": lost})) is REFUSED
    assert stored("timestamp", [(1, pd.Timestamp(10**6 + 1))]) is REFUSED


ODD: dict[str, tuple[str, pa.Array]] = {
    "years beyond Python's": ("date", pa.array([10**7], pa.int32()).cast(pa.date32())),
    "times beyond Python's": ("timestamp", pa.array([2**62], pa.int64()).cast(pa.timestamp("us"))),
    "times beyond all": ("timestamp", pa.array([2**62], pa.int64()).cast(pa.timestamp("s"))),
    "dates with a time": ("date", pa.array([5], pa.int64()).cast(pa.date64())),
    "broken text": ("string", pa.Array.from_buffers(pa.string(), 1, [
                        None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")])),
    "a duration": ("bigint", pa.array([5], pa.duration("us"))),
    "a time of the day": ("timestamp", pa.array([5], pa.time64("us"))),
    "a list": ("int", pa.array([[1]])),
    "unsigned": ("bigint", pa.array([2**63], pa.uint64())),
    "wide decimals": ("decimal(5, 2)", pa.array([Decimal("1.001")], pa.decimal256(70, 40))),
}  # fmt: skip


@pytest.mark.parametrize(("type_", "column"), ODD.values(), ids=ODD)
def test_odd_columns_of_arrow(type_: str, column: pa.Array) -> None:
    assert stored(type_, pa.table({"k": [1], "v": column})) is REFUSED


def test_columns_of_encodings_and_chunks() -> None:
    runs = pa.chunked_array([pc_run_end([5, 5]), pc_run_end([6])])
    table = Table({"k": "int", "v": "int"}, key=["k"])
    rows = read_user_rows("t", "inserts", pa.table({"k": [1, 2, 3], "v": runs}), table, table.names)
    assert to_rows(rows) == [(1, 5), (2, 5), (3, 6)]
    many = pd.DataFrame({"k": [1, 2], "v": pd.Categorical([7, 8])})
    assert to_rows(read_user_rows("t", "inserts", many, table, table.names)) == [(1, 7), (2, 8)]


def pc_run_end(values: list[int]) -> pa.Array:
    import pyarrow.compute as pc

    return pc.run_end_encode(pa.array(values))


def test_the_error_names_the_row_and_the_way_out() -> None:
    table = Table({"k": "int", "v": "int"}, key=["k"])
    rows = [(1, 5), (2, 1.5)]
    frame = pd.DataFrame(rows, columns=["k", "v"])
    for given_ in (rows, frame, pa.Table.from_pandas(frame)):
        with pytest.raises(SchemaError) as refused:
            read_user_rows("t", "updates", given_, table, table.names)
        assert str(refused.value) == (
            'table "t", updates, key (k = 2): column "v" (int): '
            "1.5 is no whole number; round it, or declare a double"
        )
    with pytest.raises(SchemaError, match=r'key \(k = 1\.7\): column "k" \(int\): 1\.7 is no'):
        read_user_rows("t", "deletes", [(1.7,)], table, table.key)
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["k", "k"])
    with pytest.raises(SchemaError, match='the column "k" stands twice'):
        read_user_rows("t", "deletes", twice, table, table.key)


TEXTS: dict[tuple[str, str], Any] = {
    ("int", " 7 "): 7,
    ("int", "1.5"): REFUSED,
    ("tinyint", "128"): REFUSED,
    ("bigint", "9" * 30): REFUSED,
    ("int", "true"): REFUSED,
    ("decimal(5, 2)", "1.5"): Decimal("1.50"),
    ("decimal(5, 2)", "1.500"): Decimal("1.50"),
    ("decimal(5, 2)", "1.505"): REFUSED,
    ("decimal(5, 2)", "1e3"): REFUSED,
    ("decimal(5, 2)", "NaN"): REFUSED,
    ("double", "0.1"): 0.1,
    ("double", "1e400"): REFUSED,
    ("double", "1e-400"): REFUSED,
    ("double", "Infinity"): inf,
    ("double", str(2**53 + 1)): REFUSED,
    ("float", "0.1"): float(np.float32(0.1)),
    ("float", "1e300"): REFUSED,
    ("float", "1e-300"): REFUSED,
    ("date", "2026-01-02"): date(2026, 1, 2),
    ("date", "2026-01-02 03:04:05"): REFUSED,
    ("date", "5"): REFUSED,
    ("timestamp", "2026-01-02 03:04:05.123456000"): datetime(2026, 1, 2, 3, 4, 5, 123456),
    ("timestamp", "2026-01-02 03:04:05.1234567"): REFUSED,
    ("boolean", "2"): REFUSED,
    ("string", "1"): "1",
}


@pytest.mark.parametrize("case", TEXTS, ids=" ".join)
def test_text_of_files(case: tuple[str, str], tmp_path: Path) -> None:
    type_, text = case
    table = Table({"k": "int", "v": type_}, key=["k"])
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("k", "v"), ("1", text)])
    source = CsvFile(str(tmp_path / "rows.csv"))
    try:
        rows = list(read_declared(source, table))
    except SchemaError as error:
        rows, problem = None, str(error)
    finally:
        source.close()
    if rows is None:
        assert f'column "v" ({type_})' in problem
        assert TEXTS[case] is REFUSED
    else:
        assert stored(type_, rows) == TEXTS[case]


# --- DataFrames of Spark -------------------------------------------------------------------------

SPARK_VALUES = [each for each in VALUES if not isinstance(each, date)] + [date(2026, 1, 2)]


def _spark_type(value: Any) -> str:
    kinds = {bool: "boolean", int: "bigint", float: "double", str: "string", bytes: "binary"}
    if isinstance(value, Decimal):
        return "decimal(38, 20)" if value.as_tuple().exponent else "decimal(38, 0)"
    return kinds.get(type(value), "date")


def test_spark_answers_alike(spark: SparkSession) -> None:
    """As one job: what fits by SQL is what fits by Python, and is the same value."""
    ddl = ", ".join(f"v{n} {_spark_type(v)}" for n, v in enumerate(SPARK_VALUES))
    frame = spark.createDataFrame([tuple(SPARK_VALUES)], ddl)
    asked, expected = [], []
    for number, value in enumerate(SPARK_VALUES):
        for type_ in TYPES:
            table = Table({f"v{number}": type_})
            [column] = exact_columns(frame, table)
            asked.append(f"CASE WHEN {column.fits} THEN struct({column.value} AS v) END")
            expected.append((type_, value, stored(type_, [(1, value)])))
    for setting in ("false", "true"):
        spark.conf.set("spark.sql.ansi.enabled", setting)
        [row] = frame.selectExpr(*asked).collect()
        found = [REFUSED if cell is None else cell.v for cell in row]
        for answer, (type_, value, right) in zip(found, expected, strict=True):
            plain = bytes(answer) if isinstance(answer, bytearray) else answer
            assert repr(plain) == repr(right), (type_, value, setting)


def test_rows_of_a_spark_frame_are_kept_or_refused(spark: SparkSession, tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, spark)
    good = spark.sql("SELECT 1L AS k, 2D AS v, TIMESTAMP_NTZ'3026-01-02 03:04:05' AS at")
    keeper.create_table("good", {"k": "int", "v": "int", "at": "timestamp"}, ["k"], rows=good)
    assert keeper.apply("good", updates=[{"k": 1, "v": 3}]) == 1
    [row] = to_rows(DeltaTable(tmp_path / "good").to_pyarrow_table())
    assert row == (1, 3, datetime(3026, 1, 2, 3, 4, 5))
    bad = spark.sql("SELECT id AS k, id + 0.5D AS v FROM range(3)")
    with pytest.raises(SchemaError, match=r'"bad", rows: column "v" \(int\): 0.5 is no whole'):
        keeper.create_table("bad", {"k": "int", "v": "int"}, ["k"], rows=bad)
    with pytest.raises(SchemaError, match=r'rows: column "k" \(int\): .* give an int'):
        keeper.create_table("bad", {"k": "int"}, ["k"], rows=spark.sql("SELECT '1' AS k"))
    with pytest.raises(SchemaError, match=r'rows: no column "more"'):
        keeper.create_table("bad", {"k": "int"}, ["k"], rows=spark.sql("SELECT 1 AS k, 2 AS more"))
    assert set(keeper.tables) == {"good"}
    with pytest.raises(SchemaError, match=r'deletes, key \(k = 1.7\): column "k"'):
        keeper.apply("good", deletes=spark.sql("SELECT 1.7D AS k"))
