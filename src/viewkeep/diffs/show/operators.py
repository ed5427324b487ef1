"""Operators of delta scripts for people: one symbol each, and what it does beside it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from viewkeep.diffs.rules.build import KEY, project, rename_expression
from viewkeep.diffs.show.names import (
    column_text,
    condition_text,
    readable_expression,
    relation_text,
)
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
from viewkeep.query.expressions import TRUE, Column, substitute
from viewkeep.query.show import print_aggregate, print_unnest, print_values, print_window

SYMBOLS: Mapping[type[Node], str] = {
    Select: "\N{GREEK SMALL LETTER SIGMA}",
    Project: "π",
    Join: "⋈",
    SemiJoin: "⋉",
    AntiJoin: "▷",
    UnionAll: "\N{UNION}",
    GroupBy: "\N{GREEK SMALL LETTER GAMMA}",
    Distinct: "δ",
    Window: "ω",
    Unnest: "\N{GREEK SMALL LETTER MU}",
}

TIE = "\N{NO-BREAK SPACE}"
LONG = 56
"""Columns with longer definitions are broken at any blank."""

_COMPARISON = re.compile(r" (?:[=<>]|<=|>=|<>|is not|is) ")
_WORDS = str.maketrans(
    {symbol: kind.__name__.lower() for kind, symbol in SYMBOLS.items()} | {"Δ": "d", "→": "->"}
)


def ascii_text(text: str) -> str:
    """The same for screens without the symbols.

    >>> ascii_text("Δu7.2 = σ[x] (Δu(parts))")
    'du7.2 = select[x] (du(parts))'
    """  # noqa: RUF002 - see above
    return text.translate(_WORDS)


def details(node: Node) -> str:
    """What an operator does, without its inputs: the index of its symbol."""
    return _operator_details(node).replace(TIE, " ")


def _operator_details(node: Node) -> str:
    """What an operator does, with ties in place of blanks where a line should not be broken."""
    match node:
        case Scan():
            state = "" if node.state == "post" else f"@{node.state}"
            return f"{node.name}{state}{_scan_alias(node)}"
        case Stored():
            return relation_text(node.name)
        case Values():
            return f"values {print_values(node, readable_expression)}"
        case Select() | SemiJoin() | AntiJoin() | Join():
            text = "" if node.condition == TRUE else condition_text(node.condition)
            return _COMPARISON.sub(lambda match: match[0].replace(" ", TIE), text)
        case Project():
            return _comma_list(map(_output_text, node.outputs))
        case GroupBy():
            keys = _comma_list(map(column_text, node.keys))
            return "; ".join(
                filter(None, (keys, _comma_list(map(_aggregate_text, node.aggregates))))
            )
        case UnionAll() | Distinct():
            return ""
        case Window():
            return print_window(node, readable_expression)
        case Unnest():
            return print_unnest(node, readable_expression)


def _comma_list(items: Iterable[str]) -> str:
    """Items with commas; lines are broken between short ones."""
    return ", ".join(i.replace(" ", TIE) if len(i) < LONG else i for i in items)


def _scan_alias(node: Scan) -> str:
    return f" {node.alias}" if node.alias != node.name else ""


def _output_text(output: Output) -> str:
    return _text_with_name(readable_expression(output.expression), output.name)


def _aggregate_text(aggregate: AggregateColumn) -> str:
    return _text_with_name(print_aggregate(aggregate, readable_expression, "*"), aggregate.name)


def _text_with_name(text: str, name: str) -> str:
    label = column_text(name)
    return text if text == label else f"{text}→{label}"


def head(node: Node) -> str:
    """An operator without its inputs; a relation by its name."""
    inside = _operator_details(node)
    if isinstance(node, Scan | Stored | Values):
        return inside
    return f"{SYMBOLS[type(node)]}[{inside}]" if inside else SYMBOLS[type(node)]


def simpler(node: Node) -> Node:
    """The same for a reader: columns that rows are matched by need no projection of their own."""
    node = _merged_renaming(node)
    match node:
        case Project(child=child) if _is_renaming_of_marks(node):
            return simpler(child)
        case SemiJoin() | AntiJoin():
            return _keys_in_condition(node)
    return node


def _merged_renaming(node: Node) -> Node:
    """A projection of renamed columns as one projection."""
    match node:
        case Project(child=Project(child=below, outputs=inner)) if _renames_columns(inner):
            return _merged_renaming(Project(below, _outputs_through(node.outputs, inner)))
    return node


def _is_renaming_of_marks(node: Project) -> bool:
    """Whether a projection only drops the marks of columns that rows are matched by."""
    label = [column_text(o.name) for o in node.outputs if isinstance(o.expression, Column)]
    return label == [column_text(name) for name in node.child.names] and all(
        column_text(o.name) == readable_expression(o.expression) for o in node.outputs
    )


def _renames_columns(outputs: Sequence[Output]) -> bool:
    return all(isinstance(o.expression, Column) for o in outputs)


def _outputs_through(outer: Sequence[Output], inner: Sequence[Output]) -> tuple[Output, ...]:
    below = {o.name: o.expression for o in inner}
    return tuple(Output(o.name, substitute(o.expression, lambda c: below[c.name])) for o in outer)


def _keys_in_condition(node: SemiJoin | AntiJoin) -> Node:
    """`X ⋉[x = y] Y` for a right side that only renames y to what the condition reads."""
    right = _merged_renaming(node.right)
    if not isinstance(right, Project) or not _renames_columns(right.outputs):
        return node
    left_names, names = set(node.left.names), right.child.names
    marked = {name: f"{name}{KEY}" if name in left_names else name for name in names}
    below = {o.name: rename_expression(o.expression, marked) for o in right.outputs}
    condition = substitute(node.condition, lambda column: below.get(column.name, column))
    child = project(right.child, {own: Column(name) for name, own in marked.items()})
    return replace(node, right=child, condition=condition)
