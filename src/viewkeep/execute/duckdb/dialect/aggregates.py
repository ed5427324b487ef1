"""Aggregates as Spark computes them in ANSI mode, in DuckDB's text.

Sums of integers and decimals fail if they do not fit into the type of the sum. Sums of doubles
depend on the order of the rows, in Spark too.
"""

from collections.abc import Sequence

from viewkeep.execute.duckdb.dialect.arithmetic import quotient
from viewkeep.execute.duckdb.dialect.casts import cast
from viewkeep.execute.duckdb.dialect.expressions import expression_text
from viewkeep.execute.duckdb.dialect.key_text import spark_order_text
from viewkeep.execute.duckdb.dialect.text import Text, type_name
from viewkeep.query.algebra import AggregateColumn, SortKey
from viewkeep.query.expressions import Literal
from viewkeep.query.types.aggregates import OF_PAIRS, OF_TWO, aggregate_result
from viewkeep.query.types.data_types import BIGINT, DECIMAL, DOUBLE, Type
from viewkeep.query.types.inference import Schema
from viewkeep.query.types.rules import is_decimal
from viewkeep.query.types.signatures import TypedValue

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
    if aggregate.function in (*OF_PAIRS, "regr_count"):
        other = expression_text(aggregate.others[0], schema)
        pair = f"{cast(argument, DOUBLE).sql}, {cast(other, DOUBLE).sql}"
        return _correlation_sql(aggregate.function, pair, over)
    match aggregate.function:
        case "sum":
            return _sum_sql(argument, over).sql
        case "avg":
            return _average_sql(argument, over)
        case "stddev_samp" | "stddev_pop" | "var_samp" | "var_pop":
            return _variance_sql(aggregate.function, argument, over)
        case "median":
            return f"quantile_cont({cast(argument, DOUBLE).sql}, 0.5){over}"
        case "percentile_cont" | "percentile_disc":
            return _percentile_sql(aggregate, argument)
        case "collect_list" | "collect_set":
            return _collect_list_sql(aggregate.function, argument, over)
        case "max" | "min" if argument.type.is_nested:
            key = spark_order_text(argument.sql, argument.type)
            return f"arg_{aggregate.function}({argument.sql}, {key}){over}"
        case "max_by" | "min_by":
            return _min_by_sql(
                aggregate.function, argument, _other_aggregate_sql(aggregate, schema), over
            )
        case "mode":
            descending = " DESC" * bool(aggregate.order)
            return f"mode({argument.sql} ORDER BY {argument.sql}{descending})"
        case "listagg":
            order = ", ".join((*_aggregate_order_sql(aggregate.order, schema), argument.sql))
            separator = _other_aggregate_sql(aggregate, schema).sql
            return f"string_agg({argument.sql}, {separator} ORDER BY {order})"
    return f"{aggregate.function}({argument.sql}){over}"


def _other_aggregate_sql(aggregate: AggregateColumn, schema: Schema) -> Text:
    return expression_text(aggregate.others[0], schema)


def _aggregate_order_sql(keys: Sequence[SortKey], schema: Schema) -> list[str]:
    return [
        f"{expression_text(key.expression, schema).sql} {'DESC' if key.descending else 'ASC'} "
        f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for key in keys
    ]


def _percentile_sql(aggregate: AggregateColumn, argument: Text) -> str:
    """A share of the values; counted from the other end where they descend."""
    [share] = aggregate.others
    assert isinstance(share, Literal)
    place = float(share.value)  # type: ignore[arg-type]  # a number, by its type rule
    place = 1 - place if aggregate.order else place
    function = "quantile_cont" if aggregate.function == "percentile_cont" else "quantile_disc"
    return f"CAST({function}({cast(argument, DOUBLE).sql}, {place!r}) AS DOUBLE)"


def _collect_list_sql(function: str, argument: Text, over: str) -> str:
    """All values in ascending order; no values are an empty list."""
    word = "DISTINCT " if function == "collect_set" else ""
    if argument.type.is_nested:  # which DuckDB orders in its own way
        pair = f"row({spark_order_text(argument.sql, argument.type)}, {argument.sql})"
        pairs = f"list({word}{pair}) FILTER ({argument.sql} IS NOT NULL){over}"
        return f"coalesce(list_transform(list_sort({pairs}), lambda e: e[2]), [])"
    values = f"list({word}{argument.sql}) FILTER ({argument.sql} IS NOT NULL){over}"
    return f"coalesce(list_sort({values}), [])"


def _min_by_sql(function: str, value: Text, key: Text, over: str) -> str:
    """Among rows with the same key, the greatest or least value; NULL is less than others."""
    ranked = f"row({key.sql}, {value.sql} IS NOT NULL, {value.sql})"
    order_key = f"CASE WHEN {key.sql} IS NOT NULL THEN {ranked} END"
    return f"arg_{function[:3]}_null({value.sql}, {order_key}){over}"


def _correlation_sql(function: str, pair: str, over: str) -> str:
    """Of a constant column there is no correlation and no slope: NULL, not NaN as in DuckDB."""
    slope = f"CASE WHEN regr_sxx({pair}){over} <> 0 THEN regr_slope({pair}){over} END"
    match function:
        case "corr":
            spread = f"regr_sxx({pair}){over} * regr_syy({pair}){over}"
            return f"(CASE WHEN {spread} <> 0 THEN corr({pair}){over} END)"
        case "regr_slope":
            return f"({slope})"
        case "regr_intercept":
            return f"(regr_avgy({pair}){over} - ({slope}) * regr_avgx({pair}){over})"
        case "regr_count":
            return f"CAST(regr_count({pair}){over} AS BIGINT)"
    return f"{function}({pair}){over}"


def _aggregate_type(function: str, argument: Text) -> Type:
    return aggregate_result(function, [TypedValue(argument.type, True)], grouped=False).type


def _sum_sql(argument: Text, over: str) -> Text:
    type_ = _aggregate_type("sum", argument)
    if type_ == DOUBLE:
        argument = cast(argument, DOUBLE)
    return Text(f"CAST(sum({argument.sql}){over} AS {type_name(type_)})", type_)


def _average_sql(argument: Text, over: str) -> str:
    """Spark divides the sum by the count: a decimal one exactly, any other as doubles."""
    count = Text(f"count({argument.sql}){over}", BIGINT, nullable=False)
    if is_decimal(argument.type):
        return quotient(
            _sum_sql(argument, over), cast(count, _COUNT), _aggregate_type("avg", argument)
        ).sql
    return f"(sum({cast(argument, DOUBLE).sql}){over} / {count.sql})"


def _variance_sql(function: str, argument: Text, over: str) -> str:
    """A variance or its root; of values that are not finite it is NaN, where DuckDB fails."""
    value = cast(argument, DOUBLE).sql
    finite = f"{function}(CASE WHEN isfinite({value}) THEN {value} END){over}"
    least = 2 if function in OF_TWO else 1
    odd = f"count_if(NOT isfinite({value})){over} > 0 AND count({value}){over} >= {least}"
    return f"(CASE WHEN {odd} THEN CAST('NaN' AS DOUBLE) ELSE {finite} END)"
