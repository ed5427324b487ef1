"""What is not on the list of `execute/duckdb/exact.py` is the same in Spark; what is, differs."""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random
from unicodedata import category

import pytest
from pyspark.sql import SparkSession

from tests.execute.both_engines import FAILS, OUTSIDE, Answer, DuckdbEngine, SparkEngine
from tests.execute.edge_values import NESTED, SCHEMA, edge_rows, expressions, family
from viewkeep.execute.duckdb.dialect.python_functions import _FUNCTIONS
from viewkeep.execute.duckdb.exact import CASTS, FUNCTIONS, JAVA_DIGITS, inexact, inexact_part
from viewkeep.query.algebra import Output, Project, Stored
from viewkeep.query.expressions import Call, Cast, Column, Expression, columns_of, literal
from viewkeep.query.types.data_types import DOUBLE, STRING, Field, parse_type
from viewkeep.query.types.functions import FUNCTIONS as EVERY_FUNCTION
from viewkeep.query.types.inference import Schema, type_of
from viewkeep.query.types.internal_functions import COMPARABLE, SINGLE, TRY_CAST

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
ROWS = 150 if LONG else 80
FAMILIES = 25
"""Of how many kinds of arguments of a function, one expression each is tried in the short form."""


def is_listed(expression: Expression, schema: Schema = SCHEMA) -> bool:
    return inexact(Project(Stored("rows", schema), (Output("v", expression),))) is not None


def sample(found: Iterator[Expression]) -> list[Expression]:
    """All expressions, or some of every function, of many types, and all casts."""
    if LONG:
        return list(found)
    rng = Random(3)
    functions: dict[str, dict[str, list[Expression]]] = defaultdict(lambda: defaultdict(list))
    for expression in found:
        is_call = isinstance(expression, Call) and expression.function != TRY_CAST
        name = expression.function if is_call else family(expression)
        functions[name][family(expression)].append(expression)
    chosen: list[Expression] = []
    for families in functions.values():
        picked = rng.sample(sorted(families), min(FAMILIES, len(families)))
        chosen += [rng.choice(families[name]) for name in picked]
    return chosen


def differences(one: Answer, other: Answer) -> list[int]:
    """The rows in which two answers are not the same."""
    if not one.type or not other.type:
        return [0]
    pairs = enumerate(zip(one.values, other.values, strict=True))
    return [i for i, (a, b) in pairs if a != b and OUTSIDE not in (a, b)]


@pytest.fixture(scope="module")
def engines(spark: SparkSession) -> Iterator[tuple[SparkEngine, DuckdbEngine]]:
    rows = edge_rows(ROWS)
    duckdb_engine = DuckdbEngine(SCHEMA, rows)
    yield SparkEngine(spark, SCHEMA, rows), duckdb_engine
    duckdb_engine.close()


@pytest.mark.slow
def test_what_is_not_on_the_list_is_the_same(engines: tuple[SparkEngine, DuckdbEngine]) -> None:
    chosen = [e for e in sample(expressions()) if not is_listed(e)]
    used = {e.function for e in chosen if isinstance(e, Call)}
    assert used | set(FUNCTIONS) | {COMPARABLE, SINGLE, *NESTED} >= set(EVERY_FUNCTION)
    in_spark, in_duckdb = (engine.answers(chosen) for engine in engines)
    rows, found = edge_rows(ROWS), []
    for expression, one, other in zip(chosen, in_spark, in_duckdb, strict=True):
        if one.type not in (other.type, "null"):  # a bare NULL has no type in Spark
            found.append(f"{expression}: {one.type or 'refused'} in Spark, {other.type} in DuckDB")
        for i in differences(one, other)[:1] if one.type else ():
            named = dict(zip((field.name for field in SCHEMA), rows[i], strict=True))
            given = {name: named[name] for name in columns_of(expression)}
            found.append(
                f"{expression}: {one.values[i]} in Spark, {other.values[i]} in DuckDB for {given}"
            )
    assert not found, "\n".join(found)
    values = [value for answer in in_spark for value in answer.values]
    assert len(values) > 50_000
    assert 0.02 < sum(value == FAILS for value in values) / len(values) < 0.3


