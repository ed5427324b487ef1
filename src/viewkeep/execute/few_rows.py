"""Delta scripts for few changes, row by row in Python.

A database takes milliseconds to plan a statement, and a script has many; over so few rows Python
is done before. Of large relations only rows are read that have keys that the changes name, looked
up by the engine (`near_rows`). Expressions are those of `query.evaluate`, which refuses what it
would not compute exactly as Spark does; then, where rows become many, and where a query needs all
of a large relation, `LeftToEngineError` leaves a script to the engine.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.changes.values import same
from viewkeep.diffs.prune import prune
from viewkeep.diffs.script import Apply, Compute, Materialized, Script
from viewkeep.errors import QueryError
from viewkeep.execute.apply_rows import (
    Pairs,
    apply_to_rows,
    keys_and_values,
    keys_and_values_of_rows,
    matched_ids,
)
from viewkeep.execute.backend import Relations, Source, Target, source_of
from viewkeep.execute.budget import check_time
from viewkeep.execute.errors import RunError
from viewkeep.execute.near_rows import (
    KeyValues,
    NearRowsEvaluation,
    TooManyRowsError,
    UnboundedError,
)
from viewkeep.execute.other_version import OtherVersion, other_version
from viewkeep.execute.row_changes import RowChanges, changed_relation
from viewkeep.execute.whole_rows import whole_rows
from viewkeep.query.algebra import Leaf, Node, Scan, Stored
from viewkeep.query.columns_read import needed_columns
from viewkeep.query.evaluate.exact import InexactError
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.evaluate.rows import Rows, key_of
from viewkeep.query.traversal import walk
from viewkeep.query.types.inference import Schema, find_field
from viewkeep.tables.arrow_rows import to_arrow, to_rows
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import NumberedRows, OverlaidRows, Relation, StoredRows

ALL_ROWS = 4000
"""The most rows of all relations of a script that are all read whole."""
MOST_ROWS = 4000
"""The most rows of a join, and those that are looked up at once."""
MOST_CHANGES = 1000
"""The most rows of all diffs of a script over relations that have more rows."""
CHANGES_OF_STATEMENT = 100
"""So many changes take as long row by row as a statement takes an engine to plan."""
WHOLE_ROWS = 1000
"""The most rows of a relation that is read whole, where others are larger."""
MOST_STATEMENTS = 300
"""Longer scripts are left to the engine."""


class LeftToEngineError(Exception):
    """Work that is better done by an engine."""


@dataclass
class PrunedQueries:
    """What is left of the queries of a script where some diffs are empty; found once.

    From `least_left` changes on they are not computed row by row.
    """

    script: Script
    least_left: int | None = None
    _queries: dict[tuple[str, frozenset[str]], Node | None] = field(default_factory=dict)
    _reads: dict[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def sources(self) -> frozenset[Source]:
        """All relations that the script may read, or changes."""
        leaves = {
            source_of(each)
            for statement in self.script.computes()
            for each in walk(statement.query)
            if isinstance(each, Leaf)
        }
        return frozenset({*leaves, *(each.name for each in self.script.materialized)})

    @cached_property
    def needs(self) -> Mapping[Source, frozenset[str]]:
        """By relation, the columns of it that some query reads, under its own names."""
        needs: dict[Source, frozenset[str]] = {}
        for statement in self.script.computes():
            for node, columns in needed_columns(statement.query).items():
                if isinstance(node, Leaf):
                    own = _stored_column_names(node)
                    read = frozenset(own[name] for name in columns)
                    needs[source_of(node)] = needs.get(source_of(node), frozenset()) | read
        return needs

    def get(self, statement: Compute, empty: set[str]) -> Node | None:
        """The query of a statement without what reads empty diffs; None if it has no rows."""
        if statement.name not in self._reads:
            leaves = [each for each in walk(statement.query) if isinstance(each, Stored)]
            self._reads[statement.name] = frozenset(each.name for each in leaves)
        key = statement.name, self._reads[statement.name] & empty
        if key not in self._queries:
            self._queries[key] = prune(statement.query, empty.__contains__)
        return self._queries[key]


def count_rows(relation: Relation) -> int:
    """The rows of a relation; more than may be where the log does not tell."""
    match relation:
        case StoredRows():
            counts = [each.rows for each in relation.files]
            return ALL_ROWS + 1 if min(counts, default=0) < 0 else sum(counts)
        case OverlaidRows():
            return count_rows(relation.base) + int(relation.live.num_rows)
        case NumberedRows():
            return count_rows(relation.base)
    return int(relation.num_rows)


def most_changes(statements: int) -> int:
    """The most changes that go row by row through a script of so many statements.

    >>> most_changes(3), most_changes(50)
    (300, 1000)
    """
    return min(MOST_CHANGES, CHANGES_OF_STATEMENT * statements)


def is_small(queries: PrunedQueries, relations: Relations) -> bool:
    """Whether all that a script may read has few rows, or few rows change."""
    total = changes = 0
    diffs = {each.name for each in queries.script.diffs}
    for source in queries.sources:
        if source in relations:
            count = count_rows(relations[source])
            total += count
            changes += count if source in diffs else 0
    if queries.least_left is not None and changes >= queries.least_left:
        return False
    if total <= ALL_ROWS:
        return True
    statements = len(list(queries.script.computes()))
    return changes <= most_changes(statements) and statements <= MOST_STATEMENTS


class RowsEngine(Protocol):
    """What an engine does for a script that is run row by row."""

    def look_up(self, source: Source, names: Sequence[str], keys: pa.Table, most: int) -> pa.Table:
        """Columns of the rows of a relation that have one of some keys: at most so many."""

    def write(self, relation: OverlaidRows, fields: Schema, target: Target) -> list[DataFile]:
        """Write a relation whose rows were changed."""


class FewRowsRun:
    """A script that was run in Python."""

    jobs = 0
    accesses = None

    def __init__(self, queries: PrunedQueries, relations: Relations, engine: RowsEngine) -> None:
        self._script, self._queries, self._relations = queries.script, queries, relations
        self._engine = engine
        self._materialized = {each.name: each for each in self._script.materialized}
        self._base_diffs = {each.name for each in self._script.diffs}
        self._sizes: dict[Source, int] = {}
        self._rows: dict[tuple[Source, tuple[str, ...]], Rows] = {}
        self._near: dict[tuple[Source, tuple[str, ...]], dict[Row, Rows]] = {}
        self._diffs: dict[str, tuple[Rows, Node]] = {}
        self._values_by_apply: dict[Apply, dict[Row, Row]] = {}
        self._after: dict[str, Rows] = {}
        self._all_small = sum(map(self._relation_size, queries.sources)) <= ALL_ROWS
        self._evaluation = NearRowsEvaluation(self, MOST_ROWS)
        self.rows: Mapping[str, RowChanges | None] = self._changes_by_relation()

    def held_rows(self, name: str) -> int | None:
        """How many rows a changed relation has after the changes; None if not all are here."""
        return None if self._is_large_relation(name) else len(self._after[name])

    def write_whole(self, name: str, target: Target) -> list[DataFile]:
        """Write all rows of a changed relation as they are after the changes."""
        materialized = self._materialized[name]
        if self._is_large_relation(name):
            relation, changes = self._relations[name], self.rows[name]
            assert isinstance(relation, StoredRows | OverlaidRows)
            assert changes is not None
            whole = changed_relation(relation, changes, materialized.ids)
            return self._engine.write(whole, materialized.definition.schema, target)
        rows = to_arrow(materialized.definition.schema, self._after[name])
        table = rows.select([stored for _, stored in target.columns])
        named_rows = table.rename_columns([public for public, _ in target.columns])
        return [ParquetFolder(target.table).write(named_rows)] if named_rows.num_rows else []

    def _changes_by_relation(self) -> dict[str, RowChanges | None]:
        empty = self._empty_diffs()
        for statement in self._script.computes():
            check_time()
            query = self._queries.get(statement, empty)
            rows = [] if query is None else self._evaluate_query(query)
            self._diffs[statement.name] = rows, statement.query
            if not rows:
                empty.add(statement.name)
        applies = [each for each in self._script.applies() if each.diff not in empty]
        before = {name: self._rows_before(name, applies) for name in _targets_of_applies(applies)}
        self._after = dict(before)
        for apply in applies:
            self._apply_diff(apply)
        return {name: self._rows_that_changed(name, old) for name, old in before.items()}

    def _empty_diffs(self) -> set[str]:
        """The base diffs that have no rows: tables of diffs that are not given have none."""
        names = set()
        for diff in self._script.diffs:
            rows = self._relations.get(diff.name)
            if rows is None or not count_rows(rows):
                names.add(diff.name)
        return names

    # --- queries --------------------------------------------------------------------------------

    def _evaluate_query(self, node: Node) -> Rows:
        try:
            return self._evaluation.rows(node)
        except TooManyRowsError as error:
            raise self._leave_to_engine("too many rows") from error
        except (InexactError, QueryError) as error:
            raise LeftToEngineError(str(error)) from error
        except UnboundedError as error:
            self._queries.least_left = 0
            raise LeftToEngineError(str(error)) from error

    def _leave_to_engine(self, reason: str) -> LeftToEngineError:
        """So many changes lead to too many rows; half of them may not."""
        changes = sum(self._relation_size(each.name) for each in self._script.diffs)
        self._queries.least_left = changes // 2 + 1
        return LeftToEngineError(reason)

    def is_large(self, leaf: Leaf) -> bool:
        """Whether rows of a relation are looked up by keys."""
        return self._is_large_relation(source_of(leaf))

    def _is_large_relation(self, source: Source) -> bool:
        if self._all_small or source in self._diffs or source in self._base_diffs:
            return False
        return self._relation_size(source) > WHOLE_ROWS

    def _relation_size(self, source: Source) -> int:
        if source not in self._sizes:
            relation = self._relations.get(source)
            self._sizes[source] = 0 if relation is None else count_rows(relation)
        return self._sizes[source]

    def whole(self, leaf: Leaf) -> Rows:
        """All rows of a relation, or of a diff."""
        if isinstance(leaf, Stored) and leaf.name in self._diffs:
            return self._diffs[leaf.name][0]
        return self._read_whole_relation(
            source_of(leaf), tuple(_stored_column_names(leaf).values())
        )

    def near(self, leaf: Leaf, keys: KeyValues) -> Rows:
        """The rows of a large relation that have one of the keys; what no query reads is NULL."""
        own = _stored_column_names(leaf)
        names, source = tuple(own.values()), source_of(leaf)
        stored = KeyValues(tuple(replace(f, name=own[f.name]) for f in keys.columns), keys.values)
        needs, other = self._queries.needs[source], other_version(self._relations, source)
        if isinstance(source, str) and source in self._materialized:
            needs = frozenset(names)  # as those are looked up that change
        if other is None or other.source not in self._queries.needs:
            return self._look_up_rows(source, names, needs, stored)
        both = needs | self._queries.needs[other.source] | other.key
        return self._look_up_rows(source, names, both, stored, other)

    def _look_up_rows(
        self,
        source: Source,
        names: tuple[str, ...],
        needs: Collection[str],
        keys: KeyValues,
        other: OtherVersion | None = None,
    ) -> Rows:
        """Rows by their keys; those of keys that another version was asked for come from there."""
        columns = (*keys.names, *sorted(needs))
        index = self._near.setdefault((source, columns), {})
        read = [name for name in names if name in needs or name in keys.names]
        new_keys = [each for each in keys.values if each not in index]
        if new_keys and other is not None:
            other_rows = self._near.get((other.source, columns), {})
            near = {each: other_rows[each] for each in new_keys if each in other_rows}
            index.update(other.rows(names, read, near, keys) if near else {})
            new_keys = [each for each in new_keys if each not in index]
        if new_keys:
            self._fill_index(
                index, source, names, read, KeyValues(keys.columns, frozenset(new_keys))
            )
        return [row for key in keys.values for row in index[key]]

    def _fill_index(
        self,
        index: dict[Row, Rows],
        source: Source,
        names: tuple[str, ...],
        read: Sequence[str],
        keys: KeyValues,
    ) -> None:
        """Add the rows of keys that the engine looks up to an index."""
        check_time()
        nullable = [replace(each, nullable=True) for each in keys.columns]
        key_rows = to_arrow(nullable, list(keys.values))
        matches = self._engine.look_up(source, read, key_rows, MOST_ROWS + 1)
        if matches.num_rows > MOST_ROWS:
            raise self._leave_to_engine("too many rows")
        index.update((each, []) for each in keys.values)
        _add_rows_to_index(index, names, keys, matches)

    def _read_whole_relation(self, source: Source, names: tuple[str, ...]) -> Rows:
        if (source, names) not in self._rows:
            self._rows[source, names] = whole_rows(self._relations[source], names)
        return self._rows[source, names]

    # --- changes --------------------------------------------------------------------------------

    def _rows_before(self, name: str, applies: Iterable[Apply]) -> Rows:
        """The rows of a cache or the view that diffs may change."""
        target = self._materialized.get(name)
        if target is None:
            raise RunError(f'there is no cache or view "{name}"')
        names = target.definition.names
        if not self._is_large_relation(name):
            return self._read_whole_relation(name, names)
        rows_by_key: dict[Row, Row] = {}
        key = key_of(target.ids, target.definition.schema)
        values: dict[tuple[str, ...], set[Row]] = {}
        for apply in applies:
            if apply.target == name:
                ids = matched_ids(target, apply.schema)
                values.setdefault(ids, set()).update(self._values_of_diff(apply, target))
        if () in values:
            raise LeftToEngineError(f"all of {name} changes")
        for ids, keys_of_ids in values.items():
            columns = tuple(find_field(each, target.definition.schema) for each in ids)
            keys = KeyValues(columns, frozenset(keys_of_ids))
            rows_by_key |= {key(row): row for row in self._look_up_rows(name, names, names, keys)}
        return list(rows_by_key.values())

    def _apply_diff(self, apply: Apply) -> None:
        target, rows = self._materialized[apply.target], self._after[apply.target]
        after, _ = apply_to_rows(target, apply.schema, self._values_of_diff(apply, target), rows)
        self._after[target.name] = after

    def _values_of_diff(self, apply: Apply, target: Materialized) -> dict[Row, Row]:
        """The values that a diff sets for each key, once."""
        if apply not in self._values_by_apply:
            self._values_by_apply[apply] = self._values_by_key(apply, target)
        return self._values_by_apply[apply]

    def _values_by_key(self, apply: Apply, target: Materialized) -> dict[Row, Row]:
        try:
            pairs = self._key_value_pairs(apply, target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise LeftToEngineError(str(error)) from error
        by_key: dict[Row, Row] = {}
        for key, values in pairs:
            if not same(by_key.setdefault(key, values), values):
                raise RunError(f"{apply}: two rows of the diff set the same row differently")
        return by_key

    def _key_value_pairs(self, apply: Apply, target: Materialized) -> Pairs:
        if apply.diff not in self._diffs:
            return keys_and_values(target, apply.schema, self._relations[apply.diff])
        rows, query = self._diffs[apply.diff]
        return keys_and_values_of_rows(target, apply.schema, query.schema, rows)

    def _rows_that_changed(self, name: str, old: Rows) -> RowChanges:
        before, after = Counter(old), Counter(self._after[name])
        fields = self._materialized[name].definition.schema
        old_rows, new_rows = ((a - b).elements() for a, b in ((before, after), (after, before)))
        return RowChanges(to_arrow(fields, list(old_rows)), to_arrow(fields, list(new_rows)))


def _add_rows_to_index(
    index: dict[Row, Rows], names: Sequence[str], keys: KeyValues, matches: pa.Table
) -> None:
    """Rows by their keys, with all columns: those that were not read are NULL."""
    places = [
        matches.column_names.index(each) if each in matches.column_names else -1 for each in names
    ]
    key_places = [matches.column_names.index(each) for each in keys.names]
    normal = key_of(keys.names, keys.columns)
    for row in to_rows(matches):
        key = normal(tuple([row[i] for i in key_places]))
        if key in index:
            index[key].append(tuple([row[i] if i >= 0 else None for i in places]))


def _targets_of_applies(applies: Iterable[Apply]) -> list[str]:
    return list(dict.fromkeys(each.target for each in applies))


def _stored_column_names(leaf: Leaf) -> dict[str, str]:
    """The columns of a relation by their names in a query."""
    own = leaf.table.names if isinstance(leaf, Scan) else leaf.names
    return dict(zip(leaf.names, own, strict=True))
