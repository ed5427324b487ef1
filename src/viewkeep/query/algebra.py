"""The relational algebra tree of SQL views: frozen nodes, checked and typed when built.

Relations are bags. A scan names its columns `alias.column`; every other operator passes names on,
so the columns of a node have distinct names and two sides of a join share none. A rewriting may
use one subtree in several places (an outer join uses each side twice): the tree is then a DAG of
shared values, and `rewrite` and the printer treat it as one.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache
from operator import is_
from typing import Any, Self, TypeAlias, cast

from viewkeep.errors import QueryError
from viewkeep.query.expressions import TRUE, Column, Expression, columns_of, substitute
from viewkeep.query.tables import Table
from viewkeep.query.types.aggregates import aggregate_result
from viewkeep.query.types.data_types import INT, Field, Type
from viewkeep.query.types.inference import Schema, check_condition, check_names, find_field, type_of
from viewkeep.query.windows import Order, WindowColumn, window_result


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a projection computes."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class SortKey:
    """An expression by which the values of an aggregate are ordered."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class AggregateColumn:
    """A column that a group-by computes; only `count` may have no argument: it counts rows.

    `others` are the arguments after the first; `order` is that of WITHIN GROUP. A function that
    only Spark knows has the `type` that Spark gives it.
    """

    name: str
    function: str
    argument: Expression | None = None
    others: tuple[Expression, ...] = ()
    order: tuple[SortKey, ...] = ()
    type: Type | None = None

    @property
    def arguments(self) -> tuple[Expression, ...]:
        """All arguments."""
        return (*(() if self.argument is None else (self.argument,)), *self.others)

    @property
    def reads(self) -> frozenset[str]:
        """The columns that it is computed from."""
        ordered = (key.expression for key in self.order)
        return frozenset[str]().union(*map(columns_of, (*self.arguments, *ordered)))


INPUTS = ("child", "left", "right", "inputs")
"""The fields of operators that are their inputs."""


@cache
def _own_fields(operator: Any) -> tuple[str, ...]:
    own = (part.name for part in fields(operator) if part.init)
    return tuple(name for name in own if name not in INPUTS)


@dataclass(frozen=True, eq=False)
class _Operator:  # not an ABC: passes ask often what a node is, and those answer slowly
    """What all nodes share: a schema and a hash computed once, since subtrees are shared."""

    schema: Schema = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)
    _own_hash: int = field(init=False, repr=False)
    _names: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        schema = self._output()
        check_names(schema)
        own = hash((type(self), self._own_values()))
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "_names", tuple([field.name for field in schema]))
        object.__setattr__(self, "_own_hash", own)
        object.__setattr__(self, "_hash", hash((own, children(cast("Node", self)))))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Operator):
            return NotImplemented
        return _same(cast("Node", self), cast("Node", other), set())

    def __hash__(self) -> int:
        return self._hash

    @property
    def names(self) -> tuple[str, ...]:
        """The output columns' names, in order."""
        return self._names

    def _own_values(self) -> tuple[object, ...]:
        """All that makes the operator but its inputs."""
        return tuple([getattr(self, name) for name in _own_fields(cast("Any", type(self)))])

    def _over(self, **inputs: object) -> Self:
        """The operator over inputs that have the columns of its own: nothing is checked again."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **inputs)
        copy.__dict__["_hash"] = hash((self._own_hash, children(cast("Node", copy))))
        return copy

    def _output(self) -> Schema:
        """The output columns, after everything about the node was checked."""
        raise NotImplementedError

    def __str__(self) -> str:
        return print_tree(cast("Node", self))


@dataclass(frozen=True, eq=False)
class Scan(_Operator):
    """The rows of a base table, with columns named `alias.column`.

    Delta scripts read tables as they were before the changes (`pre`) and as they are now.
    """

    name: str
    table: Table
    alias: str
    state: str = "post"

    def _output(self) -> Schema:
        return tuple(replace(f, name=f"{self.alias}.{f.name}") for f in self.table.columns)


@dataclass(frozen=True, eq=False)
class Stored(_Operator):
    """A relation that is kept under a name: a diff, a cache, or another part of a delta script."""

    name: str
    columns: Schema

    def _output(self) -> Schema:
        return self.columns


@dataclass(frozen=True, eq=False)
class Values(_Operator):
    """Rows that the query itself holds, each a value without columns per output column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Expression, ...], ...]

    def _output(self) -> Schema:
        if not self.rows or not self.columns:
            raise QueryError("VALUES needs at least one row and one column")
        if any(len(row) != len(self.columns) for row in self.rows):
            raise QueryError(f"each row of VALUES needs {len(self.columns)} values")
        return tuple(map(self._field, self.columns, zip(*self.rows, strict=True)))

    def _field(self, name: str, values: tuple[Expression, ...]) -> Field:
        first, *others = [type_of(each, ()) for each in values]
        if any(each.type != first.type for each in others):
            raise QueryError(f'column "{name}" of VALUES has values of several types')
        return Field(name, first.type, any(each.nullable for each in (first, *others)))


