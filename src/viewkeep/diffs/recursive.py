"""Tuple-based scripts with the intermediate views of DBToaster (id_based_ivm, section 7.3).

A tuple diff of a table meets the join of all other tables. These variants keep that join, so that
one look-up finds what the diff meets, and they keep what the upkeep of kept joins asks for, and so
on:

    fixed     only the given tables change: the joins of all others are kept
    streams   all tables change: such joins for every table, and they change as well

Joins that fall apart into parts without a common condition are kept part by part, and a part that
is one table is read from that table. Names and columns of what is kept depend on the view and on
its changing tables, not on the table whose changes a script brings.

A script brings the changes of one table. A batch of several tables is run table by table, and for
the script of X its sources are

    (X, "pre"), (X, "post")   X before and after its changes
    (T, "post")               any other table T: as it is after the batch if the script of T has
                              run, and as it was before the batch if it has not
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.passes.compose import VIEW, compose
from viewkeep.diffs.passes.identify import IdPlan, identify
from viewkeep.diffs.passes.instantiate import instantiate
from viewkeep.diffs.passes.minimize import minimize
from viewkeep.diffs.rules.build import keep, project, select
from viewkeep.diffs.schemas import base_diffs, every_change
from viewkeep.diffs.script import Apply, BaseDiff, Compute, Materialized, Script, Statement
from viewkeep.errors import ViewkeepError
from viewkeep.query.algebra import GroupBy, Join, Node, Project, Scan, Select, Stored
from viewkeep.query.expressions import (
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    substitute,
)
from viewkeep.query.traversal import rewrite_tree, with_children

GROUPS = "cache_groups"
"""The cache of a group-by that is not the view itself."""

MOST_VIEWS = 100
"""Beyond this many kept joins (a star of seven tables has 64) keeping them is no strategy."""

AGGREGATES = ("sum", "count", "avg")

Part = frozenset[int]
"""Some of the scans of a view, by their numbers."""


class RecursiveError(ViewkeepError):
    """A view that is not of the shape that recursive views are made for."""


def generate_recursive(
    view: Node,
    table: str,
    changing: Collection[str],
    kinds: Iterable[tuple[str, frozenset[str]]] | None = None,
) -> Script:
    """The script for changes of one table, of the given kinds or of any; `changing` are all
    tables that may ever change."""
    shape = _join_shape(optimize(view))
    names = {scan.name for scan in shape.scans}
    for name in (table, *changing):
        if name not in names:
            raise _recursion_refusal(f'it does not read "{name}", only {", ".join(sorted(names))}')
    if table not in changing:
        raise _recursion_refusal(f'"{table}" is not among the tables that change')
    return _Recursive(shape, table, _kept_parts(shape, changing)).script(kinds)


# --- what the view is made of ---------------------------------------------------------------------


@dataclass(frozen=True)
class _RecursiveShape:
    """A join of scans under conditions, what is computed from it, and what stands above."""

    scans: tuple[Scan, ...]
    conditions: tuple[Expression, ...]
    columns: Mapping[str, Expression]
    above: tuple[Node, ...]
    visible: tuple[str, ...]

    def read_by(self, expression: Expression) -> Part:
        """The scans whose columns an expression reads."""
        reads = columns_of(expression)
        return frozenset(i for i, s in enumerate(self.scans) if not reads.isdisjoint(s.names))

    def part_columns(self, part: Part) -> list[str]:
        """The columns of a part that are read outside of it, and the keys of its scans."""
        outside = [c for c in self.conditions if not self.read_by(c) <= part]
        reads = {name for e in (*outside, *self.columns.values()) for name in columns_of(e)}
        scans = [self.scans[i] for i in sorted(part)]
        return [name for scan in scans for name in scan.names if name in reads | _scan_key(scan)]

    def components(self, part: Part) -> list[Part]:
        """The scans that conditions hold together."""
        components: list[Part] = [frozenset({i}) for i in sorted(part)]
        for condition in self.conditions:
            if (reads := self.read_by(condition)) and reads <= part:
                disjoint = [each for each in components if each.isdisjoint(reads)]
                overlaps = [each for each in components if not each.isdisjoint(reads)]
                components = [*disjoint, frozenset[int]().union(*overlaps)]
        return sorted(components, key=min)

    def joined(self, parts: Iterable[tuple[Part, Node]]) -> Node:
        """Parts joined from left to right, with each condition where its columns first meet."""

        def meet(left: tuple[Part, Node], right: tuple[Part, Node]) -> tuple[Part, Node]:
            both = left[0] | right[0]
            new = [
                c
                for c in self.conditions
                if (reads := self.read_by(c)) <= both and not reads <= left[0]
                if not reads <= right[0]
            ]
            return both, Join(left[1], right[1], conjunction(new))

        return reduce(meet, parts)[1]

    def scan(self, number: int) -> Node:
        """One scan under its own conditions."""
        own = [c for c in self.conditions if self.read_by(c) == {number}]
        return select(self.scans[number], conjunction(own))


def _scan_key(scan: Scan) -> set[str]:
    return {f"{scan.alias}.{column}" for column in scan.table.key}


def _join_shape(view: Node) -> _RecursiveShape:
    above = list[Node]()
    core = view
    if isinstance(core, Project) and isinstance(core.child, GroupBy):
        above, core = [core], core.child
    if isinstance(core, GroupBy):
        for each in core.aggregates:
            if each.function not in AGGREGATES:
                raise _recursion_refusal(f"{each.function} is none of {', '.join(AGGREGATES)}")
        above, core = [*above, core], core.child
    scans, conditions, columns = _flat_join(core)
    return _RecursiveShape(scans, conditions, columns, tuple(above), view.names)


def _flat_join(
    node: Node,
) -> tuple[tuple[Scan, ...], tuple[Expression, ...], dict[str, Expression]]:
    """Selections, projections and joins as one join: scans, conditions, and the columns over
    those of the scans."""
    match node:
        case Scan():
            return (node,), (), {name: Column(name) for name in node.names}
        case Select():
            scans, conditions, columns = _flat_join(node.child)
            return scans, (*conditions, *_conditions_over_scans(columns, node.condition)), columns
        case Project():
            scans, conditions, columns = _flat_join(node.child)
            outputs = {o.name: _expression_over_scans(columns, o.expression) for o in node.outputs}
            return scans, conditions, outputs
        case Join():
            left, right = _flat_join(node.left), _flat_join(node.right)
            columns = left[2] | right[2]
            own = _conditions_over_scans(columns, node.condition)
            return left[0] + right[0], (*left[1], *right[1], *own), columns
    raise _recursion_refusal(f"{type(node).__name__} stands below its joins")


def _conditions_over_scans(
    columns: Mapping[str, Expression], condition: Expression
) -> tuple[Expression, ...]:
    parts = conjuncts(_expression_over_scans(columns, condition))
    return tuple(part for part in parts if part != conjunction([]))


def _expression_over_scans(columns: Mapping[str, Expression], expression: Expression) -> Expression:
    return substitute(expression, lambda column: columns[column.name])


def _kept_parts(shape: _RecursiveShape, changing: Collection[str]) -> list[Part]:
    """The joins that are kept, smallest first: what is left when a changing scan is taken out of
    the view, or out of a join that is kept."""
    parts: dict[Part, None] = {}
    queue = [frozenset(range(len(shape.scans)))]
    while queue:
        part = queue.pop()
        for i in sorted(part):
            if shape.scans[i].name in changing:
                for rest in shape.components(part - {i}):
                    if len(rest) > 1 and rest not in parts:
                        parts[rest] = None
                        queue.append(rest)
        if len(parts) > MOST_VIEWS:
            raise _recursion_refusal(
                f"it would keep more than {MOST_VIEWS} joins; let fewer tables change"
            )
    return sorted(parts, key=lambda part: (len(part), sorted(part)))


def _recursion_refusal(why: str) -> RecursiveError:
    return RecursiveError(f"not for this view: {why}")


# --- the script -----------------------------------------------------------------------------------


class _Recursive:
    """The script of one table: a small script for the view and for each kept join that the table
    is part of, put together. They read what is kept before any of it changes."""

    def __init__(self, shape: _RecursiveShape, table: str, cached_parts: list[Part]) -> None:
        self._shape, self._table, self._cached_parts = shape, table, cached_parts
        self._names = {part: f"cache_{'_'.join(map(str, sorted(part)))}" for part in cached_parts}

    def script(self, kinds: Iterable[tuple[str, frozenset[str]]] | None) -> Script:
        plan = identify(self._view_over_joins())
        changes = {self._table: every_change(plan)[self._table] if kinds is None else kinds}
        diffs = base_diffs(plan, changes)
        whole = self._target_statements(plan, diffs, VIEW)
        statements = list(whole.statements)
        for part in self._cached_parts:
            if any(self._shape.scans[i].name == self._table for i in part):
                own = identify(self._join_rows(part))
                statements += self._target_statements(own, diffs, self._names[part]).statements
        groups = tuple(cache for cache in whole.caches if cache.name == GROUPS)
        visible = tuple((name, name) for name in self._shape.visible)
        joins = tuple(map(self._materialized_join, self._cached_parts))
        ordered = sorted(statements, key=lambda each: isinstance(each, Apply))
        return Script(whole.view, (*joins, *groups), diffs, tuple(ordered), visible, whole.notes)

    def _target_statements(self, plan: IdPlan, diffs: tuple[BaseDiff, ...], target: str) -> Script:
        """The statements that change one target; other scripts change what it reads."""
        nodes = set(plan.nodes)
        cache_names = {
            self._join_rows(part): name for part, name in self._names.items() if name != target
        }
        cache_names = {node: name for node, name in cache_names.items() if node in nodes}
        cache_names |= {n: GROUPS for n in nodes if isinstance(n, GroupBy) and n is not plan.root}
        return target_script(plan, diffs, cache_names, target)

    def _materialized_join(self, part: Part) -> Materialized:
        """A kept join from the tables alone, in the same way whichever table changes."""
        scans = [(frozenset({i}), self._shape.scan(i)) for i in self._scans_in_join_order(part)]
        plan = identify(keep(self._shape.joined(scans), self._shape.part_columns(part)))
        aliases = ", ".join(self._shape.scans[i].alias for i in sorted(part))
        return Materialized(
            self._names[part], plan.root, plan.ids[plan.root], f"the join of {aliases}"
        )

    def _scans_in_join_order(self, part: Part) -> list[int]:
        """The scans of a part in an order in which each meets one before it."""
        order, rest = [min(part)], sorted(part - {min(part)})
        while rest:
            near = (i for i in rest if len(self._shape.components(frozenset({*order, i}))) == 1)
            order.append(next(near, rest[0]))
            rest.remove(order[-1])
        return order

    # --- join trees in which the table is joined last -------------------------------------------

    def _view_over_joins(self) -> Node:
        """The view over such a tree; it shows all keys, so that it has the same columns whichever
        table comes last."""
        shape = self._shape
        all_scans = frozenset(range(len(shape.scans)))
        constant = [c for c in shape.conditions if not shape.read_by(c)]
        tree = select(self._join_tree(all_scans), conjunction(constant))
        columns = dict(shape.columns)
        if not shape.above:
            output_columns = set(columns.values())
            hidden = [
                k
                for s in shape.scans
                for k in sorted(_scan_key(s))
                if Column(k) not in output_columns
            ]
            columns |= {_fresh_column_name(key, columns): Column(key) for key in hidden}
        root = project(tree, columns)
        for operator in reversed(shape.above):
            root = with_children(operator, (root,))
        return root

    def _join_tree(self, part: Part) -> Node:
        own = [i for i in sorted(part) if self._shape.scans[i].name == self._table]
        first = own[0] if own else min(part)
        others = self._shape.components(part - {first})
        scan = (frozenset({first}), self._shape.scan(first))
        return self._shape.joined([scan, *((each, self._join_rows(each)) for each in others)])

    def _join_rows(self, part: Part) -> Node:
        """A part as it is kept."""
        if len(part) == 1:
            return self._shape.scan(min(part))
        return keep(self._join_tree(part), self._shape.part_columns(part))


def target_script(
    plan: IdPlan, diffs: Sequence[BaseDiff], cache_names: Mapping[Node, str], target: str
) -> Script:
    """The statements that change the root of a plan, called `target`, and the groups below it;
    those with `cache_names` are cached as well, and changed by other scripts."""
    composed = compose(instantiate(plan, diffs, tuple_based=True), cache_names)
    own = [s for s in composed.statements if _changes_only(s, {VIEW, GROUPS})]
    return _script_of_target(minimize(replace(composed, statements=tuple(own))), target)


def _changes_only(statement: Statement, targets: Collection[str]) -> bool:
    return isinstance(statement, Compute) or statement.target in targets


def _fresh_column_name(name: str, others: Collection[str]) -> str:
    while name in others:
        name += "'"
    return name


def _script_of_target(script: Script, target: str) -> Script:
    """The script of another target than the view, with names that no other script uses."""
    if target == VIEW:
        return script
    names = {each.name: f"{each.name} of {target}" for each in script.computes()} | {VIEW: target}

    def rule(node: Node) -> Node:
        if isinstance(node, Stored) and node.name in names:
            return replace(node, name=names[node.name])
        return node

    def renamed(statement: Statement) -> Statement:
        if isinstance(statement, Compute):
            query = rewrite_tree(statement.query, rule)
            return replace(statement, name=names[statement.name], query=query)
        return replace(statement, diff=names[statement.diff], target=names[statement.target])

    return replace(script, statements=tuple(map(renamed, script.statements)))
