"""Views over Delta tables, kept fresh: tables change, `refresh` brings every view up to date.

A keeper holds nothing but the path of its lake: what is defined and what views reflect stands in
the lake, so that any number of keepers, in any processes, may work on it at the same time.

    create_table, register_table, create_view     definitions
    alter_table                                   other columns for a table
    apply, transaction                            one atomic change of a table, or of several
    ingest, sink, capture, quarantine             files, streams and databases; what did not fit
    refresh                                       all views, in the order in which they read
    live                                          a view in this process, at engine speed
    watch                                         refreshes when views fall behind
    read, changes, version                        rows, and what happened to them
    status, history, explain, script              what is there, and why
    verify, repair                                a view beside its query
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from importlib import import_module
from threading import Event
from typing import TYPE_CHECKING, Any

from viewkeep.arguments import checked
from viewkeep.lake import RefreshReport, Verification
from viewkeep.lake.alter_table import Alteration, alter_table
from viewkeep.lake.change_tables import change_table, change_tables
from viewkeep.lake.create_table import create_table, register_table
from viewkeep.lake.drop import drop_table, drop_view
from viewkeep.lake.intake import IngestReport, intake_of
from viewkeep.lake.lake import lake_location
from viewkeep.lake.vacuum import clean
from viewkeep.lake.views.adapt_views import adapt_views
from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.lake_reader import LakeReader
from viewkeep.live_view import LiveView as LiveView
from viewkeep.live_view import open_live
from viewkeep.query.clock import clock_of
from viewkeep.query.constraints import FunctionalDependency
from viewkeep.query.tables import Reference
from viewkeep.refresh.all_views import RefreshError as RefreshError
from viewkeep.refresh.all_views import refresh_views
from viewkeep.refresh.create_view import ViewRequest, create_view, repair_view
from viewkeep.refresh.create_view import is_failure as is_failure
from viewkeep.refresh.lag import seconds_of, set_lag
from viewkeep.refresh.lineage import with_lineage
from viewkeep.refresh.replace_view import strategy_switch
from viewkeep.refresh.verify import verify_view
from viewkeep.refresh.view_text import set_text
from viewkeep.refresh.watch import Watcher
from viewkeep.sources.batches import BatchSink, open_sink
from viewkeep.sources.capture_watch import watch_captures
from viewkeep.sources.folder_watch import watch_folders
from viewkeep.sources.ingest import CHANGES, DEBEZIUM, open_folder

if TYPE_CHECKING:  # it needs psycopg
    from viewkeep.sources.postgres.capture import PostgresCapture


def local_session(log: str = os.devnull, functions: Mapping[str, Any] | None = None) -> Any:
    """A Spark session on this machine with some user-defined functions; what Spark logs goes to a
    file."""
    return import_module("viewkeep.execute.spark.session").local_session(log, functions)


def function_kinds(functions: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of user-defined functions of rows, and of those of groups."""
    module = "viewkeep.execute.spark.user_functions"
    return import_module(module).function_kinds(functions) if functions else ((), ())


