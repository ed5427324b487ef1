"""From the SQL of a view to its definition and its plan; nothing is read or written but logs."""

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias
from uuid import uuid4

from viewkeep.diffs.decide import RECOMPUTE, Decision, decide, may_recompute
from viewkeep.errors import (
    ArgumentError,
    ParseError,
    QueryError,
    TypeRuleError,
    UnreadableError,
    UnsupportedError,
)
from viewkeep.lake.catalog import Catalog, CatalogError, ViewDefinition
from viewkeep.lake.lake import Lake
from viewkeep.lake.views.row_layout import check_layout
from viewkeep.lake.views.seen_columns import (
    LostColumnError,
    check_lost_columns,
    lost_columns,
    readable_tables,
    tables_as_defined,
)
from viewkeep.lake.views.spark_types import RecordedTypes
from viewkeep.lake.views.stored_view import is_table_of_view
from viewkeep.lake.views.view import Source, View
from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.query.algebra import Scan
from viewkeep.query.clock import CLOCK
from viewkeep.query.tables import Table
from viewkeep.query.traversal import walk
from viewkeep.query.types.data_types import Type
from viewkeep.query.types.inference import Schema
from viewkeep.query.verbatim import Query, Verbatim
from viewkeep.sql.blocks.outputs import with_names
from viewkeep.sql.column_names import stored_names
from viewkeep.sql.notes import note_of
from viewkeep.sql.parse import parse_ordered, parse_view
from viewkeep.sql.verbatim import read_verbatim
from viewkeep.sql.view_statement import ViewStatement, read_view_statement
from viewkeep.tables.column_names import check_own_names, check_own_types
from viewkeep.tables.log.durable import local_path

