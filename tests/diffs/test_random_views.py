"""Random views of every operator, kept by scripts through random batches."""

import os
from collections.abc import Callable
from itertools import count
from random import Random

import duckdb
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.diffs.harness import PlayedView, keep_through_batches
from tests.diffs.in_duckdb import KeptInDuckdb, tables_of
from tests.diffs.random_tables import random_database
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.execute.duckdb.statements import query
from viewkeep.query.algebra import (
    AggregateColumn,
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Node,
    Output,
    Project,
    Scan,
    Select,
    SemiJoin,
    UnionAll,
    Window,
)
from viewkeep.query.expressions import Call, Cast, Column, Expression, Literal, literal
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import BIGINT, INT, VOID
from viewkeep.query.windows import RANGE, ROWS, WHOLE, Frame, Order, WindowColumn

TABLES = {
    "r": Table({"a": "int", "b": "int", "c": "int not null"}, key=["a"]),
    "s": Table({"a": "int", "d": "int", "e": "int", "x": "double"}, key=["a", "d"]),
    "t": Table({"d": "int", "f": "int"}, key=["d"]),
}
DEPTH = 5
BATCHES = 2
LONG = bool(os.environ.get("VIEWKEEP_LONG"))
EXAMPLES = 50 if LONG else 10
NUMBERS = (INT, BIGINT)


