"""Queries in DuckDB's text: what a node means to Spark in ANSI mode.

What may fail must not fail for rows that the query does not compute it for. DuckDB moves conditions
below joins and projections, whether they may fail or not; but never one that reads both sides of a
join below it, and none through a projection of something volatile.
"""

from collections.abc import Mapping, Sequence

from viewkeep.execute.duckdb.dialect.aggregates import aggregate_text
from viewkeep.execute.duckdb.dialect.expressions import expression_text
from viewkeep.execute.duckdb.dialect.key_text import ordered_key_text, without_negative_zero
from viewkeep.execute.duckdb.dialect.text import Text, quote_name, type_name
from viewkeep.query.algebra import AggregateColumn, AntiJoin, Join, Node, SemiJoin, Unnest
from viewkeep.query.expressions import Expression, columns_of
from viewkeep.query.types.data_types import DATE, INT, TIMESTAMP, TIMESTAMP_NTZ, Type
from viewkeep.query.types.inference import Schema
from viewkeep.query.types.signatures import TypedValue
from viewkeep.query.windows import WindowColumn, window_result
from viewkeep.sql.text import TextDialect


class DuckdbDialect(TextDialect):
    """How DuckDB writes queries."""

    joins: Mapping[type[Node], str] = {Join: "JOIN", SemiJoin: "SEMI JOIN", AntiJoin: "ANTI JOIN"}

    def quote(self, name: str) -> str:
        """A name."""
        return quote_name(name)

    def leaf_column(self, name: str, type_: Type) -> str:
        """A column; moments are read in UTC."""
        return f"CAST({quote_name(name)} AS TIMESTAMP)" if type_ == TIMESTAMP else quote_name(name)

    def group_key(self, name: str, type_: Type) -> str:
        """A key, in which there is no -0.0."""
        return without_negative_zero(quote_name(name), type_)

    def order_key(self, name: str, type_: Type) -> str:
        """A key of an order, in which NULLs inside of values come first."""
        return ordered_key_text(without_negative_zero(quote_name(name), type_), type_)

    def value(self, node: Expression, schema: Schema) -> str:
        """A scalar expression; one that may fail is volatile."""
        text = expression_text(node, schema)
        return _volatile_sql(text.sql) if text.fails else text.sql

    def aggregate(self, aggregate: AggregateColumn, schema: Schema, over: str = "") -> str:
        """An aggregate over rows of a schema, or over those of a window."""
        return aggregate_text(aggregate, schema, over)

    def window_function(self, column: WindowColumn, schema: Schema, over: str) -> str:
        """A function that only windows have, of the type that Spark gives it."""
        arguments = [expression_text(each, schema) for each in column.arguments]
        nulls = " IGNORE NULLS" if column.ignore_nulls else ""
        text = f"{column.function}({', '.join(each.sql for each in arguments)}{nulls}){over}"
        types = [TypedValue(each.type, each.nullable, each.value) for each in arguments]
        result = window_result(column.function, types).type
        return f"CAST({text} AS {type_name(result)})" if result == INT else text

    def unnest(self, node: Unnest) -> str:
        """The columns of the elements of an array or map; moments are read in UTC."""
        column, kinds = quote_name(node.column), node.schema[-len(node.elements) + 1 :]
        lists = [column] if len(kinds) == 1 else [f"map_keys({column})", f"map_values({column})"]
        numbers = f"range(len({lists[0]}))"
        texts = [f"CAST({_unnest_sql(numbers, lists[0], node.outer)} AS INTEGER)"]
        for text, field in zip(lists, kinds, strict=True):
            value = _unnest_sql(text, lists[0], node.outer)
            texts.append(f"CAST({value} AS TIMESTAMP)" if field.type == TIMESTAMP else value)
        names = map(quote_name, node.elements)
        return ", ".join(f"{text} AS {name}" for text, name in zip(texts, names, strict=True))

    def range_offset(self, distance: int, type_: Type) -> str:
        """How far a range reaches over an order column of a type."""
        if type_ == DATE:
            return f"INTERVAL {distance} DAY"
        if type_ in (TIMESTAMP, TIMESTAMP_NTZ):
            return f"INTERVAL {distance} MICROSECOND"
        return f"CAST({distance} AS {type_name(type_)})"

    def condition(self, parts: Sequence[Expression], schema: Schema) -> str:
        """A conjunction; what may fail is computed where the rest is true."""
        return _guarded_sql([expression_text(part, schema) for part in parts], None)

    def join_condition(self, parts: Sequence[Expression], left: Schema, right: Schema) -> str:
        """The conjunction by which rows are paired; what may fail reads both sides."""
        texts = [expression_text(part, left + right) for part in parts]
        sides = [frozenset(field.name for field in side) for side in (left, right)]
        pairs = [
            not text.fails and all(columns_of(part) & side for side in sides)
            for part, text in zip(parts, texts, strict=True)
        ]
        either = " OR ".join(f"{quote_name(side[0].name)} IS NULL" for side in (left, right))
        return _guarded_sql(texts, None if any(pairs) else f"({either}) IN (TRUE, FALSE)")

    def separate_condition(self, parts: Sequence[Expression], schema: Schema) -> str | None:
        """A conjunction of which a part may fail, as a volatile column."""
        texts = [expression_text(part, schema) for part in parts]
        return (
            _volatile_sql(_guarded_sql(texts, None)) if any(text.fails for text in texts) else None
        )


def _unnest_sql(values: str, like: str, outer: bool) -> str:
    some = f"CASE WHEN len({like}) > 0 THEN {values} ELSE [NULL] END"
    return f"unnest({some if outer else values})"


def _guarded_sql(texts: Sequence[Text], guard: str | None) -> str:
    safe = [text.sql for text in texts if not text.fails]
    failing = [text.sql for text in texts if text.fails]
    if not failing:
        return " AND ".join(safe)
    tests = [*safe, *([guard] if guard else [])]
    last = failing.pop()
    for text in reversed(failing):
        last = f"CASE WHEN {text} THEN {last} ELSE FALSE END"
    if tests:
        last = f"CASE WHEN {' AND '.join(tests)} THEN {last} ELSE FALSE END"
    return " AND ".join([*safe, last])


def _volatile_sql(sql: str) -> str:
    return f"CASE WHEN current_query_id() IS NOT NULL THEN {sql} END"


DUCKDB = DuckdbDialect()