@dataclass(frozen=True, eq=False)
class Select(_Operator):
    """The rows for which the condition is TRUE."""

    child: "Node"
    condition: Expression

    def _output(self) -> Schema:
        check_condition(self.condition, self.child.schema)
        return self.child.schema


@dataclass(frozen=True, eq=False)
class Project(_Operator):
    """One row per input row, with computed columns (generalized projection; keeps duplicates)."""

    child: "Node"
    outputs: tuple[Output, ...]

    def _output(self) -> Schema:
        if not self.outputs:
            raise QueryError("a projection needs at least one column")
        return tuple(_field(o.name, o.expression, self.child.schema) for o in self.outputs)


@dataclass(frozen=True, eq=False)
class Join(_Operator):
    """The pairs of rows for which the condition is TRUE; a cross join has the condition TRUE."""

    left: "Node"
    right: "Node"
    condition: Expression = TRUE

    def _output(self) -> Schema:
        return _paired(self.left, self.right, self.condition)


@dataclass(frozen=True, eq=False)
class SemiJoin(_Operator):
    """The left rows for which some right row makes the condition TRUE."""

    left: "Node"
    right: "Node"
    condition: Expression = TRUE

    def _output(self) -> Schema:
        _paired(self.left, self.right, self.condition)
        return self.left.schema


@dataclass(frozen=True, eq=False)
class AntiJoin(_Operator):
    """The left rows for which no right row makes the condition TRUE (antisemijoin)."""

    left: "Node"
    right: "Node"
    condition: Expression = TRUE

    def _output(self) -> Schema:
        _paired(self.left, self.right, self.condition)
        return self.left.schema


@dataclass(frozen=True, eq=False)
class UnionAll(_Operator):
    """The rows of all inputs, which agree on names and types."""

    inputs: tuple["Node", ...]

    def _output(self) -> Schema:
        if len(self.inputs) < 2:
            raise QueryError("a union needs at least two inputs")
        first, *others = [node.schema for node in self.inputs]
        for other in others:
            _check_same_columns(first, other)
        return tuple(
            replace(column, nullable=any(f.nullable for f in same))
            for column, *same in zip(first, first, *others, strict=True)
        )


@dataclass(frozen=True, eq=False)
class GroupBy(_Operator):
    """One row per distinct value of the key columns (NULLs are one value), with aggregates.

    Without keys it gives exactly one row, also on empty input: there `count` is 0 and every other
    aggregate NULL.
    """

    child: "Node"
    keys: tuple[str, ...]
    aggregates: tuple[AggregateColumn, ...]

    def _output(self) -> Schema:
        if not self.keys and not self.aggregates:
            raise QueryError("a group-by needs a key or an aggregate")
        keys = [find_field(key, self.child.schema) for key in self.keys]
        return (*keys, *(self._aggregate_field(a) for a in self.aggregates))

    def _aggregate_field(self, aggregate: AggregateColumn) -> Field:
        typed = [type_of(argument, self.child.schema) for argument in aggregate.arguments]
        for key in aggregate.order:
            type_of(key.expression, self.child.schema)
        if aggregate.type is not None:
            return Field(aggregate.name, aggregate.type)
        result = aggregate_result(aggregate.function, typed, grouped=bool(self.keys))
        return Field(aggregate.name, result.type, result.nullable)


