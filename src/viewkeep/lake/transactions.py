"""Changes of several tables that views see as one.

Every table has a commit of its own, whose notes name the transaction; after the last of them, one
commit to `<lake>/_viewkeep/transactions` decides that it is done. Until then views read the tables
as they were before it. A process that died without a decision is found by the next writer of one of
its tables, which decides that the transaction is undone (whoever decides first is right) and puts
the old files of the table back, in a commit of its own. So nobody builds on rows that may go.

Decisions that are old go with `vacuum`, once the versions up to which tables are settled are stored
(`settled_versions`). A transaction that began before the first decision that is left can only be
undone: whether somebody has decided so is not told any more.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

from viewkeep.errors import ViewkeepError
from viewkeep.lake.apply import TRIES, UserChanges, apply_changes
from viewkeep.lake.catalog import TableDefinition
from viewkeep.lake.lake import OWN, Lake
from viewkeep.lake.marks import host_name, is_dead
from viewkeep.lake.settled_versions import FIELDS, settled_versions, store_settled_versions
from viewkeep.tables.feed import CHANGES, HARMLESS, Feed
from viewkeep.tables.log.delta import ConflictError, LakeTable, MissingEntryError
from viewkeep.tables.log.entries import Commit
from viewkeep.tables.log.memory import remembered_logs

NOTE, UNDO = "transaction", "undo"
"""The notes of a table's commit: the transaction that it is part of, or that it takes back."""
DECISION = "done"
PATIENCE = 60.0
"""Seconds for which others wait for a transaction whose process lives, or is not of this host."""
POLL = 0.05
NONE_YET = -1
REMEMBERED = 10_000
"""So many decisions are remembered, the last ones."""
_DECIDED: dict[tuple[str, str], bool] = {}
"""What this process has read of decisions, which never change."""


@dataclass(frozen=True)
class Mark:
    """A transaction: its ID, the decisions that were there before it, and the process it is of."""

    id: str
    after: int
    writer: str


class MovedTableError(ViewkeepError):
    """A table has a newer version than the one that changes were made for."""


@dataclass(frozen=True)
class Part:
    """The commit of a transaction to one table."""

    version: int
    mark: Mark


@dataclass(frozen=True)
class Newest:
    """The newest version of a table at one moment, and the commit that changed its rows last if
    that is one of a transaction."""

    version: int
    part: Part | None = None


@dataclass(frozen=True)
class _Outcome:
    """What is known of a transaction: whether it is done, None if nobody has decided; and whether
    all decisions since it began are there."""

    is_done: bool | None
    is_whole: bool = True


