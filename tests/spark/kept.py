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
    """A view and its caches, collected after each refresh."""

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
        self.check(create(spark, self.full.script, self.frames))

    @property
    def script(self) -> Script:
        return self.full.script

    def refresh(self, batches: Mapping[str, ChangeBatch], **options: Any) -> Run:
        """Change the tables and the view, and check all that is kept."""
        changes = base_changes(self.full.plan, batches)
        frames = self.frames | self._tables("pre")
        self.database = apply_batches(self.database, batches)
        frames |= self._tables("post")
        for name, (table, columns) in changes.diffs.items():
            frames[name] = self.spark.createDataFrame(diff_as_arrow(table, columns))
        script = generate(self.node, changes.kinds, self.tuple_based).script
        done = run(self.spark, script, frames, **options)
        self.frames = frames
        self.check(done.frames)
        done.close()
        return done

    def check(self, made: Mapping[str, DataFrame]) -> None:
        """What was made equals Spark's answer of its definition; the view also DuckDB's.

        Relations that did not change are checked too. One job collects everything.
        """
        kept = {m.name: m for m in self.script.materialized}
        found = {name: made[name] if name in made else self.frames[name] for name in kept}
        expected: dict[str, DataFrame] = {}
        for name, each in kept.items():
            assert tuple(found[name].columns) == each.definition.names
            expected[f"expected {name}"] = self._recomputed(each.definition, expected)
        rows = collect({**found, **expected}, LIMIT)
        for name in kept:
            assert found[name].dtypes == expected[f"expected {name}"].dtypes, name
            expect(name, rounded(bag(rows[name])), rounded(bag(rows[f"expected {name}"])))
            self.frames[name] = self.spark.createDataFrame(rows[name], found[name].schema)
        stored = [name for _, name in self.script.visible]
        visible = bag(rows[self.script.view.name].select(stored))
        expect("visible", plain(visible), plain(self._duckdb()))

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


def bag(table: pa.Table) -> Bag:
    """The rows of a table with how often they come."""
    if not table.num_columns:
        return Counter()
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