@dataclass(frozen=True, eq=False)
class Distinct(_Operator):
    """Every row once; NULLs are equal to each other."""

    child: "Node"

    def _output(self) -> Schema:
        return self.child.schema


@dataclass(frozen=True, eq=False)
class Window(_Operator):
    """Every row with columns computed over the rows of its partition (NULLs are one value).

    Where rows are equal in all order columns, `ties` decide which of them comes first. With a
    `limit`, only so many rows of an order are there: the first ones.
    """

    child: "Node"
    columns: tuple[WindowColumn, ...]
    partition_by: tuple[str, ...] = ()
    order_by: tuple[Order, ...] = ()
    ties: tuple[str, ...] = ()
    limit: int | None = None

    @property
    def reads(self) -> frozenset[str]:
        """The columns of its input that the computed ones depend on."""
        order = [each.column for each in self.order_by]
        arguments = (columns_of(each) for column in self.columns for each in column.arguments)
        ties = self.ties if self.is_by_place else ()
        return frozenset((*self.partition_by, *order, *ties)).union(*arguments)

    @property
    def is_by_place(self) -> bool:
        """Whether a column tells rows apart that are equal in the order columns."""
        return self.limit is not None or any(column.is_by_place for column in self.columns)

    @property
    def whole_order(self) -> tuple[Order, ...]:
        """The columns that decide which row comes first, those of ties last."""
        named = {each.column for each in self.order_by}
        return (*self.order_by, *(Order(name) for name in self.ties if name not in named))

    def _output(self) -> Schema:
        if not self.columns:
            raise QueryError("a window needs a column")
        if self.limit is not None and self.partition_by:
            raise QueryError("a window with a limit has no partitions")
        schema = self.child.schema
        for name in (*self.partition_by, *(each.column for each in self.order_by), *self.ties):
            find_field(name, schema)
        return (*schema, *(self._column_field(each) for each in self.columns))

    def _column_field(self, column: WindowColumn) -> Field:
        arguments = [type_of(each, self.child.schema) for each in column.arguments]
        result = window_result(column.function, arguments)
        return Field(column.name, result.type, result.nullable)


@dataclass(frozen=True, eq=False)
class Unnest(_Operator):
    """Every row once for each element of an array, or entry of a map, in one of its columns.

    `elements` name the position, from 0, and the element, or the key and the value. A row without
    any is left out; with `outer` it stays once, with NULLs.
    """

    child: "Node"
    column: str
    elements: tuple[str, ...]
    outer: bool = False

    def _output(self) -> Schema:
        kind = find_field(self.column, self.child.schema).type
        if kind.name not in ("array", "map") or len(self.elements) != len(kind.parts) + 1:
            raise QueryError(f"{kind} does not unnest into {', '.join(self.elements)}")
        position = Field(self.elements[0], INT, self.outer)
        values = [Field(n, p.type) for n, p in zip(self.elements[1:], kind.parts, strict=True)]
        return (*self.child.schema, position, *values)


def aggregate_of(column: WindowColumn) -> AggregateColumn:
    """The aggregate that a column of a window computes over a frame."""
    first = column.arguments[0] if column.arguments else None
    return AggregateColumn(column.name, column.function, first, column.arguments[1:])


Leaf: TypeAlias = Scan | Stored
"""An operator without inputs: its rows are kept somewhere."""

