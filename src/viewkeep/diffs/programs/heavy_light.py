"""Heavy and light parts as scripts (triangle_ivm_epsilon, sections 4 to 8): the adaptive trigger
program of sums over a join, of all rows or by group, over whole batches.

    parts      each table, summed up to the columns that join it, in a cache for each level
    views      joins of parts that the program keeps, so that no delta takes a long loop
    levels     the degree and the level of every value that is told apart
    balance    the base of the thresholds, the number of tuples, and how often values moved

A batch changes table by table, each seeing those before it changed: by `ring_maps`, a map after
changes is the bag of its rows and of the changes. Then values whose degree has crossed a threshold
move (minor rebalancing), or, where the size has left its bounds, all values whose level is not that
of the new thresholds (major rebalancing): their tuples leave one part and enter another, and the
views follow by the same triggers. All of it is one script, applied as a whole or not at all.
"""

from collections.abc import Mapping, Sequence

from viewkeep.diffs.generate import Changes
from viewkeep.diffs.model import DELETE, INSERT
from viewkeep.diffs.passes.compose import VIEW
from viewkeep.diffs.passes.identify import ALL, identify
from viewkeep.diffs.programs.count_program import CountProgram, count_program
from viewkeep.diffs.programs.kept_parts import KeptParts
from viewkeep.diffs.programs.levels import (
    ANEW,
    BALANCE,
    BALANCE_COLUMNS,
    Levels,
    balance_sum,
    checked_balance,
    count_moves,
    size_change,
)
from viewkeep.diffs.programs.measures import ONE, ZERO
from viewkeep.diffs.programs.ring_maps import RingMap, not_matching, rows_with_keys
from viewkeep.diffs.rules.build import antijoin, keep, project, select, union_all
from viewkeep.diffs.rules.common import as_delete, as_insert
from viewkeep.diffs.schemas import base_diffs, every_change
from viewkeep.diffs.script import Apply, BaseDiff, Compute, Script
from viewkeep.errors import QueryError
from viewkeep.plan.program import Part
from viewkeep.query.algebra import AggregateColumn, GroupBy, Node, Stored
from viewkeep.query.expressions import Call, Column, Expression, literal
from viewkeep.query.flatten import NotConjunctive

BY = "#by"
"""By how many the tuples of a key change."""


def plan_heavy_light_view(view: Node) -> CountProgram:
    """What is kept of a view; an error for one that has no heavy and light parts."""
    try:
        return count_program(view)
    except NotConjunctive as problem:
        raise QueryError(
            f"no heavy and light parts for this view: {problem.construct}; choose "
            'strategy="auto", which takes IDs or what is expected to be faster of tuple, viewtree, '
            "recursive and recompute"
        ) from None


def generate_heavy_light(
    view: Node, changes: Changes | None = None, program: CountProgram | None = None
) -> Script:
    """The script of a view for some kinds of changes, by default for all; `program` saves planning
    anew."""
    return _HeavyLight(view, program or plan_heavy_light_view(view)).script(changes)


