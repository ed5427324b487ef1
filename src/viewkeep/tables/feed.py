"""What changed in a table between two of its versions.

Three ways, the first that applies: the changes that Viewkeep wrote down with its own commits, the
change data feed that other writers kept, and the difference of the two versions by key, of which
only the files that they do not share are read.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from viewkeep.changes import ChangeBatch, ChangeError, Row, RowFormat, compose
from viewkeep.errors import SchemaError, ViewkeepError
from viewkeep.execute.spark.collect import group_rows
from viewkeep.query.expressions import quote
from viewkeep.query.tables import Table
from viewkeep.query.types.data_types import STRING, Field
from viewkeep.tables.arrow_rows import arrow_type, to_arrow, to_rows
from viewkeep.tables.delta import CHANGES as CHANGES
from viewkeep.tables.delta import (
    DataFile,
    LakeTable,
    MissingEntryError,
    Snapshot,
    StorageError,
    told,
)
from viewkeep.tables.entries import Commit
from viewkeep.tables.parquet import Folder, read_frame

COUNT = "changed_rows"
MOST_CHANGES = 2_000_000
"""More changes than these are never brought in one by one."""
FOLDER = "_changes"
"""Folders with this mark are no data to Delta, and vacuum leaves them alone."""
KIND = "#kind"
HARMLESS = frozenset(
    {
        "OPTIMIZE",
        "VACUUM START",
        "VACUUM END",
        "SET TBLPROPERTIES",
        "CREATE TABLE",
        "ADD CONSTRAINT",
    }
)
"""Operations that change no rows."""


class TooManyChangesError(ViewkeepError):
    """So many changes that views are better computed anew."""


class UnclearChangesError(ViewkeepError):
    """Changes from a version whose rows cannot be told apart: views have to be computed anew."""


@dataclass(frozen=True)
class Feed:
    """A table whose changes are read."""

    spark: SparkSession
    name: str
    declared: Table
    table: LakeTable

    def count(self, since: int, until: int) -> int | None:
        """How many changes were written down, without reading them; None if that is not known."""
        commits = self._commits(since, until)
        if commits is None or not all(map(_is_written_down, commits)):
            return None
        return sum(int((each.notes or {}).get(COUNT, 0)) for each in commits)

    def changes(self, since: int, until: int, most: int = MOST_CHANGES) -> ChangeBatch:
        """The net changes from one version to a later one; an error if they are more than `most`,
        which would be too many for the driver."""
        if since == until:
            return ChangeBatch(self.name, self.declared)
        if since > until:
            raise StorageError(
                f'table "{self.name}" is at version {until}, but was seen at {since}: '
                "it was made anew; repair the views that read it"
            )
        commits = self._commits(since, until)
        if commits is not None and all(map(_is_written_down, commits)):
            return self._written_down(reversed(commits))
        if self._has_change_feed(since, until):
            # Parts of it are gone, or a key stood twice for a while: the versions may still do.
            with suppress(StorageError, ChangeError):
                return self._from_change_feed(since, until, most)
        return self._difference(since, until, most)

    def _commits(self, since: int, until: int) -> list[Commit] | None:
        try:
            return self.table.log(since, until)
        except MissingEntryError:  # it was cleaned up; the versions may still be there
            return None

    # --- written down by Viewkeep ---------------------------------------------------------------

    def _written_down(self, commits: Iterable[Commit]) -> ChangeBatch:
        paths = [(each.notes or {}).get(CHANGES) for each in commits]
        batches = [self.read(path) for path in paths if path]
        return compose(self.name, self.declared, batches)

    def write(self, batch: ChangeBatch) -> dict[str, Any]:
        """Write changes down; the notes that tell of them in the commit."""
        if batch.is_empty:
            return {CHANGES: None, COUNT: 0}
        rows = [
            *(("delete", *old, *[None] * len(old)) for old in batch.deletes),
            *(("update", *old, *new) for old, new in batch.updates),
            *(("insert", *[None] * len(new), *new) for new in batch.inserts),
        ]
        file = Folder(self.table).write(to_arrow(self._fields, rows), f"{FOLDER}/changes")
        return {CHANGES: file.path, COUNT: batch.size}

    def read(self, path: str) -> ChangeBatch:
        """Changes that were written down."""
        width = len(self.declared.columns)
        rows = to_rows(Folder(self.table).read_path(path, self._fields))
        steps = (
            (
                None if kind == "insert" else tuple(values[:width]),
                None if kind == "delete" else tuple(values[width:]),
            )
            for kind, *values in rows
        )
        return ChangeBatch.of_steps(self.name, self.declared, steps)

    @property
    def _fields(self) -> Sequence[Field]:
        return [
            Field(KIND, STRING),
            *(Field(f"{f.name}#pre", f.type) for f in self.declared.columns),
            *(Field(f"{f.name}#post", f.type) for f in self.declared.columns),
        ]

    # --- the change data feed -------------------------------------------------------------------

    def _has_change_feed(self, since: int, until: int) -> bool:
        enabled = "delta.enableChangeDataFeed"
        with told(self.table.uri):
            tables = [
                DeltaTable(self.table.uri, version=version, storage_options=self.table.options)
                for version in (since, until)
            ]
            return all(t.metadata().configuration.get(enabled) == "true" for t in tables)

    def _from_change_feed(self, since: int, until: int, most: int) -> ChangeBatch:
        """The feed, netted: the first row before and the last row after, for each key."""
        with told(self.table.uri):
            table = DeltaTable(self.table.uri, storage_options=self.table.options)
            feed = self._read_feed(table, since, until, most)
        names = [*self.declared.names, "_change_type", "_commit_version"]
        rows = to_rows(_typed(feed.select(names), self.declared))
        format_ = RowFormat(self.name, self.declared)
        steps: dict[Row, tuple[Row | None, Row | None]] = {}
        for _, group in groupby(sorted(rows, key=lambda r: r[-1]), key=lambda r: r[-1]):
            for key, (old, new) in _steps_of_commit(group, format_).items():
                first = steps[key][0] if key in steps else old
                steps[key] = (first, new)
        return ChangeBatch.of_steps(self.name, self.declared, steps.values())

    def _read_feed(self, table: DeltaTable, since: int, until: int, most: int) -> pa.Table:
        found = table.load_cdf(starting_version=since + 1, ending_version=until)
        reader = pa.RecordBatchReader.from_stream(found)
        batches: list[pa.RecordBatch] = []
        for batch in reader:
            batches.append(batch)
            self._check_count(sum(each.num_rows for each in batches), most)
        return pa.Table.from_batches(batches, reader.schema)

    def _check_count(self, rows: int, most: int) -> None:
        """An update has two rows, the old and the new one."""
        if rows > 2 * most:
            raise TooManyChangesError(f"more than {most:,} changes of {self.name}")

    # --- the difference of two versions ---------------------------------------------------------

    def _difference(self, since: int, until: int, most: int) -> ChangeBatch:
        old, new = self.table.snapshot(since), self.table.snapshot(until)
        check_columns(self.name, self.declared, old)
        check_columns(self.name, self.declared, new)
        gone = [each for each in old.files if each.path not in new.by_path]
        came = [each for each in new.files if each.path not in old.by_path]
        before = read_frame(self.spark, old, gone).selectExpr(*map(quote, self.declared.names))
        after = read_frame(self.spark, new, came).selectExpr(*map(quote, self.declared.names))
        changed = _unpaired(before, after)
        if any(each.rows < 0 for each in (*gone, *came)) or _rows(gone) + _rows(came) > 2 * most:
            changed = changed.limit(2 * most + 1)
        found = changed.toArrow()
        self._check_count(found.num_rows, most)
        rows = to_rows(_typed(found, self.declared))
        format_ = RowFormat(self.name, self.declared)
        news = format_.keyed(row[:-1] for row in rows if row[-1] == "new")
        try:
            olds = format_.keyed(row[:-1] for row in rows if row[-1] == "old")
        except ChangeError as error:
            raise UnclearChangesError(f"version {since}, which was seen: {error}") from error
        steps = ((olds.get(key), news.get(key)) for key in {**olds, **news})
        return ChangeBatch.of_steps(self.name, self.declared, steps)


def _unpaired(before: DataFrame, after: DataFrame) -> DataFrame:
    """The rows of each side without those that are the same in both, as EXCEPT ALL would give.

    EXCEPT does not take maps.
    """
    names = before.columns
    both = before.withColumn(KIND, F.lit(-1)).union(after.withColumn(KIND, F.lit(1)))
    counts = group_rows(both, names, F.sum(quote(KIND)).alias(KIND))
    side = f"if({quote(KIND)} < 0, 'old', 'new')"
    copies = f"explode(array_repeat({side}, CAST(abs({quote(KIND)}) AS INT))) AS {quote(KIND)}"
    return counts.where(f"{quote(KIND)} <> 0").selectExpr(*map(quote, names), copies)


def _rows(files: Iterable[DataFile]) -> int:
    return sum(each.rows for each in files)


def check_columns(name: str, declared: Table, snapshot: Snapshot) -> None:
    """Refuse a version whose columns are not those that were declared."""
    there = {each.name: each.type for each in snapshot.fields}
    for column in declared.columns:
        if column.name not in there:
            raise SchemaError(
                f'table "{name}", version {snapshot.version}: column "{column.name}" is gone; '
                "drop the views that use it, and register the table again"
            )
        if there[column.name] != column.type:
            raise SchemaError(
                f'table "{name}", version {snapshot.version}: column "{column.name}" is '
                f"{there[column.name]} now, and was registered as {column.type}; "
                "register the table again"
            )


def _is_written_down(commit: Commit) -> bool:
    if commit.notes is not None and CHANGES in commit.notes:
        return True
    return commit.operation in HARMLESS


def _typed(rows: pa.Table, declared: Table) -> pa.Table:
    """Columns with the types that are declared: deltalake answers with views of strings."""
    for field in declared.columns:
        place = rows.column_names.index(field.name)
        rows = rows.set_column(place, field.name, rows[place].cast(arrow_type(field.type)))
    return rows


def _steps_of_commit(
    rows: Iterable[Row], format_: RowFormat
) -> Mapping[Row, tuple[Row | None, Row | None]]:
    olds: dict[Row, Row] = {}
    news: dict[Row, Row] = {}
    for *values, kind, _ in rows:
        row = tuple(values)
        side = olds if kind in ("delete", "update_preimage") else news
        key = format_.key_of(row)
        if key in side:
            format_.refuse(key, "two rows have this key; keep one of them")
        side[key] = row
    return {key: (olds.get(key), news.get(key)) for key in {**olds, **news}}