class Views:
    """Draws one view; a number in every name keeps the names of both sides of a join apart."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._numbers = count(1)
        self._operators: list[Callable[[int], Node]] = [
            *(self._select, self._project, self._join, self._exists, self._union),
            *(self._group, self._distinct, self._left_join, self._window),
        ]

    def view(self, depth: int) -> Node:
        """A view of at most this depth."""
        if depth == 0:
            table = self._one_of(list(TABLES))
            return Scan(table, TABLES[table], self._fresh(table))
        return self._one_of(self._operators)(depth - 1)

    def _below(self, depth: int) -> Node:
        return self.view(self._draw(st.integers(0, depth)))

    def _select(self, depth: int) -> Node:
        child = self._below(depth)
        return Select(child, self._condition(child, child))

    def _project(self, depth: int) -> Node:
        child = self._below(depth)
        kept = self._draw(st.lists(st.sampled_from(child.names), max_size=3, unique=True))
        outputs = [Output(self._fresh("p"), Column(name)) for name in kept]
        return Project(child, (*outputs, Output(self._fresh("p"), self._value(child))))

    def _join(self, depth: int) -> Node:
        left, right = self._below(depth), self._below(min(depth, 2))
        return Join(left, right, self._condition(left, right))

    def _exists(self, depth: int) -> Node:
        left, right = self._below(depth), self._below(min(depth, 2))
        operator = self._one_of([SemiJoin, AntiJoin])
        return operator(left, right, self._condition(left, right))

    def _left_join(self, depth: int) -> Node:
        """As the front end writes it: both sides are used twice."""
        left, right = self._below(min(depth, 2)), self._below(min(depth, 1))
        condition = self._condition(left, right)
        nulls = [Output(f.name, Cast(Literal(None, VOID), f.type)) for f in right.schema]
        alone = AntiJoin(left, right, condition)
        kept = [Output(name, Column(name)) for name in left.names]
        return UnionAll((Join(left, right, condition), Project(alone, (*kept, *nulls))))

    def _union(self, depth: int) -> Node:
        names = [self._fresh("u") for _ in range(self._draw(st.integers(1, 2)))]
        inputs = [self._below(min(depth, 2)) for _ in range(self._draw(st.integers(2, 3)))]
        projected = [
            Project(each, tuple(Output(n, Cast(self._column(each), BIGINT)) for n in names))
            for each in inputs
        ]
        return UnionAll(tuple(projected))

    def _group(self, depth: int) -> Node:
        child = self._below(depth)
        keys = self._draw(st.lists(st.sampled_from(child.names), max_size=2, unique=True))
        functions = self._draw(st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=2))
        aggregates = [AggregateColumn(self._fresh("g"), f, self._value(child)) for f in functions]
        counted = AggregateColumn(self._fresh("g"), "count")
        return GroupBy(child, tuple(keys), (*aggregates, counted))

    def _window(self, depth: int) -> Node:
        """Some columns over one window; which row comes first among equals is left to the IDs."""
        child = self._below(min(depth, 3))
        names = st.lists(st.sampled_from(child.names), max_size=2, unique=True)
        orders = tuple(
            Order(name, self._draw(st.booleans()), self._draw(st.booleans()))
            for name in self._draw(names)
        )
        columns = [self._window_column(child, orders) for _ in range(self._draw(st.integers(1, 2)))]
        return Window(child, tuple(columns), tuple(self._draw(names)), orders)

    def _window_column(self, child: Node, orders: tuple[Order, ...]) -> WindowColumn:
        name, value = self._fresh("w"), self._value(child)
        frames = [Frame(ROWS, -1, 1), Frame(ROWS, None, 0), Frame(ROWS, 0, None), WHOLE]
        frames += [Frame(RANGE, None, 0), Frame(RANGE, 0, 0)] if orders else []
        frame = self._one_of(frames)
        match self._draw(st.integers(0, 3)):
            case 0:
                return WindowColumn(name, self._one_of(["sum", "count", "min"]), (value,), frame)
            case 1:
                return WindowColumn(name, self._one_of(["row_number", "rank", "dense_rank"]))
            case 2:
                arguments = (value, literal(self._draw(st.integers(0, 2))))
                nulls = self._draw(st.booleans())
                return WindowColumn(name, self._one_of(["lag", "lead"]), arguments, None, nulls)
        function = self._one_of(["first_value", "last_value"])
        rows = frame if frame.unit == ROWS else Frame(ROWS, None, None)
        return WindowColumn(name, function, (value,), rows, self._draw(st.booleans()))

    def _distinct(self, depth: int) -> Node:
        return Distinct(self._project(depth))

    def _condition(self, left: Node, right: Node) -> Expression:
        """An equality or another comparison; sometimes with a second one, or denied."""
        first = self._comparison(left, right)
        match self._draw(st.integers(0, 5)):
            case 0:
                return Call("and", (first, self._comparison(right, left)))
            case 1:
                return Call("or", (first, self._comparison(left, left)))
            case 2:
                return Call("not", (first,))
            case 3:
                return Call("coalesce", (first, literal(True)))
        return first

    def _comparison(self, left: Node, right: Node) -> Expression:
        comparison = self._one_of(["=", "=", "=", "<=>", "<", "<>"])
        other = self._value(right) if self._draw(st.booleans()) else self._column(right)
        return Call(comparison, (self._column(left), other))

    def _value(self, node: Node) -> Expression:
        match self._draw(st.integers(0, 4)):
            case 0:
                return literal(self._draw(st.integers(0, 2)))
            case 1:
                return Call("+", (self._column(node), literal(1)))
            case 2:
                return Call("coalesce", (self._column(node), self._column(node)))
        return self._column(node)

    def _column(self, node: Node) -> Expression:
        """A column that is a whole number, or a constant where there is none."""
        names = [f.name for f in node.schema if f.type in NUMBERS]
        return Column(self._one_of(names)) if names else literal(1)

    def _one_of(self, choices: list) -> object:
        return self._draw(st.sampled_from(choices))

    def _fresh(self, name: str) -> str:
        return f"{name}{next(self._numbers)}"


FUNCTIONS = ["sum", "sum", "count", "avg", "min", "max"]


@st.composite
def views(draw: st.DrawFn) -> Node:
    """A view over the tables."""
    return Views(draw).view(draw(st.integers(1, DEPTH)))


CASES = {
    "node": views(),
    "seed": st.integers(0, 2**16),
    "rows": st.integers(0, 6),
}


@pytest.mark.slow
@settings(max_examples=30 * EXAMPLES, suppress_health_check=list(HealthCheck))
@given(tuple_based=st.booleans(), optimized=st.booleans(), **CASES)
def test_a_random_view_equals_itself_computed_anew(
    node: Node, seed: int, rows: int, tuple_based: bool, optimized: bool
) -> None:
    note(str(node))
    database = random_database(TABLES, Random(seed), rows=rows)
    view = PlayedView(node, TABLES, database, tuple_based, optimized)
    keep_through_batches(view, seed, BATCHES)


@pytest.mark.slow
@settings(max_examples=(25 if LONG else 9) * EXAMPLES, suppress_health_check=list(HealthCheck))
@given(**CASES)
def test_a_random_view_in_duckdb(node: Node, seed: int, rows: int) -> None:
    """Both modes; one view in three by scripts for every kind of change."""
    note(str(node))
    tables = tables_of(node, TABLES)
    database = random_database(tables, Random(seed), rows=rows)
    with duckdb.connect() as connection:
        text = query(node, lambda leaf: quote_name(leaf.name))
        exact = 0 if seed % 3 == 0 else BATCHES
        view = KeptInDuckdb(node, tables, database, connection, text, exact)
        keep_through_batches(view, seed, BATCHES)
