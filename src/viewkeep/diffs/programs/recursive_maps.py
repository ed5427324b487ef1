"""DBToaster's recipe as scripts (ivm_lecture, part 2): for a change of a scan, a map over each
connected part of the other scans, summed up to what it shares with the scan and with the groups;
such maps are kept by the same recipe.

    script of X, for a map M:   group by key(M) over  X  join  the maps of the parts of M without X

A script brings the changes of one table, as those of `diffs.recursive` do. Maps have the same
columns whichever table changes.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce

from viewkeep.diffs.passes.compose import VIEW
from viewkeep.diffs.passes.identify import IdPlan, identify
from viewkeep.diffs.programs.factors import (
    Factor,
    as_map,
    as_rows,
    join_factors,
    only_if_rows,
    scan_factor,
)
from viewkeep.diffs.programs.grouped_join import grouped_join
from viewkeep.diffs.programs.outputs import Outputs
from viewkeep.diffs.recursive import GROUPS, MOST_VIEWS, target_script
from viewkeep.diffs.schemas import base_diffs, every_change
from viewkeep.diffs.script import Apply, BaseDiff, Materialized, Script
from viewkeep.errors import QueryError
from viewkeep.query.algebra import Distinct, GroupBy, Node, Project, Select
from viewkeep.query.flatten import NotConjunctive
from viewkeep.query.traversal import with_children

Kinds = Iterable[tuple[str, frozenset[str]]]


@dataclass(frozen=True)
class JoinMap:
    """The join of some scans, summed up to some variables."""

    scans: frozenset[int]
    key: tuple[str, ...]


def generate_maps(
    view: Node, table: str, changing: Collection[str], kinds: Kinds | None = None
) -> Script:
    """The script for changes of one table, of the given kinds or of any; `changing` are all
    tables that may ever change. An error for a view that is no group-by over equi-joins."""
    try:
        return _RecursiveMaps(view, table, changing).script(kinds)
    except NotConjunctive as problem:
        raise _map_refusal(problem.construct) from None


def _map_refusal(why: str) -> QueryError:
    return QueryError(f'no recursive maps for this view: {why}; choose strategy="auto", or "id"')


class _RecursiveMaps:
    """The maps of a view, and their scripts for changes of one table."""

    def __init__(self, view: Node, table: str, changing: Collection[str]) -> None:
        self._table, self._changing = table, changing
        self._above, group = _group_below_projections(view)
        self._join = grouped_join(group)
        self._outputs = Outputs(self._join)
        all_scans = frozenset(range(len(self._join.scans)))
        self._result = JoinMap(all_scans, self._join.query.outputs)
        self._maps = self._all_maps()
        self._names = {each: f"cache_{number}" for number, each in enumerate(self._maps)}
        self._factors: dict[JoinMap, Factor] = {}
        self._plans = {each: identify(self._group_of_map(each)) for each in self._maps}

    def script(self, kinds: Kinds | None) -> Script:
        """The script of the view and of every map that the table is part of, put together; they
        read what is kept before any of it changes."""
        plan = identify(self._view_over_maps())
        changes = {self._table: every_change(plan)[self._table] if kinds is None else kinds}
        diffs = base_diffs(plan, changes)
        whole = target_script(plan, diffs, self._cache_names(plan), VIEW)
        statements = list(whole.statements)
        for each in self._maps:
            if self._table in self._tables_of_scans(each.scans):
                statements += self._script_of_map(each, diffs).statements
        groups = tuple(cache for cache in whole.caches if cache.name == GROUPS)
        maps = tuple(map(self._materialized_map, self._maps))
        ordered = tuple(sorted(statements, key=lambda each: isinstance(each, Apply)))
        return Script(whole.view, (*maps, *groups), diffs, ordered, whole.visible, whole.notes)

    def _view_over_maps(self) -> Node:
        rows = self._outputs.rows(as_map(self._factor_of_map(self._result), GROUPS, own_names=True))
        return reduce(lambda node, above: with_children(above, (node,)), self._above, rows)

    def _script_of_map(self, own: JoinMap, diffs: tuple[BaseDiff, ...]) -> Script:
        plan = self._plans[own]
        return target_script(plan, diffs, self._cache_names(plan), self._names[own])

    def _materialized_map(self, own: JoinMap) -> Materialized:
        aliases = ", ".join(self._join.scans[i].alias for i in sorted(own.scans))
        view = self._script_of_map(own, ()).view
        return replace(view, name=self._names[own], why=f"a map over {aliases}", operator=None)

    def _cache_names(self, plan: IdPlan) -> dict[Node, str]:
        """The group-bys of a plan that are kept, below its root."""
        maps = {self._plans[each].root: name for each, name in self._names.items()}
        groups = [n for n in plan.nodes if isinstance(n, GroupBy) and n is not plan.root]
        return {each: maps.get(each, GROUPS) for each in groups}

    # --- maps -------------------------------------------------------------------------------------

    def _all_maps(self) -> list[JoinMap]:
        """The maps that changes ask for, smallest first; the result is not among them."""
        maps: dict[JoinMap, None] = {}
        queue = [self._result]
        while queue:
            own = queue.pop()
            for scan in sorted(own.scans):
                if self._join.scans[scan].name in self._changing:
                    new = [
                        each
                        for each in self._connected_parts(own, scan)
                        if not self._is_table(each)
                    ]
                    queue += [each for each in new if each not in maps]
                    maps |= dict.fromkeys(new)
            if len(maps) > MOST_VIEWS:
                raise _map_refusal(f"it would keep more than {MOST_VIEWS} maps")
        return sorted(maps, key=lambda each: (len(each.scans), sorted(each.scans), each.key))

    def _connected_parts(self, own: JoinMap, scan: int) -> list[JoinMap]:
        """The connected parts of a map without a scan, with the variables that they share."""
        outside = {*own.key, *self._join.variables[scan]}
        return [
            JoinMap(part, tuple(v for v in self._variables_of_scans(part) if v in outside))
            for part in self._scan_components(own.scans - {scan})
        ]

    def _scan_components(self, scans: frozenset[int]) -> Iterator[frozenset[int]]:
        rest = sorted(scans)
        while rest:
            part, names = {rest[0]}, set(self._join.variables[rest[0]])
            while more := {i for i in rest if i not in part and self._shares_variable(i, names)}:
                part |= more
                names |= {v for i in more for v in self._join.variables[i]}
            yield frozenset(part)
            rest = [i for i in rest if i not in part]

    def _shares_variable(self, scan: int, names: Collection[str]) -> bool:
        return not self._join.variables[scan].keys().isdisjoint(names)

    def _variables_of_scans(self, scans: frozenset[int]) -> list[str]:
        return list(dict.fromkeys(v for i in sorted(scans) for v in self._join.variables[i]))

    def _tables_of_scans(self, scans: Iterable[int]) -> set[str]:
        return {self._join.scans[i].name for i in scans}

    def _is_table(self, own: JoinMap) -> bool:
        """Whether a map would be a table, looked up by its key."""
        keys = [self._join.key_variables(scan) for scan in own.scans]
        return len(keys) == 1 and keys[0] == frozenset(own.key)

    # --- their rows -------------------------------------------------------------------------------

    def _factor_of_map(self, own: JoinMap) -> Factor:
        """A map before it is summed up: a scan of the table that changes, and maps of the rest."""
        scans = self._join.scans
        tables = [i for i in sorted(own.scans) if scans[i].name == self._table]
        dynamic = [i for i in sorted(own.scans) if scans[i].name in self._changing]
        if not dynamic:
            inputs = [self._factor_of_scan(scan) for scan in self._connected_scans(own.scans)]
        else:
            first = (tables or dynamic)[0]
            inputs = [
                self._factor_of_scan(first),
                *map(self._map_rows, self._connected_parts(own, first)),
            ]
        return join_factors(inputs, self._outputs.measures).summed_to(own.key)

    def _connected_scans(self, scans: frozenset[int]) -> list[int]:
        """Scans in an order in which each shares a variable with one before it, if it can."""
        order, rest = [min(scans)], sorted(scans - {min(scans)})
        while rest:
            names = self._variables_of_scans(frozenset(order))
            order.append(next((i for i in rest if self._shares_variable(i, names)), rest[0]))
            rest.remove(order[-1])
        return order

    def _factor_of_scan(self, scan: int) -> Factor:
        factor = scan_factor(self._join, scan, self._outputs.measures)
        return as_rows(factor, self._join.scans[scan].alias)

    def _map_rows(self, own: JoinMap) -> Factor:
        if self._is_table(own):
            return self._factor_of_scan(min(own.scans)).summed_to(own.key)
        source = self._factor_of_stored_map(own)
        return source if own.key else only_if_rows(source)

    def _factor_of_stored_map(self, own: JoinMap) -> Factor:
        if own not in self._factors:
            self._factors[own] = as_map(self._factor_of_map(own), self._names[own], own_names=True)
        return self._factors[own]

    def _group_of_map(self, own: JoinMap) -> GroupBy:
        rows = self._factor_of_stored_map(own).rows
        group = rows.child if isinstance(rows, Project) else rows
        assert isinstance(group, GroupBy)
        return group


def _group_below_projections(view: Node) -> tuple[list[Node], GroupBy]:
    """The projections and selections above a group-by, from the bottom up, and the group-by."""
    above: list[Node] = []
    while isinstance(view, Project | Select):
        above.append(view)
        view = view.child
    if isinstance(view, Distinct):
        view = GroupBy(view.child, view.child.names, ())
    if not isinstance(view, GroupBy):
        raise NotConjunctive("it sums up no join of tables")
    return above[::-1], view
