"""Algebra trees as text: one operator a line, and the parts of operators for other printers."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

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
    Stored,
    UnionAll,
    Unnest,
    Values,
    Window,
)
from viewkeep.query.expressions import TRUE, Column, Expression, substitute
from viewkeep.query.traversal import inputs_of, walk
from viewkeep.query.windows import WindowColumn


@dataclass(frozen=True, slots=True)
class _Bare(Column):
    """A column printed without quotes, as `alias.column` reads best."""

    def __str__(self) -> str:
        return self.name


def formula_text(expression: Expression) -> str:
    """An expression as the tree prints it.

    >>> formula_text(Column("p.price"))
    'p.price'
    """
    return str(substitute(expression, lambda column: _Bare(column.name)))


def print_tree(root: Node) -> str:
    """The tree, indented, one operator a line; a subtree used again is shown once and numbered."""
    uses = Counter(child for node in walk(root) for child in inputs_of(node))
    shared = [node for node in walk(root) if uses[node] > 1 and inputs_of(node)]
    lines: list[str] = []
    nodes_above: set[Node] = set()

    def visit(node: Node, depth: int) -> None:
        label = f"#{shared.index(node) + 1} " if node in shared else ""
        repeated = node in nodes_above
        lines.append("  " * depth + label + ("(above)" if repeated else _operator_line(node)))
        if not repeated:
            nodes_above.update({node} & set(shared))
            for child in inputs_of(node):
                visit(child, depth + 1)

    visit(root, 0)
    return "\n".join(lines)


def _operator_line(node: Node) -> str:
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
            return f"Select {formula_text(node.condition)}"
        case Project():
            return f"Project {', '.join(_print_output(o) for o in node.outputs)}"
        case Join(condition=condition) if condition == TRUE:
            return "Join (cross)"
        case Join() | SemiJoin() | AntiJoin():
            return f"{type(node).__name__} on {formula_text(node.condition)}"
        case UnionAll() | Distinct():
            return type(node).__name__
        case GroupBy():
            aggregates = map(_print_aggregate, node.aggregates)
            return f"GroupBy {', '.join((*node.keys, *aggregates))}"
        case Window():
            return f"Window {print_window(node)}"
        case Unnest():
            return f"Unnest {print_unnest(node)}"


def print_values(node: Values, print_expression: Callable[[Expression], str] = formula_text) -> str:
    """The rows of a constant relation."""
    return ", ".join(f"({', '.join(map(print_expression, row))})" for row in node.rows)


def print_unnest(node: Unnest, print_expression: Callable[[Expression], str] = formula_text) -> str:
    """The column that is unnested, and what its elements are called."""
    elements = ", ".join(print_expression(Column(name)) for name in node.elements)
    return f"{print_expression(Column(node.column))} as {elements}{' outer' if node.outer else ''}"


def print_window(node: Window, print_expression: Callable[[Expression], str] = formula_text) -> str:
    """The columns of a window, and over which rows in which order."""
    partition = ", ".join(print_expression(Column(name)) for name in node.partition_by)
    order = ", ".join(
        print_expression(Column(o.column)) + str(o)[len(o.column) :] for o in node.order_by
    )
    over = [f"partition by {partition}"] * bool(partition) + [f"order by {order}"] * bool(order)
    columns = [_print_window_column(each, print_expression) for each in node.columns]
    reserve = f" reserve {node.reserve}" if node.reserve else ""
    limit = "" if node.limit is None else f" limit {node.limit}{reserve}"
    return f"{', '.join(columns)} over ({' '.join(over)}){limit}"


def _print_window_column(
    column: WindowColumn, print_expression: Callable[[Expression], str]
) -> str:
    arguments = ", ".join(map(print_expression, column.arguments))
    nulls = " ignore nulls" if column.ignore_nulls else ""
    usual = column.frame is None or (column.frame.unit == "range" and column.frame.start is None)
    frame = "" if usual and not (column.frame and column.frame.has_offset) else f" {column.frame}"
    return f"{column.function}({arguments}){nulls}{frame} as {column.name}"


def _print_output(output: Output) -> str:
    expression = formula_text(output.expression)
    return expression if expression == output.name else f"{expression} as {output.name}"


def _print_aggregate(aggregate: AggregateColumn) -> str:
    return f"{print_aggregate(aggregate)} as {aggregate.name}"


def print_aggregate(
    aggregate: AggregateColumn,
    print_expression: Callable[[Expression], str] = formula_text,
    rows: str = "",
) -> str:
    """An aggregate without its name; `rows` stands for the argument where it has none."""
    order = ", ".join(
        print_expression(key.expression) + (" desc" if key.descending else "")
        for key in aggregate.order
    )
    arguments = ", ".join(map(print_expression, aggregate.arguments)) or rows
    return f"{aggregate.function}({arguments}{f' order by {order}' if order else ''})"
