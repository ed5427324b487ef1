"""One view of a lake: its plan, and what is stored of it.

The view's commit is the moment when a refresh has happened (see `viewkeep.lake`): it carries
the `ViewState` (what the rows reflect) and the `RefreshReport`. Everything before it, new files
and new versions of caches, is invisible until then.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from viewkeep.diffs.clock_uses import clock_columns
from viewkeep.diffs.decide import HEAVY_LIGHT, MAPS, RECOMPUTE, RECURSIVE, TUPLE_BASED, Decision
from viewkeep.diffs.generate import generate
from viewkeep.diffs.optimize.optimize import optimize
from viewkeep.diffs.passes.minimize import leave_out
from viewkeep.diffs.passes.number_copies import number_copies, reads_copies
from viewkeep.diffs.programs.count_program import CountProgram
from viewkeep.diffs.programs.heavy_light import generate_heavy_light, plan_heavy_light_view
from viewkeep.diffs.programs.recursive_maps import generate_maps
from viewkeep.diffs.recursive import generate_recursive
from viewkeep.diffs.script import Materialized, Script
from viewkeep.errors import QueryError
from viewkeep.lake import Pins, RefreshReport, ViewState
from viewkeep.lake.catalog import ViewDefinition
from viewkeep.lake.lake import Lake
from viewkeep.lake.views.caches import order_of
from viewkeep.lake.views.row_layout import MERGE_ON_READ
from viewkeep.lake.views.shared_caches import SharedForm, expand_caches, shared_form
from viewkeep.lake.views.stored_view import StoredView, refresh_reports, stored_view
from viewkeep.lake.views.view_layout import Layout
from viewkeep.query.algebra import Node, Scan, Stored
from viewkeep.query.clock import CLOCK_TABLE, clock_row
from viewkeep.query.tables import Table
from viewkeep.query.traversal import walk
from viewkeep.query.verbatim import Query, Verbatim
from viewkeep.tables.column_names import storable_name
from viewkeep.tables.feed import CHANGES, Feed
from viewkeep.tables.log.delta import ConflictError, LakeTable
from viewkeep.tables.table_changes import TableChanges

Kinds = dict[str, list[tuple[str, frozenset[str]]]]
"""The kinds of changes by table: INSERT, DELETE or UPDATE, and the columns that an update sets."""


@dataclass(frozen=True)
class Source:
    """A table or view that a view reads."""

    name: str
    declared: Table
    table: LakeTable = field(compare=False)


@dataclass(frozen=True)
class View:
    """A defined view with its plan, and what is stored of it; `clock` is the moment that it is to
    be brought to, if it reads the clock."""

    lake: Lake
    definition: ViewDefinition
    query: Query
    decision: Decision
    sources: Mapping[str, Source]
    scripts: dict[str, Script] = field(default_factory=dict, compare=False, repr=False)
    clock: int | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The name of the view."""
        return self.definition.name

    @property
    def table(self) -> LakeTable:
        """Where the view is."""
        return self.lake.at(self.definition.location)

    def at(self, clock: int | None) -> "View":
        """The view, to be brought to a moment; what was derived from its plan stays."""
        if not self.clock_columns:
            return self
        view = replace(self, clock=clock)
        view.__dict__.update({**self.__dict__, "clock": clock})
        return view

    @cached_property
    def clock_columns(self) -> frozenset[str]:
        """The columns of the clock that it reads."""
        return frozenset() if isinstance(self.query, Verbatim) else clock_columns(self.query)

    def has_moved_clock(self, state: ViewState) -> bool:
        """Whether the clock that it reads has moved since."""
        if self.clock is None or state.clock is None:
            return False
        rows = zip(CLOCK_TABLE.names, clock_row(state.clock), clock_row(self.clock), strict=True)
        return any(old != new for name, old, new in rows if name in self.clock_columns)

    @property
    def node(self) -> Node:
        """Its query as relational algebra; an error for SQL that only Spark reads."""
        if isinstance(self.query, Verbatim):
            raise QueryError(f'view "{self.name}" has no operators: {self.query.reason}')
        return self.query

    @cached_property
    def computed(self) -> Query:
        """Its query as it is computed from scratch: joins as written, with a comma or in any order,
        need not be what an engine can run."""
        return self.query if isinstance(self.query, Verbatim) else optimize(self.query)

    @cached_property
    def stored_query(self) -> Query:
        """The query of its stored rows, with IDs and counts, over tables and no caches."""
        if not self.is_incremental:
            return self.computed
        return expand_caches(
            self.script.view.definition, {each.name: each for each in self.script.caches}
        )

    @property
    def is_incremental(self) -> bool:
        """Whether it is kept by diffs."""
        return self.decision.plan is not None

    @cached_property
    def script(self) -> Script:
        """The script for all kinds of changes: it knows what is kept."""
        return self.script_for(None)

    def script_for(self, kinds: Kinds | None, done: Collection[str] = ()) -> Script:
        """The script for some kinds of changes, without those of caches that are `done`; made
        once."""
        if self.is_recursive:  # all its scripts keep the same relations
            return self.recursive_script(self.changing[0], None)
        key = repr((kinds, sorted(done)))
        if key not in self.scripts:
            whole = (
                leave_out(self.script_for(kinds), done) if done else self._generated_script(kinds)
            )
            self.scripts[key] = whole
        return self.scripts[key]

    def _generated_script(self, kinds: Kinds | None) -> Script:
        strategy = self.decision.strategy
        if strategy == HEAVY_LIGHT:
            return generate_heavy_light(self._query_over_sets, kinds, self.heavy_light)
        return generate(self.node, kinds, strategy in TUPLE_BASED, self.decision.plan).script

    @cached_property
    def _query_over_sets(self) -> Node:
        return number_copies(optimize(self.node))

    @cached_property
    def heavy_light(self) -> CountProgram | None:
        """What it keeps in heavy and light parts, if that is its strategy."""
        if self.decision.strategy != HEAVY_LIGHT:
            return None
        return plan_heavy_light_view(self._query_over_sets)

    @cached_property
    def queries(self) -> tuple[Node, ...]:
        """The queries of its scripts, for all kinds of changes."""
        scripts = [self.script]
        if self.is_recursive:
            scripts = [self.recursive_script(name, None) for name in self.changing]
        return tuple(each.query for script in scripts for each in script.computes())

    @cached_property
    def definitions(self) -> tuple[Query, ...]:
        """The queries that compute it from scratch: of its caches and of the view itself."""
        if not self.is_incremental:
            return (self.computed,)
        return tuple(each.definition for each in self.script.materialized)

    @cached_property
    def numbered(self) -> dict[str, Table]:
        """The sources whose copies of equal rows are numbered, as its plan reads them."""
        nodes = self.decision.plan.nodes if self.decision.plan is not None else []
        scans = [node for node in nodes if isinstance(node, Scan)]
        return {node.name: node.table for node in scans if node.table.numbers_copies}

    @cached_property
    def _compared_copies(self) -> frozenset[str]:
        """The sources whose copies it keeps, or looks up by their numbers."""
        if not self.numbered:
            return frozenset()
        kept = [each.definition for each in self.script.materialized]
        return reads_copies((*self.queries, *kept))

    @cached_property
    def _tables_of_statements(self) -> tuple[frozenset[str], ...]:
        """By statement of the script: the tables whose changes may give it rows."""
        tables = {each.name: frozenset([each.table]) for each in self.script.diffs}
        table_sets = []
        for each in self.script.computes():
            leaves = [node.name for node in walk(each.query) if isinstance(node, Stored)]
            own = frozenset[str]().union(*(tables.get(name, frozenset()) for name in leaves))
            tables[each.name] = own
            table_sets.append(own)
        return tuple(table_sets)

    def count_statements(self, tables: Iterable[str]) -> int:
        """How many statements of its script changes of some tables may run."""
        changed = frozenset(tables)
        return sum(not each.isdisjoint(changed) for each in self._tables_of_statements)

    @property
    def marks_rows(self) -> bool:
        """Whether rows that change are marked in deletion vectors."""
        return self.is_incremental and self.definition.layout == MERGE_ON_READ

    @property
    def has_caches(self) -> bool:
        """Whether its script reads caches."""
        return self.is_incremental and bool(self.script.caches)

    @property
    def begins_with_caches(self) -> bool:
        """Whether caches are written with its first rows: not where recomputation was found best,
        until they pay."""
        return self.has_caches and self.definition.chosen != RECOMPUTE

    def lacks_caches(self, state: ViewState) -> bool:
        """Whether a recomputation has left its caches out."""
        return self.has_caches and not state.caches

    @property
    def is_recursive(self) -> bool:
        """Whether it keeps the intermediate views of DBToaster, and changes table by table."""
        return self.decision.strategy in RECURSIVE

    def recursive_script(
        self, table: str, kinds: Iterable[tuple[str, frozenset[str]]] | None
    ) -> Script:
        """The script for the changes of one table; made once."""
        key = repr((table, kinds))
        if key not in self.scripts:
            generated = generate_maps if self.decision.strategy == MAPS else generate_recursive
            self.scripts[key] = generated(self._query_over_sets, table, self.changing, kinds)
        return self.scripts[key]

    @property
    def changing(self) -> list[str]:
        """The tables that are expected to change."""
        if self.decision.strategy == "recursive-streams":
            return list(self.sources)
        return [name for name, source in self.sources.items() if not source.declared.static]

    @cached_property
    def layout(self) -> Layout:
        """The columns of its table."""
        if self.is_incremental:
            return Layout.of_script(self.script)
        return Layout.of_query(self.query)

    @cached_property
    def plan(self) -> str:
        """A fingerprint of all that is kept: only what was kept in the same way can be changed."""
        kept = self.script.materialized if self.is_incremental else ()
        parts = [f"{each.name}{each.ids}{each.definition.schema}{each.definition}" for each in kept]
        parts += [form.key for form in self.shared_forms.values()]
        return sha256("\n".join([str(self.layout.fields), *parts]).encode()).hexdigest()[:16]

    # --- what is there --------------------------------------------------------------------------

    def stored(self) -> StoredView:
        """The newest version that a refresh made; an error if others have changed rows since."""
        return stored_view(self.name, self.table)

    def history(self) -> list[RefreshReport]:
        """The reports of all refreshes, newest first, as far as the log goes back."""
        return list(self.reports())

    def reports(self) -> Iterator[RefreshReport]:
        """The same one by one: the log is read as far as they are asked for."""
        return refresh_reports(self.table)

    @cached_property
    def shared_forms(self) -> dict[str, SharedForm]:
        """The caches that other views may use as well, by name; of those of the view that are
        alike, the first."""
        if not self.is_incremental or self.decision.strategy == HEAVY_LIGHT:
            return {}
        caches, forms = self.script.caches, dict[str, SharedForm]()
        keys = set[str]()
        for kept in caches:
            form = shared_form(kept, order_of(self.script, kept.name), caches)
            if form is not None and form.key not in keys:
                forms[kept.name] = form
                keys.add(form.key)
        return forms

    def cache_table(self, kept: Materialized) -> LakeTable:
        """Where a cache is."""
        form = self.shared_forms.get(kept.name)
        if form is not None:
            return self.lake.shared_cache(form.key)
        return self.lake.cache(self.name, self.definition.build, kept.name)

    def cache_names(self, kept: Materialized) -> Mapping[str, str]:
        """The columns of a cache's table by their names in the script."""
        form = self.shared_forms.get(kept.name)
        if form is not None:
            return form.names
        return {name: storable_name(name) for name in kept.definition.names}

    # --- committing -----------------------------------------------------------------------------

    def state(self, inputs: Pins, tables: Pins, caches: Pins) -> ViewState:
        """The state of rows that reflect these versions."""
        below = {name: self.sources[name].table for name in inputs}
        kept = {k.name: self.cache_table(k) for k in self.script.caches} if caches else {}
        return ViewState(
            self.definition.build,
            dict(inputs),
            dict(tables),
            dict(caches),
            {name: below[name].identity(version) for name, version in inputs.items()},
            self.plan,
            {name: below[name].fingerprint(version) for name, version in inputs.items()},
            {name: kept[name].fingerprint(version) for name, version in caches.items()},
            self.clock,
            {name: form.key for name, form in self.shared_forms.items() if name in caches},
        )

    def check_current(self) -> None:
        """Refuse to show a definition that another process has changed since."""
        if self.lake.catalog.read().views.get(self.name) != self.definition:
            raise ConflictError(f'view "{self.name}": another process has defined it anew')

    # --- feeding others -------------------------------------------------------------------------

    def feed(self, name: str) -> Feed:
        """The changes of something that the view reads."""
        source = self.sources[name]
        declared = self.numbered.get(name, source.declared)
        exact = name in self._compared_copies
        return Feed(self.lake.scans, name, declared, source.table, exact)

    def changes_written(self, batch: TableChanges | None) -> dict[str, Any]:
        """The notes about the view's own changes, for views that read it."""
        if batch is None:
            return {}
        if batch.is_empty:
            return {CHANGES: None}
        feed = Feed(self.lake.scans, self.name, self.layout.declared, self.table)
        return feed.write(batch)
