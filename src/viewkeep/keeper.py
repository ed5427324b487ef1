"""Views over Delta tables, kept fresh: tables change, `refresh` brings every view up to date.

A keeper holds nothing but the path of its lake: what is defined and what views reflect stands in
the lake, so that any number of keepers, in any processes, may work on it at the same time.

    create_table, register_table, create_view     definitions
    apply                                         one atomic change of a table
    refresh                                       all views, in the order in which they read
    read, status, history, explain, script        what is there, and why
    verify, repair                                a view beside its query
"""

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any
from uuid import uuid4

from viewkeep.arguments import checked
from viewkeep.diffs.decide import decide
from viewkeep.diffs.script import Script
from viewkeep.errors import ArgumentError, QueryError, SchemaError, problem_of
from viewkeep.execute.engines import DRIVER_BYTES, Engines, check_choice
from viewkeep.execute.errors import NeedsSparkError, RunError, SparkStartError
from viewkeep.lake import (
    RefreshReport,
    TableDescription,
    Verification,
    ViewDescription,
    ViewStatus,
)
from viewkeep.lake.apply import apply_changes, given_changes
from viewkeep.lake.catalog import Catalog, CatalogError, TableDefinition, ViewDefinition
from viewkeep.lake.create_table import check_keys, declared_table, has_rows, write_table
from viewkeep.lake.describe import describe_table, describe_view
from viewkeep.lake.explain_view import explain_view
from viewkeep.lake.lake import Lake, located
from viewkeep.lake.problems import forget_problem
from viewkeep.lake.status import view_status
from viewkeep.lake.vacuum import clean
from viewkeep.lake.view import STATE, Source, View
from viewkeep.query.algebra import Node, Scan, walk
from viewkeep.query.constraints import FunctionalDependency
from viewkeep.query.tables import HIDDEN, Reference, Table
from viewkeep.refresh.all_views import RefreshError as RefreshError
from viewkeep.refresh.all_views import pinned_inputs, plan_views, refresh_views
from viewkeep.refresh.build_view import build_view, commit_view, compute_view
from viewkeep.refresh.plan import Stage
from viewkeep.refresh.verify import verify_view
from viewkeep.sql.parse import parse_view
from viewkeep.tables.column_names import check_name, check_own_names
from viewkeep.tables.delta import ConflictError, StorageError
from viewkeep.tables.memory import remembered_logs
from viewkeep.tables.parquet import Folder
from viewkeep.tables.relations import StoredRows
from viewkeep.tables.rewrite import DRIVER_BYTES as REWRITE_BYTES
from viewkeep.tables.rewrite import JOB_BYTES

FAILURES = (StorageError, RefreshError, RunError, NeedsSparkError, SparkStartError)


def is_failure(error: Exception) -> bool:
    """Whether an error is one that can happen though all that was asked for is right."""
    from_spark = type(error).__module__.startswith(("pyspark", "py4j"))
    return isinstance(error, FAILURES) or from_spark


def local_session(log: str = os.devnull) -> Any:
    """A Spark session on this machine; what Spark logs goes to a file."""
    return import_module("viewkeep.execute.spark.session").local_session(log)