Node: TypeAlias = (
    Scan
    | Stored
    | Values
    | Select
    | Project
    | Join
    | SemiJoin
    | AntiJoin
    | UnionAll
    | GroupBy
    | Distinct
    | Window
    | Unnest
)
"""An operator of the tree; `match` on it is exhaustive."""


def children(node: Node) -> tuple[Node, ...]:
    """The inputs of an operator."""
    match node:
        case Scan() | Stored() | Values():
            return ()
        case Select() | Project() | GroupBy() | Distinct() | Window() | Unnest():
            return (node.child,)
        case Join() | SemiJoin() | AntiJoin():
            return (node.left, node.right)
        case UnionAll():
            return node.inputs


def walk(node: Node) -> Iterator[Node]:
    """Every operator of the tree once, inputs before the operators that use them."""
    seen: set[Node] = set()

    def visit(node: Node) -> Iterator[Node]:
        if node not in seen:
            for child in children(node):
                yield from visit(child)
            seen.add(node)
            yield node

    return visit(node)


def rewrite(node: Node, rule: Callable[[Node], Node]) -> Node:
    """The tree with the rule applied to every operator, bottom-up; shared subtrees stay shared."""
    done: dict[Node, Node] = {}

    def visit(node: Node) -> Node:
        if node not in done:
            done[node] = rule(with_children(node, tuple(map(visit, children(node)))))
        return done[node]

    return visit(node)


