"""Which columns of each operator are read by those above it."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

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
from viewkeep.query.expressions import Column, Literal, columns_of
from viewkeep.query.traversal import walk

Needs = dict[Node, frozenset[str]]


def needed_columns(root: Node, whole_nodes: Iterable[Node] = (), never_none: bool = False) -> Needs:
    """For each operator the columns that some use of it reads; all of the root and `whole_nodes`.

    `never_none` asks for a column also where only rows are counted.
    """
    needs: Needs = {node: frozenset(node.names) for node in (root, *whole_nodes)}
    for node in reversed(list(walk(root))):  # operators come before their inputs
        if never_none and not needs[node]:
            needs[node] = frozenset([_column_to_count_rows(node)])
        for child, names in _columns_read_of_inputs(node, needs[node]):
            needs[child] = needs.get(child, frozenset()) | names
    return needs


def aggregates_needed(group: GroupBy, columns: frozenset[str]) -> tuple[AggregateColumn, ...]:
    """The aggregates that are read; one of them where a group-by would be left with nothing."""
    needed = tuple(each for each in group.aggregates if each.name in columns)
    return needed if needed or group.keys else group.aggregates[:1]


def outputs_needed(project: Project, columns: frozenset[str]) -> tuple[Output, ...]:
    """The computed columns that are read; the simplest one where only rows are counted."""
    needed = tuple(each for each in project.outputs if each.name in columns)
    plain = (each for each in project.outputs if isinstance(each.expression, Column | Literal))
    return needed or (next(plain, project.outputs[0]),)


def window_needed(window: Window, columns: frozenset[str]) -> Window | None:
    """The window with the computed columns that are read, if some are."""
    needed = tuple(each for each in window.columns if each.name in columns)
    if window.limit is not None:
        return replace(window, columns=needed or window.columns[:1])
    if not needed:
        return None
    by_place = any(each.is_by_place for each in needed)
    return replace(window, columns=needed, ties=window.ties if by_place else ())


def branches_need(union: UnionAll, columns: frozenset[str]) -> tuple[str, ...]:
    """The columns that all inputs of a union must have."""
    return tuple(name for name in union.names if name in columns) or union.names[:1]


def _column_to_count_rows(node: Node) -> str:
    return outputs_needed(node, frozenset())[0].name if isinstance(node, Project) else node.names[0]


def _columns_read_of_inputs(
    node: Node, columns: frozenset[str]
) -> Iterator[tuple[Node, frozenset[str]]]:
    match node:
        case Scan() | Stored() | Values():
            return
        case Select():
            yield node.child, columns | columns_of(node.condition)
        case Project():
            expressions = (o.expression for o in outputs_needed(node, columns))
            yield node.child, _union_of_columns(map(columns_of, expressions))
        case Join():
            reads = columns | columns_of(node.condition)
            yield node.left, reads.intersection(node.left.names)
            yield node.right, reads.intersection(node.right.names)
        case SemiJoin() | AntiJoin():
            condition = columns_of(node.condition)
            yield node.left, columns | condition.intersection(node.left.names)
            yield node.right, condition.intersection(node.right.names)
        case UnionAll():
            for child in node.inputs:
                yield child, frozenset(branches_need(node, columns))
        case GroupBy():
            reads = _union_of_columns(each.reads for each in aggregates_needed(node, columns))
            yield node.child, reads.union(node.keys)
        case Distinct():
            yield node.child, frozenset(node.child.names)
        case Unnest():
            yield node.child, columns.intersection(node.child.names) | {node.column}
        case Window():
            needed, input_columns = (
                window_needed(node, columns),
                columns.intersection(node.child.names),
            )
            yield node.child, input_columns | needed.reads if needed is not None else input_columns


def _union_of_columns(parts: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*parts)
