"""Delta scripts over a few thousand rows, row by row in Python.

A database takes milliseconds to plan a statement, and a script has many; over so few rows Python
is done before. Expressions are those of `query.evaluate`, which refuses what it would not compute
exactly as Spark does; then, and where rows become many, `LeftToEngineError` leaves a script to the
engine.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.changes.values import same
from viewkeep.diffs.prune import prune
from viewkeep.diffs.script import Apply, Compute, Materialized, Script
from viewkeep.errors import QueryError
from viewkeep.execute.apply_rows import apply_to_rows, keys_and_values
from viewkeep.execute.backend import Relations, Source, Target
from viewkeep.execute.budget import check_time
from viewkeep.execute.errors import RunError
from viewkeep.execute.row_changes import RowChanges
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
    UnionAll,
    Unnest,
    Values,
    Window,
)
from viewkeep.query.evaluate.exact import InexactError
from viewkeep.query.evaluate.forms import Row
from viewkeep.query.evaluate.rows import (
    Rows,
    constant_rows,
    distinct,
    group,
    meetings,
    project,
    select,
    unnest,
)
from viewkeep.query.evaluate.windows import window
from viewkeep.query.traversal import children, walk
from viewkeep.tables.arrow_rows import to_arrow, to_rows
from viewkeep.tables.copies import copy_numbers, with_numbers
from viewkeep.tables.files.key_match import without
from viewkeep.tables.files.parquet import Folder
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import NumberedRows, OverlaidRows, Relation, StoredRows

MOST_ROWS = 4000
"""The most rows of all relations of a script, and of a result."""


class LeftToEngineError(Exception):
    """Work that is better done by an engine."""


@dataclass
class PrunedQueries:
    """What is left of the queries of a script where some diffs are empty; found once."""

    script: Script
    _queries: dict[tuple[str, frozenset[str]], Node | None] = field(default_factory=dict)
    _reads: dict[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def sources(self) -> frozenset[Source]:
        """All relations that the script may read, or changes."""
        leaves = {
            _source(each)
            for statement in self.script.computes()
            for each in walk(statement.query)
            if isinstance(each, Leaf)
        }
        return frozenset({*leaves, *(each.name for each in self.script.materialized)})

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
            return MOST_ROWS + 1 if min(counts, default=0) < 0 else sum(counts)
        case OverlaidRows():
            return count_rows(relation.base) + int(relation.live.num_rows)
        case NumberedRows():
            return count_rows(relation.base)
    return int(relation.num_rows)


def is_small(queries: PrunedQueries, relations: Relations) -> bool:
    """Whether all that a script may read has few rows."""
    total = 0
    for source in queries.sources:
        total += count_rows(relations[source]) if source in relations else 0
        if total > MOST_ROWS:
            return False
    return True


class FewRowsRun:
    """A script that was run in Python."""

    jobs = 0
    accesses = None

    def __init__(self, queries: PrunedQueries, relations: Relations) -> None:
        self._script, self._queries, self._relations = queries.script, queries, relations
        self._kept = {each.name: each for each in self._script.materialized}
        self._rows: dict[tuple[Source, tuple[str, ...]], Rows] = {}
        self._diffs: dict[str, tuple[Rows, Node]] = {}
        self._after: dict[str, Rows] = {}
        self.rows: Mapping[str, RowChanges | None] = self._changed_rows()

    def write_whole(self, name: str, target: Target) -> list[DataFile]:
        """Write all rows of a changed relation as they are after the changes."""
        fields = self._kept[name].definition.schema
        rows = to_arrow(fields, self._after[name])
        table = rows.select([stored for _, stored in target.columns])
        named = table.rename_columns([public for public, _ in target.columns])
        return [Folder(target.table).write(named)] if named.num_rows else []

    def _changed_rows(self) -> dict[str, RowChanges | None]:
        empty = self._empty_diffs()
        for statement in self._script.computes():
            check_time()
            query = self._queries.get(statement, empty)
            rows = [] if query is None else self._evaluated(query)
            self._diffs[statement.name] = rows, statement.query
            if not rows:
                empty.add(statement.name)
        before: dict[str, Rows] = {}
        for apply in self._script.applies():
            if apply.diff not in empty:
                self._apply(apply, before)
        return {name: self._difference(name, old) for name, old in before.items()}

    def _empty_diffs(self) -> set[str]:
        """The base diffs that have no rows: tables of diffs that are not given have none."""
        names = set()
        for diff in self._script.diffs:
            rows = self._relations.get(diff.name)
            if rows is None or not count_rows(rows):
                names.add(diff.name)
        return names

    # --- queries --------------------------------------------------------------------------------

    def _evaluated(self, node: Node) -> Rows:
        try:
            return self._evaluate(node)
        except (InexactError, QueryError) as error:
            raise LeftToEngineError(str(error)) from error

    def _evaluate(self, node: Node) -> Rows:
        match node:
            case Scan() | Stored():
                return self._leaf(node)
            case Values():
                return constant_rows(node)
            case UnionAll():
                return [row for each in children(node) for row in self._evaluate(each)]
            case Select():
                return select(node, self._evaluate(node.child))
            case Project():
                return project(node, self._evaluate(node.child))
            case Distinct():
                return distinct(node, self._evaluate(node.child))
            case GroupBy():
                return group(node, self._evaluate(node.child))
            case Unnest():
                return unnest(node, self._evaluate(node.child))
            case Window():
                return window(node, self._evaluate(node.child))
            case Join() | SemiJoin() | AntiJoin():
                return self._joined(node)

    def _joined(self, node: Join | SemiJoin | AntiJoin) -> Rows:
        left = self._evaluate(node.left)
        right = self._evaluate(node.right) if left else []
        met = meetings(node, left, right)
        match node:
            case Join():
                return _bounded(own + other for own, others in met for other in others)
            case SemiJoin():
                return [own for own, others in met if others]
            case AntiJoin():
                return [own for own, others in met if not others]

    def _leaf(self, leaf: Leaf) -> Rows:
        if isinstance(leaf, Stored) and leaf.name in self._diffs:
            return self._diffs[leaf.name][0]
        names = leaf.table.names if isinstance(leaf, Scan) else leaf.names
        return self._stored(_source(leaf), tuple(names))

    def _stored(self, source: Source, names: tuple[str, ...]) -> Rows:
        if (source, names) not in self._rows:
            self._rows[source, names] = to_rows(_read(self._relations[source], list(names)))
        return self._rows[source, names]

    # --- changes --------------------------------------------------------------------------------

    def _apply(self, apply: Apply, before: dict[str, Rows]) -> None:
        kept = self._kept.get(apply.target)
        if kept is None:
            raise RunError(f'{apply}: there is no cache or view "{apply.target}"')
        if kept.name not in before:
            rows = self._stored(kept.name, kept.definition.names)
            before[kept.name] = self._after[kept.name] = rows
        values = self._values(apply, kept)
        rows, _ = apply_to_rows(kept, apply.schema, values, self._after[kept.name])
        self._after[kept.name] = rows

    def _values(self, apply: Apply, kept: Materialized) -> dict[Row, Row]:
        """The values that a diff sets for each key, once."""
        try:
            pairs = keys_and_values(kept, apply.schema, self._diff(apply.diff))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise LeftToEngineError(str(error)) from error
        by_key: dict[Row, Row] = {}
        for key, values in pairs:
            if not same(by_key.setdefault(key, values), values):
                raise RunError(f"{apply}: two rows of the diff set the same row differently")
        return by_key

    def _diff(self, name: str) -> pa.Table:
        if name in self._diffs:
            rows, query = self._diffs[name]
            return to_arrow([replace(f, nullable=True) for f in query.schema], rows)
        return self._relations[name]

    def _difference(self, name: str, old: Rows) -> RowChanges:
        before, after = Counter(old), Counter(self._after[name])
        fields = self._kept[name].definition.schema
        gone, came = ((a - b).elements() for a, b in ((before, after), (after, before)))
        return RowChanges(to_arrow(fields, list(gone)), to_arrow(fields, list(came)))


def _bounded(rows: Iterable[Row]) -> Rows:
    result = []
    for row in rows:
        result.append(row)
        if len(result) > MOST_ROWS:
            raise LeftToEngineError("too many rows")
    return result


def _source(leaf: Leaf) -> Source:
    return (leaf.name, leaf.state) if isinstance(leaf, Scan) else leaf.name


def _read(relation: Relation, names: list[str]) -> pa.Table:
    """Some columns of a relation, in memory."""
    match relation:
        case StoredRows():
            stored = [relation.names[name] for name in names]
            whole = Folder(relation.table).read(relation.files, relation.snapshot.fields)
            return whole.select(stored).rename_columns(names)
        case OverlaidRows():
            needed = list(dict.fromkeys((*names, *relation.covered.column_names)))
            base = without(_read(relation.base, needed), relation.covered)
            live = relation.live.select(needed).cast(base.schema)
            return pa.concat_tables([base, live]).select(names)
        case NumberedRows():
            rows = _read(relation.base, list(relation.base.names))
            return with_numbers(rows, copy_numbers(rows)).select(names)
    return relation.select(names)
