"""A view of a lake in the engine of one process: built of a snapshot, fed by the tables' changes.

<lake>/_viewkeep/live/<view>/<state>          the engine's state
<lake>/_viewkeep/live/<view>/current.json     which state counts, and the versions it reflects

A state and its versions come into force together, by the name of one file: whoever resumes goes on
with the first change that the state has not seen.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, RLock
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.errors import QueryError, ViewkeepError
from viewkeep.lake.apply import TRIES
from viewkeep.lake.catalog import Catalog, TableDefinition, ViewDefinition
from viewkeep.lake.lake import OWN, Lake
from viewkeep.lake.transactions import Transactions
from viewkeep.maintainer import Maintainer, OutputChange, engine_obstacle, maintain
from viewkeep.query.conjunctive import ConjunctiveQuery
from viewkeep.sql import from_sql
from viewkeep.tables.feed import Feed
from viewkeep.tables.files.parquet import Folder
from viewkeep.tables.log.delta import ConflictError, StorageError
from viewkeep.tables.log.durable import local_path
from viewkeep.tables.log.memory import forget_logs, remembered_logs
from viewkeep.tables.table_changes import TableChanges

CURRENT = "current.json"
Row = tuple[Any, ...]


class LiveViewError(ViewkeepError):
    """Changes that cannot be brought into a live view; it has to be built anew."""


@dataclass(frozen=True)
class Pin:
    """A version of a table, and what tells it from one of another history."""

    version: int
    fingerprint: str


class LiveView:
    """A conjunctive view in this process; made by `Keeper.live`.

    It reflects the tables as they were at the last `catch_up`. Threads may share it.
    """

    def __init__(
        self,
        lake: Lake,
        definition: ViewDefinition,
        tables: Mapping[str, TableDefinition],
        maintainer: Maintainer,
        pins: Mapping[str, Pin],
    ) -> None:
        self._lake, self._definition, self._tables = lake, definition, tables
        self._maintainer, self._pins, self._lock = maintainer, dict(pins), RLock()

    def __repr__(self) -> str:
        return f"<LiveView {self.name} by {self._maintainer.program.strategy}>"

    @property
    def name(self) -> str:
        """The name of the view."""
        return self._definition.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of output tuples; their payload is the count, or the aggregates."""
        return self._maintainer.query.outputs

    @property
    def versions(self) -> dict[str, int]:
        """The versions of the tables that it reflects."""
        with self._lock:
            return {name: pin.version for name, pin in self._pins.items()}

    def explain(self) -> str:
        """The query, the strategy and the engine."""
        return self._maintainer.explain()

    # --- reading --------------------------------------------------------------------------------

    def lookup(self, row: Row) -> Any:
        """The payload of one output tuple; zero, or None for aggregates, if it is absent."""
        return self._maintainer.lookup(row)

    def enumerate(self) -> Iterator[tuple[Row, Any]]:
        """Distinct output tuples with their payloads; a change meanwhile ends it with an error."""
        return self._maintainer.enumerate()

    def batches(self, rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
        """The output as Arrow record batches: its tuples, then the count or the aggregates."""
        return self._maintainer.enumerate_batches(rows=rows)

    def value(self) -> Any:
        """The result of a view without groups and rows of its own."""
        return self._maintainer.value()

    def subscribe(self, callback: Callable[[list[OutputChange]], None]) -> None:
        """Call with the change of the output that the changes of each table make."""
        self._maintainer.subscribe(callback)

    # --- following ------------------------------------------------------------------------------

    def catch_up(self) -> int:
        """Bring in what happened to the tables since; how many rows of them changed."""
        count = 0
        with self._lock, remembered_logs():
            for name, version in _newest(self._lake, self._tables).items():
                if version != self._pins[name].version:
                    changes = self._changes(name, version)
                    _feed(self._maintainer, name, changes)
                    self._pins[name] = _pin(self._lake, self._tables[name], version)
                    count += changes.size
        return count

    def follow(self, stop: Event, every: float = 0.05) -> None:
        """Catch up every few seconds until an event is set."""
        while not stop.is_set():
            self.catch_up()
            stop.wait(every)

    def _changes(self, name: str, version: int) -> TableChanges:
        definition, seen = self._tables[name], self._pins[name].version
        table = self._lake.at(definition.location)
        try:
            if version < seen:
                raise LiveViewError("it was put back to an older version")
            return Feed(self._lake.scans, name, definition.table, table).changes(seen, version)
        except ViewkeepError as error:
            problem = str(error).partition(";")[0]
            raise LiveViewError(
                f'live view "{self.name}": what happened to table "{name}" since version {seen} '
                f'cannot be told: {problem}; build it anew with live("{self.name}", resume=False)'
            ) from error

    # --- saving ---------------------------------------------------------------------------------

    def save(self) -> None:
        """Keep the state in the lake, with the versions that it reflects."""
        folder = _folder(self._lake, self.name)
        folder.mkdir(parents=True, exist_ok=True)
        state = f"{uuid4().hex}.state"
        with self._lock:
            self._maintainer.save(folder / state)
            pins = {name: asdict(pin) for name, pin in self._pins.items()}
        about = {"state": state, "build": self._definition.build, "tables": pins}
        draft = folder / f".{state}.json"
        draft.write_text(json.dumps(about), encoding="utf-8")
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(folder / CURRENT)
        for each in folder.glob("*.state"):
            if each.name != state and each.stat().st_mtime < time.time() - OLD:
                each.unlink(missing_ok=True)


OLD = 60.0
"""Seconds after which a state that counts no more is removed: somebody may just read it."""


def open_live(lake: Lake, catalog: Catalog, definition: ViewDefinition, resume: bool) -> LiveView:
    """A live view of what was saved, if that can go on, else of the tables as they are."""
    tables = _base_tables(catalog, definition)
    query = from_sql(definition.sql, {name: each.table for name, each in tables.items()})
    with lake.marked():
        live = _resumed(lake, definition, tables) if resume else None
        if live is None:
            live = _built(lake, definition, tables, query)
        live.catch_up()
    return live


def _base_tables(catalog: Catalog, definition: ViewDefinition) -> dict[str, TableDefinition]:
    tables = {}
    for name in definition.inputs:
        if name not in catalog.tables:
            raise QueryError(
                f'view "{definition.name}" reads the view "{name}"; live views read tables: write '
                "the query over these"
            )
        if not catalog.tables[name].table.key:
            raise QueryError(f'table "{name}" has no key; live views follow tables by their keys')
        tables[name] = catalog.tables[name]
    return tables


def _newest(lake: Lake, tables: Mapping[str, TableDefinition]) -> dict[str, int]:
    """The newest versions that views may see, all as they were between two decisions about
    transactions."""
    transactions = Transactions(lake)
    for _ in range(TRIES):
        decided = transactions.decided()
        versions = {name: transactions.visible_version(each) for name, each in tables.items()}
        if transactions.decided() == decided:
            return versions
        forget_logs(lake.at(each.location).uri for each in tables.values())
    raise ConflictError(f"{lake.uri}: transactions are decided all the time; try again later")


def _pin(lake: Lake, definition: TableDefinition, version: int) -> Pin:
    return Pin(version, lake.at(definition.location).fingerprint(version))


def _built(
    lake: Lake,
    definition: ViewDefinition,
    tables: Mapping[str, TableDefinition],
    query: ConjunctiveQuery,
) -> LiveView:
    """From the rows of the newest versions."""
    engine = "auto" if engine_obstacle(query) else "compiled"
    maintainer, rows, pins = maintain(query, engine=engine), {}, {}
    with remembered_logs():
        for name, version in _newest(lake, tables).items():
            table = lake.at(tables[name].location)
            snapshot = table.snapshot(version)
            whole = Folder(table).read(snapshot.files, snapshot.fields)
            rows[name] = whole.select(list(query.columns_of(name)))
            pins[name] = _pin(lake, tables[name], version)
    maintainer.load(rows)
    return LiveView(lake, definition, tables, maintainer, pins)


def _feed(maintainer: Maintainer, name: str, changes: TableChanges) -> None:
    """Bring the changes of a table in: old rows go, new ones come."""
    columns = list(maintainer.query.columns_of(name))
    rows = pa.concat_tables([changes.old_rows.select(columns), changes.new_rows.select(columns)])
    if rows.num_rows:
        signs = np.ones(rows.num_rows, np.int64)
        signs[: changes.old_rows.num_rows] = -1
        maintainer.update_batch(name, rows, signs)


def _folder(lake: Lake, view: str) -> Path:
    place = local_path(lake.uri)
    if place is None:
        raise StorageError(f"{lake.uri}: states of live views are kept on local disks only")
    return Path(place) / OWN / "live" / view


def _resumed(
    lake: Lake, definition: ViewDefinition, tables: Mapping[str, TableDefinition]
) -> LiveView | None:
    """From the state that was saved last; None if it is of another definition or history."""
    if local_path(lake.uri) is None:
        return None
    folder = _folder(lake, definition.name)
    with suppress(OSError, ValueError, KeyError, TypeError, ViewkeepError):
        about = json.loads((folder / CURRENT).read_text(encoding="utf-8"))
        pins = {name: Pin(**pin) for name, pin in about["tables"].items()}
        if about["build"] == definition.build and _are_current(lake, tables, pins):
            maintainer = Maintainer.restore(folder / about["state"])
            return LiveView(lake, definition, tables, maintainer, pins)
    return None


def _are_current(
    lake: Lake, tables: Mapping[str, TableDefinition], pins: Mapping[str, Pin]
) -> bool:
    """Whether the tables still have the versions that were seen."""
    places = {name: lake.at(each.location) for name, each in tables.items()}
    seen: Sequence[bool] = [
        pins[name].version <= table.version()
        and bool(table.has_fingerprint(pins[name].version, pins[name].fingerprint))
        for name, table in places.items()
    ]
    return pins.keys() == tables.keys() and all(seen)
