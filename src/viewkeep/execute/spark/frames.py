"""Algebra as DataFrames, with what a script knows that Spark does not: which inputs are small.

The text of whole queries (`sql/text.py`) could not say so. Expressions are that text. No
temporary views are made, so runs at the same time in one session do not meet.
"""

from collections.abc import Callable, Sequence

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.execute.spark.driver.collect import Relation, distinct_frame
from viewkeep.execute.spark.driver.key_filter import Keys, is_listable, meets, misses
from viewkeep.execute.spark.versions import union
from viewkeep.query.algebra import (
    AggregateColumn,
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Leaf,
    Node,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from viewkeep.query.evaluate.rows import Pair, equal_columns
from viewkeep.query.expressions import TRUE, Column, back_quote, conjuncts
from viewkeep.query.traversal import walk
from viewkeep.query.types.inference import find_field
from viewkeep.query.windows import Order
from viewkeep.sql.expression_text import expression
from viewkeep.sql.text import SPARK, values_text


class FrameBuilder:
    """Makes DataFrames of queries; a shared subtree is built once."""

    def __init__(self, spark: SparkSession, relation: Callable[[Leaf], Relation]) -> None:
        self._spark, self._relation = spark, relation
        self._built: dict[Node, DataFrame] = {}

    def frame(self, node: Node) -> DataFrame:
        """The rows of a query, with the node's column names."""
        if node not in self._built:
            self._built[node] = self._node_frame(node)
        return self._built[node]

    def is_small(self, node: Node) -> bool:
        """Whether a query reads nothing but collected rows."""
        leaves = [each for each in walk(node) if isinstance(each, Leaf)]
        return all(self._collected_table(leaf) is not None for leaf in leaves)

    def _collected_table(self, leaf: Leaf) -> pa.Table | None:
        return None if isinstance(leaf, Scan) else self._relation(leaf).table

    def _node_frame(self, node: Node) -> DataFrame:
        match node:
            case Scan():
                columns = map(_named_expression, map(back_quote, node.table.names), node.names)
                return self._relation(node).frame.selectExpr(*columns)
            case Stored():
                return self._relation(node).frame.selectExpr(*map(back_quote, node.names))
            case Values():
                return self._spark.sql(f"SELECT * FROM {values_text(node)}")
            case Select():
                return self.frame(node.child).where(expression(node.condition))
            case Project():
                outputs = [
                    _named_expression(expression(o.expression), o.name) for o in node.outputs
                ]
                return self.frame(node.child).selectExpr(*outputs)
            case GroupBy():
                return self._group_frame(node)
            case Distinct():
                return distinct_frame(self.frame(node.child))
            case Window():
                computed = [
                    _named_expression(SPARK.window(node, each), each.name) for each in node.columns
                ]
                names = map(back_quote, node.child.names)
                rows = self._window_rows_frame(node).selectExpr(*names, *computed)
                if node.limit is None or not node.partition_by:
                    return rows
                return rows.where(f"{back_quote(node.columns[0].name)} <= {node.limit}")
            case Unnest():
                names = map(back_quote, node.child.names)
                return self.frame(node.child).selectExpr(*names, SPARK.unnest(node))
            case UnionAll():
                return union(map(self.frame, node.inputs))
            case Join():
                return self._join_frame(node)
            case SemiJoin() | AntiJoin():
                return self._semijoin_frame(node)

    def _window_rows_frame(self, node: Window) -> DataFrame:
        rows = self.frame(node.child)
        if node.limit is None or node.partition_by:
            return rows
        order = [_sort_column(each) for each in node.whole_order]
        return (rows.orderBy(*order) if order else rows).limit(node.limit)

    def _group_frame(self, node: GroupBy) -> DataFrame:
        rows = self.frame(node.child)
        keys = [F.col(back_quote(key)) for key in node.keys]
        if not node.aggregates:
            return rows.select(*keys).distinct()
        own = [each for each in node.aggregates if each.type is None]
        of_user = [each for each in node.aggregates if each.type is not None]
        if not own or not of_user:
            return _aggregate_frame(rows, node, node.aggregates)
        return _join_of_groups(
            _aggregate_frame(rows, node, own), _aggregate_frame(rows, node, of_user), node
        )

    # --- joins ----------------------------------------------------------------------------------

    def _join_frame(self, node: Join) -> DataFrame:
        left, right = self._filtered_side(node, "left"), self._filtered_side(node, "right")
        if self.is_small(node.right):
            right = F.broadcast(right)
        elif self.is_small(node.left):
            left = F.broadcast(left)
        if node.condition == TRUE:
            return left.crossJoin(right)
        return left.join(right, F.expr(expression(node.condition)))

    def _semijoin_frame(self, node: SemiJoin | AntiJoin) -> DataFrame:
        """A semijoin or antijoin; where keys can be listed, a filter is all it takes."""
        kind = "left_semi" if isinstance(node, SemiJoin) else "left_anti"
        pairs = equal_columns(node)
        matches = self._has_right_key(node, pairs)
        if matches is not None:
            rows_to_keep = matches if kind == "left_semi" else misses(matches)
            return self.frame(node.left).where(rows_to_keep)
        condition = F.expr(expression(node.condition))
        left = self.frame(node.left) if kind == "left_anti" else self._filtered_side(node, "left")
        right = self._filtered_side(node, "right")
        if self.is_small(node.right):
            right = F.broadcast(right)
        elif self.is_small(node.left):
            right = _right_rows_of_small_left(right, left, node, pairs)
        return left.join(right, condition, kind)

    def _has_right_key(self, node: SemiJoin | AntiJoin, pairs: list[Pair]) -> SparkColumn | None:
        """Whether a left row has one of the right keys, where they can be listed."""
        if not len(pairs) == len(conjuncts(node.condition)) == 1 or self.is_small(node.left):
            return None
        left, right, null_safe = pairs[0]
        keys = (
            self._keys_of_column(node.right, right) if _have_same_type(node, left, right) else None
        )
        condition, exact = (None, False) if keys is None else meets(left, keys, null_safe)
        return condition if exact else None

    def _filtered_side(self, node: Join | SemiJoin | AntiJoin, side: str) -> DataFrame:
        """One side, with the keys that the other has as a filter."""
        own, other = (node.left, node.right) if side == "left" else (node.right, node.left)
        rows = self.frame(own)
        if self.is_small(own):
            return rows
        for left, right, null_safe in equal_columns(node):
            column, there = (left, right) if side == "left" else (right, left)
            keys = (
                self._keys_of_column(other, there) if _have_same_type(node, left, right) else None
            )
            if keys is not None:
                rows = rows.where(meets(column, keys, null_safe)[0])
        return rows

    def _keys_of_column(self, node: Node, column: str) -> Keys | None:
        """Values of a column, from the collected rows that they come from."""
        match node:
            case Stored():
                table = self._relation(node).table
                listable = table is not None and is_listable(table.schema.field(column).type)
                return Keys(table[column], True) if table is not None and listable else None
            case Project():
                source = {o.name: o.expression for o in node.outputs}[column]
                return (
                    self._keys_of_column(node.child, source.name)
                    if isinstance(source, Column)
                    else None
                )
            case Distinct():
                return self._keys_of_column(node.child, column)
            case Select():
                return _keys_in_wider_type(self._keys_of_column(node.child, column))
            case Join():
                side = node.left if column in node.left.names else node.right
                return _keys_in_wider_type(self._keys_of_column(side, column))
            case SemiJoin() | AntiJoin():
                return _keys_in_wider_type(self._keys_of_column(node.left, column))
            case Window() | Unnest() if column in node.child.names:
                return self._keys_of_column(node.child, column)
            case GroupBy() if column in node.keys:
                return self._keys_of_column(node.child, column)
            case UnionAll():
                return _union_of_keys([self._keys_of_column(each, column) for each in node.inputs])
        return None


def _aggregate_frame(
    rows: DataFrame, node: GroupBy, aggregates: Sequence[AggregateColumn]
) -> DataFrame:
    keys = [F.col(back_quote(key)) for key in node.keys]
    texts = [_named_expression(SPARK.aggregate(e, node.child.schema), e.name) for e in aggregates]
    return rows.groupBy(*keys).agg(*map(F.expr, texts))


def _join_of_groups(first: DataFrame, second: DataFrame, node: GroupBy) -> DataFrame:
    """The same groups with the aggregates of both: Spark computes those of users by themselves."""
    names = list(map(back_quote, node.names))
    if not node.keys:
        return first.crossJoin(second).selectExpr(*names)
    others = [f"{key}#other" for key in node.keys]
    second = second.toDF(*others, *second.columns[len(others) :])
    same = [f"{back_quote(k)} <=> {back_quote(o)}" for k, o in zip(node.keys, others, strict=True)]
    return first.join(second, F.expr(" AND ".join(same))).selectExpr(*names)


def _right_rows_of_small_left(
    right: DataFrame, left: DataFrame, node: SemiJoin | AntiJoin, pairs: list[Pair]
) -> DataFrame:
    """The right rows that a small left side meets: Spark can only broadcast the right one.

    Of columns compared for equality every value is needed once, which bounds how many there are.
    """
    matches = right.join(F.broadcast(left), F.expr(expression(node.condition)), "left_semi")
    if not pairs or len(pairs) < len(conjuncts(node.condition)):
        return matches
    names = dict.fromkeys(name for _, name, _ in pairs)
    return F.broadcast(matches.selectExpr(*map(back_quote, names)).distinct())


def _have_same_type(node: Join | SemiJoin | AntiJoin, left: str, right: str) -> bool:
    return find_field(left, node.left.schema).type == find_field(right, node.right.schema).type


def _named_expression(text: str, name: str) -> str:
    return f"{text} AS {back_quote(name)}"


def _keys_in_wider_type(keys: Keys | None) -> Keys | None:
    return None if keys is None else Keys(keys.values, exact=False)


def _union_of_keys(parts: list[Keys | None]) -> Keys | None:
    lists = [keys for keys in parts if keys is not None]
    if len(lists) < len(parts) or len({keys.values.type for keys in lists}) > 1:
        return None
    chunks = [chunk for keys in lists for chunk in keys.values.chunks]
    values = pa.chunked_array(chunks, lists[0].values.type)
    return Keys(values, all(keys.exact for keys in lists))


def _sort_column(order: Order) -> SparkColumn:
    column = F.col(back_quote(order.column))
    if order.descending:
        return column.desc_nulls_first() if order.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if order.nulls_first else column.asc_nulls_last()
