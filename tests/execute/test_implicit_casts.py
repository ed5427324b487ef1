"""Arguments whose types do not fit: the casts that Spark adds, and no others."""

import os
from collections.abc import Iterator
from itertools import product
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.execute.both_engines import FAILS, OUTSIDE, DuckdbEngine, SparkEngine
from tests.execute.edge_values import SCHEMA, edge_rows
from viewkeep.errors import ViewkeepError
from viewkeep.execute.duckdb.exact import inexact
from viewkeep.query.algebra import Output, Project, Stored
from viewkeep.query.expressions import Expression
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import Field
from viewkeep.query.types.inference import type_of
from viewkeep.sql.parse import parse_view

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
CHOSEN = None if LONG else 90
REFUSED = None if LONG else 8
"""Each that Spark refuses costs it several analyses."""
ROWS = 80

_KINDS = (
    "s string, t tinyint, n int, g bigint, f float, d double, a date, z timestamp, "
    "w timestamp_ntz, b boolean, y binary"
)
KINDS = {"m": "decimal(5, 2)"} | dict(each.split() for each in _KINDS.split(", "))
TABLE = Table(dict(KINDS))
FIELDS: tuple[Field, ...] = TABLE.columns

PAIRS = (
    "{} + {};{} - {};{} * {};{} / {};{} % {};{} div {};{} = {};{} < {};{} <=> {};{} and {};"
    "{} || {};coalesce({}, {});if(b, {}, {});{} in ({});nullif({}, {});greatest({}, {});{} like {};"
    "{} in ('1', 2, {});case {} when {} then 1 end;startswith({}, {});replace({}, {}, 'x')"
)
SINGLES = (
    "-{};abs({});round({});floor({});ceil({});sqrt({});sign({});upper({});lower({});trim({});"
    "length({});ascii({});md5({});sha1({});base64({});octet_length({});bit_length({});"
    "reverse({});year({});month({});hour({});last_day({});dayname({});dayofweek({});"
    "substring({}, 1, 2);left({}, 1);replace({}, '1', '2');locate('1', {});lpad({}, 5, '0');"
    "repeat({}, 2);translate({}, '1', '2');split_part({}, '1', 1);substring_index({}, '1', 1);"
    "sha2({}, 256);rlike({}, '1');regexp_extract({}, '1', 0);regexp_replace({}, '1', '2');"
    "date_add({}, 1);date_add(a, {});date_sub(a, {});datediff({}, a);datediff(a, {});"
    "add_months({}, 1);add_months(a, {});date_trunc('hour', {});make_date({}, 1, 1);"
    "unix_seconds({});unix_millis({});substring('abcdef', {}, 2);left('abcdef', {});{} is true;"
    "{} > '1';'1' <= {};{} = 1;{} + 1;{} * 1.5;coalesce({}, 0);coalesce({}, '1');nvl({}, '7');"
    "case when b then {} else '7' end;case when b then {} else 1 end;concat({}, 'x', 1)"
)
GAPS = {"-": ("date", "timestamp", "timestamp_ntz"), "date_trunc": ("string",)}
"""What Spark takes and the front end leaves to it: differences of moments, which are intervals, and
moments in texts."""


def texts() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Calls, each with the columns in it."""
    for form in PAIRS.split(";"):
        for first, second in product(KINDS, repeat=2):
            yield form.format(first, second), (first, second)
    for form in SINGLES.split(";"):
        for column in KINDS:
            yield form.format(column), (column,)


def translated(text: str) -> Expression | None:
    """The expression of a call; None if it is refused."""
    try:
        node = parse_view(f"SELECT {text} AS v FROM kinds", {"kinds": TABLE})
    except ViewkeepError:
        return None
    assert isinstance(node, Project)
    [output] = node.outputs
    return output.expression


def is_gap(text: str, columns: tuple[str, ...]) -> bool:
    """Whether a call is one that only Spark takes."""
    return any(
        text.startswith(f"{name}(") or f" {name} " in text
        for name, kinds in GAPS.items()
        if any(KINDS[column] in kinds for column in columns)
    )


def chosen_texts() -> list[tuple[str, tuple[str, ...], Expression | None]]:
    """Calls that need no cast are tried elsewhere: those of here have a column of texts, or are of
    a function of texts."""
    every = [(text, columns, translated(text)) for text, columns in texts()]
    taken = [each for each in every if each[2] is not None]
    refused = [each for each in every if each[2] is None]
    if LONG:
        return [*taken, *refused]
    rng = Random(11)
    with_casts = [each for each in taken if "CAST" in str(each[2]).upper()]
    return [*rng.sample(with_casts, CHOSEN or 0), *rng.sample(refused, REFUSED or 0)]


@pytest.mark.slow
def test_implicit_casts_are_those_of_spark(spark: SparkSession) -> None:
    rows = edge_rows(ROWS)
    places = [next(i for i, f in enumerate(SCHEMA) if f.type == kind.type) for kind in FIELDS]
    fields = tuple(Field(f.name.split(".")[-1], f.type) for f in FIELDS)
    own_rows = [tuple(row[place] for place in places) for row in rows]
    chosen = chosen_texts()
    in_spark = SparkEngine(spark, fields, own_rows).answers_to_texts([each[0] for each in chosen])
    schema = tuple(Field(f"kinds.{f.name}", f.type) for f in fields)
    in_duckdb = DuckdbEngine(schema, own_rows)
    found, compared = [], 0
    for (text, columns, expression), answer in zip(chosen, in_spark, strict=True):
        if expression is None:
            if answer.type and not is_gap(text, columns):
                found.append(f"{text}: refused, {answer.type} in Spark")
            continue
        if not answer.type:
            found.append(f"{text}: {type_of(expression, schema).type}, refused in Spark")
            continue
        if inexact(Project(Stored("kinds", schema), (Output("v", expression),))) is not None:
            continue
        [own] = in_duckdb.answers([expression])
        if own.type != answer.type:
            found.append(f"{text}: {own.type}, {answer.type} in Spark")
        for row, one, other in zip(own_rows, own.values, answer.values, strict=True):
            compared += FAILS not in (one, other)
            if one != other and OUTSIDE not in (one, other):
                found.append(f"{text}: {one}, {other} in Spark, for {row}")
                break
    in_duckdb.close()
    assert not found, "\n".join(found)
    assert compared > 20 * len(chosen)