class Keeper:
    """The tables and views of a lake.

    `path` is a folder, or a URI that deltalake understands, with `storage_options` for it. Without
    `spark` the lake is embedded: DuckDB does all work, and no Java is needed. `spark` is a session,
    or a function that starts one when there is work for it; Viewkeep uses a session of its own
    beside it, with fixed settings. Work that reads more than `driver_bytes`, and what DuckDB is not
    known to compute as Spark does, goes there; `backend` forces one of "spark" and "duckdb". A lake
    that is not there is made, unless `create` is false. Commits to local folders wait for the disk,
    so that they outlive a power failure, unless `durable` is false.
    """

    @checked
    def __init__(
        self,
        path: Any,
        spark: Any = None,
        storage_options: Mapping[str, str] | None = None,
        create: bool = True,
        durable: bool = True,
        backend: str = "auto",
        driver_bytes: int = DRIVER_BYTES,
    ) -> None:
        if callable(path) or hasattr(type(path), "newSession"):
            raise ArgumentError("Keeper(path, spark): the path comes first, then the session")
        if driver_bytes < 0:
            raise ArgumentError(f"driver_bytes={driver_bytes}: expected a number from 0")
        self._user = spark
        own = None if spark is None else _spark_sessions().own_session(spark)
        self._engines = Engines(own, check_choice(backend, own), driver_bytes)
        options = dict(storage_options or {})
        in_memory = JOB_BYTES if backend == "spark" else REWRITE_BYTES
        about = (options, in_memory, durable)
        self._lake = Lake(_lake_place(path), self._engines.scans, *about)
        self._views: dict[str, View] = {}
        if not self._lake.catalog.exists():
            if not create:
                raise CatalogError(
                    f"there is no lake in {self._lake.uri}; `viewkeep init` makes one"
                )
            self._lake.catalog.create()

    def start(self) -> None:
        """Start Spark now, if a function was given that does: the next call need not."""
        if self._engines.spark is not None:
            _ = self._engines.spark.version

    # --- definitions ----------------------------------------------------------------------------

    @checked
    def create_table(
        self,
        name: str,
        data: Any,
        key: Sequence[str] = (),
        foreign_keys: Iterable[str | Reference] = (),
        fds: Iterable[str | FunctionalDependency] = (),
        static: bool = False,
        rows: Any = None,
        if_not_exists: bool = False,
    ) -> None:
        """Make a table that Viewkeep owns, of rows, of a schema, or of a schema and its rows; with
        `if_not_exists`, one that is there is left as it is."""
        if if_not_exists and name in self._lake.catalog.read().tables:
            return
        constraints = {"foreign_keys": foreign_keys, "fds": fds, "static": static}
        declared = _with_key(name, declared_table(data, key, constraints))
        check_own_names(f'table "{name}"', declared.names)
        location = self._lake.place(name)
        table = self._lake.at(location)
        self._lake.catalog.read().check_free(name)
        if table.exists():
            raise CatalogError(
                f'there is a Delta table in {location} already; register it as "{name}", '
                "or remove the folder"
            )
        if has_rows(data) and rows is not None:
            raise SchemaError(f'table "{name}": with rows=, give its columns and not other rows')
        given = data if has_rows(data) else rows
        files = [] if given is None else write_table(self._lake.scans, name, declared, given, table)
        table.create(declared.columns, files, {"create": name}, f'Table "{name}"')
        self._define_table(TableDefinition(name, declared, location, owned=True), "create_table")

    @checked
    def register_table(
        self,
        name: str,
        location: str | os.PathLike[str],
        key: Sequence[str] = (),
        foreign_keys: Iterable[str | Reference] = (),
        fds: Iterable[str | FunctionalDependency] = (),
        static: bool = False,
    ) -> None:
        """Make an existing Delta table, which others write, known to the lake."""
        self._lake.place(name)
        self._lake.catalog.read().check_free(name)
        table = self._lake.at(located(location))
        snapshot = table.snapshot()
        columns = {field.name: field for field in snapshot.fields}
        declared = Table(columns, key, foreign_keys, fds, static)
        for column in declared.names:
            check_name(f'table "{name}"', column)
        if declared.key:
            check_keys(name, declared, StoredRows.whole(table, snapshot), self._lake.scans)
        self._define_table(
            TableDefinition(name, declared, table.uri, owned=False), "register_table"
        )

    @checked
    def create_view(
        self,
        name: str,
        sql: str,
        strategy: str = "auto",
        policy: str = "auto",
        replace: bool = False,
        if_not_exists: bool = False,
        backend: str | None = None,
    ) -> RefreshReport:
        """Define a view and fill it; with `replace`, in place of one that is there.

        A view that is replaced stays readable as it is until its new rows are there. With
        `if_not_exists`, a view that is there is left as it is, and its last report returned.
        """
        catalog = self._lake.catalog.read()
        old = catalog.views.get(name)
        if old is not None and old.ready and if_not_exists and not replace:
            return self._planned(old, catalog).stored().report
        engines = self._engines.forcing(backend)
        if old is not None and old.ready and replace:
            definition = self._defined(catalog, name, sql, strategy, policy)
            with self._lake.marked():
                return self._replace_view(catalog, definition, engines)
        if old is None or old.ready:  # an unfinished one may be created again
            catalog.check_free(name)
        definition = self._defined(catalog, name, sql, strategy, policy)
        if old is None:
            self._check_place(definition)
        self._lake.catalog.change(f"create_view {name}", lambda now: now.taking(definition, old))
        try:
            report = self._build(definition, engines)
        except BaseException:
            self._lake.catalog.change(f"give up {name}", lambda now: now.giving_up(definition))
            raise
        self._lake.catalog.change(f"finish {name}", lambda now: now.finishing(definition))
        return report

    @checked
    def drop_view(self, name: str) -> None:
        """Forget a view, and remove its files; views that read it are in the way."""

        def dropped(catalog: Catalog) -> Catalog:
            catalog.view(name)
            catalog.check_unread(name)
            return catalog.excluding(name)

        location = self._lake.catalog.read().view(name).location
        self._lake.at(location)  # a link out of the lake is refused before anything is forgotten
        self._lake.catalog.change(f"drop_view {name}", dropped)
        self._lake.remove_view(name, location)
        forget_problem(self._lake, name)

    @checked
    def drop_table(self, name: str) -> None:
        """Forget a table; its folder stays, and can be registered again."""

        def dropped(catalog: Catalog) -> Catalog:
            catalog.table(name)
            catalog.check_unread(name)
            return catalog.excluding(name)

        self._lake.catalog.change(f"drop_table {name}", dropped)

    @property
    def tables(self) -> dict[str, Table]:
        """The base tables, as they are declared."""
        return {name: each.table for name, each in self._lake.catalog.read().tables.items()}

    @checked
    def table(self, name: str) -> Table:
        """A base table, as it is declared."""
        return self._lake.catalog.read().table(name).table

    @property
    def views(self) -> dict[str, str]:
        """The SQL of the views."""
        return {name: each.sql for name, each in self._lake.catalog.read().views.items()}

    # --- changes --------------------------------------------------------------------------------

    @checked
    def apply(
        self, name: str, inserts: Any = None, updates: Any = None, deletes: Any = None
    ) -> int:
        """Change a table in one commit: deletes, then updates, then inserts; the new version.

        Inserts are whole rows, updates have the key and any of the other columns, deletes the key.
        """
        catalog = self._lake.catalog.read()
        if name in catalog.views:
            raise CatalogError(f'"{name}" is a view; apply changes to the tables that it reads')
        definition = catalog.table(name)
        if not definition.owned:
            raise CatalogError(
                f'table "{name}" is registered: its own writers change it, and refresh sees that'
            )
        if definition.table.static:
            raise CatalogError(f'table "{name}" is declared static; it takes no changes')
        given = given_changes(name, definition.table, inserts, updates, deletes)
        table = self._lake.at(definition.location)
        version, _ = apply_changes(
            self._lake.scans, definition, table, given, self._lake.driver_bytes
        )
        return version

    @checked
    def refresh(self, *names: str, backend: str | None = None) -> list[RefreshReport]:
        """Bring all views up to date, or those that are named with the views that they read."""
        engines = self._engines.forcing(backend)
        with self._lake.marked():
            return refresh_views(self._lake, names or None, self._planned, engines)

    @checked
    def plan(self, *names: str, backend: str | None = None) -> list[Stage]:
        """What the next `refresh` would do to each view, by which engine, and why; runs nothing."""
        engines = self._engines.forcing(backend)
        return plan_views(self._lake, names or None, self._planned, engines)

    # --- what is there --------------------------------------------------------------------------

    @checked
    def read(self, name: str, version: int | None = None, backend: str | None = None) -> Any:
        """A table or view, now or at one of its versions: a DataFrame of Spark where the lake has
        Spark, else, or with `backend="duckdb"`, an Arrow table."""
        catalog = self._lake.catalog.read()
        entry = catalog.tables.get(name) or catalog.finished_view(name)
        table = self._lake.at(entry.location)
        names = tuple(field.name for field in entry.table.visible)
        if version is None and isinstance(entry, ViewDefinition):
            version = self._planned(entry, catalog).stored().newest
        if version is not None and not 0 <= version <= table.version():
            raise QueryError(f'"{name}" has no version {version}; the newest is {table.version()}')
        snapshot = table.snapshot(version)
        if isinstance(entry, ViewDefinition) and version is not None:
            names = tuple(f.name for f in snapshot.fields if not f.name.startswith(HIDDEN))
        if self._user is None or backend == "duckdb":
            return Folder(table).read(snapshot.files, snapshot.fields).select(list(names))
        return _spark_sessions().read_rows(self._user, snapshot, names)

    def describe_tables(self) -> list[TableDescription]:
        """The base tables: how they are declared, and what they hold."""
        catalog = self._lake.catalog.read()
        return [describe_table(self._lake, catalog, each) for each in catalog.tables.values()]

    @checked
    def describe_views(self, *names: str) -> list[ViewDescription]:
        """The views as they are defined, or those that are named."""
        catalog = self._lake.catalog.read()
        return [describe_view(catalog, catalog.view(name)) for name in names or catalog.views]

    @checked
    def status(self, *names: str) -> list[ViewStatus]:
        """How fresh every view is, or those that are named."""
        catalog = self._lake.catalog.read()
        with remembered_logs():
            return self._statuses(catalog, names)

    def _statuses(self, catalog: Catalog, names: Iterable[str]) -> list[ViewStatus]:
        return [
            view_status(self._lake, catalog, catalog.view(name), self._planned)
            for name in names or catalog.views
        ]

    @checked
    def history(self, name: str) -> list[RefreshReport]:
        """The refreshes of a view, newest first."""
        return self._view(name).history()

    @checked
    def script(self, name: str) -> Script:
        """The delta script of a view, for all kinds of changes."""
        view = self._view(name)
        if not view.is_incremental:
            raise QueryError(f'view "{name}" has no script: {view.decision.reason}')
        return view.script

    @checked
    def operators(self, name: str) -> Node:
        """The query of a view, as relational algebra."""
        return self._view(name).node

    @checked
    def explain(self, name: str, script: bool = True) -> str:
        """How a view is kept, and why; with its script."""
        view = self._view(name)
        stage = next(each for each in self.plan(name) if each.view == name)
        return explain_view(view, stage.summary, script)

    @checked
    def verify(self, name: str, backend: str | None = None) -> Verification:
        """Compare a view with its query, at the versions that it reflects; and whether these are
        the newest."""
        engines = self._engines.forcing(backend)
        with self._lake.marked():
            catalog = self._lake.catalog.read()
            view = self._planned(catalog.finished_view(name), catalog)
            return verify_view(view, catalog, engines)

    @checked
    def repair(self, name: str) -> RefreshReport:
        """Compute a view anew from the newest versions, whatever happened to its table; the views
        above it are refreshed, or computed anew as well."""
        catalog = self._lake.catalog.read()
        report = self._repaired(catalog.finished_view(name), "repaired")
        above = [self._mended(view, name) for view in catalog.above(name)]
        if any(each.error for each in above):
            raise RefreshError([report, *above])
        return report

    @checked
    def vacuum(
        self, hours: float = 168, dry_run: bool = False, force: bool = False
    ) -> dict[str, int]:
        """Remove files that no version of the last hours needs, nor any view that is behind.

        Older versions can then no longer be read. Fewer than 24 hours need `force`; files that a
        writer may be about to commit stay even so. The numbers of files by table, view and cache.
        """
        return clean(self._lake, self._planned, hours, dry_run, force)

    # --- helpers --------------------------------------------------------------------------------

    def _view(self, name: str) -> View:
        catalog = self._lake.catalog.read()
        return self._planned(catalog.finished_view(name), catalog)

    def _planned(self, definition: ViewDefinition, catalog: Catalog) -> View:
        """A view with its plan, which is made once for a definition and what it reads."""
        known = self._views.get(definition.name)
        sources = {n: _source(self._lake, catalog, n) for n in definition.inputs}
        if known is None or (known.definition, known.sources) != (definition, sources):
            node = parse_view(definition.sql, _readable(catalog, definition.name))
            decision = decide(node, definition.strategy, definition.policy, catalog.views)
            known = View(self._lake, definition, node, decision, sources)
            self._views[definition.name] = known
        return known

    def _defined(
        self, catalog: Catalog, name: str, sql: str, strategy: str, policy: str
    ) -> ViewDefinition:
        """A definition that is checked: its SQL, its columns, and that views do not go in rings."""
        location, build = self._lake.place(name), uuid4().hex[:12]
        node = parse_view(sql, _readable(catalog, name))
        inputs = tuple(dict.fromkeys(n.name for n in walk(node) if isinstance(n, Scan)))
        draft = ViewDefinition(
            name, sql, inputs, Table({"none": "int"}), location, strategy, policy, build, True
        )
        catalog.including(draft).order()
        columns = self._planned(draft, catalog).layout.declared
        check_own_names(f'view "{name}"', (each.name for each in columns.visible))
        return dataclasses.replace(draft, table=columns, ready=False)

    def _build(
        self, definition: ViewDefinition, engines: Engines, reason: str = ""
    ) -> RefreshReport:
        with self._lake.marked():
            pinned = pinned_inputs(self._lake, definition, self._planned, engines)
            view = self._planned(definition, self._lake.catalog.read())
            inputs, tables = pinned.inputs(definition), pinned.tables(definition)
            with remembered_logs():
                report = build_view(view, engines, inputs, tables, None, reason, first=not reason)
            forget_problem(self._lake, view.name)
            return report

    def _repaired(self, definition: ViewDefinition, reason: str) -> RefreshReport:
        self._lake.remove_damaged(definition.location)
        return self._build(definition, self._engines, reason)

    def _mended(self, definition: ViewDefinition, repaired: str) -> RefreshReport:
        """A view above one that was repaired: refreshed if it can be."""
        try:
            try:
                return self.refresh(definition.name)[-1]
            except Exception as error:
                if not is_failure(error):
                    raise
            return self._repaired(definition, f'"{repaired}" was repaired')
        except Exception as error:  # whatever is wrong with one view is that view's problem
            return RefreshReport(definition.name, "none", error=problem_of(error))

    def _replace_view(
        self, catalog: Catalog, definition: ViewDefinition, engines: Engines
    ) -> RefreshReport:
        """Compute first, then swap the definition, then show: whoever dies between the last two
        leaves a definition that the next refresh builds."""
        ready = dataclasses.replace(definition, ready=True)
        self._replaced(catalog, ready)
        start = self._planned(catalog.view(definition.name), catalog).stored()
        view = self._planned(ready, catalog)
        pinned = pinned_inputs(self._lake, ready, self._planned, engines)
        inputs, tables = pinned.inputs(ready), pinned.tables(ready)
        reason = "the definition has changed"
        built = compute_view(view, engines, inputs, tables, reason, first=True)
        self._lake.catalog.change(f"replace {view.name}", lambda now: self._replaced(now, ready))
        try:
            return commit_view(view, built, start)
        except ConflictError:  # another process has refreshed the view since
            return self.refresh(view.name)[-1]

    def _replaced(self, catalog: Catalog, definition: ViewDefinition) -> Catalog:
        """The catalog with a view in place of another one, and the views above it as they are
        then; an error if they could not read it any more."""
        changed = {definition.name}
        if catalog.view(definition.name).table == definition.table:
            changed = set()
        catalog = catalog.including(definition)
        for view in catalog.order():
            if not changed & set(view.inputs):
                continue
            try:
                new = self._defined(catalog, view.name, view.sql, view.strategy, view.policy)
            except QueryError as error:
                raise QueryError(
                    f'view "{view.name}" reads "{definition.name}", and would break: {error}'
                ) from error
            catalog = catalog.including(dataclasses.replace(new, ready=True))
            changed |= {view.name} if new.table != view.table else set()
        return catalog

    def _check_place(self, definition: ViewDefinition) -> None:
        """Refuse to write over a Delta table that is no view."""
        table = self._lake.at(definition.location)
        if table.exists() and STATE not in (table.log(-1)[-1].notes or {}):
            raise CatalogError(
                f"there is a Delta table in {table.uri} already; choose another name for the "
                "view, or remove the folder"
            )

    def _define_table(self, definition: TableDefinition, what: str) -> None:
        def defined(catalog: Catalog) -> Catalog:
            catalog.check_free(definition.name)
            return catalog.including(definition)

        self._lake.catalog.change(f"{what} {definition.name}", defined)


@checked
def _lake_place(path: str | os.PathLike[str]) -> str:
    return located(path)


def _spark_sessions() -> Any:
    """What needs pyspark, loaded when there is a session."""
    return import_module("viewkeep.execute.spark.session")


def _readable(catalog: Catalog, name: str) -> dict[str, Table]:
    """What the SQL of a view may name."""
    return {known: table for known, table in catalog.declared().items() if known != name}


def _source(lake: Lake, catalog: Catalog, name: str) -> Source:
    entry = catalog.entries[name]
    return Source(name, entry.table, lake.at(entry.location))


def _with_key(name: str, table: Table) -> Table:
    if not table.key:
        raise SchemaError(f'table "{name}" needs a key, as in key=["id"]: changes name rows by it')
    return table
