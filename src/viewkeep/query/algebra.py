"""The relational algebra tree of SQL views: frozen nodes, checked and typed when built.

Relations are bags. A scan names its columns `alias.column`; every other operator passes names on,
so the columns of a node have distinct names and two sides of a join share none. A rewriting may
use one subtree in several places (an outer join uses each side twice): the tree is then a DAG of
shared values, and `traversal` and `show` treat it as one.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

from viewkeep.errors import QueryError
from viewkeep.query.expressions import TRUE, Expression, columns_of
from viewkeep.query.operator import Binary, Operator, Unary
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


@dataclass(frozen=True, eq=False)
class Scan(Operator):
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
class Stored(Operator):
    """A relation that is kept under a name: a diff, a cache, or another part of a delta script."""

    name: str
    columns: Schema

    def _output(self) -> Schema:
        return self.columns


@dataclass(frozen=True, eq=False)
class Values(Operator):
    """Rows that the query itself holds, each a value without columns per output column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Expression, ...], ...]

    def _output(self) -> Schema:
        if not self.rows or not self.columns:
            raise QueryError("VALUES needs at least one row and one column")
        if any(len(row) != len(self.columns) for row in self.rows):
            raise QueryError(f"each row of VALUES needs {len(self.columns)} values")
        return tuple(map(self._values_field, self.columns, zip(*self.rows, strict=True)))

    def _values_field(self, name: str, values: tuple[Expression, ...]) -> Field:
        first, *later = [type_of(each, ()) for each in values]
        if any(each.type != first.type for each in later):
            raise QueryError(f'column "{name}" of VALUES has values of several types')
        return Field(name, first.type, any(each.nullable for each in (first, *later)))


@dataclass(frozen=True, eq=False)
class Select(Unary):
    """The rows for which the condition is TRUE."""

    condition: Expression

    def _output(self) -> Schema:
        check_condition(self.condition, self.child.schema)
        return self.child.schema


@dataclass(frozen=True, eq=False)
class Project(Unary):
    """One row per input row, with computed columns (generalized projection; keeps duplicates)."""

    outputs: tuple[Output, ...]

    def _output(self) -> Schema:
        if not self.outputs:
            raise QueryError("a projection needs at least one column")
        return tuple(_output_field(o.name, o.expression, self.child.schema) for o in self.outputs)


@dataclass(frozen=True, eq=False)
class Join(Binary):
    """The pairs of rows for which the condition is TRUE; a cross join has the condition TRUE."""

    condition: Expression = TRUE

    def _output(self) -> Schema:
        return _join_schema(self.left, self.right, self.condition)


@dataclass(frozen=True, eq=False)
class SemiJoin(Binary):
    """The left rows for which some right row makes the condition TRUE."""

    condition: Expression = TRUE

    def _output(self) -> Schema:
        _join_schema(self.left, self.right, self.condition)
        return self.left.schema


@dataclass(frozen=True, eq=False)
class AntiJoin(Binary):
    """The left rows for which no right row makes the condition TRUE (antisemijoin)."""

    condition: Expression = TRUE

    def _output(self) -> Schema:
        _join_schema(self.left, self.right, self.condition)
        return self.left.schema


@dataclass(frozen=True, eq=False)
class UnionAll(Operator):
    """The rows of all inputs, which agree on names and types."""

    inputs: tuple["Node", ...]

    @property
    def children(self) -> tuple["Node", ...]:
        """All inputs."""
        return self.inputs

    def _output(self) -> Schema:
        if len(self.inputs) < 2:
            raise QueryError("a union needs at least two inputs")
        first, *later = [node.schema for node in self.inputs]
        for schema in later:
            _check_union_columns(first, schema)
        return tuple(
            replace(column, nullable=any(f.nullable for f in fields))
            for column, *fields in zip(first, first, *later, strict=True)
        )


@dataclass(frozen=True, eq=False)
class GroupBy(Unary):
    """One row per distinct value of the key columns (NULLs are one value), with aggregates.

    Without keys it gives exactly one row, also on empty input: there `count` is 0 and every other
    aggregate NULL.
    """

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
class Distinct(Unary):
    """Every row once; NULLs are equal to each other."""

    def _output(self) -> Schema:
        return self.child.schema


@dataclass(frozen=True, eq=False)
class Window(Unary):
    """Every row with columns computed over the rows of its partition (NULLs are one value).

    Where rows are equal in all order columns, `ties` decide which of them comes first. With a
    `limit`, only so many rows of each partition are there: the first ones in the order. The last
    `reserve` of these may be missing where the rows are kept.
    """

    columns: tuple[WindowColumn, ...]
    partition_by: tuple[str, ...] = ()
    order_by: tuple[Order, ...] = ()
    ties: tuple[str, ...] = ()
    limit: int | None = None
    reserve: int = 0

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
        order_columns = {each.column for each in self.order_by}
        return (*self.order_by, *(Order(name) for name in self.ties if name not in order_columns))

    def _output(self) -> Schema:
        if not self.columns:
            raise QueryError("a window needs a column")
        functions = {each.function for each in self.columns}
        if self.limit is not None and functions != {"row_number"}:
            raise QueryError("a window with a limit computes row numbers")
        if not 0 <= self.reserve <= (self.limit or 0):
            raise QueryError(f"a reserve of {self.reserve} rows needs a limit of no fewer")
        schema = self.child.schema
        for name in (*self.partition_by, *(each.column for each in self.order_by), *self.ties):
            find_field(name, schema)
        return (*schema, *(self._column_field(each) for each in self.columns))

    def _column_field(self, column: WindowColumn) -> Field:
        arguments = [type_of(each, self.child.schema) for each in column.arguments]
        result = window_result(column.function, arguments)
        return Field(column.name, result.type, result.nullable)


@dataclass(frozen=True, eq=False)
class Unnest(Unary):
    """Every row once for each element of an array, or entry of a map, in one of its columns.

    `elements` name the position, from 0, and the element, or the key and the value. A row without
    any is left out; with `outer` it stays once, with NULLs.
    """

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


def _output_field(name: str, expression: Expression, schema: Schema) -> Field:
    typed = type_of(expression, schema)
    return Field(name, typed.type, typed.nullable)


def _join_schema(left: "Node", right: "Node", condition: Expression) -> Schema:
    schema = left.schema + right.schema
    check_names(schema)
    check_condition(condition, schema)
    return schema


def _check_union_columns(first: Schema, second: Schema) -> None:
    columns = [(f.name, f.type) for f in first]
    if columns != [(f.name, f.type) for f in second]:
        raise QueryError(
            f"a union of different columns: ({_schema_text(first)}) and ({_schema_text(second)}); "
            "project both sides on the same names and types"
        )


def _schema_text(schema: Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)
