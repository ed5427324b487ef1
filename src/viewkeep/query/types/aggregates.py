"""The aggregate functions that views may use, with Spark SQL's type rules.

`AGGREGATES` is the whole list. Where Spark leaves a choice to the order of rows, views choose by
value, so that a group has one answer: `collect_list` and `collect_set` are in ascending order,
`listagg` is ordered by its values after its order columns, `mode` is the least of the most
frequent values, and `max_by` and `min_by` take the greatest or least value among rows that are
equal in the second argument.
"""

from collections.abc import Sequence

from viewkeep.errors import QueryError, did_you_mean
from viewkeep.query.types.data_types import ARRAY, BIGINT, DOUBLE, INTEGRAL, STRING, VOID, Type
from viewkeep.query.types.rules import bounded_decimal, decimal_type, digits, is_decimal
from viewkeep.query.types.signatures import (
    FunctionSignature,
    Rule,
    TypedValue,
    clash,
    of_numbers,
    of_same,
    type_refusal,
)

OF_TWO = ("stddev_samp", "var_samp")
"""Aggregates that are NULL of fewer than two values."""

OF_PAIRS = (
    *("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2"),
    *("regr_slope", "regr_sxx", "regr_sxy", "regr_syy"),
)
"""Aggregates of pairs of numbers, of which none is NULL."""

PERCENTILES = ("percentile_cont", "percentile_disc")
"""Aggregates of a value and of the share of values before it."""

BY_ORDER = ("max_by", "min_by")
"""Aggregates of the value that stands beside the greatest or least one of another column."""

COLLECTIONS = ("collect_list", "collect_set")
"""Aggregates of all values, as an array."""

COMPARISONS = {"count": "=", "min": "<", "max": "<", "collect_list": "<", "collect_set": "<"}
"""The comparisons that aggregates ask of values of types that views carry."""

ORDERED = (*PERCENTILES, "mode", "listagg")
"""Aggregates that WITHIN GROUP gives an order."""


def comparison_of(aggregate: str) -> str:
    """The function by which `type_refusal` tells the types that an aggregate takes: its own name,
    if none that are only carried."""
    return COMPARISONS.get(aggregate, aggregate)


def aggregate_result(function: str, arguments: Sequence[TypedValue], grouped: bool) -> TypedValue:
    """The type of an aggregate; without groups it may be NULL even when no value is.

    >>> from viewkeep.query.types.data_types import DECIMAL
    >>> print(aggregate_result("sum", [TypedValue(DECIMAL(10, 2), False)], grouped=True).type)
    decimal(20, 2)
    """
    aggregate = AGGREGATES.get(function)
    if aggregate is None:
        raise QueryError(
            f"unknown aggregate {function}(){did_you_mean(function, AGGREGATES)}; "
            f"there are {', '.join(AGGREGATES)}"
        )
    if function == "count":
        return TypedValue(BIGINT, nullable=False)
    aggregate.check_count(len(arguments))
    for argument in arguments:
        reason = type_refusal(argument.type, comparison_of(function))
        if reason is not None:
            raise QueryError(f"{function}() cannot take {argument.type}: {reason}")
    by_values = any(each.nullable for each in arguments) or not grouped
    return TypedValue(
        aggregate.rule(arguments),
        {"never": False, "always": True}.get(aggregate.nullable, by_values),
    )


def _sum_type(type_: Type) -> Type:
    if is_decimal(type_):
        precision, scale = digits(type_)
        return bounded_decimal(precision + 10, scale)
    return BIGINT if type_ in INTEGRAL else DOUBLE


def _avg_type(type_: Type) -> Type:
    if is_decimal(type_):
        precision, scale = digits(decimal_type(type_))
        return bounded_decimal(precision + 4, scale + 4)
    return DOUBLE


def _integer_aggregate_rule(name: str) -> Rule:
    """The rule of an aggregate of integers, which has their type."""

    def rule(arguments: Sequence[TypedValue]) -> Type:
        if arguments[0].type not in (*INTEGRAL, VOID):
            raise clash(name, arguments, "the argument must be an integer")
        return arguments[0].type

    return rule


def _percentile_rule(name: str) -> Rule:
    def rule(arguments: Sequence[TypedValue]) -> Type:
        of_numbers(name, lambda _: DOUBLE)(arguments[:1])
        share = arguments[1].value
        if isinstance(share, str | bytes | bool) or share is None or not 0 <= share <= 1:  # type: ignore[operator]
            raise clash(name, arguments, "the share must be a number from 0 to 1")
        return DOUBLE

    return rule


def _text_aggregate_rule(name: str) -> Rule:
    def rule(arguments: Sequence[TypedValue]) -> Type:
        if not all(each.type in (STRING, VOID) for each in arguments):
            raise clash(name, arguments, "the arguments must be text")
        return STRING

    return rule


def _first_argument_type(arguments: Sequence[TypedValue]) -> Type:
    return arguments[0].type


def _double_aggregate(name: str, count: int) -> FunctionSignature:
    return FunctionSignature(name, of_numbers(name, lambda _: DOUBLE), count, count, "always")


def _aggregate_functions() -> list[FunctionSignature]:
    return [
        FunctionSignature("sum", of_numbers("sum", _sum_type), 1, 1),
        FunctionSignature("count", lambda _: BIGINT, 0, None, "never"),
        FunctionSignature("avg", of_numbers("avg", _avg_type), 1, 1),
        *(FunctionSignature(name, of_same(name), 1, 1) for name in ("min", "max")),
        *(_double_aggregate(name, 1) for name in OF_TWO),
        *(
            FunctionSignature(n, of_numbers(n, lambda _: DOUBLE), 1, 1)
            for n in ("stddev_pop", "var_pop")
        ),
        *(
            FunctionSignature(n, _integer_aggregate_rule(n), 1, 1)
            for n in ("bit_and", "bit_or", "bit_xor")
        ),
        FunctionSignature("median", of_numbers("median", lambda _: DOUBLE), 1, 1),
        *(_double_aggregate(name, 1) for name in ("skewness", "kurtosis")),
        *(_double_aggregate(name, 2) for name in OF_PAIRS),
        FunctionSignature("regr_count", of_numbers("regr_count", lambda _: BIGINT), 2, 2, "never"),
        *(FunctionSignature(name, _percentile_rule(name), 2, 2, "always") for name in PERCENTILES),
        FunctionSignature("mode", _first_argument_type, 1, 1),
        *(FunctionSignature(name, _first_argument_type, 2, 2, "always") for name in BY_ORDER),
        *(FunctionSignature(n, lambda a: ARRAY(a[0].type), 1, 1, "never") for n in COLLECTIONS),
        FunctionSignature("listagg", _text_aggregate_rule("listagg"), 2, 2, "always"),
        FunctionSignature("approx_count_distinct", lambda _: BIGINT, 1, 2, "never"),
        FunctionSignature("try_sum", of_numbers("try_sum", _sum_type), 1, 1, "always"),
        FunctionSignature("try_avg", of_numbers("try_avg", _avg_type), 1, 1, "always"),
    ]


AGGREGATES = {function.name: function for function in _aggregate_functions()}
"""Every aggregate function, by the name that `AggregateColumn.function` uses."""
