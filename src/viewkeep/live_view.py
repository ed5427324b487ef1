"""A view of a lake in the engine of one process: built of a snapshot, fed by the tables' changes.

The lake keeps its state (`lake.live_states`) and, where `write` commits it, its result.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from threading import Event, RLock
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.analysis import analyze_query
from viewkeep.display import facts_html, rows_html
from viewkeep.errors import QueryError, ViewkeepError
from viewkeep.lake import RefreshReport
from viewkeep.lake.apply import TRIES
from viewkeep.lake.catalog import Catalog, TableDefinition, ViewDefinition
from viewkeep.lake.lake import Lake
from viewkeep.lake.live_states import Pin, save_state, saved_state
from viewkeep.lake.transactions import Transactions
from viewkeep.lake.views.seen_columns import readable_tables
from viewkeep.lake.views.view import View
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.maintainer import Maintainer, OutputChange, engine_obstacle, maintain
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.query.types.data_types import Field
from viewkeep.refresh.write_rows import write_live_rows
from viewkeep.sql import OutputForm, from_sql, output_form
from viewkeep.tables.arrow_rows import arrow_type
from viewkeep.tables.feed import Feed
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.fit import ColumnMisfitError, fit_column
from viewkeep.tables.log.delta import ConflictError
from viewkeep.tables.log.memory import forget_logs, remembered_logs
from viewkeep.tables.table_changes import TableChanges

Row = tuple[Any, ...]
DIGITS = 18
"""Python divides decimals with 28 digits: so many are right for up to a billion rows of a group."""


SHOWN_ROWS = 20
"""The rows that notebooks show."""


class LiveViewError(ViewkeepError):
    """A live view that does not fit its lake any more; it has to be built anew."""


@dataclass(frozen=True)
class LiveSource:
    """A view that is kept live, its tables, and how its rows are made of the engine's output."""

    plans: ViewPlans
    definition: ViewDefinition
    tables: Mapping[str, TableDefinition]
    form: OutputForm

    @property
    def lake(self) -> Lake:
        """Where the tables are."""
        return self.plans.lake

    @property
    def name(self) -> str:
        """The name of the view."""
        return self.definition.name

    @property
    def columns(self) -> list[tuple[Field, bool]]:
        """The columns of the SQL, and whether each is an aggregate."""
        visible = self.definition.table.visible
        return list(zip(visible, self.form.aggregates, strict=True))


