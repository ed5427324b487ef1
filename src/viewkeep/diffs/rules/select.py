"""Rules of selections (id_based_ivm, table 6)."""

from collections.abc import Sequence

from viewkeep.diffs.model import DELETE, DiffSchema
from viewkeep.diffs.rules.build import fails, holds, project, select, semijoin
from viewkeep.diffs.rules.common import POST, Change, Operator, as_insert, pass_on, recompute
from viewkeep.query.algebra import Node, Select, Window
from viewkeep.query.expressions import Column, columns_of, conjunction
from viewkeep.query.traversal import walk


def select_rules(operator: Operator, inputs: Sequence[Sequence[Change]]) -> None:
    """Rows come and go with the condition; where it is not touched, changes pass."""
    node = operator.node
    assert isinstance(node, Select)
    [changes] = inputs
    for change in changes:
        _propagate_selection(operator, node, change)


def _propagate_selection(operator: Operator, node: Select, change: Change) -> None:
    schema, reads = change.schema, columns_of(node.condition)
    match schema.kind:
        case "insert":
            passing_rows = select(change.leaf, change.after(node.condition))
            operator.emit("select +", schema, passing_rows, change.sources, change.exact)
        case "delete" if schema.knows_before(reads):
            passing_rows = select(change.leaf, change.before(node.condition))
            operator.emit("select -", schema, passing_rows, change.sources, change.exact)
        case "delete":
            pass_on(operator, change, "select - (some may not be there)")
        case _ if reads.isdisjoint(schema.changed):
            _update_outside_condition(operator, node, change)
        case _ if schema.knows_before(reads) and schema.knows_after(reads):
            _update_inside_condition(operator, node, change)
        case _:
            recompute(operator, "select u", change.leaf, schema.ids, change.sources)


def _update_outside_condition(operator: Operator, node: Select, change: Change) -> None:
    """Pass on an update of columns that the condition does not read, without rows known to fail
    it."""
    if change.schema.knows_after(columns_of(node.condition)):
        passing_rows = select(change.leaf, change.after(node.condition))
        operator.emit("select u", change.schema, passing_rows, change.sources, change.exact)
    else:
        pass_on(operator, change, "select u (some may not be there)")


def _update_inside_condition(operator: Operator, node: Select, change: Change) -> None:
    """Split an update of columns in the condition: rows that pass before only, after only, or both
    times."""
    schema = change.schema
    before, after = change.before(node.condition), change.after(node.condition)
    stays = select(change.leaf, conjunction([holds(before), holds(after)]))
    operator.emit("select u", schema, stays, change.sources, change.exact)
    goes = select(change.leaf, conjunction([holds(before), fails(after)]))
    deleted = DiffSchema(DELETE, schema.ids, schema.before)
    operator.emit("select u: -", deleted, goes, change.sources, change.exact)
    comes = operator.helper(
        "select u: +", select(change.leaf, conjunction([fails(before), holds(after)]))
    )
    rows: Node = semijoin(operator.input(node.child, POST), comes.leaf, schema.ids)
    is_dear = operator.tuple_based or _is_over_window(node.child)
    if change.exact and schema.knows_after(node.child.names) and is_dear:
        rows = project(comes.leaf, {n: Column(schema.value_after(n)) for n in node.child.names})
    inserted = as_insert(rows, operator.ids, operator.attributes)
    operator.emit("select u: +", *inserted, change.sources, change.exact)


def _is_over_window(node: Node) -> bool:
    """Whether looking a row up would compute its partition again."""
    return any(isinstance(each, Window) for each in walk(node))
