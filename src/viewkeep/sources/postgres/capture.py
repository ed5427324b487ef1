"""Tables of PostgreSQL followed by tables of a lake: each change once, whatever dies in between.

A round reads, at one snapshot of PostgreSQL, the rows of all keys that changed since the position
of each table, and commits them in one transaction of the lake, with the snapshot as their position.
PostgreSQL is told afterwards, so that it may drop what was read: it is one round behind at most.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from threading import Event

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.errors import ArgumentError
from viewkeep.lake.apply import TRIES, UserChanges, changeable_table
from viewkeep.lake.catalog import TableDefinition
from viewkeep.lake.create_table import create_table
from viewkeep.lake.intake import (
    FILES,
    QUARANTINE,
    CaptureReport,
    Intake,
    IntakeRound,
    TakenPart,
    now,
    user_rows,
)
from viewkeep.lake.lake import Lake
from viewkeep.lake.transactions import MovedTableError, Transactions
from viewkeep.sources.capture_watch import CaptureWatch
from viewkeep.sources.postgres.log import (
    Reader,
    TableLog,
    acknowledge,
    add_reader,
    find_log,
    find_reader,
    has_unread,
    install_log,
    is_ahead,
    remove_log,
)
from viewkeep.sources.postgres.rows import CapturedRows, changed_rows, whole_rows
from viewkeep.sources.postgres.server import (
    Connection,
    SourceError,
    connect,
    one_snapshot,
    told_errors,
)
from viewkeep.sources.postgres.source import (
    SourceTable,
    check_columns_of_source,
    find_table,
    lake_table,
)
from viewkeep.tables.files.key_index import KeyIndex
from viewkeep.tables.log.delta import ConflictError

POSTGRES = "postgres"
"""The name under which a table notes its position."""


@dataclass(frozen=True)
class Position:
    """How far a table of the lake has come: the number of its last round, and its snapshot in the
    log of `identity`."""

    round: int
    snapshot: str
    identity: str


@dataclass
class FollowedTable:
    """A table of the lake and the one that it follows."""

    name: str
    source_name: str
    source: SourceTable
    log: TableLog
    definition: TableDefinition
    intake: Intake
    reader: str
    left_out: tuple[str, ...] = ()
    is_anew: bool = False
    told_round: int = 0
    """The last round that PostgreSQL was told of."""


def open_capture(
    lake: Lake, dsn: str, tables: Mapping[str, str] | Sequence[str], anew: bool = False
) -> "PostgresCapture":
    """Tables of PostgreSQL, by the names that they have or get in the lake; their logs are made
    where they are not there."""
    names = _table_names(tables)
    capture = PostgresCapture(lake, dsn)
    try:
        capture.prepare(names, anew)
    except BaseException:
        capture.close()
        raise
    return capture


def stop_capture(
    lake: Lake, dsn: str, tables: Mapping[str, str] | Sequence[str]
) -> dict[str, bool]:
    """Let tables follow those of PostgreSQL no longer: their logs and triggers go, unless other
    lakes follow them. For each table, whether they are gone."""
    gone, connection = dict[str, bool](), connect(dsn)
    with closing(connection):
        for name, source_name, is_own_name in _table_names(tables):
            source = find_table(connection, source_name)
            name = source.name if is_own_name else name
            definition = lake.catalog.read().tables.get(name)
            reader = "" if definition is None else reader_of(lake, definition)
            gone[name] = remove_log(connection, source, reader)
            if definition is not None and definition.owned:
                _forget_position(lake, definition)
    return gone


def _table_names(tables: Mapping[str, str] | Sequence[str]) -> list[tuple[str, str, bool]]:
    """For each table its name in the lake, that in PostgreSQL, and whether they are the same."""
    if isinstance(tables, str):
        raise ArgumentError(f'tables are a list of names, as in ["{tables}"]')
    named = dict(tables) if isinstance(tables, Mapping) else dict.fromkeys(tables, "")
    if not named:
        raise ArgumentError("no table is named; name those that are to be captured")
    return [(name, source or name, not source) for name, source in named.items()]


def reader_of(lake: Lake, definition: TableDefinition) -> str:
    """By what a log knows a table of a lake: one that is made anew is another."""
    table = lake.at(definition.location)
    return table.identity(table.version())


def _forget_position(lake: Lake, definition: TableDefinition) -> None:
    """Drop the position, so that the table may follow another log."""
    intake = Intake(lake, definition)
    if intake.exists(intake.files) and stored_position(intake.rows(intake.files)) is not None:
        rows = user_rows(FILES, deletes=[(POSTGRES, 0)])
        with lake.marked():
            Transactions(lake).run([(intake.files, rows)])


@dataclass(repr=False)
class PostgresCapture:
    """Follows tables of PostgreSQL; `catch_up` takes in what changed."""

    _lake: Lake
    _dsn: str
    _tables: list[FollowedTable] = field(default_factory=list)
    _connection: Connection | None = None
    _positions: dict[str, Position | None] = field(default_factory=dict)
    """Those of the last round."""

    def __repr__(self) -> str:
        return f"PostgresCapture({self.tables})"

    def __enter__(self) -> "PostgresCapture":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    @property
    def tables(self) -> dict[str, str]:
        """The tables of PostgreSQL, by those of the lake that follow them."""
        return {each.name: f"{each.source.schema}.{each.source.name}" for each in self._tables}

    def close(self) -> None:
        """Let the connection go; the logs stay, and what comes into them waits."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- which tables -----------------------------------------------------------------------------

    def prepare(self, names: Sequence[tuple[str, str, bool]], anew: bool) -> None:
        """Prepare tables: nothing is changed before all of them are found fit."""
        connection = self._open()
        found = [self._described(connection, *each) for each in names]
        if len({name for name, _, _ in found}) < len(found):
            raise ArgumentError("two tables would have the same name in the lake; name them apart")
        for name, source, declared in found:
            self._check_position(connection, name, source, anew and declared)
        for (name, source, _), (_, source_name, _) in zip(found, names, strict=True):
            self._tables.append(self._followed(connection, name, source_name, source, anew))

    def _described(
        self, connection: Connection, name: str, source_name: str, is_own_name: bool
    ) -> tuple[str, SourceTable, bool]:
        source = find_table(connection, source_name)
        name = source.name if is_own_name else name
        self._lake.place(name)
        if name in self._lake.catalog.read().entries:
            definition = changeable_table(self._lake.catalog.read(), name)
            check_columns_of_source(name, definition.table, source)
            return name, source, True
        lake_table(source)
        return name, source, False

    def _check_position(
        self, connection: Connection, name: str, source: SourceTable, is_free: bool
    ) -> None:
        """Refuse a table that follows another log, before one is installed."""
        if is_free or name not in self._lake.catalog.read().tables:
            return
        intake = Intake(self._lake, changeable_table(self._lake.catalog.read(), name))
        position, log = stored_position(intake.rows(intake.files)), find_log(connection, source)
        if position is not None and (log is None or log.identity != position.identity):
            raise _other_log(name, source)

    def _followed(
        self,
        connection: Connection,
        name: str,
        source_name: str,
        source: SourceTable,
        anew: bool,
    ) -> FollowedTable:
        log = install_log(connection, source)
        if name not in self._lake.catalog.read().tables:
            create_table(self._lake, name, lake_table(source), (), {}, None)
        definition = changeable_table(self._lake.catalog.read(), name)
        reader = reader_of(self._lake, definition)
        with told_errors("cannot write the log"):
            add_reader(connection, log, reader)
        intake = Intake(self._lake, definition)
        intake.create(intake.files, intake.quarantine)
        left_out = check_columns_of_source(name, definition.table, source)
        return FollowedTable(
            name, source_name, source, log, definition, intake, reader, left_out, anew
        )

    # --- rounds -----------------------------------------------------------------------------------

    def catch_up(self) -> list[CaptureReport]:
        """Take in what changed until now, in one transaction; a report for each table."""
        begun = time.monotonic()
        for _ in range(TRIES):
            with suppress(MovedTableError), self._lake.marked():
                reports = self._idle_reports(self._open()) or self._round(self._open())
                seconds = time.monotonic() - begun
                return [replace(each, seconds=seconds) for each in reports]
        raise ConflictError("too many processes write the tables that are captured; try again")

    def follow(
        self, tell: Callable[[CaptureReport], None], stop: Event, every: float = 0.2
    ) -> None:
        """Take in what changes until the event is set, and look so often, in seconds; what changed
        is told, and so are failures, after which it is tried again."""
        watch = CaptureWatch(self)
        watch.look(tell)
        while not stop.wait(every):
            watch.look(tell)

    def _open(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._dsn)
        return self._connection

    def _idle_reports(self, connection: Connection) -> list[CaptureReport]:
        """The reports where nothing changed since the last round of this process; none where the
        lake has to be asked."""
        positions = self._positions
        if not positions or any(each.is_anew for each in self._tables):
            return []
        with suppress(MovedTableError), told_errors("cannot read the changes"):
            for each in self._tables:
                self._check_log(connection, each, positions[each.name])
            if not any(
                has_unread(connection, each.log, at.snapshot)
                for each in self._tables
                if (at := positions[each.name]) is not None
            ):
                return [CaptureReport(e.name, -1, left_out=e.left_out) for e in self._tables]
        return []

    def _round(self, connection: Connection) -> list[CaptureReport]:
        tables = [
            each
            for t in self._tables
            for each in (t.intake.files, t.intake.quarantine, t.definition)
        ]
        round_ = IntakeRound(self._tables[0].intake, tables)
        positions = {
            each.name: stored_position(round_.rows(each.intake.files)) for each in self._tables
        }
        with told_errors("cannot read the changes"):
            for each in self._tables:
                self._check_log(connection, each, positions[each.name])
            with one_snapshot(connection) as snapshot:
                found = dict(self._captured(connection, positions))
        self._positions = positions
        if not found:
            return [self._report(each, round_.versions) for each in self._tables]
        new, changes = dict[str, Position](), dict[str, UserChanges]()
        for each in self._tables:
            if each.name in found:
                old = positions[each.name]
                new[each.name] = _next_position(each, old, snapshot)
                changes |= _changes(round_, each, found[each.name], old, new[each.name])
        versions = round_.commit(changes)
        self._positions = {**positions, **new}
        self._acknowledge(connection, new)
        return [self._report(each, versions, found.get(each.name)) for each in self._tables]

    def _captured(
        self, connection: Connection, positions: Mapping[str, Position | None]
    ) -> Iterator[tuple[str, CapturedRows]]:
        """What changed, by the tables in which anything did."""
        for each in self._tables:
            position, table = positions[each.name], each.definition.table
            if position is None or each.is_anew:
                yield each.name, whole_rows(connection, each.source, table)
                continue
            rows = changed_rows(connection, each.source, table, each.log, position.snapshot)
            if rows is not None:
                yield each.name, rows

    def _check_log(
        self, connection: Connection, table: FollowedTable, position: Position | None
    ) -> None:
        """Refuse to go on where changes may have been missed: with another log, or with one that is
        not where this lake has left it."""
        source = find_table(connection, table.source_name)
        log = find_log(connection, source)
        known = None if log is None else find_reader(connection, log, table.reader)
        if log is None or log != table.log or known is None:
            raise _other_log(table.name, source)
        table.left_out = check_columns_of_source(table.name, table.definition.table, source)
        table.source, table.told_round = source, known.round
        if position is None or table.is_anew:
            return
        if log.identity != position.identity or is_ahead(connection, position.snapshot):
            raise _other_log(table.name, source)
        if known.round == position.round - 1:
            told = Reader(position.round, position.snapshot)
            acknowledge(connection, log, table.reader, told)
        elif known.round != position.round:
            self._refuse_lost_position(table, position)

    def _refuse_lost_position(self, table: FollowedTable, position: Position) -> None:
        """PostgreSQL was told of another round than the lake's last: another process is faster, or
        one of the two was put back to an earlier state."""
        if stored_position(table.intake.rows(table.intake.files)) != position:
            raise MovedTableError(f'table "{table.name}": another process has captured changes')
        raise SourceError(
            f'table "{table.name}": its position (round {position.round}) is not the one that it '
            f"has told {table.source}: the lake or the database was put back to an earlier state, "
            "or a copy of the lake has captured; `anew` reads all rows again"
        )

    def _acknowledge(self, connection: Connection, positions: Mapping[str, Position]) -> None:
        """Tell PostgreSQL; if it cannot be told now, the next round does."""
        for each in self._tables:
            if each.name in positions:
                each.is_anew = False
                come = positions[each.name]
                with suppress(SourceError), told_errors("cannot tell the position"):
                    acknowledge(
                        connection, each.log, each.reader, Reader(come.round, come.snapshot)
                    )

    @staticmethod
    def _report(
        table: FollowedTable, versions: Mapping[str, int], rows: CapturedRows | None = None
    ) -> CaptureReport:
        report = CaptureReport(table.name, versions[table.name], left_out=table.left_out)
        if rows is None:
            return report
        return replace(
            report,
            rows=rows.count,
            rejected=len(rows.rejected),
            is_whole=rows.is_whole,
            changed=True,
        )


