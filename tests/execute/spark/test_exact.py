"""What Python computes exactly, Spark computes too: every function, many values of every type."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.execute.edge_values import NESTED
from viewkeep.errors import QueryError
from viewkeep.execute.spark.driver.collect import CollectedRows, collect_local
from viewkeep.query.evaluate.exact import InexactError, compile_exact
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.expressions import Call, Cast, Column, Expression, back_quote, literal
from viewkeep.query.types.data_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    Field,
    parse_type,
)
from viewkeep.query.types.functions import FUNCTIONS
from viewkeep.query.types.inference import Schema, type_of
from viewkeep.query.types.internal_functions import COMPARABLE, SINGLE
from viewkeep.sql.expression_text import expression
from viewkeep.tables.arrow_rows import to_rows

INTS = [0, 1, -1, 2, 7, -128, 127]
TEXTS = ["", "a", "B", "ab", " ab ", "%", "a_b", "Äß", "zz", "10"]
DAYS = [date(2024, 2, 29), date(2023, 12, 31), date(1999, 1, 1), date(1970, 1, 1)]
VALUES: dict[str, list[Any]] = {
    "tinyint": INTS,
    "smallint": [*INTS, 32767, -32768],
    "int": [*INTS, 2**31 - 1, -(2**31), 100_000],
    "bigint": [*INTS, 2**63 - 1, -(2**63), 2**53 + 1, 10**10],
    "decimal(5, 2)": [Decimal(v) for v in ("0.00", "1.50", "-1.50", "999.99", "0.05")],
    "decimal(20, 4)": [
        Decimal(v) for v in ("0.0000", "1.5000", "-7.1250", "9999999999999999.9999")
    ],
    "decimal(38, 0)": [Decimal(v) for v in ("0", "1", "-3", "9" * 38)],
    "double": [0.0, -0.0, 1.5, -2.25, 1e300, 1e-300, 0.1, float("inf"), float("nan")],
    "float": [0.0, 1.5, -2.25, 16777216.0],
    "string": TEXTS,
    "date": DAYS,
    "boolean": [True, False],
    "timestamp": [datetime(2024, 2, 29, 23, 30), datetime(1970, 1, 1)],
    "binary": [b"", b"a", b"\xff"],
}
ROWS = 40


def columns() -> Schema:
    """Two columns of every type."""
    return tuple(Field(f"{name}.{i}", parse_type(name)) for name in VALUES for i in (1, 2))


def rows() -> list[Row]:
    rng = Random(7)
    return [
        tuple(rng.choice([None, *VALUES[f.name.rpartition(".")[0]]]) for f in columns())
        for _ in range(ROWS)
    ]


def calls() -> Iterator[Expression]:
    """Every function with every types that fit, as far as Python computes them."""
    schema = columns()
    first, second = schema[::2], schema[1::2]
    for function in FUNCTIONS.values():
        if function.name in (COMPARABLE, SINGLE, *NESTED):  # which no text names, or too long
            continue
        for arity in range(function.least, min(function.most or 3, 3) + 1):
            sides = [first, second, second][:arity]
            for chosen in product(*sides):
                if arity < 3 or len({f.type for f in chosen}) < 3:
                    yield Call(function.name, tuple(Column(f.name) for f in chosen))
    for field, target in product(first, (INT, BIGINT, DOUBLE, STRING, DATE, BOOLEAN)):
        yield Cast(Column(field.name), target)
    for field, target in product(first, ("decimal(3, 1)", "decimal(30, 5)", "tinyint")):
        yield Cast(Column(field.name), parse_type(target))
    yield from nested()


def nested() -> Iterator[Expression]:
    """Numbers of different types, one in the other; and constants."""
    a, b, c = Column("int.1"), Column("decimal(5, 2).1"), Column("double.1")
    for operator in ("+", "-", "*", "/", "%", "=", "<", "<=>"):
        for left, right in product((a, b, c, literal(2), literal(0.5)), repeat=2):
            yield Call(operator, (left, right))
            yield Call("coalesce", (Call("nullif", (left, right)), right))
    yield Call("like", (Column("string.1"), literal("a%")))
    yield Call("in", (a, literal(1), literal(None), b))
    yield Call("in", (Column("string.1"), literal("a"), literal("B")))
    yield Call("case", (Call(">", (a, b)), a, Call("<", (a, literal(0))), b, c))


def supported() -> dict[str, tuple[Expression, list[Any]]]:
    """What Python computes, with a value or a refusal for every row."""
    schema, given = columns(), rows()
    found = {}
    for each in calls():
        try:
            type_of(each, schema)
            evaluate = compile_exact(each, schema)
        except (QueryError, InexactError):
            continue
        found[f"e{len(found)}"] = each, [_attempt(evaluate, row) for row in given]
    return found


class Refused:
    """Left to Spark."""


def _attempt(evaluate: Any, row: Row) -> Any:
    try:
        return evaluate(row)
    except (InexactError, QueryError):
        return Refused


def same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and (left == right or (left != left and right != right))


@pytest.mark.slow
def test_every_value_is_sparks_own(spark: SparkSession) -> None:
    schema, given, found = columns(), rows(), supported()
    values = [value for _, values in found.values() for value in values]
    assert len(found) > 2000
    assert sum(value is Refused for value in values) < 0.05 * len(values)
    flags = tuple(Field(f"flag.{name}", BOOLEAN) for name in found)
    flagged = [
        (*row, *(values[i] is not Refused for _, values in found.values()))
        for i, row in enumerate(given)
    ]
    frame = CollectedRows(spark, schema + flags, flagged).frame
    # A value that Python refuses may be an error in Spark.
    asked = [
        f"CASE WHEN {back_quote(f'flag.{name}')} THEN {expression(each)} END AS {name}"
        for name, (each, _) in found.items()
    ]
    answers = to_rows(collect_local(frame.selectExpr(*asked)))
    for i, (row, answer) in enumerate(zip(given, answers, strict=True)):
        for (each, values), value in zip(found.values(), answer, strict=True):
            if values[i] is not Refused:
                shown = dict(zip((f.name for f in schema), row, strict=True))
                assert same(values[i], value), f"{each}: {values[i]!r}, not {value!r}, for {shown}"
