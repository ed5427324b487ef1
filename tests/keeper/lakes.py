"""Lakes for tests: what their Delta tables hold as other engines see it, and what it should be."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.diffs.harness import Bag, expect, plain
from tests.transpile import to_duckdb
from viewkeep import Keeper
from viewkeep.lake.views.view_plans import ViewPlans
from viewkeep.tables.arrow_rows import column_values

Connection = duckdb.DuckDBPyConnection
Row = tuple[Any, ...]


def set_driver_bytes(keeper: Keeper, driver_bytes: int) -> None:
    """Let the driver rewrite files of up to so many bytes; the engine rewrites larger ones."""
    keeper._lake = replace(keeper._lake, driver_bytes=driver_bytes)
    keeper._plans = ViewPlans(keeper._lake, keeper._engines)


def location(keeper: Keeper, name: str) -> str:
    """Where a table or view is."""
    return keeper._lake.catalog.read().entries[name].location


def version(keeper: Keeper, name: str) -> int:
    """The newest version of a table or view."""
    return DeltaTable(location(keeper, name)).version()


def versions(keeper: Keeper) -> dict[str, int]:
    """The newest versions of all tables and views."""
    return {name: version(keeper, name) for name in (*keeper.tables, *keeper.views)}


def rows(keeper: Keeper, name: str) -> Bag:
    """The rows of a table or view, read by deltalake alone."""
    return delta_rows(location(keeper, name))


def delta_rows(place: str | Path, at: int | None = None) -> Bag:
    """The rows of a Delta table without its hidden columns."""
    table = delta_table(DeltaTable(place, version=at))
    shown = table.select([name for name in table.column_names if not name.startswith("#")])
    return Counter(zip(*map(_values, shown.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    is_nested = pa.types.is_nested(column.type)
    return column_values(column) if is_nested else column.to_pylist()


def delta_table(table: DeltaTable) -> pa.Table:
    """All rows of a version, by deltalake alone; Arrow's datasets know no deletion vectors."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return table.to_pyarrow_table()
    return pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t"))


@contextmanager
def in_duckdb(keeper: Keeper) -> Iterator[Connection]:
    """DuckDB with the base tables of a lake as they are now, and the views as its own views."""
    catalog = keeper._lake.catalog.read()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in catalog.tables.items():
            connection.register(name, DeltaTable(table.location).to_pyarrow_dataset())
        for view in catalog.order():
            connection.execute(f'CREATE VIEW "{view.name}" AS {to_duckdb(view.sql)}')
        yield connection


def check(keeper: Keeper, names: Iterable[str] = ()) -> None:
    """Every view is what DuckDB answers over the same Delta files, at the newest versions."""
    with in_duckdb(keeper) as connection:
        for name in names or keeper.views:
            expected = Counter(connection.execute(f'SELECT * FROM "{name}"').fetchall())
            expect(name, plain(rows(keeper, name)), plain(expected))


def check_verified(keeper: Keeper) -> None:
    """Every view is what Spark answers at the versions that the view reflects."""
    for name in keeper.views:
        found = keeper.verify(name)
        assert found.ok, found


def check_replayed(keeper: Keeper, names: Iterable[str] = ()) -> None:
    """The changes of every table and view, replayed on an empty one, give its rows."""
    for name in names or (*keeper.tables, *keeper.views):
        expect(name, plain(replayed(keeper, name)), plain(rows(keeper, name)))


def replayed(keeper: Keeper, name: str, since: int | None = None, start: Bag | None = None) -> Bag:
    """What the changes of a table or view after a version make of its rows then."""
    bag = Counter(start or {})
    for change in keeper.changes(name, since, backend="duckdb").to_pylist():
        assert change["before"] != change["after"] or change["operation"] == "update", change
        for state, sign in (("before", -1), ("after", 1)):
            if change[state] is not None:
                bag[tuple(map(_hashable, change[state].values()))] += sign
    assert min(bag.values(), default=0) >= 0, f"{name}: more rows went than were there"
    return +bag


def _hashable(value: Any) -> Any:
    """The value in the form of rows, in which arrays and structs are tuples."""
    if isinstance(value, dict | list):
        return tuple(map(_hashable, value.values() if isinstance(value, dict) else value))
    return "NaN" if value != value else value


def as_bag(given: Iterable[Row] | Mapping[Any, Row]) -> Bag:
    """Rows as a bag."""
    return Counter(given.values() if isinstance(given, Mapping) else given)
