"""A delta script over the relations of a lake: which rows of each kept relation change, and how.

compute   every diff, and rows that are looked up more than once, into a temporary table
old       the rows of a kept relation that diffs name, into a temporary table
new       the same rows with the diffs applied
gone      old EXCEPT new;   came   new EXCEPT old;   IDs are a key, so that no row is there twice

A relation that one update changes, as most are, has its old and new rows from one join instead.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.diffs.model import UPDATE, post
from viewkeep.diffs.script import Apply, Materialized, Script
from viewkeep.execute.apply_rows import matched_ids
from viewkeep.execute.backend import Relations, Target
from viewkeep.execute.budget import check_time
from viewkeep.execute.duckdb.connection import arrow_rows, duckdb_errors
from viewkeep.execute.duckdb.dialect.text import quote_name
from viewkeep.execute.duckdb.look_ups import share_look_ups
from viewkeep.execute.duckdb.narrow import narrow
from viewkeep.execute.duckdb.prepared import Change, PreparedScript
from viewkeep.execute.duckdb.relations import OpenRelations
from viewkeep.execute.duckdb.run import StatementRunner
from viewkeep.execute.duckdb.statements import typed_value
from viewkeep.execute.duckdb.write import write_query
from viewkeep.execute.errors import RunError
from viewkeep.execute.row_changes import RowChanges, changed_relation
from viewkeep.query.types.data_types import Field
from viewkeep.query.types.inference import find_field
from viewkeep.tables.arrow_rows import arrow_schema
from viewkeep.tables.files.key_index import KeyIndex
from viewkeep.tables.files.scans import FILE, ROW
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import OverlaidRows, StoredRows

_NEW, _DIFFERS = "viewkeep#new", "viewkeep#differs"
_PLACES = f", target.{quote_name(FILE)}, target.{quote_name(ROW)}"
NEAR_KEYS = 20_000
"""The most keys whose row groups are sought."""


@dataclass(frozen=True)
class PreparedRun:
    """A script with its texts, for any number of runs, and by Apply the computed relation that has
    all the rows which it names."""

    script: Script
    prepared: PreparedScript
    sources: Mapping[Apply, str]


def prepare_run(script: Script) -> PreparedRun:
    """A script with its texts."""
    targets = {each.name: _temporary_name("new", each.name) for each in script.materialized}
    shared = share_look_ups(script)
    script_read = narrow(shared.script, frozenset(shared.sources.values()))
    prepared = PreparedScript(script_read, OpenRelations.names, targets)
    return PreparedRun(script, prepared, shared.sources)


class DuckdbRun:
    """One run of a script; `rows` are computed at once, whole relations when they are asked for."""

    jobs = 0
    accesses = None

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, run: PreparedRun, relations: Relations
    ) -> None:
        prepared, self._sources = run.prepared, run.sources
        materialized = {each.name: each for each in prepared.script.materialized}
        self._connection, self._materialized = connection, materialized
        self._relations, self._prepared = OpenRelations(connection, relations), prepared
        self._sources_of_run = relations
        self._relations.open(prepared.inputs)
        self._runner = StatementRunner(
            connection,
            prepared,
            counts_accesses=False,
            sizes=False,
            open_=self._relations.open_leaves,
        )
        self.rows: Mapping[str, RowChanges | None] = self._changed_relations()

    def held_rows(self, name: str) -> int | None:
        """None: rows that stay as they are are not read."""
        return None

    def write_whole(self, name: str, target: Target) -> list[DataFile]:
        """Write all rows of a changed relation as they are after the changes."""
        materialized, relation = self._materialized[name], self._sources_of_run[name]
        changes = self.rows[name]
        assert changes is not None
        assert isinstance(relation, StoredRows | OverlaidRows)
        whole = changed_relation(relation, changes, materialized.ids)
        text = f"FROM {self._relations.text(whole)}"
        return write_query(self._connection, text, materialized.definition.schema, target)

    def _changed_relations(self) -> dict[str, RowChanges | None]:
        self._runner.count_inputs()
        for statement in self._prepared.computes:
            check_time()
            self._runner.compute(statement)
        changes: dict[str, list[Change]] = {}
        for change in self._prepared.changes:
            if self._diff_has_rows(change.statement.diff):
                changes.setdefault(change.statement.target, []).append(change)
        return {
            name: self._row_changes(self._materialized[name], changes[name]) for name in changes
        }

    def _row_changes(self, target: Materialized, changes: list[Change]) -> RowChanges:
        check_time()
        schema = changes[0].statement.schema
        with duckdb_errors(f"looking up the rows of {target.name} that change"):
            if len(changes) == 1 and schema.kind == UPDATE and schema.changed:
                return self._updated_rows(target, changes[0].statement)
            self._copy_old_rows(target, [each.statement for each in changes])
        for each in changes:
            check_time()
            self._runner.apply(each)
        return self._row_difference(target.name)

    def _updated_rows(self, target: Materialized, apply: Apply) -> RowChanges:
        """The rows that one update changes, before and after it, by one statement."""
        schema, fields = apply.schema, target.definition.schema
        diff = self._prepared.names.stored(apply.diff)
        ids = ", ".join(map(quote_name, schema.ids))
        values = ", ".join(map(quote_name, (*schema.ids, *map(post, schema.changed))))
        rows, same, is_placed = self._target_and_condition(
            target, schema.ids, self._sources.get(apply), f"(SELECT {ids or '1'} FROM {diff})"
        )
        old_names = [f"target.{quote_name(each.name)}" for each in fields]
        types = {each.name: each.type for each in fields}
        new_values = [
            typed_value(f"keys.{quote_name(post(name))}", types[name]) for name in schema.changed
        ]
        news = [f"{new} AS {quote_name(f'{_NEW} {n}')}" for n, new in enumerate(new_values)]
        differs = " OR ".join(
            f"target.{quote_name(name)} IS DISTINCT FROM {new}"
            for name, new in zip(schema.changed, new_values, strict=True)
        )
        found = arrow_rows(
            self._connection,
            f"SELECT {', '.join([*old_names, *news])}, {differs} AS {quote_name(_DIFFERS)}"
            f"{_PLACES if is_placed else ''} FROM {rows} AS target "
            f"JOIN (SELECT DISTINCT {values} FROM {diff}) AS keys ON {same}",
        )
        keys = found.select(list(target.ids))
        if KeyIndex(keys).repeated is not None:
            raise RunError(f"{apply}: two rows of the diff set the same row differently")
        if is_placed:
            self._relations.remember_places(target.name, keys, found)
        found = found.filter(found[_DIFFERS])
        places = {name: len(fields) + place for place, name in enumerate(schema.changed)}
        new_places = [places.get(each.name, place) for place, each in enumerate(fields)]
        arrow = _nullable_rows(fields)
        return RowChanges(
            pa.Table.from_arrays(found.columns[: len(fields)], names=arrow.names).cast(arrow),
            pa.Table.from_arrays([found.column(n) for n in new_places], names=arrow.names).cast(
                arrow
            ),
        )

    def _diff_has_rows(self, diff: str) -> bool:
        return self._runner.row_count(diff) > 0

    def _copy_old_rows(self, target: Materialized, applies: Iterable[Apply]) -> None:
        """The rows that diffs name, and a copy of them to change."""
        parts: dict[tuple[tuple[str, ...], str | None], list[str]] = {}
        for each in applies:
            ids = matched_ids(target, each.schema)
            columns = ", ".join(
                f"{quote_name(each.schema.value_after(name))} AS {quote_name(name)}" for name in ids
            )
            diff = self._prepared.names.stored(each.diff)
            keys = parts.setdefault((ids, self._sources.get(each)), [])
            keys.append(f"SELECT {columns or '1'} FROM {diff}")
        matches = [self._rows_of_keys(target, *place, keys) for place, keys in parts.items()]
        rows = " UNION ALL ".join(matches)
        if len(matches) > 1:
            once = ", ".join(map(quote_name, target.ids)) or "1"
            rows = f"SELECT DISTINCT ON ({once}) * FROM ({rows})"
        old, new = _temporary_name("old", target.name), _temporary_name("new", target.name)
        self._connection.execute(f"CREATE TEMP TABLE {old} AS {rows}")
        self._connection.execute(f"CREATE TEMP TABLE {new} AS FROM {old}")

    def _rows_of_keys(
        self, target: Materialized, ids: tuple[str, ...], source: str | None, keys: list[str]
    ) -> str:
        """Rows that have one of some keys."""
        names = ", ".join(f"target.{quote_name(name)}" for name in target.definition.names)
        key_rows = f"({' UNION '.join(keys)})"
        rows, same, _ = self._target_and_condition(target, ids, source, key_rows)
        return f"SELECT {names} FROM {rows} AS target SEMI JOIN {key_rows} AS keys ON {same}"

    def _target_and_condition(
        self, target: Materialized, ids: tuple[str, ...], source: str | None, key_rows: str
    ) -> tuple[str, str, bool]:
        """A relation with all rows that have one of some keys, the condition that a row has one,
        and whether it tells their places; scans filter by =, which will do if no key is NULL."""
        schema = target.definition.schema
        nullable = [each for each in ids if find_field(each, schema).nullable]
        nulls = " OR ".join(f"{quote_name(each)} IS NULL" for each in nullable)
        null_safe = bool(nulls) and self._query_has_rows(f"SELECT 1 FROM {key_rows} WHERE {nulls}")
        same = _equal_ids_sql(ids, ids, "keys", null_safe)
        if source is not None:
            return self._prepared.names.stored(source), same, False
        placed = self._near_rows_text(target.name, ids, key_rows)
        placed = placed or self._relations.placed(target.name)
        return placed or self._stored_relation_of_run(target.name), same, placed is not None

    def _near_rows_text(self, name: str, ids: tuple[str, ...], key_rows: str) -> str | None:
        """Rows that may have one of the keys, where few keys are looked up in many row groups."""
        if not ids or not self._relations.may_be_marked(name):
            return None
        keys = arrow_rows(self._connection, f"FROM {key_rows} LIMIT {NEAR_KEYS + 1}")
        return self._relations.near(name, keys) if keys.num_rows <= NEAR_KEYS else None

    def _stored_relation_of_run(self, name: str) -> str:
        self._relations.open([name])
        return self._relations.names[name]

    def _query_has_rows(self, query: str) -> bool:
        return bool(self._connection.execute(f"{query} LIMIT 1").fetchall())

    def _row_difference(self, name: str) -> RowChanges:
        old, new = _temporary_name("old", name), _temporary_name("new", name)
        fields = self._materialized[name].definition.schema
        with duckdb_errors(f"comparing the rows of {name}"):
            old_rows = self._rows_of_query(f"FROM {old} EXCEPT FROM {new}", fields)
            new_rows = self._rows_of_query(f"FROM {new} EXCEPT FROM {old}", fields)
        return RowChanges(old_rows, new_rows)

    def _rows_of_query(self, query: str, fields: Iterable[Field]) -> pa.Table:
        return arrow_rows(self._connection, query).cast(_nullable_rows(fields))


def _nullable_rows(fields: Iterable[Field]) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in arrow_schema(fields)])


def _temporary_name(what: str, name: str) -> str:
    return f"temp.{quote_name(f'viewkeep {what} {name}')}"


def _equal_ids_sql(ids: Iterable[str], others: Iterable[str], other: str, null_safe: bool) -> str:
    equal = "IS NOT DISTINCT FROM" if null_safe else "="
    pairs = zip(ids, others, strict=True)
    return (
        " AND ".join(
            f"target.{quote_name(one)} {equal} {other}.{quote_name(two)}" for one, two in pairs
        )
        or "TRUE"
    )