def with_children(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same operator over other inputs; the operator itself where they are its own."""
    if len(inputs) == len(own := children(node)) and all(map(is_, inputs, own)):
        return node
    match node:
        case Scan() | Stored() | Values():
            return node
        case Select() | Project() | GroupBy() | Distinct() | Window() | Unnest():
            new: dict[str, Any] = {"child": inputs[0]}
        case Join() | SemiJoin() | AntiJoin():
            new = {"left": inputs[0], "right": inputs[1]}
        case UnionAll():
            new = {"inputs": inputs}
    same_columns = len(inputs) == len(own) and all(map(_have_same_columns, inputs, own))
    return node._over(**new) if same_columns else replace(node, **new)


def _have_same_columns(first: Node, second: Node) -> bool:
    return first.schema is second.schema or first.schema == second.schema


def _same(first: Node, second: Node, equal_pairs: set[tuple[int, int]]) -> bool:
    """Equality that compares each pair of shared subtrees once."""
    pair = (id(first), id(second))
    if first is second or pair in equal_pairs:
        return True
    if type(first) is not type(second) or hash(first) != hash(second):
        return False
    inputs = children(first), children(second)
    if len(inputs[0]) != len(inputs[1]):
        return False
    if not all(_same(a, b, equal_pairs) for a, b in zip(*inputs, strict=True)):
        return False
    equal_pairs.add(pair)
    return first._own_values() == second._own_values()


def _field(name: str, expression: Expression, schema: Schema) -> Field:
    typed = type_of(expression, schema)
    return Field(name, typed.type, typed.nullable)


def _paired(left: "Node", right: "Node", condition: Expression) -> Schema:
    schema = left.schema + right.schema
    check_names(schema)
    check_condition(condition, schema)
    return schema


def _check_same_columns(first: Schema, other: Schema) -> None:
    columns = [(f.name, f.type) for f in first]
    if columns != [(f.name, f.type) for f in other]:
        raise QueryError(
            f"a union of different columns: ({_names(first)}) and ({_names(other)}); "
            "project both sides on the same names and types"
        )


def _names(schema: Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)


@dataclass(frozen=True, slots=True)
class _Bare(Column):
    """A column printed without quotes, as `alias.column` reads best."""

    def __str__(self) -> str:
        return self.name


def show(expression: Expression) -> str:
    """An expression as the tree prints it.

    >>> show(Column("p.price"))
    'p.price'
    """
    return str(substitute(expression, lambda column: _Bare(column.name)))


def print_tree(root: Node) -> str:
    """The tree, indented, one operator a line; a subtree used again is shown once and numbered."""
    uses = Counter(child for node in walk(root) for child in children(node))
    shared = [node for node in walk(root) if uses[node] > 1 and children(node)]
    lines: list[str] = []
    shown: set[Node] = set()

    def visit(node: Node, depth: int) -> None:
        label = f"#{shared.index(node) + 1} " if node in shared else ""
        repeated = node in shown
        lines.append("  " * depth + label + ("(above)" if repeated else _headline(node)))
        if not repeated:
            shown.update({node} & set(shared))
            for child in children(node):
                visit(child, depth + 1)

    visit(root, 0)
    return "\n".join(lines)


def _headline(node: Node) -> str:
    match node:
        case Scan():
            state = "" if node.state == "post" else f"@{node.state}"
            renamed = f" as {node.alias}" if node.alias != node.name else ""
            return f"Scan {node.name}{state}{renamed}"
        case Stored():
            return node.name
        case Values():
            return f"Values {print_values(node)}"
        case Select():
            return f"Select {show(node.condition)}"
        case Project():
            return f"Project {', '.join(_print_output(o) for o in node.outputs)}"
        case Join(condition=condition) if condition == TRUE:
            return "Join (cross)"
        case Join() | SemiJoin() | AntiJoin():
            return f"{type(node).__name__} on {show(node.condition)}"
        case UnionAll() | Distinct():
            return type(node).__name__
        case GroupBy():
            aggregates = map(_print_aggregate, node.aggregates)
            return f"GroupBy {', '.join((*node.keys, *aggregates))}"
        case Window():
            return f"Window {print_window(node)}"
        case Unnest():
            return f"Unnest {print_unnest(node)}"


def print_values(node: Values, shown: Callable[[Expression], str] = show) -> str:
    """The rows of a constant relation."""
    return ", ".join(f"({', '.join(map(shown, row))})" for row in node.rows)


def print_unnest(node: Unnest, shown: Callable[[Expression], str] = show) -> str:
    """The column that is unnested, and what its elements are called."""
    elements = ", ".join(shown(Column(name)) for name in node.elements)
    return f"{shown(Column(node.column))} as {elements}{' outer' if node.outer else ''}"


def print_window(node: Window, shown: Callable[[Expression], str] = show) -> str:
    """The columns of a window, and over which rows in which order."""
    partition = ", ".join(shown(Column(name)) for name in node.partition_by)
    order = ", ".join(shown(Column(o.column)) + str(o)[len(o.column) :] for o in node.order_by)
    over = [f"partition by {partition}"] * bool(partition) + [f"order by {order}"] * bool(order)
    columns = [_print_window_column(each, shown) for each in node.columns]
    limit = "" if node.limit is None else f" limit {node.limit}"
    return f"{', '.join(columns)} over ({' '.join(over)}){limit}"


def _print_window_column(column: WindowColumn, shown: Callable[[Expression], str]) -> str:
    arguments = ", ".join(map(shown, column.arguments))
    nulls = " ignore nulls" if column.ignore_nulls else ""
    usual = column.frame is None or (column.frame.unit == "range" and column.frame.start is None)
    frame = "" if usual and not (column.frame and column.frame.has_offset) else f" {column.frame}"
    return f"{column.function}({arguments}){nulls}{frame} as {column.name}"


def _print_output(output: Output) -> str:
    expression = show(output.expression)
    return expression if expression == output.name else f"{expression} as {output.name}"


def _print_aggregate(aggregate: AggregateColumn) -> str:
    return f"{print_aggregate(aggregate)} as {aggregate.name}"


def print_aggregate(
    aggregate: AggregateColumn, shown: Callable[[Expression], str] = show, rows: str = ""
) -> str:
    """An aggregate without its name; `rows` stands for the argument where it has none."""
    order = ", ".join(
        shown(key.expression) + (" desc" if key.descending else "") for key in aggregate.order
    )
    arguments = ", ".join(map(shown, aggregate.arguments)) or rows
    return f"{aggregate.function}({arguments}{f' order by {order}' if order else ''})"
