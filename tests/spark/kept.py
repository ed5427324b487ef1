"""Keeps a view on Spark through batches, and compares it with recomputation by Spark and DuckDB."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tests.diffs.harness import Bag, base_changes, expect, plain, rounded
from tests.diffs.random_tables import Database, apply_batches, as_arrow, diff_as_arrow
from viewkeep.changes import ChangeBatch
from viewkeep.diffs.passes import generate
from viewkeep.diffs.script import Script
from viewkeep.diffs.sql_text import Leaf, quote, to_sql
from viewkeep.query.algebra import Node, Scan
from viewkeep.query.tables import Table
from viewkeep.spark.executor import Run, create, run
from viewkeep.spark.local import collect
from viewkeep.sql.parse import parse_view
from viewkeep.sql.transpile import to_duckdb

LIMIT = 100_000


class KeptView:
    """A view and its caches; `check` collects them after each refresh."""

    def __init__(
        self,
        spark: SparkSession,
        sql: str,
        tables: Mapping[str, Table],
        database: Database,
        tuple_based: bool = False,
    ) -> None:
        self.spark, self.sql, self.tables = spark, sql, tables
        self.database, self.tuple_based = database, tuple_based
        self.node = parse_view(sql, tables)
        self.full = generate(self.node, tuple_based=tuple_based)
        self.frames: dict[Any, DataFrame] = self._tables("post")
        self.frames |= create(spark, self.script, self.frames)

    @property
    def script(self) -> Script:
        return self.full.script

    def refresh(self, batches: Mapping[str, ChangeBatch], **options: Any) -> Run:
        """Change the tables and the view."""
        changes = base_changes(self.full.plan, batches)
        frames = self.frames | self._tables("pre")
        self.database = apply_batches(self.database, batches)
        frames |= self._tables("post")
        for name, (table, columns) in changes.diffs.items():
            frames[name] = self.spark.createDataFrame(diff_as_arrow(table, columns))
        script = generate(self.node, changes.kinds, self.tuple_based).script
        done = run(self.spark, script, frames, **options)
        self.frames = frames | done.frames
        return done

    def to_check(self) -> dict[str, DataFrame]:
        """All that is kept, and what Spark answers to its definitions."""
        frames: dict[str, DataFrame] = {}
        for kept in self.script.materialized:
            found = self.frames[kept.name]
            expected = self._recomputed(kept.definition, frames)
            assert tuple(found.columns) == kept.definition.names
            assert found.dtypes == expected.dtypes, kept.name
            frames |= {kept.name: found, f"expected {kept.name}": expected}
        return frames

    def check(self, rows: Mapping[str, pa.Table]) -> None:
        """What is kept equals Spark's answer; the columns of the view also DuckDB's."""
        for kept in self.script.materialized:
            found, expected = rows[kept.name], rows[f"expected {kept.name}"]
            expect(kept.name, rounded(bag(found)), rounded(bag(expected)))
            schema = self.frames[kept.name].schema
            self.frames[kept.name] = self.spark.createDataFrame(found, schema)
        visible = rows[self.script.view.name].select([name for _, name in self.script.visible])
        expect("visible", plain(bag(visible)), plain(self._duckdb()))

    def _recomputed(self, definition: Node, caches: Mapping[str, DataFrame]) -> DataFrame:
        views: dict[str, DataFrame] = {}

        def name_of(leaf: Leaf) -> str:
            name = f"table {leaf.name}" if isinstance(leaf, Scan) else f"expected {leaf.name}"
            is_table = isinstance(leaf, Scan)
            views[name] = self.frames[leaf.name, "post"] if is_table else caches[name]
            views[name].createOrReplaceTempView(quote(name))
            return quote(name)

        return self.spark.sql(to_sql(definition, name_of))

    def _tables(self, state: str) -> dict[Any, DataFrame]:
        return {
            (name, state): self.spark.createDataFrame(as_arrow(table, self.database[name].values()))
            for name, table in self.tables.items()
        }

    def _duckdb(self) -> Bag:
        with duckdb.connect() as connection:
            for name, table in self.tables.items():
                connection.register(name, as_arrow(table, self.database[name].values()))
            return Counter(connection.execute(to_duckdb(self.sql)).fetchall())


def check(views: Mapping[str, KeptView]) -> None:
    """Check several views; one job collects everything."""
    parts = {(mode, n): f for mode, view in views.items() for n, f in view.to_check().items()}
    rows = collect({f"{mode} {name}": frame for (mode, name), frame in parts.items()}, LIMIT)
    for mode, view in views.items():
        view.check({n: rows[f"{mode} {n}"] for m, n in parts if m == mode})


def bag(table: pa.Table) -> Bag:
    """The rows of a table with how often they come."""
    if not table.num_columns:
        return Counter()
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
