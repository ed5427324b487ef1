"""Keeps views on Spark through batches, and compares them with recomputation by Spark and DuckDB.

Several views share tables and batches. What they keep stays on the driver between refreshes, where
`changed_rows` tells how it changes; one job asks Spark for its answers to all of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tests.diffs.harness import (
    Bag,
    Kinds,
    as_bag,
    base_changes,
    expect,
    plain,
    rounded,
    states,
    without_reserve,
)
from tests.diffs.interpret import Rows, evaluate
from tests.diffs.random_tables import Database, apply_batches, as_arrow, diff_as_arrow
from tests.transpile import to_duckdb
from viewkeep.changes import ChangeBatch
from viewkeep.diffs.generate import GeneratedScript, generate
from viewkeep.diffs.script import Script
from viewkeep.execute.spark.driver.collect import collect, spark_schema
from viewkeep.execute.spark.run import LOCAL_ROWS, Run, changed_rows, create_frames, run_script
from viewkeep.query.algebra import Node
from viewkeep.query.tables import Table
from viewkeep.sql.parse import parse_view
from viewkeep.tables.arrow_rows import to_arrow, to_rows

LIMIT = 100_000


class Tables:
    """Base tables before and after the last batch, as DataFrames that all views share."""

    def __init__(
        self, spark: SparkSession, tables: Mapping[str, Table], database: Database
    ) -> None:
        self.spark, self.tables, self.database = spark, tables, database
        self.frames: dict[Any, DataFrame] = self._made("post")

    def change(self, batches: Mapping[str, ChangeBatch]) -> None:
        """Apply a batch."""
        before = {(name, "pre"): self.frames[name, "post"] for name in self.tables}
        self.database = apply_batches(self.database, batches)
        self.frames = before | self._made("post")

    def _made(self, state: str) -> dict[Any, DataFrame]:
        made = {}
        for name, table in self.tables.items():
            frame = self.spark.createDataFrame(as_arrow(table, self.database[name].values()))
            frame.createOrReplaceTempView(name)
            made[name, state] = frame
        return made


@dataclass
class KeptView:
    """A view and its caches, as rows on the driver."""

    name: str
    sql: str
    tables: Tables
    tuple_based: bool = False
    local_rows: int = LOCAL_ROWS
    find_changed: bool = False
    rows: dict[str, Rows] = field(init=False)

    def __post_init__(self) -> None:
        self.node: Node = parse_view(self.sql, self.tables.tables)
        self.full: GeneratedScript = generate(self.node, tuple_based=self.tuple_based)
        self._scripts: dict[str, Script] = {}
        self.rows = self.defined()

    @property
    def script(self) -> Script:
        return self.full.script

    def created(self) -> dict[str, DataFrame]:
        """What is kept, as Spark computes it from the tables."""
        return create_frames(self.tables.spark, self.script, self.tables.frames)

    def defined(self) -> dict[str, Rows]:
        """What is kept, as its definitions say."""
        found: dict[Any, Any] = states(self.tables.database, "post")
        for kept in self.script.materialized:
            found[kept.name] = evaluate(kept.definition, found)
        return {kept.name: found[kept.name] for kept in self.script.materialized}

    def refresh(self, batches: Mapping[str, ChangeBatch]) -> Run:
        """Change what is kept; the tables have been changed already."""
        changes = base_changes(self.full.plan, batches)
        frames: dict[Any, Any] = dict(self.tables.frames)
        for kept in self.script.materialized:
            table = to_arrow(kept.definition.schema, self.rows[kept.name])
            frames[kept.name] = self.tables.spark.createDataFrame(table)
        for name, (table, columns) in changes.diffs.items():
            frames[name] = diff_as_arrow(table, columns)
        script = self._script(changes.kinds)
        options: dict[str, Any] = {"local_rows": self.local_rows, "find_changed": self.find_changed}
        with run_script(self.tables.spark, script, frames, **options) as done:
            for name, rows in changed_rows(done).items():
                assert rows is not None
                left = Counter(self.rows[name])
                left.subtract(to_rows(rows.old_rows))
                assert min(left.values(), default=0) >= 0, f"{name}: no such rows to change"
                self.rows[name] = [*left.elements(), *to_rows(rows.new_rows)]
        return done

    def _script(self, kinds: Kinds) -> Script:
        known = str(kinds)
        if known not in self._scripts:
            self._scripts[known] = generate(self.node, kinds, self.tuple_based).script
        return self._scripts[known]

    def check(self, spark_rows: pa.Table, duckdb_rows: Bag) -> None:
        """The view is what Spark and DuckDB answer; all that is kept is what it is defined as, but
        for rows of a reserve."""
        expected: dict[Any, Any] = states(self.tables.database, "post")
        for kept in self.script.materialized:
            rows = evaluate(kept.definition, expected)
            found = self.rows[kept.name]
            expected[kept.name] = without_reserve(kept.definition, rows, found)
            expect(kept.name, as_bag(found), as_bag(expected[kept.name]))
        names = self.script.view.definition.names
        places = [names.index(stored) for _, stored in self.script.visible]
        visible = Counter(tuple(row[i] for i in places) for row in self.rows[self.script.view.name])
        expect("visible, to Spark", rounded(visible), rounded(bag(spark_rows)))
        expect("visible, to DuckDB", plain(visible), plain(duckdb_rows))


def check_created(views: Sequence[KeptView]) -> None:
    """What Spark computes for caches and views, with the right types; one job for all of them."""
    frames = {}
    for i, view in enumerate(views):
        for kept, frame in zip(view.script.materialized, view.created().values(), strict=True):
            wanted = spark_schema(kept.definition.schema)
            assert frame.dtypes == [(f.name, f.dataType.simpleString()) for f in wanted]
            frames[f"{i} {kept.name}"] = frame
    found = collect(frames, LIMIT)
    for i, view in enumerate(views):
        with told(view):
            for name, rows in view.defined().items():
                expect(name, rounded(bag(found[f"{i} {name}"])), as_bag(rows))


def check(views: Sequence[KeptView]) -> None:
    """Compare views over the same tables with recomputation; one job for all of them."""
    tables = views[0].tables
    sqls = {view.sql for view in views}
    in_spark = collect({sql: tables.spark.sql(sql) for sql in sqls}, LIMIT)
    in_duckdb = _duckdb(tables, sqls)
    for view in views:
        with told(view):
            view.check(in_spark[view.sql], in_duckdb[view.sql])


@contextmanager
def told(view: KeptView) -> Iterator[None]:
    """Errors with the name of the view."""
    try:
        yield
    except Exception as error:
        error.add_note(f"{view.name}, {'tuple' if view.tuple_based else 'ID'}-based")
        raise


def _duckdb(tables: Tables, sqls: Iterable[str]) -> dict[str, Bag]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        for name, table in tables.tables.items():
            connection.register(name, as_arrow(table, tables.database[name].values()))
        return {s: Counter(connection.execute(to_duckdb(s)).fetchall()) for s in sqls}


def bag(table: pa.Table) -> Bag:
    """The rows of a table with how often they come."""
    return Counter(to_rows(table)) if table.num_columns else Counter()
