"""The relations of a script while it runs: inputs, collected results, and queries still to run."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame, SparkSession

from viewkeep.diffs.script import Compute, Script
from viewkeep.execute.backend import Source, source_of
from viewkeep.execute.errors import RunError
from viewkeep.execute.spark.driver.collect import (
    CollectedRows,
    Relation,
    collect_local,
    empty,
    is_local,
    local,
    with_schema,
)
from viewkeep.execute.spark.driver.layered import LayeredRows
from viewkeep.execute.spark.driver.look_up import LookUps
from viewkeep.execute.spark.driver.possible_keys import Inputs
from viewkeep.execute.spark.driver.scanned import ScannedFiles
from viewkeep.execute.spark.frames import FrameBuilder
from viewkeep.query.algebra import (
    AntiJoin,
    Distinct,
    GroupBy,
    Join,
    Leaf,
    Node,
    Project,
    Scan,
    Select,
    SemiJoin,
    Stored,
    Unnest,
    Window,
)
from viewkeep.query.evaluate.rows import Rows
from viewkeep.query.expressions import columns_of
from viewkeep.query.traversal import rewrite_tree, walk, with_children
from viewkeep.query.types.inference import Schema
from viewkeep.tables.arrow_rows import to_rows

Input: TypeAlias = DataFrame | pa.Table | ScannedFiles | LayeredRows
Frames = Mapping[Source, Input]
"""Where relations are; a diff may also be an Arrow table, and what is kept may have layers."""
MOST_PAIRS = 500_000
"""The most rows of a join that the driver computes."""


class ScriptRelations:
    """The relations of one refresh, by name."""

    def __init__(
        self, spark: SparkSession, script: Script, frames: Frames, local_rows: int
    ) -> None:
        self.spark, self._frames = spark, frames
        self.local_rows = local_rows
        self.materialized = {each.name: each for each in script.materialized}
        self.computes = {each.name: each for each in script.computes()}
        self.empty: set[str] = set()
        self.persisted: list[DataFrame] = []
        self.queries: dict[str, Node] = {}
        """What is computed later, or in Spark as a part of something else."""
        self.by_name: dict[str, Relation] = {}
        schemas = {**_columns_of_tables(tuple(self.computes.values())), **self._kept_schemas()}
        self.look_ups = LookUps(spark, self._look_up_base, schemas, local_rows)

    def _kept_schemas(self) -> dict[Source, Schema]:
        return {name: each.definition.schema for name, each in self.materialized.items()}

    # --- taking in ------------------------------------------------------------------------------

    def take_inputs(self, names: Iterable[str]) -> dict[str, DataFrame]:
        """Take the diffs that are on the driver; the others have to be collected."""
        remote = {}
        for name in names:
            rows = _input_of_name(self._frames, name)
            if isinstance(rows, pa.Table):
                self.take(name, local(self.spark, rows))
                continue
            frame = _frame_of_input(self.spark, rows)
            if is_local(frame):
                self.take(name, local(self.spark, collect_local(frame)))
            else:
                remote[name] = frame
        return remote

    def take(self, name: str, relation: Relation) -> None:
        """From now on, a relation is known by its name."""
        self.by_name[name] = relation
        self.queries.pop(name, None)
        if relation.is_empty:
            self.empty.add(name)

    def take_collected(self, name: str, frame: DataFrame, table: pa.Table) -> None:
        """Take a result; one that is too large stays in Spark."""
        if table.num_rows > self.local_rows:
            self.persisted.append(frame)
            self.take(name, Relation(frame.persist()))
        else:
            self.take(name, local(self.spark, table))

    # --- giving out -----------------------------------------------------------------------------

    def has_frame(self, source: Source) -> bool:
        """Whether a relation is given."""
        return source in self._frames

    def frame(self, source: Source) -> DataFrame:
        """An input relation as a DataFrame."""
        return _frame_of_input(self.spark, _input_of_name(self._frames, source))

    def _look_up_base(self, source: Source) -> DataFrame | ScannedFiles | LayeredRows:
        rows = _input_of_name(self._frames, source)
        return (
            rows
            if isinstance(rows, ScannedFiles | LayeredRows)
            else _frame_of_input(self.spark, rows)
        )

    def relation(self, name: str) -> Relation:
        """A relation that is given, collected, or computed in Spark when it is read."""
        if name not in self.by_name:
            if name in self.empty:
                self.by_name[name] = empty(self.spark, self.computes[name].query.schema)
            elif name in self.computes:
                self.by_name[name] = Relation(self.builder().frame(self.queries[name]))
            else:
                return Relation(self.frame(name))
        return self.by_name[name]

    def rows(self, name: str) -> int | None:
        """How many rows a diff has, where that is known."""
        if name in self.empty:
            return 0
        return self.by_name[name].rows if name in self.by_name else None

    def builder(self) -> FrameBuilder:
        """Makes DataFrames of queries."""
        return FrameBuilder(self.spark, self._relation_of_leaf)

    def _relation_of_leaf(self, leaf: Leaf) -> Relation:
        if isinstance(leaf, Scan):
            return Relation(self.frame((leaf.name, leaf.state)))
        return self.relation(leaf.name)

    def inputs(self) -> Inputs:
        """What queries on the driver read."""

        def tuples(name: str) -> Rows | None:
            relation = self.by_name.get(name)
            return relation.tuples if isinstance(relation, CollectedRows) else None

        return Inputs(
            self.look_ups,
            rows=tuples,
            pending=self.queries.get,
            is_kept=self.materialized.__contains__,
            has_frame=self.has_frame,
            in_spark=self._rows_by_spark,
            limit=min(10 * self.local_rows, MOST_PAIRS),
        )

    def _rows_by_spark(self, node: Select | Project, rows: Rows) -> Rows:
        """By Spark's optimizer, over a local relation."""
        name = "viewkeep#rows"
        child = CollectedRows(self.spark, node.child.schema, rows)
        over = with_children(node, (Stored(name, node.child.schema),))
        frame = with_schema(FrameBuilder(self.spark, lambda leaf: child).frame(over), node.schema)
        return to_rows(collect_local(frame))

    def spelled_out(self, query: Node, names: Iterable[str]) -> Node:
        """A query with other queries in place of their names."""
        inlined = {name: self.queries[name] for name in names if name in self.queries}

        def spell_out(node: Node) -> Node:
            return inlined.get(node.name, node) if isinstance(node, Stored) else node

        return rewrite_tree(query, spell_out) if inlined else query

    def unpersist(self) -> None:
        """Give up what was persisted."""
        for frame in self.persisted:
            frame.unpersist()


