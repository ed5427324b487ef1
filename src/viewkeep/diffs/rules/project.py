"""Rules of generalized projections (id_based_ivm, table 8)."""

from collections.abc import Callable, Iterable, Sequence

from viewkeep.diffs.model import DELETE, INSERT, UPDATE, DiffSchema, post, pre
from viewkeep.diffs.rules.build import differ, project, select
from viewkeep.diffs.rules.common import Change, Operator, recompute
from viewkeep.query.algebra import Node, Project
from viewkeep.query.expressions import Column, Expression, columns_of


def project_rules(operator: Operator, inputs: Sequence[Sequence[Change]]) -> None:
    """Computed columns change with what they are computed from."""
    node = operator.node
    assert isinstance(node, Project)
    [changes] = inputs
    expressions = {o.name: o.expression for o in node.outputs}
    for change in changes:
        if change.schema.kind == UPDATE:
            _project_update(operator, expressions, change)
        else:
            _project_rows(operator, expressions, change)


def _project_rows(operator: Operator, expressions: dict[str, Expression], change: Change) -> None:
    """Inserts and deletes, with every column that can be told."""
    schema, ids = change.schema, _project_ids(operator, expressions, change)
    if schema.kind == INSERT:
        after = operator.attributes
        emitted = DiffSchema(INSERT, operator.ids, (), after, after)
    else:
        before = _attributes_of_known_columns(operator, expressions, schema.knows_before)
        emitted = DiffSchema(DELETE, ids, before)
    computed = _project_change(change, emitted, expressions)
    operator.emit(f"project {schema.kind}", emitted, computed, change.sources, change.exact)


def _project_update(operator: Operator, expressions: dict[str, Expression], change: Change) -> None:
    schema = change.schema
    changed = tuple(
        name
        for name in operator.attributes
        if not columns_of(expressions[name]).isdisjoint(schema.changed)
    )
    if not changed:
        return
    if not all(schema.knows_after(columns_of(expressions[name])) for name in changed):
        keys = _project_change(
            change, DiffSchema(UPDATE, _project_ids(operator, expressions, change)), expressions
        )
        recompute(
            operator, "project u", keys, _project_ids(operator, expressions, change), change.sources
        )
        return
    emitted = DiffSchema(
        UPDATE,
        _project_ids(operator, expressions, change),
        _attributes_of_known_columns(operator, expressions, schema.knows_before),
        _attributes_of_known_columns(operator, expressions, schema.knows_after),
        changed,
    )
    computed = _project_change(change, emitted, expressions)
    if set(changed) <= set(emitted.before):
        pairs = [(pre(c), post(c)) for c in changed]
        computed = select(computed, differ(pairs, computed.schema))
    operator.emit("project u", emitted, computed, change.sources, change.exact)


def _project_ids(
    operator: Operator, expressions: dict[str, Expression], change: Change
) -> tuple[str, ...]:
    """The IDs of the change under the projection's names."""
    names = {e.name: name for name, e in expressions.items() if isinstance(e, Column)}
    computed_ids = {
        e.name: name
        for name, e in expressions.items()
        if isinstance(e, Column) and name in operator.ids
    }
    return tuple((names | computed_ids)[c] for c in change.schema.ids)


def _attributes_of_known_columns(
    operator: Operator,
    expressions: dict[str, Expression],
    knows: Callable[[Iterable[str]], bool],
) -> tuple[str, ...]:
    """The attributes whose expressions read only columns that a change knows."""
    return tuple(n for n in operator.attributes if knows(columns_of(expressions[n])))


def _project_change(change: Change, schema: DiffSchema, expressions: dict[str, Expression]) -> Node:
    values: dict[str, Expression] = {}
    for name in schema.ids:
        values[name] = expressions[name]
    for name in schema.before:
        values[pre(name)] = change.before(expressions[name])
    for name in schema.after:
        values[post(name)] = change.after(expressions[name])
    return project(change.leaf, values)
