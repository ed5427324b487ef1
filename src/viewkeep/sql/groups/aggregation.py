"""The group-by operators of one query block, also for mixed DISTINCT aggregates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from viewkeep.query.algebra import AggregateColumn, Distinct, GroupBy, Join, Node, Output, Project
from viewkeep.query.expressions import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OpaqueCall,
    conjunction,
)
from viewkeep.sql.groups.grouping import AggregateCall, GroupKey


def aggregate(rows: Node, keys: Sequence[GroupKey], calls: Sequence[AggregateCall]) -> Node:
    """The groups with their aggregates: one group-by, or several joined on the keys.

    Plain aggregates go over all rows; `f(DISTINCT x)` goes over the distinct pairs of keys and x.
    Every part has the same groups, so an inner join on the keys brings them together.
    """
    base = _with_computed_keys(rows, keys, calls)
    names = tuple(key.name for key in keys)
    sets = dict.fromkeys(call.distinct for call in calls) or {(): None}
    # The plain part, if any, comes first, so that the keys keep its names.
    parts = [
        _aggregation_part(
            base, names, expressions, [call for call in calls if call.distinct == expressions]
        )
        for expressions in sorted(sets, key=bool)
    ]
    result = parts[0]
    for index, part in enumerate(parts[1:], start=2):
        result = _joined_on_keys(result, part, names, f"group_{index}")
    return result


def _with_computed_keys(
    rows: Node, keys: Sequence[GroupKey], calls: Sequence[AggregateCall]
) -> Node:
    if all(isinstance(key.scalar.expression, Column) for key in keys):
        return rows
    columns_read = {name for call in calls for name in call.reads}
    names = {key.name for key in keys}
    own_columns = [Output(n, Column(n)) for n in rows.names if n in columns_read and n not in names]
    return Project(rows, (*(Output(k.name, k.scalar.expression) for k in keys), *own_columns))


def _aggregation_part(
    base: Node,
    keys: tuple[str, ...],
    expressions: tuple[Expression, ...],
    calls: Sequence[AggregateCall],
) -> Node:
    if not expressions:
        return GroupBy(base, keys, tuple(call.column for call in calls))
    columns = {e: Column(f"distinct_{i}") for i, e in enumerate(expressions, start=1)}
    outputs = [
        *(Output(k, Column(k)) for k in keys),
        *(Output(c.name, e) for e, c in columns.items()),
    ]
    aggregates = [_over_columns(call.column, columns) for call in calls]
    return GroupBy(Distinct(Project(base, tuple(outputs))), keys, tuple(aggregates))


def _over_columns(
    aggregate: AggregateColumn, columns: Mapping[Expression, Column]
) -> AggregateColumn:
    argument = aggregate.argument
    return replace(
        aggregate,
        argument=None if argument is None else _expression_over_columns(argument, columns),
        others=tuple(_expression_over_columns(each, columns) for each in aggregate.others),
        order=tuple(
            replace(key, expression=_expression_over_columns(key.expression, columns))
            for key in aggregate.order
        ),
    )


def _expression_over_columns(
    expression: Expression, columns: Mapping[Expression, Column]
) -> Expression:
    """The expression with whole parts of it replaced by columns."""
    if expression in columns:
        return columns[expression]
    match expression:
        case Call():
            return Call(
                expression.function,
                tuple(_expression_over_columns(a, columns) for a in expression.arguments),
            )
        case OpaqueCall():
            return replace(
                expression,
                arguments=tuple(_expression_over_columns(a, columns) for a in expression.arguments),
            )
        case Cast():
            return Cast(_expression_over_columns(expression.argument, columns), expression.type)
        case Column() | Literal():
            return expression


def _joined_on_keys(first: Node, second: Node, keys: tuple[str, ...], prefix: str) -> Node:
    """Both groups side by side; NULL keys are one group, so they must meet."""
    nullable = {field.name for field in second.schema if field.nullable}
    outputs = [Output(f"{prefix}.{n}" if n in keys else n, Column(n)) for n in second.names]
    equal = [
        Call("<=>" if key in nullable else "=", (Column(key), Column(f"{prefix}.{key}")))
        for key in keys
    ]
    return Join(first, Project(second, tuple(outputs)), conjunction(equal))
