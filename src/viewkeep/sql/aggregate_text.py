"""Aggregates in Spark's text, each with one answer whatever the order of the rows is."""

from collections.abc import Callable, Sequence

from viewkeep.query.algebra import AggregateColumn, SortKey
from viewkeep.query.expressions import Expression

Text = Callable[[Expression], str]
"""The text of a scalar expression."""


def spark_aggregate(aggregate: AggregateColumn, text: Text, over: str = "") -> str:
    """The text of an aggregate over a group, or over the rows of a window.

    >>> from viewkeep.query.expressions import Column
    >>> spark_aggregate(AggregateColumn("all", "collect_list", Column("a")), str)
    'SORT_ARRAY(COLLECT_LIST(a))'
    """
    values, order = (
        [text(each) for each in aggregate.arguments],
        _aggregate_order_text(aggregate.order, text),
    )
    match aggregate.function, values:
        case ("max_by" | "min_by") as function, [value, key]:
            ranked = f"STRUCT({key}, {value} IS NOT NULL, {value})"
            chosen = f"CASE WHEN {key} IS NOT NULL THEN {ranked} END"
            return f"{function.upper()}({value}, {chosen}){over}"
        case ("collect_list" | "collect_set") as function, [value]:
            return f"SORT_ARRAY({function.upper()}({value}){over})"
        case "mode", [value]:
            return f"MODE() WITHIN GROUP (ORDER BY {order or value}){over}"
        case ("percentile_cont" | "percentile_disc") as function, [value, share]:
            return f"{function.upper()}({share}) WITHIN GROUP (ORDER BY {order or value}){over}"
        case "listagg", [value, separator]:
            by = f"{order}, {value}" if order else value
            return f"LISTAGG({value}, {separator}) WITHIN GROUP (ORDER BY {by}){over}"
    return f"{aggregate.function.upper()}({', '.join(values) or '*'}){over}"


def _aggregate_order_text(keys: Sequence[SortKey], text: Text) -> str:
    return ", ".join(
        f"{text(key.expression)}{' DESC' if key.descending else ''}"
        f" NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for key in keys
    )
