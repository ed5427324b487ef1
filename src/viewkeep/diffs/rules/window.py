"""Rules of windows: partitions that a change touches are computed again."""

from collections.abc import Sequence

from viewkeep.diffs.model import UPDATE
from viewkeep.diffs.rules.affected import sources_of, touched_keys
from viewkeep.diffs.rules.build import KEY
from viewkeep.diffs.rules.common import Change, Operator, pass_on, recompute
from viewkeep.diffs.rules.top import top_rules
from viewkeep.query.algebra import Window
from viewkeep.query.expressions import Column, Expression, literal


def window_rules(operator: Operator, inputs: Sequence[Sequence[Change]]) -> None:
    """All changes of the input together; updates of columns that no function reads pass."""
    node = operator.node
    assert isinstance(node, Window)
    [changes] = inputs
    passing = [c for c in changes if c.schema.kind == UPDATE and _is_apart_from_window(node, c)]
    touching = [c for c in changes if c not in passing]
    if touching and node.limit is not None:
        top_rules(operator, changes)
        return
    is_one_to_one = not touching and node.limit is None
    for change in passing:
        pass_on(operator, change, "window u (other columns)", exact=is_one_to_one)
    if not touching:
        return
    keys: dict[str, Expression] = {name: Column(name) for name in node.partition_by}
    partitions = touched_keys(
        operator,
        "window: partition",
        node.child,
        keys or {KEY: literal(1)},
        node.partition_by,
        touching,
    )
    recompute(operator, "window", partitions.leaf, node.partition_by, sources_of(touching))


def _is_apart_from_window(node: Window, change: Change) -> bool:
    return node.reads.isdisjoint(change.schema.changed)
