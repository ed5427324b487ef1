"""Aggregates as Spark computes them in ANSI mode, in DuckDB's text.

Sums of integers and decimals fail if they do not fit into the type of the sum. Sums of doubles
depend on the order of the rows, in Spark too.
"""

from viewkeep.execute.duckdb.dialect.arithmetic import quotient
from viewkeep.execute.duckdb.dialect.casts import cast
from viewkeep.execute.duckdb.dialect.expressions import expression_text
from viewkeep.execute.duckdb.dialect.text import Text, type_name
from viewkeep.query.algebra import AggregateColumn
from viewkeep.query.types.data_types import BIGINT, DECIMAL, DOUBLE, Type
from viewkeep.query.types.functions import OF_TWO, Typed, aggregate_result
from viewkeep.query.types.inference import Schema
from viewkeep.query.types.rules import is_decimal

_COUNT = DECIMAL(20, 0)


def aggregate_text(aggregate: AggregateColumn, schema: Schema, over: str = "") -> str:
    """The text of an aggregate over rows of a schema, or over those of a window.

    >>> from viewkeep.query.expressions import Column
    >>> from viewkeep.query.types.data_types import INT, Field
    >>> print(aggregate_text(AggregateColumn("s", "sum", Column("a")), (Field("a", INT),)))
    CAST(sum("a") AS BIGINT)
    """
    if aggregate.argument is None:
        return f"count(*){over}"
    argument = expression_text(aggregate.argument, schema)
    match aggregate.function:
        case "sum":
            return _sum(argument, over).sql
        case "avg":
            return _average(argument, over)
        case "stddev_samp" | "stddev_pop" | "var_samp" | "var_pop":
            return _spread(aggregate.function, argument, over)
        case "median":
            return f"quantile_cont({cast(argument, DOUBLE).sql}, 0.5){over}"
    return f"{aggregate.function}({argument.sql}){over}"


def _result(function: str, argument: Text) -> Type:
    return aggregate_result(function, Typed(argument.type, True), grouped=False).type


def _sum(argument: Text, over: str) -> Text:
    type_ = _result("sum", argument)
    if type_ == DOUBLE:
        argument = cast(argument, DOUBLE)
    return Text(f"CAST(sum({argument.sql}){over} AS {type_name(type_)})", type_)


def _average(argument: Text, over: str) -> str:
    """Spark divides the sum by the count: a decimal one exactly, any other as doubles."""
    count = Text(f"count({argument.sql}){over}", BIGINT, nullable=False)
    if is_decimal(argument.type):
        return quotient(_sum(argument, over), cast(count, _COUNT), _result("avg", argument)).sql
    return f"(sum({cast(argument, DOUBLE).sql}){over} / {count.sql})"


def _spread(function: str, argument: Text, over: str) -> str:
    """A variance or its root; of values that are not finite it is NaN, where DuckDB fails."""
    value = cast(argument, DOUBLE).sql
    finite = f"{function}(CASE WHEN isfinite({value}) THEN {value} END){over}"
    least = 2 if function in OF_TWO else 1
    odd = f"count_if(NOT isfinite({value})){over} > 0 AND count({value}){over} >= {least}"
    return f"(CASE WHEN {odd} THEN CAST('NaN' AS DOUBLE) ELSE {finite} END)"
