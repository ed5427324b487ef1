"""The text of OVER: partitions, order and frame, as Spark and DuckDB both read them."""

from collections.abc import Callable

from viewkeep.query.algebra import Window
from viewkeep.query.types.data_types import BIGINT, Type
from viewkeep.query.types.inference import find_field
from viewkeep.query.windows import (
    OFFSET,
    RANGE,
    RANKING,
    ROWS,
    Order,
    WindowColumn,
)

KeyText = Callable[[str, Type], str]
"""A column by which rows are compared."""

OffsetText = Callable[[int, Type], str]
"""How far a range reaches, in units of the order column."""


def over_text(
    node: Window, column: WindowColumn, key: KeyText, order_key: KeyText, offset: OffsetText
) -> str:
    """OVER and what stands in its brackets, for one column of a window."""
    schema = node.child.schema
    partition = [key(name, find_field(name, schema).type) for name in node.partition_by]
    order = order_text(node, order_key, column.is_by_place)
    if not order and (column.function in RANKING or column.function in OFFSET):
        order = ["NULL"]  # any order will do, but Spark asks for one
    parts = [f"PARTITION BY {', '.join(partition)}"] if partition else []
    parts += [f"ORDER BY {', '.join(order)}"] if order else []
    frame = _frame_text(node, column, offset)
    return f" OVER ({' '.join([*parts, frame] if frame else parts)})"


def order_text(node: Window, key: KeyText, with_ties: bool = True) -> list[str]:
    """The columns of ORDER BY; with ties, all that decide which row comes first."""
    orders = node.whole_order if with_ties else node.order_by
    schema = node.child.schema
    return [
        f"{key(each.column, find_field(each.column, schema).type)} {_order_direction(each)}"
        for each in orders
    ]


def _order_direction(order: Order) -> str:
    nulls = "FIRST" if order.nulls_first else "LAST"
    return f"{'DESC' if order.descending else 'ASC'} NULLS {nulls}"


def _frame_text(node: Window, column: WindowColumn, offset: OffsetText) -> str:
    frame = column.frame
    if frame is None or (frame.is_whole and frame.unit == RANGE and not node.order_by):
        return ""

    kind = find_field(node.order_by[0].column, node.schema).type if node.order_by else BIGINT

    def bound(distance: int | None, unbounded: str) -> str:
        if distance is None:
            return f"UNBOUNDED {unbounded}"
        if distance == 0:
            return "CURRENT ROW"
        size = str(abs(distance)) if frame.unit == ROWS else offset(abs(distance), kind)
        return f"{size} {'PRECEDING' if distance < 0 else 'FOLLOWING'}"

    start, end = bound(frame.start, "PRECEDING"), bound(frame.end, "FOLLOWING")
    return f"{frame.unit.upper()} BETWEEN {start} AND {end}"