class LiveView:
    """A conjunctive view in this process; made by `Keeper.live`.

    It reflects the tables as they were at the last `catch_up`. Threads may share it.
    """

    def __init__(self, source: LiveSource, maintainer: Maintainer, pins: Mapping[str, Pin]) -> None:
        self._source, self._lake, self._tables = source, source.lake, source.tables
        self._maintainer, self._pins, self._lock = maintainer, dict(pins), RLock()

    def __repr__(self) -> str:
        return f"<LiveView {self.name} by {self._maintainer.program.strategy}>"

    def _repr_html_(self) -> str:
        rows = self.to_arrow()
        shown = [tuple(row.values()) for row in rows.slice(0, SHOWN_ROWS).to_pylist()]
        title = f"Live view {self.name}: {rows.num_rows:,} rows"
        return facts_html(title, self.versions.items()) + rows_html(rows.column_names, shown)

    @property
    def name(self) -> str:
        """The name of the view."""
        return self._source.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of output tuples; their payload is the count, or the aggregates."""
        return self._maintainer.query.outputs

    @property
    def versions(self) -> dict[str, int]:
        """The versions of the tables that it reflects."""
        with self._lock:
            return {name: pin.version for name, pin in self._pins.items()}

    def explain(self) -> str:
        """The query, the strategy and the engine."""
        return self._maintainer.explain()

    # --- reading --------------------------------------------------------------------------------

    def lookup(self, row: Row) -> Any:
        """The payload of one output tuple; zero, or None for aggregates, if it is absent."""
        return self._maintainer.lookup(row)

    def enumerate(self) -> Iterator[tuple[Row, Any]]:
        """Distinct output tuples with their payloads; a change meanwhile ends it with an error."""
        return self._maintainer.enumerate()

    def batches(self, rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
        """The output as Arrow record batches: its tuples, then the count or the aggregates."""
        return self._maintainer.enumerate_batches(rows=rows)

    def value(self) -> Any:
        """The result of a view without groups and rows of its own."""
        return self._maintainer.value()

    def to_arrow(self) -> pa.Table:
        """The rows of the view, with the columns of its SQL and their types."""
        with self._lock:
            return _view_rows(self._maintainer, self._source)

    def row_changes(self, changes: Iterable[OutputChange]) -> list[dict[str, Any]]:
        """Output changes as changes of the view's rows, in the form of `Keeper.changes`: an
        `operation` and the row `before` and `after`, None where there is none."""
        payload = self._maintainer.payload
        empty_payload = None if self.columns else payload.result(payload.ring.zero)
        return [row for each in changes for row in _row_changes(self._source, each, empty_payload)]

    def subscribe(self, callback: Callable[[list[OutputChange]], None]) -> int:
        """Call a function with the output change of each `catch_up`, as one for all changes of the
        tables since the catch-up before; returns the token that `unsubscribe` takes."""
        return self._maintainer.subscribe(callback)

    def unsubscribe(self, token: int) -> None:
        """End a subscription, by the token that `subscribe` has returned."""
        self._maintainer.unsubscribe(token)

    # --- following ------------------------------------------------------------------------------

    def catch_up(self) -> int:
        """Bring the view up to date with its tables; returns how many rows of these changed.

        Readers and subscribers see all changes or none; after an error the view is as before.
        """
        with self._lock, remembered_logs():
            newest = _visible_versions(self._lake, self._tables)
            behind = {n: v for n, v in newest.items() if v != self._pins[n].version}
            changes = [self._table_changes(name, version) for name, version in behind.items()]
            pins = {n: Pin.of(self._lake, self._tables[n], v) for n, v in behind.items()}
            batches = [_update_batch(self._maintainer.query, each) for each in changes if each.size]
            with self._maintainer.exclusive():
                if batches:
                    self._maintainer.update_batches(batches)
                self._pins |= pins  # before subscribers are called, which may fail
        return sum(each.size for each in changes)

    def follow(self, stop: Event, every: float = 0.05) -> None:
        """Catch up every few seconds until an event is set."""
        while not stop.is_set():
            self.catch_up()
            stop.wait(every)

    def _table_changes(self, name: str, version: int) -> TableChanges:
        definition, since = self._tables[name], self._pins[name].version
        table = self._lake.at(definition.location)
        try:
            if version < since:
                raise LiveViewError("it was put back to an older version")
            return Feed(self._lake.scans, name, definition.table, table).changes(since, version)
        except ViewkeepError as error:
            problem = str(error).partition(";")[0]
            raise LiveViewError(
                f'live view "{self.name}": what happened to table "{name}" since version {since} '
                f'cannot be told: {problem}; build it anew with live("{self.name}", resume=False)'
            ) from error

    # --- keeping --------------------------------------------------------------------------------

    def save(self) -> None:
        """Keep the state in the lake, with the versions that it reflects."""
        self._defined_view()  # nobody would remove the state of a view that is gone

        def write(file: Path) -> Mapping[str, Pin]:
            with self._lock:
                self._maintainer.save(file)
                return dict(self._pins)

        save_state(self._lake, self._source.definition, write)

    def write(self) -> RefreshReport:
        """Commit the rows as the next version of the view's table, which then reflects the versions
        that this live view does.

        Nothing is written where it does already; where it reflects newer versions, that is an
        error. The caches of the view are not written: the next refresh that finds changes computes
        the view anew, with its caches.
        """
        with self._lock, self._lake.marked():
            view = self._defined_view()
            for name, pin in self._pins.items():
                if not pin.is_current(self._lake, self._tables[name]):
                    self._refuse(f'table "{name}" has another history than the one that was seen')
            self._check_averages()
            return write_live_rows(view, self.to_arrow, self.versions)

    def _defined_view(self) -> View:
        """The view in the lake; an error if it is gone, or another one by now."""
        view = self._source.plans.finished_view(self.name)
        if view.definition.build != self._source.definition.build:
            self._refuse("the view was defined anew")
        return view

    def _refuse(self, problem: str) -> None:
        raise LiveViewError(
            f'live view "{self.name}": {problem}; open it anew: live("{self.name}")'
        )

    def _check_averages(self) -> None:
        """Refuse averages of so many digits that the engine may round the last one otherwise."""
        fields = [field for field, is_aggregate in self._source.columns if is_aggregate]
        for field, aggregate in zip(fields, self._maintainer.query.aggregates, strict=True):
            if aggregate.function == "avg" and (field.type.precision or 0) > DIGITS:
                raise QueryError(
                    f'view "{self.name}" cannot be written by a live view: column "{field.name}" '
                    f"is an average of decimals with more than {DIGITS} digits; refresh it"
                )


def open_live(plans: ViewPlans, name: str, resume: bool) -> LiveView:
    """A live view resumed from its saved state where possible, else built from the tables."""
    catalog = plans.lake.catalog.read()
    definition = catalog.finished_view(name)
    plans.view(definition, catalog)  # refuses a view that reads a column which is lost
    tables = _base_tables(catalog, definition)
    declared_tables = {name: each.table for name, each in tables.items()}
    query = from_sql(definition.sql, declared_tables)
    source = LiveSource(plans, definition, tables, output_form(definition.sql, declared_tables))
    with plans.lake.marked():
        live = _resume_live_view(source) if resume else None
        return _build_live_view(source, query) if live is None else live


def _base_tables(catalog: Catalog, definition: ViewDefinition) -> dict[str, TableDefinition]:
    tables, readable = {}, readable_tables(catalog, definition)
    for name in definition.inputs:
        if name not in catalog.tables:
            raise QueryError(
                f'view "{definition.name}" reads the view "{name}"; live views read tables: write '
                "the query over these"
            )
        if not catalog.tables[name].table.key:
            raise QueryError(f'table "{name}" has no key; live views follow tables by their keys')
        tables[name] = replace(catalog.tables[name], table=readable[name])
    return tables


def _visible_versions(lake: Lake, tables: Mapping[str, TableDefinition]) -> dict[str, int]:
    """The newest versions that views may see, read while no transaction was decided."""
    transactions = Transactions(lake)
    for _ in range(TRIES):
        decision = transactions.decided()
        versions = {name: transactions.visible_version(each) for name, each in tables.items()}
        if transactions.decided() == decision:
            return versions
        forget_logs(lake.at(each.location).uri for each in tables.values())
    raise ConflictError(f"{lake.uri}: transactions are decided all the time; try again later")


def _build_live_view(source: LiveSource, query: ConjunctiveQuery) -> LiveView:
    """Build a live view from the rows of the newest versions."""
    lake, tables, rows, pins = source.lake, source.tables, {}, {}
    maintainer = _maintainer_with_lookups(query)
    with remembered_logs():
        for name, version in _visible_versions(lake, tables).items():
            table = lake.at(tables[name].location)
            snapshot = table.snapshot(version)
            all_columns = ParquetFolder(table).read(snapshot.files, snapshot.fields)
            rows[name] = all_columns.select(list(query.columns_of(name)))
            pins[name] = Pin.of(lake, tables[name], version)
    maintainer.load(rows)
    live = LiveView(source, maintainer, pins)
    live.catch_up()
    return live


def _maintainer_with_lookups(query: ConjunctiveQuery) -> Maintainer:
    """A maintainer whose look-ups take constant time.

    Where the best strategy has a delay that grows, since every look-up sums over the heavy values,
    the output is kept as a list: as in the table of the view, and an update of a value then costs
    its degree.
    """
    engine = "auto" if engine_obstacle(query) else "compiled"
    if isinstance(analyze_query(query).bounds.delay, Fraction):
        return maintain(query, engine=engine)
    return maintain(query, engine=engine, strategy="viewtree", output="list")


def _update_batch(query: ConjunctiveQuery, changes: TableChanges) -> tuple[str, pa.Table, Any]:
    """The changes of a table as a batch of the engine: old rows with -1, new rows with +1."""
    columns = list(query.columns_of(changes.name))
    rows = pa.concat_tables([changes.old_rows.select(columns), changes.new_rows.select(columns)])
    signs = np.ones(rows.num_rows, np.int64)
    signs[: changes.old_rows.num_rows] = -1
    return changes.name, rows, signs


def _resume_live_view(source: LiveSource) -> LiveView | None:
    """Resume a live view from its saved state; None if that belongs to another definition or
    history, or the changes since then cannot be read."""
    state = saved_state(source.lake, source.definition)
    if state is None or state.pins.keys() != source.tables.keys():
        return None
    with suppress(OSError, ValueError, KeyError, TypeError, ViewkeepError):
        tables = source.tables
        if all(pin.is_current(source.lake, tables[name]) for name, pin in state.pins.items()):
            live = LiveView(source, Maintainer.restore(state.file), state.pins)
            live.catch_up()
            return live
    return None


# --- rows of the view ---------------------------------------------------------------------------


def _view_rows(maintainer: Maintainer, source: LiveSource) -> pa.Table:
    """The output of the engine as rows of the view; a view without groups always has one."""
    if maintainer.query.outputs:
        batches = maintainer.enumerate_batches()
    else:
        columns = [pa.array([each]) for each in maintainer.value()]
        batches = iter([pa.RecordBatch.from_arrays(columns, [str(n) for n in range(len(columns))])])
    schema = pa.schema([(field.name, arrow_type(field.type)) for field, _ in source.columns])
    rows = [_batch_rows(each, source, len(maintainer.query.outputs)) for each in batches]
    return pa.concat_tables([schema.empty_table(), *rows])


def _batch_rows(batch: pa.RecordBatch, source: LiveSource, width: int) -> pa.Table:
    """Output tuples, whose heads have so many columns, as rows of the view."""
    if source.form.has_copies:
        copies = np.repeat(np.arange(batch.num_rows), batch.columns[-1].to_numpy())
        batch = batch.take(pa.array(copies))
    heads, payloads = iter(batch.columns[:width]), iter(batch.columns[width:])
    columns = [_view_column(next(payloads if is_sum else heads), f) for f, is_sum in source.columns]
    return pa.table(columns, [field.name for field, _ in source.columns])


def _view_column(values: pa.Array, field: Field) -> pa.ChunkedArray:
    """A column in the type of the view; averages of decimals are rounded as SQL rounds them."""
    kind = arrow_type(field.type)
    if pa.types.is_decimal(values.type) and values.type.scale > getattr(kind, "scale", 1 << 10):
        values = pc.round(values, kind.scale, "half_towards_infinity")
    try:
        return fit_column(pa.chunked_array([values]), replace(field, nullable=True), in_key=False)
    except ColumnMisfitError as error:
        raise QueryError(f'column "{field.name}": {error}') from error


def _row_changes(
    source: LiveSource, change: OutputChange, empty_payload: Row | None
) -> list[dict[str, Any]]:
    """A change of one output tuple; `empty_payload` is for a view that always has one row."""
    if source.form.has_copies:
        count, row = (change.after or 0) - (change.before or 0), _view_row(source, change.row, ())
        operation, before, after = ("insert", None, row) if count > 0 else ("delete", row, None)
        return [{"operation": operation, "before": before, "after": after}] * abs(count)
    payloads = (empty_payload if each is None else each for each in (change.before, change.after))
    before, after = (None if p is None else _view_row(source, change.row, p) for p in payloads)
    if before == after:
        return []
    operation = "insert" if before is None else "delete" if after is None else "update"
    return [{"operation": operation, "before": before, "after": after}]


def _view_row(source: LiveSource, head: Row, payload: Any) -> dict[str, Any]:
    """A row of the view by its columns; the payload of a view without aggregates is a count."""
    heads, parts = iter(head), iter(payload if isinstance(payload, tuple) else ())
    return {field.name: next(parts if is_sum else heads) for field, is_sum in source.columns}
