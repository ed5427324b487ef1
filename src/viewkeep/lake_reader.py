"""What a lake holds: its definitions, its rows, how fresh and how it is kept; nothing is changed.

A reader holds nothing but the path of its lake, so that any number of them may work at a time.
"""

import os
from collections.abc import Mapping
from datetime import date, datetime
from itertools import islice
from typing import Any

from viewkeep.arguments import checked
from viewkeep.diffs.script import Script
from viewkeep.display import facts_html, rows_html
from viewkeep.errors import ArgumentError
from viewkeep.execute.engines import DRIVER_BYTES, open_engines
from viewkeep.execute.user_session import UserSession
from viewkeep.lake import RefreshReport
from viewkeep.lake.changes_since import changes_since, newest_version
from viewkeep.lake.create_table import external_table
from viewkeep.lake.descriptions import (
    TableDescription,
    ViewDescription,
    describe_tables,
    describe_views,
)
from viewkeep.lake.lake import Lake, lake_location, open_lake
from viewkeep.lake.read import entry_rows
from viewkeep.lake.views.cache_versions import CacheDescription, describe_caches
from viewkeep.lake.views.explain_view import script_of, view_explanation
from viewkeep.lake.views.status import ViewStatus, view_statuses
from viewkeep.lake.views.stored_view import refresh_reports
from viewkeep.lake.views.view import View
from viewkeep.lake.views.view_options import ViewOptions
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.query.algebra import Node
from viewkeep.query.clock import clock_of
from viewkeep.query.tables import Table
from viewkeep.refresh.all_views import plan_views
from viewkeep.refresh.answer_query import answer_query
from viewkeep.refresh.choose_strategy import StatusAdvice, better_definition, strategy_advice
from viewkeep.refresh.plan import Stage
from viewkeep.refresh.preview import ViewPreview, preview_views