def stored_position(files: pa.Table) -> Position | None:
    """The position that a table has noted; None before its first round."""
    own = files.filter(pc.equal(files["name"], POSTGRES)).to_pylist()
    return None if not own else Position(own[0]["bytes"], own[0]["fingerprint"], own[0]["origin"])


def _other_log(name: str, source: SourceTable) -> SourceError:
    return SourceError(
        f'table "{name}" of the lake has followed another log than {source} has now: another '
        "database, a table that was made anew, or triggers that were removed; changes may be "
        "missing; `anew` reads all rows again"
    )


def _next_position(table: FollowedTable, old: Position | None, snapshot: str) -> Position:
    last = max(table.told_round, 0 if old is None else old.round)
    return Position(last + 1, snapshot, table.log.identity)


def _changes(
    round_: IntakeRound,
    table: FollowedTable,
    found: CapturedRows,
    old: Position | None,
    position: Position,
) -> dict[str, UserChanges]:
    """The changes of a table and of what is kept beside it."""
    at, intake = now(), table.intake
    part = TakenPart(
        *(POSTGRES, 0, position.round, position.snapshot),
        records=found.count,
        origin=position.identity,
    )
    kind = "inserts" if old is None else "updates"
    rejected = [
        (POSTGRES, position.round, each.number, each.reason, each.text, at)
        for each in found.rejected
    ]
    return {
        intake.files.name: user_rows(FILES, **{kind: [part.row(at)]}),
        intake.quarantine.name: user_rows(QUARANTINE, inserts=rejected),
        table.definition.name: row_changes(round_, table.definition, found),
    }


def row_changes(
    round_: IntakeRound, definition: TableDefinition, found: CapturedRows
) -> UserChanges:
    """What makes the rows of the lake's table those that were found."""
    key = list(definition.table.key)
    keys = found.rows.select(key)
    if found.is_whole:
        stored = round_.rows(definition).select(key).cast(keys.schema)
        gone = stored
    else:
        asked = pa.concat_tables([keys, found.gone.cast(keys.schema)])
        stored = round_.matches(definition, asked).rows.select(key).cast(keys.schema)
        gone = found.gone.filter(pa.array(KeyIndex(stored).places(found.gone) >= 0))
    is_there = pa.array(KeyIndex(stored).places(keys) >= 0)
    return UserChanges(
        inserts=found.rows.filter(pc.invert(is_there)),
        updates=found.rows.filter(is_there),
        deletes=gone.filter(pa.array(KeyIndex(keys).places(gone) < 0)),
    )
