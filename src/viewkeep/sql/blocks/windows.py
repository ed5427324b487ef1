"""Window functions of one query block: OVER, the WINDOW clause, frames."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from viewkeep.errors import QueryError
from viewkeep.query.algebra import Node, Output, Project, Select, Window
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal, literal
from viewkeep.query.ties import tie_columns
from viewkeep.query.types.aggregates import AGGREGATES, BY_ORDER, ORDERED, comparison_of
from viewkeep.query.types.data_types import (
    BOOLEAN,
    DATE,
    INTEGRAL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Type,
)
from viewkeep.query.windows import (
    OFFSET,
    RANGE,
    RANKING,
    ROWS,
    VALUES,
    WHOLE,
    WINDOW_FUNCTIONS,
    Frame,
    Order,
    WindowColumn,
    window_result,
)
from viewkeep.sql.blocks.clauses import AGGREGATE_NAMES, OF_CONDITIONS, is_aggregate
from viewkeep.sql.blocks.context import Context
from viewkeep.sql.blocks.scope import Scalar, constant
from viewkeep.sql.expressions.literals import read_interval
from viewkeep.sql.expressions.translator import Translator
from viewkeep.sql.spark_functions import SPARK_FUNCTIONS

_SYNONYMS = {"first": "first_value", "last": "last_value", "any_value": "first_value"}
_MICROSECONDS = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000}
_MICROSECONDS["SECOND"] = 1_000_000


@dataclass(frozen=True, slots=True)
class OrderKey:
    """An expression of ORDER BY."""

    scalar: Scalar
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A window function of the query, before its partitions and order have columns."""

    column: WindowColumn
    partition_by: tuple[Expression, ...]
    order_by: tuple[OrderKey, ...]
    place: exp.Expr


@dataclass
class BlockWindows:
    """The window functions that expressions of a query block use."""

    windows_by_name: Mapping[str, exp.Window] = field(default_factory=dict)
    calls: list[WindowCall] = field(default_factory=list)

    def translate(self, node: exp.Window, translator: Translator) -> Scalar:
        """The column of a window function; there is none inside another one."""
        node = self._named_window(node, translator)
        translator.windows = None
        try:
            return self._translate_window(node, translator)
        finally:
            translator.windows = self

    def apply(self, rows: Node, context: Context, links: Sequence[Expression] = ()) -> Node:
        """The rows with the columns of all window functions, one operator per window; rows with
        different values of `links` are never in one partition."""
        columns = _WindowColumns(rows)
        windows: dict[tuple[tuple[str, ...], tuple[Order, ...]], list[WindowCall]] = {}
        for call in self.calls:
            partition = tuple(dict.fromkeys(map(columns.name, (*links, *call.partition_by))))
            orders = tuple(columns.order(key) for key in call.order_by)
            windows.setdefault((partition, orders), []).append(call)
        node = columns.rows()
        for (partition, orders), calls in windows.items():
            computed = tuple(call.column for call in calls)
            node = Window(node, computed, partition, orders, tie_columns(node))
            context.placed(node, calls[0].place, TokenType.OVER)
        return node

    def _named_window(self, node: exp.Window, translator: Translator) -> exp.Window:
        """The window completed by the definition that it names."""
        name = node.args.get("alias")
        if name is None:
            return node
        definition = self.windows_by_name.get(name.name.lower())
        if definition is None:
            raise translator.source.error(f'no window "{name.name}" in the WINDOW clause', node)
        copy = node.copy()
        for part in ("partition_by", "order", "spec"):
            if not copy.args.get(part) and definition.args.get(part):
                copy.set(part, definition.copy().args[part])
        return copy

    def _translate_window(self, node: exp.Window, translator: Translator) -> Scalar:
        function, arguments, ignores = _window_call(node.this, translator)
        partition = [translator.translate(each) for each in node.args.get("partition_by") or ()]
        for scalar in partition:
            translator.refuse_carried(scalar, node)
        orders = order_keys(node.args.get("order"), translator)
        if not orders and (function in RANKING or function in OFFSET):
            raise translator.source.error(f"{function}() needs ORDER BY in its window", node)
        frame = _window_frame(function, node.args.get("spec"), orders, ignores, translator)
        try:
            result = window_result(function, [each.typed for each in arguments])
        except QueryError as error:
            raise translator.source.error(str(error), node) from None
        values = _window_arguments(function, arguments, result.type)
        name = f"window_{len(self.calls) + 1}"
        column = WindowColumn(name, function, values, frame, ignores)
        by = tuple(each.expression for each in partition if not _is_constant_scalar(each))
        return Scalar(Column(self._call_name(WindowCall(column, by, orders, node))), result)

    def _call_name(self, call: WindowCall) -> str:
        """The name of a call; that of an earlier equal call, if there is one."""
        for other in self.calls:
            same = replace(call.column, name=other.column.name) == other.column
            if same and (other.partition_by, other.order_by) == (call.partition_by, call.order_by):
                return other.column.name
        self.calls.append(call)
        return call.column.name


