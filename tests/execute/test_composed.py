"""Functions that are compositions of others: DuckDB's answers are those of Spark to the text."""

from datetime import date, datetime
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from viewkeep import Keeper
from viewkeep.errors import UnsupportedError
from viewkeep.sql.expressions.composed import COMPOSED

COLUMNS = {"id": "int", "d": "date", "at": "timestamp", "local": "timestamp_ntz", "x": "double"}
COLUMNS |= {"n": "int", "s": "string"}
DAYS = ("2024-02-29", "2023-12-31", "2024-01-01", "1969-12-28", "2000-08-15", "0001-01-08")
VALUES = (
    *((0.0, 0, ""), (nan, 1, "ab"), (inf, -1, "b")),
    *((-0.0, 7, " b "), (1.5, 20000, "7"), (-2.5, 3, "xx")),
)
ROWS: list[tuple[Any, ...]] = [
    *(
        (
            i,
            date.fromisoformat(day),
            *[datetime.fromisoformat(f"{day} 23:59:59.123456")] * 2,
            *values,
        )
        for i, (day, values) in enumerate(zip(DAYS, VALUES, strict=True))
    ),
    (99, *[None] * 6),
]
UNITS = ("week", "MONTH", "mm", "mon", "quarter", "year", "yy", "YYYY")
CALLS = (
    *(f"trunc(d, '{unit}')" for unit in UNITS),
    *(
        f"date_trunc('{unit}', at)"
        for unit in (*UNITS, "day", "DD", "HOUR", "second", "millisecond")
    ),
    *("date_trunc('minute', d)", "nanvl(x, double(n))", "pmod(n, 5)", "pmod(n, 20000)"),
    *("try_divide(n, n)", "try_divide(x, x)", "try_divide(n, x)", "try_divide(x, n)"),
    *("unix_timestamp(at)", "unix_timestamp(d)", "to_unix_timestamp(at)"),
    *("date_trunc('month', d)", "trunc(at, 'year')", "weekday(d)", "weekday(at)", "to_date(at)"),
    *("unix_date(d)", "date_from_unix_date(n)", "date(at)", "timestamp(d)"),
    *("nvl2(n, s, 'none')", "zeroifnull(n)", "nullifzero(n)", "nullifzero(x)", "equal_null(n, 1)"),
    *("contains(s, 'b')", "contains(s, '')", "instr(s, 'b')", "instr(s, '')", "btrim(s)"),
    *("negative(n)", "negative(x)", "positive(n)", "isnan(x)", "pi()", "e() * n"),
    *("bigint(n)", "tinyint(n % 100)", "smallint(n)", "int(d = d)", "float(n)", "double(n)"),
    *("decode(n, 1, 'one', null, 'none', 7, s)", "decode(s, 'b', n, 0)", "decode(x, x, 1, 2)"),
    *("date_format(d, 'yyyy-MM')", "date_format(at, 'yyyyMMdd')", "date_format(d, 'dd.MM.yyyy')"),
    *("date_format(at, 'yyyy/MM')", "date_format(d, 'yyyy-MM-dd')", "date_format(at, 'MM')"),
    *("boolean(n)", "string(d)", "decimal(n)", "binary(s)"),
    *("degrees(x)", "degrees(n)", "radians(x)", "radians(n)"),
    *("element_at(array(n, 7), 1)", "element_at(array(s, 'b'), -1)"),
    *("try_element_at(array(n, 7), 3)", "try_element_at(array(x), 1)"),
    *("concat_ws('-', s, n)", "concat_ws(', ', array(s, 'b'), s)", "concat_ws('', array(s))"),
)
"""Every function, with every argument that has a composition."""

FURTHER = (
    *(f"date_trunc('{unit}', local)" for unit in ("day", "month")),
    *("trunc(local, 'year')", "weekday(local)", "date(local)", "timestamp(local)"),
    *("year(local)", "hour(local)", "second(local)", "quarter(local)", "last_day(local)"),
    *("datediff(local, d)", "date_add(local, 2)", "add_months(local, 1)"),
    *("local + interval 3 hours", "local - interval 1 minute", "interval 2 days + local"),
    *("local > '2000-01-01'", "local >= d", "local < at", "local between d and at", "local = at"),
    *("local > timestamp_ntz'2023-12-31 23:59:59.1'", "local <= timestamp'2000-08-15 00:00:00'"),
    *("cast(local as string)", "cast(d as timestamp_ntz)", "cast(at as timestamp_ntz)"),
    *("date_trunc('hour', local)", "unix_timestamp(local)", "dayname(local)"),
    *("s ILIKE '%B%'", "s NOT ILIKE 'A_'", "sha(s)"),
    *("coalesce(local, at)", "greatest(local, d)", "if(n > 0, local, d)", "local in (at)"),
)
"""Times without a zone are times in UTC, where a function asks for a zone; other forms."""


def _exact(value: Any) -> Any:
    if isinstance(value, float):
        return float.hex(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return bytes(value) if isinstance(value, bytearray) else value


def test_every_composition_is_compared() -> None:
    assert {call.split("(")[0] for call in CALLS} == set(COMPOSED)


FORMATS = ("MMMM", "yyyyMMM", "ddd", "yyyy-MM'T'", "HH", "y", "dd EEE", "[MM]")


@pytest.mark.parametrize("form", FORMATS)
def test_other_formats_of_dates_are_left_to_spark(form: str, tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.create_table("t", COLUMNS, key=["id"])
    with pytest.raises(UnsupportedError, match="only Spark computes it"):
        keeper.create_view("v", f"""SELECT id, date_format(d, "{form}") AS c FROM t""")


def test_embedded_lakes_answer_as_spark_does(spark: SparkSession, tmp_path: Path) -> None:
    spark = spark.newSession()
    keeper = Keeper(tmp_path)
    keeper.create_table("t", COLUMNS, key=["id"], rows=ROWS)
    calls = (*CALLS, *FURTHER)
    sql = "SELECT id, " + ", ".join(f"{call} AS c{i}" for i, call in enumerate(calls)) + " FROM t"
    assert keeper.create_view("v", sql).strategy == "id"
    kept = keeper.read("v")
    kinds = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    spark.createDataFrame(ROWS, kinds).createOrReplaceTempView("t")
    answer = spark.sql(f"{sql} ORDER BY id").toArrow()
    for name, call in zip(answer.column_names[1:], calls, strict=True):
        rows = kept.sort_by("id")[name].to_pylist()
        expected = answer[name].to_pylist()
        assert list(map(_exact, rows)) == list(map(_exact, expected)), call
        assert str(kept[name].type) == str(answer[name].type), call
