"""Rules of bag unions: the number of the input is an ID (id_based_ivm, table 5)."""

from collections.abc import Sequence

from viewkeep.diffs.model import INSERT, DiffSchema, post, pre
from viewkeep.diffs.passes.identify import BRANCH
from viewkeep.diffs.rules.build import project
from viewkeep.diffs.rules.common import Change, Operator, as_insert, insert_rows
from viewkeep.query.algebra import UnionAll
from viewkeep.query.expressions import Column, Expression, literal


def union_rules(operator: Operator, inputs: Sequence[Sequence[Change]]) -> None:
    """Changes of one input are changes of its rows of the union."""
    node = operator.node
    assert isinstance(node, UnionAll)
    for branch, changes in enumerate(inputs):
        for change in changes:
            _propagate_union(operator, branch, change)


def _propagate_union(operator: Operator, branch: int, change: Change) -> None:
    schema = change.schema
    if schema.kind == INSERT:
        rows = insert_rows(change, operator.node.names)
        inserted = as_insert(rows, operator.ids, operator.attributes)
        operator.emit("union +", *inserted, change.sources, change.exact)
        return
    output_schema = DiffSchema(
        schema.kind,
        (BRANCH, *schema.ids),
        tuple(c for c in schema.before if c in operator.attributes),
        tuple(c for c in schema.after if c in operator.attributes),
        schema.changed,
    )
    values: dict[str, Expression] = {BRANCH: literal(branch)}
    values |= {c: Column(c) for c in schema.ids}
    values |= {pre(c): Column(pre(c)) for c in output_schema.before}
    values |= {post(c): Column(post(c)) for c in output_schema.after}
    rows = project(change.leaf, values)
    operator.emit(f"union {schema.kind}", output_schema, rows, change.sources, change.exact)
