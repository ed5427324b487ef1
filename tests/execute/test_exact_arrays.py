"""Functions of arrays, maps and structs are the same in Spark and in DuckDB, and in Python."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from math import nan
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.execute.both_engines import FAILS, DuckdbEngine, SparkEngine, python_answer
from viewkeep.errors import QueryError
from viewkeep.query.expressions import Call, Column, Expression, literal
from viewkeep.query.types.data_types import Field, parse_type
from viewkeep.query.types.inference import Schema, type_of
from viewkeep.query.types.signatures import OF_NESTED

ELEMENTS: dict[str, list[Any]] = {
    "int": [1, -3, 2**31 - 1, 0],
    "string": ["a", "", "ß", "a,b"],
    "decimal(5, 2)": [Decimal("1.50"), Decimal("0.00"), Decimal("-999.99")],
    "double": [0.0, -0.0, 1.5, nan, -2.25],
    "boolean": [True, False],
    "date": [date(2024, 2, 29), date(1, 1, 1)],
    "timestamp": [datetime(2024, 2, 29, 23, 30), datetime(1970, 1, 1, 0, 0, 0, 1)],
    "binary": [b"", b"\xff", b"a"],
    "struct<x:int,y:string>": [(1, "a"), (None, "a"), (1, None), (2, "")],
    "array<int>": [(1, 2), (), (1, None), (1,)],
}
"""Values of elements, by type; every array may also have NULLs."""

SCHEMA: Schema = (
    *(Field(f"{name}.{i}", parse_type(f"array<{name}>")) for name in ELEMENTS for i in (1, 2)),
    *(Field(f"{name}.e", parse_type(name)) for name in ELEMENTS),
    *(Field(name, parse_type(name)) for name in ("map<string,int>", "map<int,timestamp>")),
    *(Field(name, parse_type("int")) for name in ("place", "length")),
)
_MAPS: dict[str, list[Any]] = {
    "map<string,int>": [(), (("a", 1),), (("", None), ("ß", 2)), (("b", 5), ("a", 7))],
    "map<int,timestamp>": [(), ((1, ELEMENTS["timestamp"][0]),), ((0, None), (-3, datetime.max))],
}
_PLACES = [0, 1, 2, 3, -1, -2, 5, -5, 2**31 - 1, -(2**31)]


def _rows(count: int) -> list[tuple[Any, ...]]:
    rng = Random(11)
    return [tuple(_value(field, rng) for field in SCHEMA) for _ in range(count)]


def _value(field: Field, rng: Random) -> Any:
    if rng.random() < 0.12:
        return None
    if field.name in _MAPS:
        return rng.choice(_MAPS[field.name])
    if field.name in ("place", "length"):
        return rng.choice(_PLACES if rng.random() < 0.6 else _PLACES[1:3])
    name, _, kind = field.name.rpartition(".")
    elements = [None, *ELEMENTS[name]]
    if kind == "e":
        return rng.choice(elements[1:])
    return tuple(rng.choice(elements) for _ in range(rng.randrange(6)))


def expressions() -> Iterator[Expression]:
    """Calls of every function that the rules of types allow."""
    place, length = Column("place"), Column("length")
    for name, function in product(ELEMENTS, sorted(OF_NESTED)):
        a, b, e = Column(f"{name}.1"), Column(f"{name}.2"), Column(f"{name}.e")
        few = Call("%", (length, literal(4)))
        lists = [(a,), (a, b), (a, b, a), (a, e), (a, place), (e, few), (a, place, length)]
        lists += [(a, literal(True)), (a, literal(False)), (e, literal(2)), (literal(2), e)]
        lists += [(a, literal("-")), (a, literal("{}"), literal("?")), (a, literal(","), e)]
        lists += [(literal("p"), a, literal("Q"), e), (Call("array", (a, b)),), (e, e)]
        lists += [(Call("array", (a, literal(None), b)),)] if name != "array<int>" else []
        if function == "array_repeat":  # others would be as long as the largest integer
            lists = [(e, few), (e, literal(2)), (a, literal(-1))]
        yield from (Call(function, arguments) for arguments in lists)
    for name, function in product(_MAPS, sorted(OF_NESTED - {"array_repeat"})):
        key = "string.e" if "string" in name else "int.e"
        yield from (Call(function, a) for a in ((Column(name),), (Column(name), Column(key))))
    distinct = Call("array_distinct", (Call("concat", (Column("int.1"), Column("int.2"))),))
    yield Call("sort_array", (Call("array_union", (distinct, Column("int.2"))),))
    yield Call("array_contains", (Column("int.1"), Call("array_max", (Column("int.2"),))))
    yield Call("size", (Call("array_except", (Column("string.1"), Column("string.2"))),))


def calls() -> list[Call]:
    """Those with a type."""
    typed = []
    for expression in expressions():
        try:
            type_of(expression, SCHEMA)
        except QueryError:
            continue
        typed.append(expression)
    return [each for each in typed if isinstance(each, Call)]


@pytest.mark.slow
def test_functions_of_arrays_are_the_same(spark: SparkSession) -> None:
    rows, chosen = _rows(60), calls()
    assert {call.function for call in chosen} == OF_NESTED
    in_duckdb = DuckdbEngine(SCHEMA, rows)
    both = SparkEngine(spark, SCHEMA, rows).answers(chosen), in_duckdb.answers(chosen)
    in_duckdb.close()
    problems = []
    for call, one, other in zip(chosen, *both, strict=True):
        if one.type != other.type:
            problems.append(f"{call}: {one.type or 'refused'} in Spark, {other.type} in DuckDB")
        pairs = zip(rows, one.values, other.values, strict=True) if one.type else ()
        for row, a, b in [each for each in pairs if each[1] != each[2]][:1]:
            problems.append(f"{call}: {a} in Spark, {b} in DuckDB for {row}")
    assert not problems, "\n".join(problems)
    values = [value for answer in both[0] for value in answer.values]
    assert 0.01 < sum(value == FAILS for value in values) / len(values) < 0.3


def test_functions_of_arrays_are_the_same_in_python() -> None:
    rows, chosen = _rows(40), calls()
    in_duckdb = DuckdbEngine(SCHEMA, rows)
    answers = in_duckdb.answers(chosen)
    in_duckdb.close()
    problems = []
    for call, answer in zip(chosen, answers, strict=True):
        pairs = zip(rows, python_answer(call, SCHEMA, rows).values, answer.values, strict=True)
        for row, a, b in [each for each in pairs if each[1] != each[2]][:1]:
            problems.append(f"{call}: {a} in Python, {b} in DuckDB for {row}")
    assert not problems, "\n".join(problems)