class LakeReader:
    """The part of a `Keeper` that tells and reads."""

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
        if callable(path) or hasattr(type(path), "createDataFrame"):
            raise ArgumentError("Keeper(path, spark): the path comes first, then the session")
        self._session = UserSession(spark)
        self._engines = open_engines(self._session.beside(), backend, driver_bytes)
        settings = (dict(storage_options or {}), self._engines.rewrite_bytes, durable)
        self._lake = open_lake(Lake(_lake_place(path), self._engines.scans, *settings), create)
        self._plans = ViewPlans(self._lake, self._engines)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._lake.uri!r})"

    def _repr_html_(self) -> str:
        """The views of the lake, and how fresh they are."""
        views = self.status()
        rows = [
            (v.name, f"{v.rows:,}", v.problem or ("fresh" if v.is_fresh else "behind"), v.strategy)
            for v in views
        ]
        title = f"Lake {self._lake.uri}: {len(self.tables)} tables, {len(views)} views"
        return facts_html(title, []) + rows_html(("view", "rows", "freshness", "strategy"), rows)

    @property
    def tables(self) -> dict[str, Table]:
        """The base tables, as they are declared."""
        return {name: each.table for name, each in self._lake.catalog.read().tables.items()}

    @checked
    def table(self, name: str) -> Table:
        """A base table, as it is declared."""
        return self._lake.catalog.read().table(name).table

    @property
    def readable(self) -> dict[str, Table]:
        """What a query can name: the tables, and the views that are there, with their columns."""
        return self._lake.catalog.read().declared()

    @property
    def views(self) -> dict[str, str]:
        """The SQL of the views."""
        return {name: each.newest_sql for name, each in self._lake.catalog.read().views.items()}

    @checked
    def read(self, name: str, version: int | None = None, backend: str | None = None) -> Any:
        """A table or view, now or at one of its versions: a DataFrame of Spark where the lake has
        Spark, else, or with `backend="duckdb"`, an Arrow table."""
        rows = entry_rows(self._lake, name, version)
        return self._session.read(rows, backend)

    @checked
    def query(
        self,
        sql: str,
        limit: int | None = None,
        backend: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """The rows of a SELECT over tables and views as they are now, or the first of them, as an
        Arrow table. SQL means what it means in a view; ORDER BY is the order of the rows. A query
        that takes more seconds than `timeout` is ended, with an error."""
        return answer_query(self._plans, sql, self._engines.forcing(backend), limit, timeout)

    @checked
    def version(self, name: str) -> int:
        """The newest version of a table or view."""
        return newest_version(self._lake, self._lake.catalog.read().readable(name))

    @checked
    def changes(
        self,
        name: str,
        since: int | None = None,
        until: int | None = None,
        backend: str | None = None,
    ) -> Any:
        """What happened to a table or view after a version, from the oldest change to the newest.

        Every row has an `operation` (insert, update or delete), the `version` that it made, and the
        row `before` and `after`, NULL where there is none. Without `since`, the story begins with
        an empty table. The result is a DataFrame of Spark where the lake has Spark, else, or with
        `backend="duckdb"`, an Arrow table.
        """
        return self._session.frame(changes_since(self._lake, name, since, until), backend)

    def describe_tables(self) -> list[TableDescription]:
        """The base tables: how they are declared, and what they hold."""
        return describe_tables(self._lake)

    @checked
    def describe_views(self, *names: str) -> list[ViewDescription]:
        """The views as they are defined, or those that are named."""
        return describe_views(self._lake, names)

    @checked
    def status(self, *names: str) -> list[ViewStatus]:
        """How fresh every view is, or those that are named; and which other strategy would have
        been much faster for views whose last refreshes took long."""
        advise = StatusAdvice(self._plans, self._engines)
        return view_statuses(self._lake, names, self._plans.view, advise)

    @checked
    def history(self, name: str, limit: int | None = None) -> list[RefreshReport]:
        """The refreshes of a view, newest first, or so many of them."""
        definition = self._lake.catalog.read().finished_view(name)
        return list(islice(refresh_reports(self._lake.at(definition.location)), limit))

    @checked
    def caches(self, name: str) -> list[CacheDescription]:
        """What is kept beside a view so that changes can be brought in."""
        return describe_caches(self._view(name))

    @checked
    def script(self, name: str) -> Script:
        """The delta script of a view, for all kinds of changes."""
        return script_of(self._view(name))

    @checked
    def operators(self, name: str) -> Node:
        """The query of a view, as relational algebra."""
        return self._view(name).node

    @checked
    def plan(
        self,
        *names: str,
        backend: str | None = None,
        as_of: datetime | date | str | None = None,
    ) -> list[Stage]:
        """What the next `refresh` would do to each view, by which engine, and why; runs nothing."""
        engines, plan = self._engines.forcing(backend), self._plans.at(clock_of(as_of))
        return plan_views(
            self._lake,
            names or None,
            plan,
            engines,
            lambda view: better_definition(self._plans, view, engines),
        )

    @checked
    def external_table(self, name: str, location: str, **constraints: Any) -> Table:
        """What `register_table` would declare."""
        snapshot = self._lake.at(lake_location(location)).snapshot()
        return external_table(name, snapshot, constraints.pop("key", ()), constraints)

    @checked
    def preview(
        self, views: Mapping[str, tuple[str, ViewOptions]], tables: Mapping[str, Table]
    ) -> list[ViewPreview]:
        """What `create_view` would make of views, in an order in which none reads a later one, over
        what is here and over `tables` that are not here yet, or not with these columns: how each
        would be kept, and how it differs from the view of that name; makes nothing."""
        requests = [(name, sql, options) for name, (sql, options) in views.items()]
        return preview_views(self._plans, tables, requests, self._engines)

    @checked
    def explain(self, name: str, script: bool = True) -> str:
        """How a view is kept, and why; with its script."""
        stage = next(each for each in self.plan(name) if each.view == name)
        view = self._view(name)
        strategies = strategy_advice(self._plans, view, self._engines)
        return view_explanation(view, stage.summary, strategies, script)

    def _view(self, name: str) -> View:
        return self._plans.finished_view(name)


@checked
def _lake_place(path: str | os.PathLike[str]) -> str:
    return lake_location(path)
