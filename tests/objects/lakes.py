"""Lakes in buckets: what their tables hold as deltalake reads them, and what views should hold."""

from collections import Counter

import duckdb
from deltalake import DeltaTable

from tests.diffs.harness import Bag, expect, plain
from tests.diffs.random_tables import Database
from tests.keeper.faults import TABLES, VIEWS
from tests.transpile import to_duckdb
from viewkeep import Keeper

Options = dict[str, str]


def create(keeper: Keeper, model: Database) -> None:
    """The tables with their first rows, and the views."""
    for name, table in TABLES.items():
        keeper.create_table(name, table, rows=list(model[name].values()))
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql, policy="incremental")


def stored_rows(place: str, options: Options | None, version: int | None = None) -> Bag:
    """The rows of a Delta table without its hidden columns, by deltalake alone."""
    table = DeltaTable(place, version=version, storage_options=options).to_pyarrow_table()
    shown = table.select([name for name in table.column_names if not name.startswith("#")])
    return Counter(zip(*(column.to_pylist() for column in shown.columns), strict=True))


def read_model(uri: str, options: Options | None) -> Database:
    """The rows of the tables, by their keys."""
    model: Database = {}
    for name, table in TABLES.items():
        stored = stored_rows(f"{uri}/{name}", options)
        assert max(stored.values(), default=1) == 1, f"{name} has a row twice"
        model[name] = {row[: len(table.key)]: row for row in stored}
        assert len(model[name]) == len(stored), f"{name} has a key twice"
    return model


def check_views(keeper: Keeper, uri: str, options: Options | None) -> None:
    """Every view is what DuckDB answers over the rows of the tables."""
    with duckdb.connect() as connection:
        for name in keeper.tables:
            table = DeltaTable(f"{uri}/{name}", storage_options=options)
            connection.register(name, table.to_pyarrow_table())
        for name, sql in keeper.views.items():
            connection.execute(f'CREATE VIEW "{name}" AS {to_duckdb(sql)}')
            expected = Counter(connection.execute(f'SELECT * FROM "{name}"').fetchall())
            expect(name, plain(stored_rows(f"{uri}/{name}", options)), plain(expected))
