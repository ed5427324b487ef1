"""Queries computed on the driver, driven by small diffs.

A query is a diff-driven loop plan (id_based_ivm, appendix A; `diffs.accesses` counts the same
plan): it starts from collected rows; a join of rows that are there with a large relation looks up
their keys in it, and the rows found drive the next join (`near_rows`). What is not there yet comes
with the next job (`look_up`), and so does, where the keys to come are known to be among a few, what
will be looked up after it. Expressions that Python would not compute as Spark does are left to
Spark's optimizer, which needs no job for them; queries that need more than that, to Spark as a
whole.
"""

from collections.abc import Sequence, Set
from typing import Any

from viewkeep.execute.backend import source_of
from viewkeep.execute.near_rows import (
    KeyValues,
    MissingError,
    NearRowsEvaluation,
    TooManyRowsError,
    UnboundedError,
)
from viewkeep.execute.spark.driver.look_up import Columns, NotHereError
from viewkeep.execute.spark.driver.possible_keys import Inputs, PossibleKeys
from viewkeep.query.algebra import Leaf, Node, Project, Scan, Select
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.evaluate.rows import Rows
from viewkeep.query.traversal import walk

MOST_AHEAD = 1000
"""The most keys that are looked up before it is sure that they are needed."""


class Driver:
    """Computes one query; `read` counts the rows that it read."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._memory: dict[tuple[Any, ...], Rows] = {}
        self.possible = PossibleKeys(inputs)
        self.read = 0
        self._evaluation = NearRowsEvaluation(
            self, inputs.limit, self._operator_in_spark, self._is_small_leaf, self._keys_ahead
        )

    def rows(self, node: Node) -> Rows:
        """All rows of a query that starts from small diffs."""
        try:
            rows = self._evaluation.rows(node)
        except TooManyRowsError as error:
            raise NotHereError("too many rows") from error
        except UnboundedError as error:
            raise NotHereError(str(error)) from error
        if len(rows) > self._inputs.limit:
            raise NotHereError("too many rows")
        return rows

    def _operator_in_spark(self, node: Node, inputs: Sequence[Rows], error: Exception) -> Rows:
        """An operator whose expressions Spark computes without a job."""
        if isinstance(node, Select | Project):
            return self._inputs.in_spark(node, inputs[0]) if inputs[0] else []
        raise NotHereError(str(error)) from error

    # --- relations ------------------------------------------------------------------------------

    def is_large(self, leaf: Leaf) -> bool:
        """Whether it is no diff."""
        return isinstance(leaf, Scan) or self._inputs.is_kept(leaf.name)

    def whole(self, leaf: Leaf) -> Rows:
        """All rows of a diff, or of a table, cache or view that is small."""
        key = source_of(leaf), leaf.names
        if key not in self._memory:
            rows = None if isinstance(leaf, Scan) else self._inputs.rows(leaf.name)
            self._memory[key] = self._rows_of_leaf(leaf) if rows is None else rows
            self.read += len(self._memory[key])
        return self._memory[key]

    def _rows_of_leaf(self, leaf: Leaf) -> Rows:
        if not isinstance(leaf, Scan) and self._inputs.pending(leaf.name) is not None:
            raise MissingError(leaf.name)
        if not self._inputs.has_frame(source_of(leaf)):
            raise NotHereError(f"{leaf.name} as a whole")
        return self._rows_in_leaf_order(leaf, self._inputs.look_ups.all_rows(source_of(leaf)))

    def _is_small_leaf(self, leaf: Leaf) -> bool:
        """Whether a relation is so small that all of it is read."""
        source = source_of(leaf)
        return self._inputs.has_frame(source) and self._inputs.look_ups.is_small(source)

    def near(self, leaf: Leaf, keys: KeyValues) -> Rows:
        """The rows that have one of the keys; all rows, where these cannot be looked up."""
        memory_key = source_of(leaf), leaf.names, keys
        if memory_key not in self._memory:
            below = dict(zip(leaf.names, _storage_columns(leaf), strict=True))
            columns = tuple(below[name] for name in keys.names)
            try:
                rows = self._inputs.look_ups.look_up(source_of(leaf), columns, keys.values)
            except NotHereError:
                return self.whole(leaf)
            self._memory[memory_key] = self._rows_in_leaf_order(leaf, rows)
            self.read += len(rows)
        return self._memory[memory_key]

    def _rows_in_leaf_order(self, leaf: Leaf, rows: Rows) -> Rows:
        """Rows in the order of a leaf's columns; one that no query reads is NULL."""
        have = [field.name for field in self._inputs.look_ups.schema(source_of(leaf))]
        names = list(_storage_columns(leaf))
        if have == names:
            return rows
        places = [have.index(name) if name in have else None for name in names]
        return [tuple([None if i is None else row[i] for i in places]) for row in rows]

    # --- rows that are missing ------------------------------------------------------------------

    def _keys_ahead(self, first: Node, second: Node, columns: Sequence[str]) -> Set[Row] | None:
        """All values that columns of missing rows may have, if these are few."""
        values = self.possible.values(first, tuple(columns))
        is_few = values is not None and len(values) <= MOST_AHEAD
        return values if is_few and self._has_all_tables(second) else None

    def _has_all_tables(self, node: Node) -> bool:
        """Whether all tables are there; one that turns out not to be needed need not be."""
        scans = [each for each in walk(node) if isinstance(each, Scan)]
        return all(self._inputs.has_frame((scan.name, scan.state)) for scan in scans)


def _storage_columns(leaf: Leaf) -> Columns:
    """The columns of a leaf by their names in storage."""
    return leaf.table.names if isinstance(leaf, Scan) else leaf.names