class Keeper(LakeReader):
    """The tables and views of a lake.

    `path` is a folder, or a URI that deltalake understands, with `storage_options` for it. Without
    `spark` the lake is embedded: DuckDB does all work, and no Java is needed. `spark` is a session,
    or a function that starts one when there is work for it; Viewkeep uses a session of its own
    beside it, with fixed settings. Work that reads more than `driver_bytes`, and what DuckDB is not
    known to compute as Spark does, goes there; `backend` forces one of "spark" and "duckdb". A lake
    that is not there is made, unless `create` is false. Commits to local folders wait for the disk,
    so that they outlive a power failure, unless `durable` is false.
    """

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
        constraints = {"foreign_keys": foreign_keys, "fds": fds, "static": static}
        create_table(self._lake, name, data, key, constraints, rows, if_not_exists)

    @checked
    def register_table(
        self,
        name: str,
        location: str | os.PathLike[str],
        key: Sequence[str] = (),
        foreign_keys: Iterable[str | Reference] = (),
        fds: Iterable[str | FunctionalDependency] = (),
        static: bool = False,
        replace: bool = False,
    ) -> None:
        """Make an existing Delta table, which others write, known to the lake; with `replace`, in
        place of one that is registered under the name, with another key or at another place.

        `location` is a folder, a URI or, in a lake with Spark, a name in one of its catalogs
        ("catalog.schema.orders"), whose location is asked for once, now. A table of Iceberg is
        "iceberg://CATALOG/NAMESPACE.TABLE", by a catalog that pyiceberg is configured for, its
        metadata file, or its folder where that has a version hint.
        Columns that its writers add, widen or drop are taken over by refreshes and new views. Views
        go on with the columns that they were created over; those that read a column which is gone
        or is not wider stop, and those that read a wider one are computed anew.
        """
        constraints = {"foreign_keys": foreign_keys, "fds": fds, "static": static}
        adapt = partial(adapt_views, self._plans) if replace else None
        place = lake_location(self._session.table_place(location))
        register_table(self._lake, name, place, key, constraints, adapt)

    @checked
    def alter_table(
        self,
        name: str,
        add: Mapping[str, Any] | None = None,
        drop: Sequence[str] = (),
        rename: Mapping[str, str] | None = None,
        widen: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Give a table that Viewkeep owns other columns, in one commit; the names of the views that
        stop, since they read a column that is dropped or renamed.

        `add` has new columns with their types, which are NULL in the rows that are there; `rename`
        new names by the old ones; `widen` types that hold all values of the old ones. Views go on
        with the columns that they were created over, `SELECT *` included; those that read a widened
        column are computed anew by the next refresh. All but `add` writes the files of the table
        anew.
        """
        alteration = Alteration(add or {}, tuple(drop), rename or {}, widen or {})
        return alter_table(self._plans, name, alteration)

    @checked
    def create_view(
        self,
        name: str,
        sql: Any,
        strategy: str = "auto",
        policy: str = "auto",
        replace: bool = False,
        if_not_exists: bool = False,
        backend: str | None = None,
        functions: Iterable[str] = (),
        aggregates: Iterable[str] = (),
        as_of: datetime | date | str | None = None,
        feed: bool = True,
        lag: str = "",
        layout: str = "auto",
        shares: Mapping[str, float] | None = None,
        project: str = "",
    ) -> RefreshReport:
        """Define a view and fill it; with `replace`, in place of one that is there.

        `sql` is a query, or `CREATE [OR REPLACE] [MATERIALIZED] VIEW name AS` one. SQL that is not
        kept incrementally is computed as a whole by Spark when its inputs change, unless `policy`
        or `strategy` ask for more; the report, `explain` and `plan` tell why.
        `functions` and `aggregates` are user-defined ones, in Python or SQL, that the session knows
        and that you declare deterministic: of the same arguments, always the same value.
        A view that is replaced stays readable as it is until its new rows are there. With
        `if_not_exists`, a view that is there is left as it is, and its last report returned.
        `current_date()` and `current_timestamp()` are those of `as_of`, by default of now.
        With `feed`, the view's table has a change data feed, for other engines that follow it.
        `lag` is how far `watch` lets the view fall behind: a time ("1m"), or "downstream" if it is
        to be refreshed only with views that read it.
        With the `layout` "merge-on-read", rows that change are marked in Delta's deletion vectors,
        so that a refresh writes no more than the changes; with "copy-on-write", which "auto" means,
        files that hold them are written anew, and readers need not know deletion vectors.
        `shares` are the parts of tables that you expect to change between two refreshes (a
        thousandth of each, if you do not say): where several strategies can keep the view, `auto`
        takes one that is expected to be much faster than the one by IDs.
        `project` names the project of files that defines the view: `viewkeep up` drops views that
        are no longer in their project.
        """
        options = ViewOptions(
            *(strategy, policy, tuple(functions), tuple(aggregates), feed, lag, layout),
            shares=tuple((shares or {}).items()),
            project=project,
        )
        request = ViewRequest(name, sql, options, replace, if_not_exists, backend, as_of)
        return create_view(self._plans, request, self._engines)

    @checked
    def set_lag(self, name: str, lag: str) -> None:
        """How far `watch` lets a view fall behind from now on; its rows stay."""
        set_lag(self._lake, name, lag)

    @checked
    def set_text(self, name: str, sql: str) -> None:
        """Give a view another text of the same query, with other comments or names for tables; its
        rows stay. An error if the query is another one: `create_view` replaces it."""
        set_text(self._plans, name, sql)

    @checked
    def drop_view(self, name: str) -> None:
        """Forget a view, and remove its files; views that read it are in the way."""
        drop_view(self._lake, name)

    @checked
    def drop_table(self, name: str) -> None:
        """Forget a table; its folder stays, and can be registered again."""
        drop_table(self._lake, name)

    # --- changes --------------------------------------------------------------------------------

    @checked
    def apply(
        self,
        name: str,
        inserts: Any = None,
        updates: Any = None,
        deletes: Any = None,
        upserts: Any = None,
    ) -> int:
        """Change a table in one commit: deletes, then updates, then inserts; the new version.

        Inserts are whole rows, updates have the key and any of the other columns, deletes the key.
        Upserts are whole rows, each inserted or, where its key is there, put in the place of that
        row; no other change may name their keys.
        """
        rows = {"inserts": inserts, "updates": updates, "deletes": deletes, "upserts": upserts}
        return change_table(self._lake, name, rows)

    @checked
    def transaction(self, changes: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
        """Change several tables at once; their new versions.

        For each table, `changes` has what `apply` takes: inserts, updates, deletes and upserts.
        Views see all of it or nothing, also if this process dies in between.
        """
        return change_tables(self._lake, changes)

    @checked
    def ingest(
        self, name: str, folder: str | os.PathLike[str], records: str = CHANGES
    ) -> IngestReport:
        """Take the files of a folder into a table, each of them exactly once.

        Files are CSV, JSON lines or Parquet; a record has an operation (`op`: insert, update,
        upsert or delete), the key and values. With `records="debezium"`, files are JSON lines of
        Debezium's envelopes. Files that are not whole yet wait; records that do not fit go to the
        quarantine of the table.
        """
        return open_folder(self._lake, name, folder, records).ingest()

    @checked
    def sink(
        self, name: str, refresh: bool = False, records: str = CHANGES, query: str = ""
    ) -> BatchSink:
        """What takes the batches of a stream into a table, for `writeStream.foreachBatch`, each
        batch exactly once, also after a restart from the stream's checkpoint.

        A batch has the columns of the table, and perhaps that of operations (as files have it, see
        `ingest`), without which rows are upserts; with `records="debezium"`, a column `value` of
        envelopes, as Spark's source of Kafka has it. With `refresh`, views are refreshed after each
        batch. `query` names the stream where Spark does not tell which one a batch is of.
        """
        after = self.refresh if refresh else lambda: None
        return open_sink(self._lake, name, records, query, after)

    @checked
    def capture(
        self, dsn: str, tables: Mapping[str, str] | Sequence[str], anew: bool = False
    ) -> "PostgresCapture":
        """Follow tables of PostgreSQL: `catch_up` takes in what changed, exactly once, a
        transaction there as one here, and `follow` goes on doing so.

        `tables` are names as SQL has them ("orders", "sales.orders"), or names in the lake and
        those. A log of changed keys and its triggers are made in PostgreSQL (schema `viewkeep`),
        and tables of the lake where they are not there; one that is there may leave columns out.
        With `anew`, all rows are read again, whatever the position was. Passwords come from the
        DSN or, better, from what libpq knows (PGPASSWORD, ~/.pgpass); they are not kept or told.
        """
        module = "viewkeep.sources.postgres.capture"
        capture: PostgresCapture = import_module(module).open_capture(self._lake, dsn, tables, anew)
        return capture

    @checked
    def stop_capture(self, dsn: str, tables: Mapping[str, str] | Sequence[str]) -> dict[str, bool]:
        """Follow tables of PostgreSQL no longer: their logs and triggers are removed there, unless
        another lake follows them. For each table, whether they are gone."""
        module = "viewkeep.sources.postgres.capture"
        gone: dict[str, bool] = import_module(module).stop_capture(self._lake, dsn, tables)
        return gone

    @checked
    def quarantine(self, name: str, backend: str | None = None) -> Any:
        """The records of sources that did not fit a table, with the file, the line and the reason:
        a DataFrame of Spark where the lake has Spark, else, or with `backend="duckdb"`, an Arrow
        table."""
        return self._session.frame(intake_of(self._lake, name).quarantined(), backend)

    @checked
    def clear_quarantine(self, name: str) -> int:
        """Forget the records in the quarantine of a table; how many there were."""
        return intake_of(self._lake, name).clear_quarantine()

    @checked
    def refresh(
        self,
        *names: str,
        backend: str | None = None,
        as_of: datetime | date | str | None = None,
    ) -> list[RefreshReport]:
        """Bring all views up to date, or those that are named with the views that they read.

        `current_date()` and `current_timestamp()` in views are those of `as_of`, by default of now,
        in UTC; the next refresh moves them on, or back.
        """
        engines, clock = self._engines.forcing(backend), clock_of(as_of)
        plan, switch = self._plans.at(clock), strategy_switch(self._plans, engines, clock)
        with self._lake.marked():
            return refresh_views(self._lake, names or None, plan, engines, switch)

    @checked
    def watch(
        self,
        lag: float | str = 0.0,
        stop: Any = None,
        tell: Any = None,
        figures: Any = None,
        ingest: Mapping[str, str | os.PathLike[str]] | None = None,
        debezium: Mapping[str, str | os.PathLike[str]] | None = None,
        capture: Any = None,
    ) -> None:
        """Keep views fresh until `stop`, an event of `threading`, is set.

        A view is refreshed before it is behind its tables by more than its own lag or, where it has
        none, by `lag`: seconds, or a time such as "10s". `tell` is called with the report of every
        refresh, `figures` is a dict that holds what was done for each view. `ingest` and `debezium`
        are folders by table: what comes into them is taken in (`ingest`), and told as well; so is
        what changes in the tables of a `capture`, or of several. Where the client of OpenLineage is
        installed, and its variables say where to (`OPENLINEAGE_URL`), refreshes are told there.
        """
        folders = watch_folders(self._lake, {CHANGES: ingest or {}, DEBEZIUM: debezium or {}})
        looks = [folders.look, *(each.look for each in watch_captures(capture))]
        watcher = Watcher(
            self._lake,
            self._plans.view,
            lambda names: self.refresh(*names),
            seconds_of(lag),
            {} if figures is None else figures,
            lambda report: [look(report) for look in looks],
        )
        tell = with_lineage(self._lake, tell or (lambda report: None))
        watcher.run(stop or Event(), tell)

    @checked
    def live(self, name: str, resume: bool = True) -> LiveView:
        """A conjunctive view in the engine of this process, beside the lake: look-ups, enumeration
        and subscribers, fed by the changes of its tables (`LiveView.catch_up`); `LiveView.write`
        commits its rows as the view's table.

        It goes on from the state that `LiveView.save` kept in the lake, unless that is of another
        definition or history, or `resume` is false.
        """
        return open_live(self._plans, name, resume)

    # --- care -----------------------------------------------------------------------------------

    @checked
    def verify(self, name: str, backend: str | None = None) -> Verification:
        """Compare a view with its query, at the versions that it reflects; and whether these are
        the newest."""
        return verify_view(self._plans, name, self._engines.forcing(backend))

    @checked
    def repair(self, name: str) -> RefreshReport:
        """Compute a view anew from the newest versions, whatever happened to its table; the views
        above it are refreshed, or computed anew as well. A view whose strategy and policy are
        `auto` takes a strategy that is expected to be much faster, if there is one."""
        return repair_view(self._plans, name, self._engines, clock_of(None))

    @checked
    def vacuum(
        self, hours: float = 168, dry_run: bool = False, force: bool = False
    ) -> dict[str, int]:
        """Remove files that no version of the last hours needs, nor any view that is behind.

        Older versions can then no longer be read. Fewer than 24 hours need `force`; files that a
        writer may be about to commit stay even so. The numbers of files by table, view and cache.
        """
        return clean(self._lake, self._plans.view, hours, dry_run, force)