class Transactions:
    """The transactions of a lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._table = decisions_table(lake)

    def run(
        self,
        changes: Sequence[tuple[TableDefinition, UserChanges]],
        starts: Mapping[str, int] | None = None,
    ) -> dict[str, int]:
        """Make all changes or none; the versions that they are in.

        `starts` are versions that tables must be at; a `MovedTableError` if one is not.
        """
        starts = starts or {}
        tables = [definition for definition, _ in changes]
        for _ in range(TRIES):
            mark = self._begin_transaction()
            try:
                versions = {
                    each.name: self._change_table(each, rows, mark, starts.get(each.name))
                    for each, rows in changes
                }
                is_done = self._decide(mark, done=True)
            except BaseException:
                with suppress(ViewkeepError):  # else the next writer of a table does it
                    self._give_up_transaction(mark, tables)
                raise
            if is_done:
                return versions
            self._give_up_transaction(mark, tables)
        raise ConflictError(
            "other processes have given this transaction up, since it took too long; nothing was "
            "changed, try again"
        )

    def _begin_transaction(self) -> Mark:
        if not self._table.exists():
            with suppress(ConflictError):  # another process was first
                self._table.create(FIELDS, [], {}, "Which transactions of this lake are done")
        return Mark(uuid4().hex, self.decided(), f"{host_name()}-{os.getpid()}-0")

    def _change_table(
        self, definition: TableDefinition, rows: UserChanges, mark: Mark, start: int | None
    ) -> int:
        table, lake = self._lake.at(definition.location), self._lake

        def settle() -> None:
            self.settle(definition, table)
            if start is not None and table.version() != start:
                raise MovedTableError(f'table "{definition.name}": another process changed it')

        notes = {NOTE: asdict(mark)}
        version, _ = apply_changes(
            lake.scans, definition, table, rows, lake.driver_bytes, settle, notes
        )
        return version

    def _give_up_transaction(self, mark: Mark, definitions: Sequence[TableDefinition]) -> None:
        if not self._decide(mark, done=False):
            for each in definitions:
                self.settle(each, self._lake.at(each.location))

    # --- decisions ------------------------------------------------------------------------------

    def decided(self) -> int:
        """The number of the last decision: while it stays, so does what views may see."""
        with remembered_logs():
            return self._table.version() if self._table.exists() else NONE_YET

    def _decision_of(self, part: Part, table: LakeTable) -> bool | None:
        """Whether the transaction of a part is done; None as long as that is open."""
        return self._outcome(part.mark, lambda: self._is_settled(part, table)).is_done

    def _outcome(self, mark: Mark, is_settled: Callable[[], bool]) -> _Outcome:
        """The decision about a transaction, soon after it began, mostly; where the log does not
        reach back so far any more, it may be settled."""
        key = self._table.uri, mark.id
        if key in _DECIDED:
            return _Outcome(_DECIDED[key])
        is_whole = True
        with remembered_logs():
            version, newest = mark.after + 1, self._table.version()
            while version <= newest:
                try:
                    [each] = self._table.log(version - 1, version)
                except MissingEntryError:
                    if is_whole and is_settled():
                        return _Outcome(_remember_decision(key, True))
                    is_whole, version = False, self._table.next_entry(version, newest)
                    continue
                if (each.notes or {}).get(NOTE) == mark.id:
                    return _Outcome(_remember_decision(key, bool((each.notes or {})[DECISION])))
                version += 1
        return _Outcome(None, is_whole)

    def _is_settled(self, part: Part, table: LakeTable) -> bool:
        """Whether a part whose decision may be gone is done: it was neither open when the last
        vacuum looked, nor is it taken back since somebody has read it."""
        with remembered_logs():
            settled = settled_versions(self._table).get(table.identity(part.version), NONE_YET)
            return part.version <= settled and not any(
                table.has_text(version, part.mark.id)
                for version in range(part.version + 1, table.version() + 1)
            )

    def _decide(
        self, mark: Mark, done: bool, is_settled: Callable[[], bool] = lambda: False
    ) -> bool:
        """Decide, unless somebody has; the decision that holds."""
        for _ in range(TRIES * TRIES):
            newest = self.decided()  # before the others are read: a later one is a conflict
            outcome = self._outcome(mark, is_settled)
            if outcome.is_done is not None:
                return outcome.is_done
            with suppress(ConflictError):
                notes = {NOTE: mark.id, DECISION: done and outcome.is_whole}
                self._table.commit(newest, notes=notes)
        raise ConflictError(f"{self._table.uri}: too many processes decide; try again")

    def store_settled(self, definitions: Sequence[TableDefinition]) -> bool:
        """Store the versions up to which these tables, all that transactions change, are settled,
        so that old decisions can go; False if another vacuum does so."""
        start, versions = self._table.snapshot(), {}
        for each in definitions:
            table = self._lake.at(each.location)
            newest = newest_of(table)
            is_open = newest.part is not None and not self._decision_of(newest.part, table)
            settled = newest.part.version - 1 if newest.part and is_open else newest.version
            versions[table.identity(newest.version)] = settled
        return store_settled_versions(self._table, start, versions)

    # --- tables ---------------------------------------------------------------------------------

    def visible_version(self, definition: TableDefinition) -> int:
        """The newest version of a table that views may see."""
        table = self._lake.at(definition.location)
        newest = newest_of(table) if definition.owned else Newest(table.version())
        if newest.part is None or self._decision_of(newest.part, table):
            return newest.version
        return newest.part.version - 1

    def settled(self, definition: TableDefinition, table: LakeTable) -> Callable[[], None]:
        """`settle` of one table, for writers to call before they read it."""
        return lambda: self.settle(definition, table)

    def settle(self, definition: TableDefinition, table: LakeTable) -> None:
        """Wait until the last transaction of a table is decided, or decide it if its process is
        gone; one that is undone is taken back."""
        for _ in range(TRIES):
            newest = newest_of(table)
            if newest.part is None or self._settled_decision(newest.part, table):
                return
            with suppress(ConflictError):
                self._undo_transaction(definition, table, newest.version, newest.part)
        raise ConflictError(f'table "{definition.name}": too many processes write it; try again')

    def _settled_decision(self, part: Part, table: LakeTable) -> bool:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and not is_dead(part.mark.writer):
            decision = self._decision_of(part, table)
            if decision is not None:
                return decision
            time.sleep(POLL)
        return self._decide(part.mark, False, lambda: self._is_settled(part, table))

    def _undo_transaction(
        self, definition: TableDefinition, table: LakeTable, start: int, part: Part
    ) -> None:
        """Put the files back that a transaction found, as the next version after `start`: where
        another process has done so, others may have written since."""
        [commit] = table.log(part.version - 1, part.version)
        feed = Feed(self._lake.scans, definition.name, definition.table, table)
        place = (commit.notes or {})[CHANGES]
        notes = feed.write(feed.read(place).inverse()) if place else {}
        old = table.snapshot(part.version - 1)
        table.become(old.files, {UNDO: part.mark.id, **notes}, start)


def decisions_table(lake: Lake) -> LakeTable:
    """Where the decisions about transactions are."""
    return lake.at(f"{lake.uri}/{OWN}/transactions")


def _remember_decision(key: tuple[str, str], is_done: bool) -> bool:
    while len(_DECIDED) >= REMEMBERED:
        _DECIDED.pop(next(iter(_DECIDED)), None)
    _DECIDED[key] = is_done
    return is_done


def newest_of(table: LakeTable) -> Newest:
    """The newest version of a table, and what changed it last; what was cleaned out of its log is
    settled."""
    newest = table.version()
    for version in range(newest, -1, -1):
        if not table.has_text(version, f'"{NOTE}"') and table.has_text(version, f'"{CHANGES}"'):
            break
        try:
            [commit] = table.log(version - 1, version)
        except MissingEntryError:
            break
        if commit.notes is not None or commit.operation not in HARMLESS:
            return Newest(newest, _transaction_part(commit))
    return Newest(newest)


def _transaction_part(commit: Commit) -> Part | None:
    mark: Mapping[str, Any] | None = (commit.notes or {}).get(NOTE)
    return None if mark is None else Part(commit.version, Mark(**mark))
