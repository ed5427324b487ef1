"""Runs delta scripts on Spark: few jobs for small changes, and DataFrames as the result.

    create   the caches and the view as DataFrames, from their definitions
    run      one refresh: every Compute, then every Apply; nothing is written

`frames` says where relations are: a base table by (name, "pre") and (name, "post"), everything
else (base diffs, caches and the view as they were before the refresh) by its name. A table that no
statement needs for the changes at hand does not have to be there.

A refresh goes in rounds. Diffs that are known to be empty make what is read from them empty;
selections and projections of collected diffs are computed on the driver; the others wait until
what they read is collected, and then are collected together by one job. A result of more than
`local_rows` rows stays in Spark, persisted until the run is closed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType
from uuid import uuid4

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame, SparkSession

from viewkeep.diffs.script import Apply, Compute, Script
from viewkeep.diffs.sql_text import Leaf
from viewkeep.query.algebra import Node, Project, Scan, Select, Stored, rewrite, walk
from viewkeep.query.expressions import Column
from viewkeep.spark.build import Builder
from viewkeep.spark.changed import Changed, Part
from viewkeep.spark.counted import apply_accesses, compute_accesses
from viewkeep.spark.local import (
    Relation,
    collect,
    collect_local,
    empty,
    is_local,
    local,
    with_types,
)
from viewkeep.spark.merge import check_effective, merged
from viewkeep.spark.prune import prune
from viewkeep.spark.report import SPARK_ERRORS, RunError, RunReport, StatementReport, named

Frames = Mapping[tuple[str, str] | str, DataFrame]

LOCAL_ROWS = 20_000
"""The most rows of a diff that are collected."""


@dataclass(frozen=True)
class Run:
    """The relations that a refresh changes, by name, and what it did.

    Close it, or use it in a `with`, when the frames are no longer needed: diffs that were too
    large to be collected are persisted until then.
    """

    changed: Mapping[str, Changed]
    report: RunReport
    persisted: tuple[DataFrame, ...] = field(default=(), repr=False)

    @property
    def frames(self) -> dict[str, DataFrame]:
        """The new rows of every changed relation; lazy."""
        return {name: changed.new for name, changed in self.changed.items()}

    def close(self) -> None:
        """Give up what is persisted."""
        for frame in self.persisted:
            frame.unpersist()

    def __enter__(self) -> "Run":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def create(spark: SparkSession, script: Script, frames: Frames) -> dict[str, DataFrame]:
    """The caches and the view, lazy, each with the columns and types of its definition."""
    made: dict[tuple[str, str] | str, DataFrame] = {}
    found: dict[str, DataFrame] = {}
    for kept in script.materialized:
        builder = Builder(lambda leaf: Relation(_given({**frames, **made}, leaf)))
        with named(f"CREATE {kept.name}"):
            frame = with_types(builder.frame(kept.definition), kept.definition.schema)
        found[kept.name] = made[kept.name] = frame
    return found


def run(
    spark: SparkSession,
    script: Script,
    frames: Frames,
    count_accesses: bool = False,
    local_rows: int = LOCAL_ROWS,
) -> Run:
    """Compute the changes of the caches and of the view."""
    start = perf_counter()
    refresh = _Refresh(spark, script, frames, local_rows)
    try:
        with _job_group(spark) as group:
            refresh.compute()
            changed = refresh.apply()
            statements = refresh.reports(count_accesses)
            jobs = _jobs(spark, group)
    except BaseException:
        refresh.unpersist()
        raise
    report = RunReport(tuple(statements), perf_counter() - start, jobs)
    return Run(changed, report, tuple(refresh.persisted))


class _Refresh:
    """One run of a script."""

    def __init__(
        self, spark: SparkSession, script: Script, frames: Frames, local_rows: int
    ) -> None:
        self._spark, self._script, self._frames = spark, script, frames
        self._local_rows = local_rows
        self._kept = {kept.name: kept for kept in script.materialized}
        self._computes = {each.name: each for each in script.computes()}
        self._schemas = {name: each.query.schema for name, each in self._computes.items()}
        self._relations: dict[str, Relation] = {}
        self._empty: set[str] = set()
        self._waiting: dict[str, Node] = {}
        self._inlined: dict[str, Node] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._reads: dict[str, int | None] = {}
        self._uses: Counter[str] = Counter()
        self._applied = {each.diff for each in script.applies()}
        self.persisted: list[DataFrame] = []

    # --- computing ------------------------------------------------------------------------------

    def compute(self) -> None:
        """All diffs, in as few rounds as what they read from each other allows."""
        self._collect_given()
        if self._nothing_changed():
            self._empty.update(self._computes)
        left = self._pruned()
        self._uses = _uses(self._script, left)
        while left:
            left = self._round(left)
            self._collect_waiting(last=not left)

    def _collect_given(self) -> None:
        """The diffs that are given; those that Spark has on the driver already need no job."""
        given = {name: self._frame(name) for name in self._given_names()}
        remote = {name: frame for name, frame in given.items() if not is_local(frame)}
        with named(f"reading {', '.join(given)}"):
            for name in given.keys() - remote.keys():
                self._keep(name, given[name], collect_local(given[name]))
            for name, table in collect(remote, self._local_rows).items():
                self._keep(name, given[name], table)

    def _given_names(self) -> list[str]:
        """The diffs that statements read, and those that tell whether anything changed."""
        read = [each for compute in self._computes.values() for each in _names(compute.query)]
        read += [apply.diff for apply in self._script.applies()]
        read += [diff.name for diff in self._script.diffs if diff.name in self._frames]
        known = self._computes.keys() | self._kept.keys()
        return [name for name in dict.fromkeys(read) if name not in known]

    def _nothing_changed(self) -> bool:
        """Whether all base diffs are there and empty; a script may recompute without them."""
        diffs = self._script.diffs
        return bool(diffs) and all(diff.name in self._empty for diff in diffs)

    def _pruned(self) -> list[Compute]:
        """What is left when empty diffs are left out."""
        left = []
        for statement in self._computes.values():
            query = self._prune(statement)
            if query is not None:
                left.append(Compute(statement.name, query, statement.schema))
        return left

    def _prune(self, statement: Compute) -> Node | None:
        query = None
        if statement.name not in self._empty:
            query = prune(statement.query, self._empty.__contains__)
        if query is None:
            self._empty.add(statement.name)
            self._reads[statement.name] = 0
        return query

    def _round(self, statements: list[Compute]) -> list[Compute]:
        """Compute or set aside for one job what can be; the statements that have to wait."""
        late: list[Compute] = []
        names = set[str]()
        for statement in statements:
            start = perf_counter()
            query = self._prune(statement)
            if query is None:
                continue
            if self._must_wait(query, names):
                late.append(Compute(statement.name, query, statement.schema))
                names.add(statement.name)
            else:
                with named(statement.name):
                    self._take(statement.name, query)
            self._seconds[statement.name] += perf_counter() - start
        return late

    def _must_wait(self, query: Node, late: set[str]) -> bool:
        """Whether something that it reads has to be collected first: what several statements
        read, so that it is computed once, and what is joined with a kept relation, so that Spark
        knows that it is small, and its keys."""
        read = _names(query)
        waiting = [name for name in read if name in self._waiting]
        shared = any(self._uses[name] > 1 for name in waiting)
        reads_kept = any(isinstance(each, Scan) for each in walk(query))
        reads_kept = reads_kept or any(name in self._kept for name in read)
        return bool(late & set(read)) or shared or (bool(waiting) and reads_kept)

    def _take(self, name: str, query: Node) -> None:
        read = _names(query)
        if not any(each in self._waiting for each in read):
            known = [self._relations[each].rows for each in read if each in self._relations]
            tables = len(known) < len(read) or any(isinstance(each, Scan) for each in walk(query))
            self._reads[name] = None if tables or None in known else sum(filter(None, known))
        if self._is_local(query):
            self._keep_local(name, query)
        else:
            for each in read:
                if each in self._waiting:
                    self._inlined[each] = self._waiting.pop(each)
            self._waiting[name] = self._spelled_out(query)

    def _is_local(self, query: Node) -> bool:
        """Whether it only selects and projects rows that were collected."""
        leaves = [each for each in walk(query) if isinstance(each, Leaf)]
        plain = all(isinstance(each, Select | Project | Stored) for each in walk(query))
        tables = [self._relations.get(leaf.name) for leaf in leaves]
        return plain and all(each is not None and each.table is not None for each in tables)

    def _keep_local(self, name: str, query: Node) -> None:
        """Columns that are only renamed are renamed here; for the rest, Spark needs no job."""
        renamed = _renamed(query)
        if renamed is not None:
            leaf, columns = renamed
            table = self._relations[leaf.name].table
            assert table is not None
            names = [new for new, _ in columns]
            table = table.select([old for _, old in columns]).rename_columns(names)
            frame = self._builder().frame(query)
        else:
            frame = with_types(self._builder().frame(query), self._schemas[name])
            table = collect_local(frame)
        self._keep(name, frame, table)

    def _spelled_out(self, query: Node) -> Node:
        """The query with the results that are not collected in place of their names."""

        def spell_out(node: Node) -> Node:
            return self._inlined.get(node.name, node) if isinstance(node, Stored) else node

        return rewrite(query, spell_out)

    def _collect_waiting(self, last: bool) -> None:
        """One job for what several statements read, what is applied, and what others wait for."""
        wanted = [n for n in self._waiting if not last or n in self._applied]
        start = perf_counter()
        builder = self._builder()
        frames = {}
        for name in wanted:
            with named(name):
                rows = builder.frame(self._waiting.pop(name))
                frames[name] = with_types(rows, self._schemas[name])
        for name, table in self._collected(frames).items():
            self._keep(name, frames[name], table)
            self._seconds[name] += (perf_counter() - start) / len(frames)

    def _collected(self, frames: dict[str, DataFrame]) -> dict[str, pa.Table]:
        try:
            return collect(frames, self._local_rows)
        except SPARK_ERRORS:
            for name, frame in frames.items():  # which of them was it?
                with named(name):
                    collect({name: frame}, self._local_rows)
            raise

    def _keep(self, name: str, frame: DataFrame, table: pa.Table) -> None:
        if table.num_rows > self._local_rows:
            self._relations[name] = Relation(frame.persist())
            self.persisted.append(frame)
            return
        self._relations[name] = local(self._spark, table, frame.schema)
        if not table.num_rows:
            self._empty.add(name)

    # --- applying -------------------------------------------------------------------------------

    def apply(self) -> dict[str, Changed]:
        """The kept relations with their diffs, where those have rows."""
        parts: dict[str, list[Part]] = {}
        for statement in self._script.applies():
            start = perf_counter()
            part = self._part(statement)
            if statement.diff not in self._empty:
                parts.setdefault(statement.target, []).append(part)
            self._seconds[str(statement)] += perf_counter() - start
        return {name: self._changed(name, found) for name, found in parts.items()}

    def _part(self, statement: Apply) -> Part:
        kept = self._kept.get(statement.target)
        if kept is None:
            raise RunError(f'{statement}: there is no cache or view "{statement.target}"')
        part = Part(str(statement), statement.schema, self._relation(statement.diff))
        with named(str(statement)):
            check_effective(kept, part)
        return part

    def _changed(self, name: str, parts: list[Part]) -> Changed:
        kept = self._kept[name]
        old = with_types(self._frame(name), kept.definition.schema)
        return Changed(kept, old, tuple(merged(self._spark, kept, parts)))

    # --- reporting ------------------------------------------------------------------------------

    def reports(self, count_accesses: bool) -> list[StatementReport]:
        """A report per statement, computes first."""
        applies = list(self._script.applies())
        accesses: dict[str, int] = {}
        if count_accesses:
            with named("counting accesses"):
                accesses = self._accesses(applies)
        computed = [
            StatementReport(
                name,
                "compute",
                self._rows(name),
                self._seconds[name],
                self._reads.get(name),
                accesses.get(name),
            )
            for name in self._computes
        ]
        applied = [
            StatementReport(
                str(each),
                each.schema.kind,
                self._rows(each.diff),
                self._seconds[str(each)],
                self._rows(each.diff),
                accesses.get(str(each)),
            )
            for each in applies
        ]
        return [*computed, *applied]

    def _rows(self, name: str) -> int | None:
        if name in self._empty:
            return 0
        return self._relations[name].rows if name in self._relations else None

    def _accesses(self, applies: list[Apply]) -> dict[str, int]:
        builder = self._builder()
        found = compute_accesses(self._script.computes(), self._kept.keys(), builder)
        parts = [(self._kept[each.target], self._part(each)) for each in applies]
        olds = {kept.name: self._frame(kept.name) for kept, _ in parts}
        return found | apply_accesses(parts, olds)

    # --- relations ------------------------------------------------------------------------------

    def _builder(self) -> Builder:
        return Builder(self._leaf)

    def _leaf(self, leaf: Leaf) -> Relation:
        return (
            Relation(_given(self._frames, leaf))
            if isinstance(leaf, Scan)
            else self._relation(leaf.name)
        )

    def _relation(self, name: str) -> Relation:
        if name not in self._relations:
            if name in self._empty:
                self._relations[name] = empty(self._spark, self._schemas[name])
            elif name in self._computes:
                query = self._waiting.get(name) or self._inlined[name]
                self._relations[name] = Relation(self._builder().frame(query))
            else:
                return Relation(self._frame(name))
        return self._relations[name]

    def _frame(self, name: str) -> DataFrame:
        return _found(self._frames, name)

    def unpersist(self) -> None:
        """Give up what was persisted."""
        for frame in self.persisted:
            frame.unpersist()


def _given(frames: Frames, leaf: Leaf) -> DataFrame:
    return _found(frames, (leaf.name, leaf.state) if isinstance(leaf, Scan) else leaf.name)


def _found(frames: Frames, name: tuple[str, str] | str) -> DataFrame:
    if name not in frames:
        what = name if isinstance(name, str) else f'table "{name[0]}" ({name[1]})'
        raise RunError(f"no DataFrame for {what}; give frames[{name!r}]")
    return frames[name]


def _names(query: Node) -> list[str]:
    """The stored relations that a query reads."""
    return list(dict.fromkeys(each.name for each in walk(query) if isinstance(each, Stored)))


def _uses(script: Script, statements: list[Compute]) -> Counter[str]:
    """How many statements read a result."""
    uses = Counter(name for each in statements for name in _names(each.query))
    uses.update(each.diff for each in script.applies())
    return uses


def _renamed(query: Node) -> tuple[Stored, list[tuple[str, str]]] | None:
    """The relation and the columns that a query only renames: new names and old ones."""
    columns = [(name, name) for name in query.names]
    while isinstance(query, Project):
        values = {o.name: o.expression for o in query.outputs}
        found = [(new, values[old]) for new, old in columns]
        columns = [(new, old.name) for new, old in found if isinstance(old, Column)]
        if len(columns) < len(found):
            return None
        query = query.child
    return (query, columns) if isinstance(query, Stored) else None


# --- jobs -----------------------------------------------------------------------------------------

_GROUP = "spark.jobGroup.id"


@contextmanager
def _job_group(spark: SparkSession) -> Iterator[str]:
    """A group of jobs of its own, so that they can be counted."""
    context = spark.sparkContext
    before, group = context.getLocalProperty(_GROUP), f"viewkeep {uuid4()}"
    context.setLocalProperty(_GROUP, group)
    try:
        yield group
    finally:
        context.setLocalProperty(_GROUP, before)  # type: ignore[arg-type]  # None removes it


def _jobs(spark: SparkSession, group: str) -> int:
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