class _HeavyLight:
    """The statements of one script, in the order in which they are made."""

    def __init__(self, view: Node, program: CountProgram) -> None:
        self._view, self._program, self._caches = view, program, KeptParts(program)
        self._computes: list[Compute] = []
        self._applies: list[Apply] = []
        self._changes: dict[str, list[Node]] = {}
        """By map: the changes so far."""

    def script(self, changes: Changes | None) -> Script:
        plan = identify(self._view)
        diffs = base_diffs(plan, every_change(plan) if changes is None else changes)
        tuples = {
            atom: self._change_atom(atom, own)
            for atom, scan in enumerate(self._program.join.scans)
            if (own := [diff for diff in diffs if diff.table == scan.name])
        }
        if tuples:
            self._rebalance_statements(tuples)
            self._store_maps()
            self._store_view()
        visible = tuple((name, name) for name in self._view.names)
        *caches, view_rows = self._caches.materialized.values()
        return Script(view_rows, tuple(caches), diffs, (*self._computes, *self._applies), visible)

    def _map_rows_now(self, own: RingMap) -> Node:
        """The rows of a map with the changes so far."""
        return union_all([self._caches.stored(own.name), *self._changes.get(own.name, ())])

    # --- one table after the other --------------------------------------------------------------

    def _change_atom(self, atom: int, diffs: Sequence[BaseDiff]) -> Stored:
        """The tuples of an atom that come and go, after all that follows from its changes."""
        program, own = self._program, self._program.atoms[atom]
        name = f"change of {own.name}"
        change = self._compute_statement(name, program.change(atom, diffs))
        self._sum_result(own, change)
        parts = [part for part in program.parts if part.atom == atom]
        for part in parts:
            rows = self._compute_statement(
                f"{name} in {part.map}", self._caches.of_part(change, part)
            )
            self._change_views(part, rows, name)
        for part in parts:
            self._add_to_map(program.maps[part.map], Stored(f"{name} in {part.map}", change.schema))
        return self._compute_statement(
            f"tuples of {own.name}", self._tuple_changes(own, parts, change)
        )

    def _sum_result(self, own: RingMap, change: Stored) -> None:
        result = self._program.result
        factor = own.factor(change)
        bags = [
            result.rows(self._program.join_steps(factor, steps, self._map_rows_now))
            for steps in self._program.outputs(own)
        ]
        self._add_to_map(
            result, self._compute_statement(f"result by {own.name}", result.summed(bags))
        )

    def _change_views(self, part: Part, rows: Stored, cause: str) -> None:
        """The views that a part is in; none of them is read by what changes them."""
        for target, steps in self._program.view_blocks(part):
            factor = self._program.maps[part.map].factor(rows)
            change = target.rows(self._program.join_steps(factor, steps, self._map_rows_now))
            name = f"{target.name} by {cause} in {part.map}"
            self._add_to_map(target, self._compute_statement(name, target.summed([change])))

    def _tuple_changes(self, own: RingMap, parts: Sequence[Part], change: Stored) -> Node:
        """Keys that come (1) and go (-1): those that had rows, and those that have some now."""
        pairs = [(name, name) for name in own.ids]
        rows, was = own.sums[0], "#was"

        def with_count(node: Node, value: Expression) -> Node:
            columns = {name: Column(name) for name in (*own.ids, rows)}
            return project(node, {**columns, was: value})

        stored = [self._caches.stored(self._program.maps[part.map].name) for part in parts]
        bags = [
            with_count(change, ZERO),
            *(with_count(rows_with_keys(s, change, pairs), ONE) for s in stored),
        ]
        sums = tuple(AggregateColumn(name, "sum", Column(name)) for name in (rows, was))
        group = GroupBy(union_all(bags), own.ids, sums)
        now = Call("case", (Call(">", (Column(rows), literal(0))), ONE, ZERO))
        columns: dict[str, Expression] = {name: Column(name) for name in own.ids}
        changed = project(group, {**columns, BY: Call("-", (now, Column(was)))})
        return select(changed, Call("<>", (Column(BY), literal(0))))

    # --- rebalancing ----------------------------------------------------------------------------

    def _rebalance_statements(self, tuples: Mapping[int, Stored]) -> None:
        sizes = [size_change(each, Column(BY)) for each in tuples.values()]
        summed = self._compute_statement(
            "size", balance_sum([self._caches.stored(BALANCE), *sizes])
        )
        balance = self._compute_statement("balance", checked_balance(summed))
        anew = self._compute_statement(
            "anew", select(balance, Call(">", (Column(ANEW), literal(0))))
        )
        moved = [self._new_levels(levels, tuples, balance, anew) for levels in self._program.levels]
        for levels, values in zip(self._program.levels, moved, strict=True):
            self._move_values(levels, values)
        minor = [select(each, Call("=", (Column(ANEW), literal(0)))) for each in moved]
        bags = [keep(balance, (ALL, *BALANCE_COLUMNS)), *map(count_moves, minor)]
        final = self._compute_statement("balance after", balance_sum(bags))
        self._apply_statement(BALANCE, INSERT, final, (ALL,), BALANCE_COLUMNS)

    def _new_levels(
        self, levels: Levels, tuples: Mapping[int, Stored], balance: Stored, anew: Stored
    ) -> Stored:
        """Store new degrees and levels; the values whose level changes."""
        name, stored = levels.name, self._caches.stored(levels.name)
        pairs = [(each, each) for each in levels.ids]
        changed = [
            levels.changes(tuples[atom], atom, self._program.columns_of(atom), Column(BY))
            for atom in levels.split.atoms
            if atom in tuples
        ]
        others: Node = stored
        due: list[Node] = []
        if changed:
            touched = self._compute_statement(f"{name} touched", levels.summed(changed))
            degrees = rows_with_keys(stored, touched, pairs)
            rows = self._compute_statement(f"{name} degrees", levels.summed([degrees, touched]))
            due.append(levels.with_new_level(rows, balance))
            others = not_matching(stored, touched, pairs)
        is_new = Call("<>", (Column(levels.level), Column(levels.new_level)))
        due.append(select(levels.with_new_level(others, anew), is_new))
        all_due = self._compute_statement(f"{name} due", union_all(due))
        self._store_levels(levels, all_due)
        return self._compute_statement(f"{name} moved", select(all_due, is_new))

    def _store_levels(self, levels: Levels, due: Stored) -> None:
        none, attributes = levels.without_any(), (levels.level, *levels.degrees)
        deleted = self._compute_statement(f"{levels.name} gone", select(due, none))
        columns: dict[str, Expression] = {name: Column(name) for name in levels.columns}
        after = project(due, {**columns, levels.level: Column(levels.new_level)})
        rest = self._compute_statement(f"{levels.name} after", select(after, Call("not", (none,))))
        self._apply_statement(levels.name, DELETE, deleted, levels.ids)
        self._apply_statement(levels.name, INSERT, rest, levels.ids, attributes)

    def _move_values(self, levels: Levels, moved: Stored) -> None:
        """The tuples of values that move leave a part for another one of the same atom."""
        number = self._program.levels.index(levels)
        for part in self._program.parts:
            for level, other in self._program.siblings(part, number):
                values = select(
                    moved,
                    Call(
                        "and",
                        (
                            Call("=", (Column(levels.level), literal(dict(part.levels)[number]))),
                            Call("=", (Column(levels.new_level), literal(level))),
                        ),
                    ),
                )
                self._move_tuples(levels, values, part, other)

    def _move_tuples(self, levels: Levels, values: Node, part: Part, other: Part) -> None:
        own, cause = self._program.maps[part.map], f"move to {other.map}"
        pairs = self._program.value_pairs(part.atom, levels)
        tuples = own.changing(own.summed([rows_with_keys(self._map_rows_now(own), values, pairs)]))
        moved_in = self._compute_statement(f"{cause} by {levels.name} from {part.map}", tuples)
        moved_out = self._compute_statement(f"{moved_in.name}, taken away", own.negated(moved_in))
        self._change_views(part, moved_out, moved_in.name)
        self._change_views(other, moved_in, moved_in.name)
        self._add_to_map(own, moved_out)
        self._add_to_map(self._program.maps[other.map], moved_in)

    # --- storing --------------------------------------------------------------------------------

    def _store_maps(self) -> None:
        for own in self._program.maps.values():
            if self._changes.get(own.name):
                self._store_map(own)

    def _store_map(self, own: RingMap) -> None:
        total = self._compute_statement(f"{own.name} changed", own.summed(self._changes[own.name]))
        before = rows_with_keys(
            self._caches.stored(own.name), total, [(name, name) for name in own.ids]
        )
        after = self._compute_statement(f"{own.name} after", own.summed([before, total]))
        empty = Call("=", (own.rows_column, literal(0)))
        if own.key:
            deleted = self._compute_statement(f"{own.name} gone", select(after, empty))
            self._apply_statement(own.name, DELETE, deleted, own.ids)
            after = self._compute_statement(
                f"{own.name} came", select(after, Call("not", (empty,)))
            )
        self._apply_statement(own.name, INSERT, after, own.ids, own.sums)

    def _store_view(self) -> None:
        """The rows of the view: a condition above the sums may take them away, or bring them."""
        result, stored = self._program.result, self._caches.stored(VIEW)
        schema = self._caches.stored(result.name).schema
        changed = Stored(f"{result.name} after", schema)
        groups = Stored(f"{result.name} came", schema) if result.key else changed
        rows, ids = self._program.shown(groups)
        after = self._compute_statement("view after", rows)
        touched = rows_with_keys(stored, changed, list(zip(ids, result.ids, strict=True)))
        deleted = self._compute_statement("view gone", antijoin(touched, after, ids))
        self._apply_statement(VIEW, DELETE, deleted, ids)
        names = [name for name in stored.names if name not in ids]
        self._apply_statement(VIEW, INSERT, after, ids, names)

    def _apply_statement(
        self, target: str, kind: str, rows: Node, ids: Sequence[str], attributes: Sequence[str] = ()
    ) -> None:
        make = as_insert if kind == INSERT else as_delete
        schema, query = make(rows, ids, attributes)
        name = f"d{kind} {target}"
        self._computes.append(Compute(name, query, schema))
        self._applies.append(Apply(name, target, schema))

    def _compute_statement(self, name: str, query: Node) -> Stored:
        self._computes.append(Compute(name, query))
        return Stored(name, query.schema)

    def _add_to_map(self, own: RingMap, change: Node) -> None:
        self._changes.setdefault(own.name, []).append(change)
