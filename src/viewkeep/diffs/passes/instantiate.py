"""Pass 2: the rules of every operator, for the diffs of the base tables: the rule DAG
(id_based_ivm, section 4). Group-bys and windows wait for all changes of their input; all other
rules take one change at a time."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from viewkeep.diffs.caches import caches
from viewkeep.diffs.model import DiffSchema, base_diff_columns, post, pre
from viewkeep.diffs.passes.identify import IdPlan
from viewkeep.diffs.rules.build import project
from viewkeep.diffs.rules.common import Change, Operator, Piece
from viewkeep.diffs.rules.group import group_rules
from viewkeep.diffs.rules.join import join_rules
from viewkeep.diffs.rules.project import project_rules
from viewkeep.diffs.rules.select import select_rules
from viewkeep.diffs.rules.semijoin import semijoin_rules
from viewkeep.diffs.rules.union import union_rules
from viewkeep.diffs.rules.unnest import unnest_rules
from viewkeep.diffs.rules.window import window_rules
from viewkeep.diffs.script import BaseDiff
from viewkeep.query.algebra import (
    AntiJoin,
    GroupBy,
    Join,
    Node,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    UnionAll,
    Unnest,
    Window,
)
from viewkeep.query.expressions import Column
from viewkeep.query.traversal import inputs_of

RULES: dict[type, Callable[[Operator, Sequence[Sequence[Change]]], None]] = {
    Select: select_rules,
    Project: project_rules,
    Join: join_rules,
    UnionAll: union_rules,
    SemiJoin: semijoin_rules,
    AntiJoin: semijoin_rules,
    GroupBy: group_rules,
    Window: window_rules,
    Unnest: unnest_rules,
}
"""The rules of each operator; a new operator needs a row here and a module."""

BLOCKING = (GroupBy, Window)
"""Operators that look at all changes of their input at once."""


@dataclass(frozen=True)
class RuleDag:
    """The plan, the base diffs, and all instantiated rules in an order in which they can run."""

    plan: IdPlan
    diffs: tuple[BaseDiff, ...]
    pieces: tuple[Piece, ...]
    tuple_based: bool = False

    def changes(self, number: int) -> list[Change]:
        """The changes of an operator's output."""
        return [p for p in self.pieces if isinstance(p, Change) and p.operator == number]


def instantiate(plan: IdPlan, diffs: Sequence[BaseDiff], tuple_based: bool = False) -> RuleDag:
    """Every operator's rules for the changes that reach it, from the scans up."""
    nodes, pieces = plan.nodes, list[Piece]()
    changes_by_node: dict[Node, list[Change]] = {}
    cached_nodes = caches(plan, tuple_based)
    uses = Counter(child for node in nodes for child in set(inputs_of(node)))
    labels: dict[tuple[int, int], int] = {}

    def label(number: int, source: int) -> int:
        return labels.setdefault((number, source), len(nodes) + len(labels))

    for number, node in enumerate(nodes):
        operator = Operator(number, node, plan, tuple_based, cached_nodes)
        if isinstance(node, Project) and uses[node.child] > 1:
            operator.labels = partial(label, number)
        if isinstance(node, Scan):
            _scan_changes(operator, node, diffs)
        else:
            inputs = [changes_by_node[child] for child in inputs_of(node)]
            if any(inputs):
                RULES[type(node)](operator, inputs)
        pieces += operator.pieces
        changes_by_node[node] = [piece for piece in operator.pieces if isinstance(piece, Change)]
    return RuleDag(plan, tuple(diffs), tuple(pieces), tuple_based)


def _scan_changes(operator: Operator, scan: Scan, diffs: Iterable[BaseDiff]) -> None:
    """The diffs of the table under the names of the scan."""
    for diff in diffs:
        if diff.table != scan.name:
            continue
        alias, own = f"{scan.alias}.", diff.schema
        ids, before, after, changed = (
            tuple(f"{alias}{c}" for c in part)
            for part in (own.ids, own.before, own.after, own.changed)
        )
        schema = DiffSchema(own.kind, ids, before, after, changed)
        values = {f"{alias}{c}": Column(c) for c in own.ids}
        values |= {pre(f"{alias}{c}"): Column(pre(c)) for c in own.before}
        values |= {post(f"{alias}{c}"): Column(post(c)) for c in own.after}
        leaf = Stored(diff.name, base_diff_columns(own, scan.table.columns))
        operator.emit("scan", schema, project(leaf, values), {operator.number}, True)