class _WindowColumns:
    """Names for the expressions that rows are partitioned and ordered by."""

    def __init__(self, rows: Node) -> None:
        self._rows = rows
        self._names: dict[Expression, str] = {}

    def name(self, expression: Expression) -> str:
        if isinstance(expression, Column):
            return expression.name
        return self._names.setdefault(expression, self._free_name())

    def _free_name(self) -> str:
        """A name that no column has: rows may come from another window with such columns."""
        used_names = {*self._rows.names, *self._names.values()}
        return next(name for i in count(1) if (name := f"over_{i}") not in used_names)

    def order(self, key: OrderKey) -> Order:
        return Order(self.name(key.scalar.expression), key.descending, key.nulls_first)

    def rows(self) -> Node:
        if not self._names:
            return self._rows
        own_columns = [Output(name, Column(name)) for name in self._rows.names]
        return Project(self._rows, (*own_columns, *(Output(n, e) for e, n in self._names.items())))


def order_keys(order: exp.Expr | None, translator: Translator) -> tuple[OrderKey, ...]:
    """The expressions of ORDER BY, each once; a constant orders nothing."""
    keys: dict[Expression, OrderKey] = {}
    for each in order.expressions if order is not None else ():
        scalar = translator.translate(each.this)
        translator.refuse_carried(scalar, each)
        key = OrderKey(scalar, bool(each.args.get("desc")), bool(each.args.get("nulls_first")))
        if not _is_constant_scalar(scalar):
            keys.setdefault(scalar.expression, key)
    return tuple(keys.values())


def ordered_rows(
    rows: Node,
    keys: Sequence[OrderKey],
    name: str,
    limit: int | None,
    links: Sequence[Expression] = (),
) -> Node:
    """The rows, or the first of them, with the number of each in an order; one order for each value
    of `links`, if there are any."""
    columns = _WindowColumns(rows)
    partition = tuple(dict.fromkeys(map(columns.name, links)))
    orders = tuple(columns.order(key) for key in keys)
    numbered, column = columns.rows(), WindowColumn(name, "row_number")
    if not partition:
        return Window(numbered, (column,), (), orders, tie_columns(numbered), limit)
    window = Window(numbered, (column,), partition, orders, tie_columns(numbered))
    if limit is None:
        return window
    return Select(window, Call("<=", (Column(name), literal(limit))))


def _is_constant_scalar(scalar: Scalar) -> bool:
    return isinstance(scalar.expression, Literal)


def _window_call(node: exp.Expr, translator: Translator) -> tuple[str, list[Scalar], bool]:
    """The function, its arguments, and whether it ignores NULLs."""
    ignores, condition, call = False, None, node
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        ignores = ignores or isinstance(call, exp.IgnoreNulls)
        condition = call.expression.this if isinstance(call, exp.Filter) else condition
        call = call.this
    if not isinstance(call, exp.Anonymous):
        raise translator.source.unsupported("this form of a window function", node)
    name = call.name.lower()
    function, nodes = _SYNONYMS.get(name, name), list(call.expressions)
    if nodes and isinstance(nodes[0], exp.IgnoreNulls):
        ignores, nodes[0] = True, nodes[0].this
    if function in VALUES[:2] and len(nodes) == 2 and isinstance(nodes[1], exp.Boolean):
        ignores, nodes = bool(nodes[1].this), nodes[:1]
    if name in AGGREGATE_NAMES and function not in VALUES:
        return (
            *_window_aggregate(AGGREGATE_NAMES[name], nodes, condition, call, translator),
            False,
        )
    if function not in WINDOW_FUNCTIONS and (name in SPARK_FUNCTIONS or is_aggregate(call)):
        raise translator.source.unsupported(f"{name}() in a window", call)
    if condition is not None:
        raise translator.source.unsupported(f"FILTER with {function}()", call)
    return function, [translator.translate(each) for each in nodes], ignores