def _frame_of_input(spark: SparkSession, rows: Input) -> DataFrame:
    if isinstance(rows, ScannedFiles | LayeredRows):
        return rows.frame
    return local(spark, rows).frame if isinstance(rows, pa.Table) else rows


def _input_of_name(frames: Frames, name: Source) -> Input:
    if name not in frames:
        what = name if isinstance(name, str) else f'table "{name[0]}" ({name[1]})'
        raise RunError(f"no DataFrame for {what}; give frames[{name!r}]")
    return frames[name]


def input_frame(spark: SparkSession, frames: Frames, leaf: Leaf) -> DataFrame:
    """The relation of a leaf."""
    return _frame_of_input(spark, _input_of_name(frames, source_of(leaf)))


@lru_cache(maxsize=64)
def _columns_of_tables(statements: tuple[Compute, ...]) -> dict[Source, Schema]:
    """Of every table, the columns that queries read."""
    schemas: dict[Source, Schema] = {}
    used: dict[Source, set[str]] = {}
    for statement in statements:
        names = set(statement.query.names)
        for node in walk(statement.query):
            names |= _names_read(node)
        for scan in walk(statement.query):
            if isinstance(scan, Scan):
                source = scan.name, scan.state
                own = zip(scan.names, scan.table.names, strict=True)
                used.setdefault(source, set()).update(c for n, c in own if n in names)
                read = tuple(c for c in scan.table.columns if c.name in used[source])
                schemas[source] = read or scan.table.columns[:1]  # a count needs a column
    return schemas


def _names_read(node: Node) -> frozenset[str]:
    match node:
        case Select() | Join() | SemiJoin() | AntiJoin():
            return columns_of(node.condition)
        case Project():
            return frozenset().union(*(columns_of(o.expression) for o in node.outputs))
        case GroupBy():
            return frozenset(node.keys).union(*(each.reads for each in node.aggregates))
        case Window():
            return node.reads
        case Unnest():
            return frozenset({node.column})
        case Distinct():
            return frozenset(node.names)  # what differs in any column differs
    return frozenset()
