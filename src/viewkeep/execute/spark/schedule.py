"""The computations of a refresh, in as few Spark jobs as what they read from each other allows.

A refresh goes in rounds. Diffs that are known to be empty make what is read from them empty. What
can be is computed on the driver, from collected diffs and from rows that they look up in tables,
caches and the view. What needs rows that are not there waits for them; what the driver should not
compute is set aside for Spark, where several results that nobody else needs become one query. At
the end of a round one job brings everything that was asked for or set aside.
"""

from collections import Counter, defaultdict
from contextlib import suppress
from time import perf_counter

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from pyspark.sql import DataFrame

from viewkeep.diffs.prune import prune
from viewkeep.diffs.script import Apply, Compute, Script
from viewkeep.execute.apply_rows import matched_ids
from viewkeep.execute.budget import check_time
from viewkeep.execute.errors import RunError
from viewkeep.execute.near_rows import MissingError
from viewkeep.execute.spark.apply_diff import Part
from viewkeep.execute.spark.driver.changed_rows import looked_up
from viewkeep.execute.spark.driver.collect import CollectedRows, collect, with_schema
from viewkeep.execute.spark.driver.look_up import NotHereError
from viewkeep.execute.spark.driver.queries import MOST_AHEAD, Driver
from viewkeep.execute.spark.report import SPARK_ERRORS, name_in_errors
from viewkeep.execute.spark.script_relations import ScriptRelations
from viewkeep.query.algebra import Node, Scan, Stored
from viewkeep.query.traversal import walk