PlanKey: TypeAlias = tuple[str, str, str, str, tuple[tuple[str, ...], tuple[str, ...]]]
"""What the plan of a view is made from, besides its sources."""
SeenColumns: TypeAlias = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""`ViewDefinition.sees`."""


class Analyst(Protocol):
    """Types of queries and expressions that the front end does not read."""

    @property
    def reads_any_sql(self) -> bool:
        """Whether there is an engine for such SQL."""

    def columns(self, query: Verbatim) -> Schema:
        """The columns of a query."""

    def expression_type(self, text: str, arguments: Sequence[Type]) -> str | None:
        """The type of an expression over columns `a0`, `a1`, ...; None if it is refused."""


class ViewPlans:
    """The views of a lake with their plans, each made once for a definition and what it reads."""

    def __init__(self, lake: Lake, analyst: Analyst) -> None:
        self.lake, self._analyst = lake, analyst
        self._views: dict[str, View] = {}
        self._plans: dict[PlanKey, View] = {}

    def view(self, definition: ViewDefinition, catalog: Catalog) -> View:
        """A view with its plan: the one made before, if neither it nor its sources changed."""
        sources = self._sources_of_view(definition, catalog)
        view = self._views.get(definition.name)
        if view is None or (view.definition, view.sources) != (definition, sources):
            self._check_lost_columns(definition, catalog)
            readable = readable_tables(catalog, definition)
            shared = self._view_of_same_query(definition, readable)
            query = shared.query if shared else self._query_of_view(definition, readable)[0]
            view = self._view_with_plan(definition, query, catalog, sources)
        return view

    def _check_lost_columns(self, definition: ViewDefinition, catalog: Catalog) -> None:
        """Refuse a view that reads a column which its table has lost."""
        if lost_columns(catalog, definition):
            query, _ = self._query_of_view(definition, tables_as_defined(catalog, definition))
            check_lost_columns(catalog, definition, query)

    def finished_view(self, name: str, catalog: Catalog | None = None) -> View:
        """The view of that name with its plan, by default of the newest definitions."""
        catalog = catalog or self.lake.catalog.read()
        return self.view(catalog.finished_view(name), catalog)

    def at(self, clock: int) -> "PlansAtMoment":
        """The plans for refreshes whose clock is at one moment."""
        return PlansAtMoment(self, clock)

    def _view_with_plan(
        self, definition: ViewDefinition, query: Query, catalog: Catalog, sources: dict[str, Source]
    ) -> View:
        """A view with its plan, which it shares with others that have the same query."""
        key = _plan_key(definition)
        view = self._plans.get(key)
        if view is not None and view.query is query and view.sources == sources:
            view = dataclasses.replace(view, definition=definition, sources=sources)
        else:
            decision = _strategy_decision(definition, query, catalog)
            reasons = filter(None, (decision.reason, note_of(definition.sql)))
            decision = dataclasses.replace(decision, reason="; ".join(reasons))
            view = View(self.lake, definition, query, decision, sources)
        self._views[definition.name] = view
        if not isinstance(query, Verbatim):
            self._plans[key] = view
        return view

    def _view_of_same_query(
        self, definition: ViewDefinition, readable: Mapping[str, Table]
    ) -> View | None:
        """A view with the same text, strategy, policy, functions and sources."""
        view = self._plans.get(_plan_key(definition))
        if view is None or any(
            readable.get(name) != source.declared for name, source in view.sources.items()
        ):
            return None
        return view

    @staticmethod
    def statement(name: str, sql: object) -> ViewStatement:
        """The query of a view with that name, and what its text asks for."""
        if not isinstance(sql, str):
            raise ArgumentError(
                f'view "{name}": give its query as SQL text, not as {type(sql).__name__}: which '
                "versions of which tables a DataFrame reads cannot be told from it"
            )
        statement = read_view_statement(sql)
        if statement.name is not None and statement.name.lower() != name.lower():
            raise QueryError(
                f'view "{name}": its text creates "{statement.name}"; give both the same name'
            )
        return statement

    def define(
        self,
        catalog: Catalog,
        name: str,
        sql: str,
        options: ViewOptions,
        sees: SeenColumns = (),
    ) -> ViewDefinition:
        """A definition whose SQL and columns are checked, and that closes no cycle of views; over
        all columns of its tables but those of tables that it `sees` others of."""
        check_layout(options.layout, local_path(self.lake.uri) is not None)
        location, build = self.lake.place(name), uuid4().hex[:12]
        unknown = Table({"none": "int"})
        draft = ViewDefinition(
            *(name, sql, (), unknown, location),
            build=build,
            ready=True,
            sees=sees,
            **dataclasses.asdict(options),
        )
        self._check_lost_columns(draft, catalog)
        readable = readable_tables(catalog, draft)
        shared = self._view_of_same_query(draft, readable)
        if shared is not None:
            query, types = shared.query, shared.definition.types
        else:
            query, types = self._query_of_view(draft, readable, is_new=True)
        draft = dataclasses.replace(draft, inputs=inputs_of_query(query), types=types)
        if isinstance(query, Verbatim):
            draft = dataclasses.replace(draft, table=Table({f.name: f for f in query.schema}))
        catalog.including(draft).order()
        sources = self._sources_of_view(draft, catalog)
        columns = self._view_with_plan(draft, query, catalog, sources).layout.declared
        check_own_names(f'view "{name}"', (each.name for each in columns.visible))
        check_own_types(f'view "{name}"', columns.visible)
        return dataclasses.replace(draft, table=columns, ready=False)

    def replace(self, catalog: Catalog, definition: ViewDefinition) -> Catalog:
        """The catalog with another definition of a view, and the views above it defined anew; an
        error if one of them could not read it any more."""
        changed = {definition.name}
        if catalog.view(definition.name).table == definition.table:
            changed = set()
        catalog = catalog.including(definition)
        for view in catalog.order():
            if not changed & set(view.inputs):
                continue
            try:
                new = self.define(
                    catalog, view.name, view.newest_sql, ViewOptions.of(view), view.sees
                )
            except LostColumnError:  # it has stopped already
                continue
            except QueryError as error:
                raise QueryError(
                    f'view "{view.name}" reads "{definition.name}", and would break: {error}'
                ) from error
            catalog = catalog.including(dataclasses.replace(new, ready=True))
            changed |= {view.name} if new.table != view.table else set()
        return catalog

    def check_place(self, definition: ViewDefinition) -> None:
        """Refuse to write over a Delta table that is no view."""
        table = self.lake.at(definition.location)
        if table.exists() and not is_table_of_view(table):
            raise CatalogError(
                f"there is a Delta table in {table.uri} already; choose another name for the "
                "view, or remove the folder"
            )

    def _query_of_view(
        self, definition: ViewDefinition, tables: Mapping[str, Table], is_new: bool = False
    ) -> tuple[Query, tuple[tuple[str, str], ...]]:
        """The algebra of a view, with the types that Spark gave to parts of it; where there is
        none, its text with the columns that are defined, or that the engine finds for a new one."""
        sql, functions = definition.sql, (*definition.functions, *definition.aggregates)
        asks = is_new and self._analyst.reads_any_sql
        own = definition.functions, definition.aggregates
        types = RecordedTypes(dict(definition.types), *own, self._analyst if asks else None)
        try:
            type_source = types if asks or definition.types else None
            node = parse_view(sql, tables, type_source, has_clock=True)
            node_with_names = with_names(node, stored_names(sql, node.names, tables))
            return node_with_names, tuple(types.recorded.items())
        except (UnsupportedError, TypeRuleError, UnreadableError) as problem:
            if not may_recompute(definition.strategy, definition.policy):
                raise
            query = read_verbatim(sql, tables, problem, functions)
            schema = self._columns_of_query(query, problem) if is_new else definition.table.columns
            return dataclasses.replace(query, schema=schema), ()

    def shown_query(self, sql: object, catalog: Catalog) -> tuple[Query, str | None]:
        """The algebra of a query over tables and views, or its text where there is none; with the
        column that has the order of its rows, if it asks for one and its engine does not know."""
        if not isinstance(sql, str):
            raise ArgumentError(f"a query is SQL text, not {type(sql).__name__}")
        tables = catalog.declared()
        asks = self._analyst.reads_any_sql
        types = RecordedTypes({}, (), (), self._analyst if asks else None)
        try:
            node, order = parse_ordered(sql, tables, types if asks else None)
            names = stored_names(sql, [name for name in node.names if name != order], tables)
            return with_names(node, [*names, *([order] if order else [])]), order
        except (UnsupportedError, TypeRuleError, UnreadableError) as problem:
            query = read_verbatim(sql, tables, problem)
            return dataclasses.replace(query, schema=self._columns_of_query(query, problem)), None

    def _columns_of_query(self, query: Verbatim, problem: ParseError) -> Schema:
        if not self._analyst.reads_any_sql:
            if isinstance(problem, UnsupportedError):
                raise problem.with_hint("only Spark computes it: Keeper(path, spark)")
            raise problem
        try:
            fields = self._analyst.columns(query)
        except ParseError:
            if isinstance(problem, UnsupportedError):
                raise
            raise problem from None
        names = stored_names(query.text, [each.name for each in fields], dict(query.tables))
        return tuple(dataclasses.replace(f, name=n) for f, n in zip(fields, names, strict=True))

    def _sources_of_view(self, definition: ViewDefinition, catalog: Catalog) -> dict[str, Source]:
        tables = readable_tables(catalog, definition) if definition.sees else {}
        return {
            name: Source(name, tables.get(name, entry.table), self.lake.at(entry.location))
            for name, entry in ((name, catalog.entries[name]) for name in definition.inputs)
        }


@dataclasses.dataclass(frozen=True)
class PlansAtMoment:
    """`ViewPlans.view` for refreshes whose clock is at one moment."""

    plans: ViewPlans
    clock: int

    def __call__(self, definition: ViewDefinition, catalog: Catalog) -> View:
        return self.plans.view(definition, catalog).at(self.clock)


def inputs_of_query(query: Query) -> tuple[str, ...]:
    """The tables and views that a query reads."""
    if isinstance(query, Verbatim):
        return tuple(name for name, _ in query.tables)
    names = dict.fromkeys(n.name for n in walk(query) if isinstance(n, Scan))
    return tuple(name for name in names if name != CLOCK)


def _strategy_decision(definition: ViewDefinition, query: Query, catalog: Catalog) -> Decision:
    """The strategy that was chosen, while the tables below allow it; else the one that is asked
    for, also where recomputation was found best: what changes then is that caches are left out."""
    if definition.chosen == RECOMPUTE:
        decision = decide(query, definition.strategy, definition.policy, catalog.views)
        why = f"{RECOMPUTE} is {definition.chosen_why}"
        return dataclasses.replace(decision, reason=f"{decision.reason}; {why}")
    if definition.chosen:
        with suppress(QueryError):
            decision = decide(query, definition.chosen, definition.policy, catalog.views)
            return dataclasses.replace(decision, reason=definition.chosen_why)
    return decide(query, definition.strategy, definition.policy, catalog.views)


def _plan_key(definition: ViewDefinition) -> PlanKey:
    functions = definition.functions, definition.aggregates
    return (
        *(definition.sql, definition.strategy, definition.chosen, definition.policy),
        functions,
    )