def _window_aggregate(
    function: str,
    nodes: Sequence[exp.Expr],
    condition: exp.Expr | None,
    call: exp.Anonymous,
    translator: Translator,
) -> tuple[str, list[Scalar]]:
    """An aggregate over a frame; FILTER makes the values of other rows NULL."""
    if any(isinstance(each, exp.Distinct) for each in nodes):
        raise translator.source.unsupported("DISTINCT in a window function", call)
    if function in ORDERED:
        raise translator.source.unsupported(f"{function}() in a window", call)
    most = AGGREGATES[function].most if function in AGGREGATES else 1
    if not nodes or len(nodes) > (most or 1):
        raise translator.source.error(f"{function}() takes {most or 1} argument", call)
    one = constant(literal(1))
    star = isinstance(nodes[0], exp.Star)
    values = [one] if star else [translator.translate(each) for each in nodes]
    values = [*translator.cast_implicitly(function, values, call)]
    if call.name.lower() in OF_CONDITIONS and values[0].typed.type not in (BOOLEAN, VOID):
        problem = f"{call.name.lower()}() takes a condition, not {values[0].typed.type}"
        raise translator.source.error(problem, call)
    if function == "count_if":
        function, values = "count", [translator.call("case", [values[0], one], call)]
    if condition is not None:
        place = 1 if function in BY_ORDER else 0
        filtered_value = translator.call(
            "case", [translator.condition(condition), values[place]], call
        )
        values[place] = filtered_value
    if function != "count":
        for value in values:
            translator.refuse_carried(value, call, comparison_of(function))
    elif not values[0].typed.nullable:
        values = []
    return function, values


def _window_arguments(
    function: str, arguments: Sequence[Scalar], result: Type
) -> tuple[Expression, ...]:
    """The arguments; the value and the default of lag and lead have the type of the result."""
    shared = (0, 2) if function in OFFSET and len(arguments) > 2 else ()
    return tuple(
        Cast(each.expression, result)
        if i in shared and each.typed.type != result
        else each.expression
        for i, each in enumerate(arguments)
    )


# --- frames ---------------------------------------------------------------------------------------


def _window_frame(
    function: str,
    spec: exp.WindowSpec | None,
    orders: Sequence[OrderKey],
    ignores: bool,
    translator: Translator,
) -> Frame | None:
    if function in RANKING or function in OFFSET:
        if spec is not None and function in OFFSET:
            raise translator.source.error(f"{function}() has no frame", spec)
        return None
    frame = Frame(RANGE) if orders else WHOLE
    if spec is not None:
        frame = _read_window_frame(spec, orders, translator)
    if frame.unit == RANGE and not orders:
        frame = WHOLE
    return _range_as_rows(function, frame, ignores) if function in VALUES else frame


def _range_as_rows(function: str, frame: Frame, ignores: bool) -> Frame:
    """A RANGE frame as one of rows, where both have the same first or last row and ties decide
    which."""
    if frame.is_whole:
        return Frame(ROWS, None, None)
    if frame.unit == RANGE and not frame.has_offset and not ignores:
        if function == "first_value" and frame.start is None:
            return Frame(ROWS, None, 0)
        if function == "last_value" and frame.end is None:
            return Frame(ROWS, 0, None)
    return frame


def _read_window_frame(
    spec: exp.WindowSpec, orders: Sequence[OrderKey], translator: Translator
) -> Frame:
    unit = str(spec.args.get("kind") or "").lower()
    if unit not in (ROWS, RANGE) or spec.args.get("exclude"):
        raise translator.source.unsupported("this kind of window frame", spec)
    kind = orders[0].scalar.typed.type if len(orders) == 1 and unit == RANGE else None
    ends = [
        _window_bound(spec, part, unit, kind, translator) if spec.args.get(part) else 0
        for part in ("start", "end")
    ]
    start, end = ends
    if start is not None and end is not None and start > end:
        raise translator.source.error("a window frame ends before it starts", spec)
    return Frame(unit, start, end)


def _window_bound(
    spec: exp.WindowSpec, part: str, unit: str, kind: Type | None, translator: Translator
) -> int | None:
    value = spec.args[part]
    side = str(spec.args.get(f"{part}_side") or "").lower()
    if isinstance(value, str):
        if value.upper() == "CURRENT ROW":
            return 0
        if side != ("preceding" if part == "start" else "following"):
            raise translator.source.error(f"a frame does not {part} UNBOUNDED {side}", spec)
        return None
    sign = -1 if side == "preceding" else 1
    return sign * _bound_distance(value, unit, kind, translator)


def _bound_distance(value: exp.Expr, unit: str, kind: Type | None, translator: Translator) -> int:
    """How far a bound is away, in rows or in units of the order column."""
    if isinstance(value, exp.Interval) and unit == RANGE:
        span = read_interval(value, translator.source)
        if kind == DATE and span.unit == "DAY":
            return span.amount
        if kind in (TIMESTAMP, TIMESTAMP_NTZ) and span.unit in _MICROSECONDS:
            return span.amount * _MICROSECONDS[span.unit]
        raise translator.source.unsupported("a frame of this interval", value)
    match translator.translate(value).expression:
        case Literal(int(distance)) if unit == ROWS or kind == DATE or kind in INTEGRAL:
            return distance
    raise translator.source.unsupported("a frame of this distance", value)
