"""What an engine does for a lake: one protocol, which `duckdb/` and `spark/` implement.

    write     a query over relations, into new files of a table
    run       a delta script: the rows of each kept relation that change
    compare   a query beside the rows of a table
    answer    the rows of a query, to be shown

Nothing is committed here: files are there before anybody names them.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.diffs.script import Script
from viewkeep.execute.row_changes import RowChanges
from viewkeep.query.algebra import Leaf, Scan
from viewkeep.query.verbatim import Query
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.log.snapshots import DataFile
from viewkeep.tables.relations import Relation, StoredRows

Source = tuple[str, str] | str
"""A base table by its name and "pre" or "post"; a diff, a cache or the view by its name."""
Relations = Mapping[Source, Relation]
Counted = dict[tuple[Any, ...], int]
"""Rows with how many more of them there are on the left than on the right."""


def source_of(leaf: Leaf) -> Source:
    """The relation that a leaf of a query reads."""
    return (leaf.name, leaf.state) if isinstance(leaf, Scan) else leaf.name


@dataclass(frozen=True)
class Target:
    """Where the rows of a query are written: columns of the table with their names in the query."""

    table: LakeTable
    columns: Sequence[tuple[str, str]]
    order: Sequence[str] = ()
    """Columns of the query by which an engine that looks up single pages sorts the rows."""
    group_rows: int | None = None
    """Rows of a row group of sorted rows."""
    is_sorted: bool = False
    """Whether every engine sorts them."""
    is_quick: bool = False
    """Whether that they are written soon matters more: at most the rows of each file are sorted."""


@dataclass(frozen=True)
class WrittenFiles:
    """New files, and the Spark jobs that it took."""

    files: list[DataFile]
    jobs: int = 0


class ScriptRun(Protocol):
    """A script that was run; its rows are there until it is closed."""

    @property
    def rows(self) -> Mapping[str, RowChanges | None]:
        """The changed rows of every relation that changes; None where they are too many to hold."""

    @property
    def jobs(self) -> int:
        """The Spark jobs so far."""

    @property
    def accesses(self) -> int | None:
        """Look-ups and rows read or written, where they were counted."""

    def held_rows(self, name: str) -> int | None:
        """How many rows a changed relation has after the changes; None if not all are at hand."""

    def write_whole(self, name: str, target: Target) -> list[DataFile]:
        """Write all rows of a changed relation as they are after the changes."""


class Backend(Protocol):
    """An engine."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def is_warm(self) -> bool:
        """Whether it has written rows before, so that its times can be compared with estimates."""

    def write(self, place: str, query: Query, relations: Relations, target: Target) -> WrittenFiles:
        """Write the rows of a query; errors name the place."""

    def run(self, script: Script, relations: Relations) -> AbstractContextManager[ScriptRun]:
        """Run a script; past the time of the work that it is a part of (`budget`), it ends."""

    def compare(
        self, place: str, query: Query, relations: Relations, table_rows: StoredRows, most: int
    ) -> Counted:
        """Rows of a query, in the order of its columns, that a table lacks (> 0), or has too many
        of (< 0); floats are compared with nine digits."""

    def answer(
        self, place: str, query: Query, relations: Relations, order: str | None, most: int | None
    ) -> pa.Table:
        """The first rows of a query, or all of them, in the order of a column, which is left out;
        text that only its engine reads has its order in itself."""