def _numbers() -> list[tuple[float]]:
    """Numbers beyond 2^53, of some of which Java has seen more digits than they have."""
    rng = Random(5)
    return [(rng.uniform(1.8e16, 1e19),) for _ in range(1000)]


_NUMBER = (Field("x", DOUBLE),)


def _listed_cases() -> list[tuple[str, Expression]]:
    """For every entry of the list, an expression of which some value differs."""
    number = Column("x")
    found: list[tuple[str, Expression]] = [
        ("round", Call("round", (number, literal(-3)))),
        ("double decimal", Cast(number, parse_type("decimal(20, 0)"))),
        ("double string", Cast(number, STRING)),
        ("float decimal", Cast(Cast(number, parse_type("float")), parse_type("decimal(20, 0)"))),
        ("float string", Cast(Cast(number, parse_type("float")), STRING)),
    ]
    return found


@pytest.mark.slow
def test_what_is_on_the_list_differs(
    spark: SparkSession, engines: tuple[SparkEngine, DuckdbEngine]
) -> None:
    differing: set[str] = set()
    listed = [e for e in expressions() if inexact_part(e, SCHEMA) is not None]
    chosen = listed if LONG else Random(1).sample(listed, 60)
    chosen += [e for e in listed if not isinstance(e, Call) or e.function == "ln"]
    in_spark, in_duckdb = (engine.answers(chosen) for engine in engines)
    for expression, one, other in zip(chosen, in_spark, in_duckdb, strict=True):
        if differences(one, other):
            differing.add(_entry(expression, SCHEMA))
    differing |= _differing_numbers(spark)
    java: int = spark._jvm.java.lang.Runtime.version().feature()  # type: ignore[union-attr]
    entries = {**FUNCTIONS, **{" ".join(names): entry for names, entry in CASTS.items()}}
    for name, entry in entries.items():
        if entry.reason != JAVA_DIGITS or java < 19:
            assert name in differing, f"{name} is on the list, and no case of it differs"


def _differing_numbers(spark: SparkSession) -> set[str]:
    rows, cases = _numbers(), _listed_cases()
    tried: Sequence[Expression] = [expression for _, expression in cases]
    assert all(is_listed(expression, _NUMBER) for expression in tried)
    in_duckdb = DuckdbEngine(_NUMBER, rows)
    both = SparkEngine(spark, _NUMBER, rows).answers(tried), in_duckdb.answers(tried)
    answers = zip(cases, *both, strict=True)
    found = {name for (name, _), one, other in answers if differences(one, other)}
    in_duckdb.close()
    return found


def _entry(expression: Expression, schema: Schema) -> str:
    if isinstance(expression, Cast):
        return f"{type_of(expression.argument, schema).type.name} {expression.type.name}"
    assert isinstance(expression, Call)
    return expression.function


@pytest.mark.skipif(not LONG, reason="every letter and mark of Unicode")
def test_every_character_has_the_same_other_case_or_is_refused(spark: SparkSession) -> None:
    schema = (Field("s", STRING),)
    characters = [chr(c) for c in range(0x80, 0x110000) if category(chr(c)) not in _WITHOUT_CASE]
    rows = [(text,) for c in characters for text in (c, f"AΣ{c}b", f"a{c}Σ")]
    known = [row for row in rows if not refused(row[0])]
    assert len(known) > 0.99 * len(rows)
    tried = [Call(function, (Column("s"),)) for function in ("upper", "lower")]
    in_duckdb = DuckdbEngine(schema, known)
    both = SparkEngine(spark, schema, known).answers(tried), in_duckdb.answers(tried)
    for one, other in zip(*both, strict=True):
        assert [known[i] for i in differences(one, other)] == []
    in_duckdb.close()


_WITHOUT_CASE = ("Cn", "Co", "Cs", "So", "Sm", "Nd", "No", "Po")


def refused(text: str) -> bool:
    """Whether Python knows too little of a character, which is said when it is met."""
    try:
        _FUNCTIONS["upper"][0](text)
    except ValueError:
        return True
    return False