class JobSchedule:
    """Computes all diffs of a script."""

    def __init__(self, relations: ScriptRelations, script: Script, find_changed: bool) -> None:
        self._relations, self._script, self._find_changed = relations, script, find_changed
        self._applied = {each.diff for each in script.applies()}
        self._uses: Counter[str] = Counter()
        self._queue: dict[str, Node] = {}
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.reads: dict[str, int | None] = {}

    def compute(self) -> None:
        """All diffs that have rows."""
        relations = self._relations
        self._collect_inputs()
        diffs = self._script.diffs
        if diffs and all(diff.name in relations.empty for diff in diffs):
            relations.empty.update(relations.computes)  # a script may recompute without any diff
        left = [
            each
            for each in map(self._pruned_statement, relations.computes.values())
            if each is not None
        ]
        self._uses = _result_uses(self._script, left)
        while left:
            check_time()
            relations.queries |= {each.name: each.query for each in left}
            left = self._run_round(left)
            if left and relations.look_ups.read_here():
                continue
            if not self._collect_round(left) and left:
                raise RunError(f"{left[0].name} waits for rows that nothing can bring")

    def _collect_inputs(self) -> None:
        """Collect the base diffs; those that are on the driver already need no job."""
        names = self._input_names()
        with name_in_errors(f"reading {', '.join(names)}"):
            remote = self._relations.take_inputs(names)
            for name, table in collect(remote, self._relations.local_rows).items():
                self._relations.take_collected(name, remote[name], table)

    def _input_names(self) -> list[str]:
        """The diffs that statements read, and those that tell whether anything changed."""
        relations = self._relations
        read = [
            each
            for compute in relations.computes.values()
            for each in _relation_names(compute.query)
        ]
        read += [apply.diff for apply in self._script.applies()]
        read += [diff.name for diff in self._script.diffs if relations.has_frame(diff.name)]
        computed = relations.computes.keys() | relations.materialized.keys()
        return [name for name in dict.fromkeys(read) if name not in computed]

    def _pruned_statement(self, statement: Compute) -> Compute | None:
        """What is left of a statement when empty diffs are left out."""
        empty, query = self._relations.empty, None
        if statement.name not in empty:
            query = prune(statement.query, empty.__contains__)
        if query is None:
            empty.add(statement.name)
            self.reads[statement.name] = 0
            return None
        return Compute(statement.name, query, statement.schema)

    # --- one round ------------------------------------------------------------------------------

    def _run_round(self, statements: list[Compute]) -> list[Compute]:
        """Compute statements or set them aside for Spark; the rest, which has to wait."""
        late: dict[str, Compute] = {}
        for each in statements:
            start = perf_counter()
            statement = self._pruned_statement(each)
            if statement is not None and not self._try_statement(statement, late):
                late[statement.name] = statement
            self.seconds[each.name] += perf_counter() - start
        return list(late.values())

    def _try_statement(self, statement: Compute, late: dict[str, Compute]) -> bool:
        """Compute a statement or set it aside for Spark; False if it has to wait."""
        driver = Driver(self._relations.inputs())
        try:
            with name_in_errors(statement.name):
                rows = driver.rows(statement.query)
        except MissingError:
            return False
        except NotHereError:
            return self._set_aside(statement, late)
        schema = self._relations.computes[statement.name].query.schema
        self.reads[statement.name] = driver.read
        self._relations.take(statement.name, CollectedRows(self._relations.spark, schema, rows))
        return True

    def _set_aside(self, statement: Compute, late: dict[str, Compute]) -> bool:
        """For Spark, unless something that it reads has to be collected first: what several
        statements read, so that it is computed once, and what is joined with a kept relation, so
        that Spark knows that it is small, and its keys."""
        read = _relation_names(statement.query)
        queued_names = [name for name in read if name in self._queue]
        shared = any(self._uses[name] > 1 for name in queued_names)
        if (
            late.keys() & set(read)
            or shared
            or (queued_names and self._reads_kept(statement.query))
        ):
            return False
        self.reads[statement.name] = None
        query = self._relations.spelled_out(statement.query, queued_names)
        for name in queued_names:
            del self._queue[name]
        self._relations.queries[statement.name] = self._queue[statement.name] = query
        return True

    def _reads_kept(self, query: Node) -> bool:
        tables = any(isinstance(each, Scan) for each in walk(query))
        return tables or any(
            name in self._relations.materialized for name in _relation_names(query)
        )

    # --- one job --------------------------------------------------------------------------------

    def _collect_round(self, late: list[Compute]) -> bool:
        """What was asked for, what several statements read, what is applied, what others need;
        whether there was any."""
        start = perf_counter()
        frames = self._frames_to_collect(not late)
        if self._find_changed:
            self._ask_for_changed_rows()
        fetches = self._relations.look_ups.frames()
        tables = self._collected_tables(frames | fetches)
        self._relations.look_ups.fill(tables)
        for name, frame in frames.items():
            self._relations.take_collected(name, frame, tables[name])
        waited = [*frames, *(each.name for each in late)]
        for name in waited:
            self.seconds[name] += (perf_counter() - start) / len(waited)
        return bool(tables)

    def _frames_to_collect(self, last: bool) -> dict[str, DataFrame]:
        frames = {}
        builder = self._relations.builder()
        for name in [n for n in self._queue if not last or n in self._applied]:
            with name_in_errors(name):
                rows = builder.frame(self._queue.pop(name))
                schema = self._relations.computes[name].query.schema
                frames[name] = with_schema(rows, schema)
        return frames

    def _collected_tables(self, frames: dict[str, DataFrame]) -> dict[str, pa.Table]:
        limit = self._relations.local_rows
        try:
            return collect(frames, limit)
        except SPARK_ERRORS:
            tables: dict[str, pa.Table] = {}
            for name, frame in frames.items():  # which of them was it?
                with name_in_errors(name):
                    tables |= collect(
                        {name: frame.limit(self._relations.local_rows + 1)},
                        self._relations.local_rows,
                    )
            return tables

    def _ask_for_changed_rows(self) -> None:
        """The rows that changes mean, as far as their keys are known, come with the same job."""
        driver = Driver(self._relations.inputs())
        for statement in self._script.applies():
            with suppress(MissingError, NotHereError):
                self._ask_for_rows(driver, statement)

    def _ask_for_rows(self, driver: Driver, statement: Apply) -> None:
        relations, target = self._relations, self._relations.materialized.get(statement.target)
        if target is None or statement.diff in relations.empty:
            return
        relation = relations.by_name.get(statement.diff)
        if relation is not None:
            looked_up(
                target, [Part(str(statement), statement.schema, relation)], relations.look_ups
            )
            return
        ids = matched_ids(target, statement.schema)
        leaf = Stored(statement.diff, relations.computes[statement.diff].query.schema)
        values = driver.possible.values(leaf, tuple(map(statement.schema.value_after, ids)))
        if values is not None and len(values) <= MOST_AHEAD:
            relations.look_ups.look_up(target.name, ids, values)


def _relation_names(query: Node) -> list[str]:
    """The stored relations that a query reads."""
    return list(dict.fromkeys(each.name for each in walk(query) if isinstance(each, Stored)))


def _result_uses(script: Script, statements: list[Compute]) -> Counter[str]:
    """How many statements read a result."""
    uses = Counter(name for each in statements for name in _relation_names(each.query))
    uses.update(each.diff for each in script.applies())
    return uses
