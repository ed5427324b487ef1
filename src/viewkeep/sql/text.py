"""Algebra as SQL text: one Spark SQL query per node.

It is the inverse of the SQL front end: what it prints, `sql.parse_view` reads. Every name stands
in back quotes, and every text is escaped, since names of diffs hold dots, brackets and `#`. The
names of a node's columns are distinct, also over both sides of a join, so none is qualified. A
subtree that is used more than once becomes a common table expression.

Another database is a `TextDialect` of its own.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

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
    aggregate_of,
)
from viewkeep.query.columns_read import (
    aggregates_needed,
    branches_need,
    needed_columns,
    outputs_needed,
)
from viewkeep.query.expressions import (
    TRUE,
    Column,
    Expression,
    back_quote,
    conjuncts,
)
from viewkeep.query.traversal import inputs_of, walk
from viewkeep.query.types.data_types import TIMESTAMP, TIMESTAMP_NTZ, Field, Type
from viewkeep.query.types.inference import Schema
from viewkeep.query.windows import WINDOW_FUNCTIONS, WindowColumn
from viewkeep.sql.aggregate_text import spark_aggregate
from viewkeep.sql.expression_text import conjunction_text, expression
from viewkeep.sql.window_text import order_text, over_text

NameOf = Callable[[Leaf], str]
"""The quoted name of the relation that holds the rows of a leaf."""

_KEPT = "kept#"
"""The column that tells which rows a condition selects, where it is computed on its own."""


class TextDialect:
    """How a database writes queries; this one is Spark."""

    joins: Mapping[type[Node], str] = {
        Join: "JOIN",
        SemiJoin: "LEFT SEMI JOIN",
        AntiJoin: "LEFT ANTI JOIN",
    }

    def quote(self, name: str) -> str:
        """A name."""
        return back_quote(name)

    def leaf_column(self, name: str, type_: Type) -> str:
        """A column of a stored relation."""
        return self.quote(name)

    def group_key(self, name: str, type_: Type) -> str:
        """A column by which rows are grouped, or told apart."""
        return self.quote(name)

    def order_key(self, name: str, type_: Type) -> str:
        """A column by which rows are ordered."""
        return self.group_key(name, type_)

    def value(self, node: Expression, schema: Schema) -> str:
        """A scalar expression."""
        return expression(node)

    def aggregate(self, aggregate: AggregateColumn, schema: Schema, over: str = "") -> str:
        """An aggregate over rows of a schema, or over those of a window."""
        return spark_aggregate(aggregate, lambda each: self.value(each, schema), over)

    def window(self, node: Window, column: WindowColumn) -> str:
        """A column of a window."""
        over = over_text(node, column, self.group_key, self.order_key, self.range_offset)
        if column.function in WINDOW_FUNCTIONS:
            return self.window_function(column, node.child.schema, over)
        return self.aggregate(aggregate_of(column), node.child.schema, over)

    def window_function(self, column: WindowColumn, schema: Schema, over: str) -> str:
        """A function that only windows have."""
        arguments = ", ".join(self.value(each, schema) for each in column.arguments)
        nulls = " IGNORE NULLS" if column.ignore_nulls else ""
        return f"{column.function.upper()}({arguments}){nulls}{over}"

    def unnest(self, node: Unnest) -> str:
        """The columns of the elements of an array or map."""
        function = "POSEXPLODE_OUTER" if node.outer else "POSEXPLODE"
        names = ", ".join(map(self.quote, node.elements))
        return f"{function}({self.quote(node.column)}) AS ({names})"

    def range_offset(self, distance: int, type_: Type) -> str:
        """How far a range reaches over an order column of a type."""
        if type_ not in (TIMESTAMP, TIMESTAMP_NTZ):
            return str(distance)
        seconds, micros = divmod(distance, 1_000_000)
        return f"INTERVAL '{seconds}.{micros:06}' SECOND"

    def condition(self, parts: Sequence[Expression], schema: Schema) -> str:
        """A conjunction, without brackets around each AND, which would nest deeply."""
        return conjunction_text(parts)

    def join_condition(self, parts: Sequence[Expression], left: Schema, right: Schema) -> str:
        """The conjunction by which rows of two relations are paired."""
        return self.condition(parts, left + right)

    def separate_condition(self, parts: Sequence[Expression], schema: Schema) -> str | None:
        """The conjunction as a column, where it must not be computed for other rows."""
        return None


SPARK = TextDialect()


def to_sql(node: Node, name_of: NameOf, dialect: TextDialect = SPARK) -> str:
    """The query of a node, with output columns named as the node names them.

    >>> from viewkeep.query.expressions import Call, Column, literal, back_quote
    >>> from viewkeep.query.tables import Table
    >>> parts = Scan("parts", Table({"pid": "int", "price": "int"}), "p")
    >>> dear = Select(parts, Call(">", (Column("p.price"), literal(3))))
    >>> print(to_sql(dear, lambda leaf: back_quote(leaf.name)))
    SELECT `p.pid`, `p.price`
    FROM (SELECT `pid` AS `p.pid`, `price` AS `p.price` FROM `parts`) AS `_1`
    WHERE `p.price` > 3
    """
    return _QueryPrinter(node, name_of, dialect).text()


def values_text(node: Values, dialect: TextDialect = SPARK) -> str:
    """Rows that a query holds, as a relation of FROM."""
    rows = [f"({', '.join(dialect.value(each, ()) for each in row)})" for row in node.rows]
    names = ", ".join(map(dialect.quote, node.names))
    return f"(VALUES {', '.join(rows)}) AS {dialect.quote('_1')}({names})"


class _QueryPrinter:
    """Prints one DAG; the shared subtrees are printed first, each under a name."""

    def __init__(self, root: Node, name_of: NameOf, dialect: TextDialect) -> None:
        self._root = root
        self._name_of = name_of
        self._dialect = dialect
        self._quote = dialect.quote
        uses = Counter(child for node in walk(root) for child in inputs_of(node))
        shared = [node for node in walk(root) if uses[node] > 1 and inputs_of(node)]
        self._shared = {node: self._quote(f"shared#{i}") for i, node in enumerate(shared, 1)}
        self._needs = needed_columns(root, never_none=True)

    def text(self) -> str:
        common_tables = [
            f"{name} AS (\n{self._query_text(node)}\n)" for node, name in self._shared.items()
        ]
        prefix = "WITH " + ",\n".join(common_tables) + "\n" if common_tables else ""
        return prefix + self._query_text(self._root)

    def _query_text(self, node: Node) -> str:
        match node:
            case Scan():
                columns = zip(node.table.names, node.schema, strict=True)
                return self._leaf_text(node, columns)
            case Stored():
                return self._leaf_text(node, zip(node.names, node.schema, strict=True))
            case Values():
                return f"SELECT {self._select_text(node)} FROM {values_text(node, self._dialect)}"
            case Select() | Join() | SemiJoin() | AntiJoin():
                return f"SELECT {self._select_text(node)}{self._from_text(node, own=True)}"
            case Project():
                schema = node.child.schema
                outputs = [
                    self._alias_text(self._expression_text(each.expression, schema), each.name)
                    for each in outputs_needed(node, self._needs[node])
                ]
                return f"SELECT {', '.join(outputs)}{self._from_text(node.child)}"
            case GroupBy():
                return self._group_by_text(node)
            case Distinct():
                keys = [self._dialect.group_key(field.name, field.type) for field in node.schema]
                columns_text = ", ".join(map(self._alias_text, keys, node.names))
                return f"SELECT DISTINCT {columns_text}{self._from_text(node.child)}"
            case Window():
                return self._window_text(node)
            case Unnest():
                names = [each for each in node.child.names if each in self._needs[node]]
                columns_text = ", ".join([*map(self._quote, names), self._dialect.unnest(node)])
                return f"SELECT {columns_text}{self._from_text(node.child)}"
            case UnionAll():
                names = list(branches_need(node, self._needs[node]))
                return "\nUNION ALL\n".join(
                    self._union_member_text(child, names) for child in node.inputs
                )

    def _columns_of_text(self, node: Node) -> Schema:
        """The columns of a node that its text has: those that are read, and keys of groups."""
        names = self._needs[node]
        match node:
            case Distinct():
                return node.schema
            case GroupBy():
                names = names.union(node.keys)
            case Unnest():
                names = names.union(node.elements)
            case Window(limit=int()) if not names.intersection(each.name for each in node.columns):
                names = names | {node.columns[0].name}
        return tuple(each for each in node.schema if each.name in names)

    def _select_text(self, node: Node) -> str:
        return ", ".join(self._quote(each.name) for each in self._columns_of_text(node))

    def _window_text(self, node: Window) -> str:
        columns = {each.name: each for each in node.columns}
        texts = [
            self._alias_text(self._dialect.window(node, columns[each.name]), each.name)
            if each.name in columns
            else self._quote(each.name)
            for each in self._columns_of_text(node)
        ]
        rows = f"SELECT {', '.join(texts)}{self._window_rows_text(node)}"
        if node.limit is None or not node.partition_by:
            return rows
        number = next(self._quote(f.name) for f in self._columns_of_text(node) if f.name in columns)
        return f"SELECT *\nFROM ({rows}) AS {self._quote('_1')}\nWHERE {number} <= {node.limit}"

    def _window_rows_text(self, node: Window) -> str:
        """FROM with the rows of a window; of those with a limit, no more than that are numbered,
        unless they are those of partitions."""
        source = self._from_text(node.child)
        if node.limit is None or node.partition_by:
            return source
        order = ", ".join(order_text(node, self._dialect.order_key))
        rows = f"SELECT {self._select_text(node.child)}{source}"
        ordered = f"\nORDER BY {order}" if order else ""
        return f"\nFROM ({rows}{ordered}\nLIMIT {node.limit}) AS {self._quote('_1')}"

    def _leaf_text(self, node: Leaf, columns: Iterable[tuple[str, Field]]) -> str:
        read = self._columns_of_text(node)
        texts = [
            self._alias_text(self._dialect.leaf_column(name, field.type), field.name)
            for name, field in columns
            if field in read
        ]
        return f"SELECT {', '.join(texts)} FROM {self._name_of(node)}"

    def _group_by_text(self, node: GroupBy) -> str:
        fields = node.schema[: len(node.keys)]
        keys = [self._dialect.group_key(field.name, field.type) for field in fields]
        outputs = [
            *map(self._alias_text, keys, node.keys),
            *(
                f"{self._dialect.aggregate(a, node.child.schema)} AS {self._quote(a.name)}"
                for a in aggregates_needed(node, self._needs[node])
            ),
        ]
        grouping = f"\nGROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join(outputs)}{self._from_text(node.child)}{grouping}"

    def _union_member_text(self, node: Node, names: list[str]) -> str:
        """An input of a union with some columns; a union in it needs brackets of its own."""
        is_wider = [each.name for each in self._columns_of_text(node)] != names
        if node in self._shared or isinstance(node, UnionAll) or is_wider:
            return f"SELECT {self._column_list_text(names)} FROM {self._relation_text(node, '_1')}"
        return self._query_text(node)

    def _from_text(self, node: Node, own: bool = False) -> str:
        """FROM and WHERE with the rows of a node; selections and joins need no block inside.

        A shared node is read by its name, except where it is printed itself (`own`).
        """
        selections: list[Expression] = []
        while isinstance(node, Select) and (own or node not in self._shared):
            selections = [node.condition, *selections]
            node, own = node.child, False
        parts = _conjuncts_of_conditions(selections)
        if isinstance(node, Join | SemiJoin | AntiJoin) and (own or node not in self._shared):
            source = self._join_text(node)
        else:
            source = self._relation_text(node, "_1")
        if not parts:
            return f"\nFROM {source}"
        column = None
        if not isinstance(node, Leaf):
            column = self._dialect.separate_condition(parts, node.schema)
        if column is None:
            return f"\nFROM {source}\nWHERE {self._dialect.condition(parts, node.schema)}"
        flag = self._quote(_KEPT)
        columns = f"{self._select_text(node)}, {column} AS {flag}"
        return f"\nFROM (SELECT {columns}\nFROM {source}) AS {self._quote('_1')}\nWHERE {flag}"

    def _join_text(self, node: Join | SemiJoin | AntiJoin) -> str:
        left, right = self._relation_text(node.left, "_1"), self._relation_text(node.right, "_2")
        if isinstance(node, Join) and node.condition == TRUE:
            return f"{left}\nCROSS JOIN {right}"
        condition = self._dialect.join_condition(
            _conjuncts_of_conditions([node.condition]),
            self._columns_of_text(node.left),
            self._columns_of_text(node.right),
        )
        return f"{left}\n{self._dialect.joins[type(node)]} {right}\nON {condition}"

    def _relation_text(self, node: Node, alias: str) -> str:
        shared = self._shared.get(node)
        return f"{shared or f'({self._query_text(node)})'} AS {self._quote(alias)}"

    def _column_list_text(self, names: Iterable[str]) -> str:
        return ", ".join(map(self._quote, names))

    def _alias_text(self, text: str, name: str) -> str:
        quoted = self._quote(name)
        return text if text == quoted else f"{text} AS {quoted}"

    def _expression_text(self, node: Expression, schema: Schema) -> str:
        """Most values are columns, which need no translation."""
        if isinstance(node, Column):
            return self._quote(node.name)
        return self._dialect.value(node, schema)


def _conjuncts_of_conditions(conditions: Iterable[Expression]) -> list[Expression]:
    return [part for condition in conditions for part in conjuncts(condition)]
