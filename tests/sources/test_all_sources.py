"""Changes that come through all sources at random: views are what a recomputation gives."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import date
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.diffs.random_tables import Database, apply_batches, random_batch, random_database
from tests.diffs.views import TABLES, VIEWS
from tests.keeper.faults import apply
from tests.keeper.lakes import check, check_replayed
from viewkeep import Keeper
from viewkeep.changes import ChangeBatch
from viewkeep.execute.errors import NeedsSparkError

LONG = bool(os.environ.get("VIEWKEEP_LONG"))
ROUNDS, EVERY, SEEDS = (12, 4, 6) if LONG else (3, 40, 1)
"""Of the views of the suite, one of so many."""
CAPTURED = ("items", "tags")
"""Tables that PostgreSQL changes, where there is one."""
LIVE = {
    "live_lines": """SELECT o.status, count(*) AS n, sum(l.quantity) AS quantity
                     FROM orders o JOIN lines l ON o.oid = l.oid GROUP BY o.status""",
    "live_pairs": """SELECT l.oid, l.item, i.cost FROM lines l JOIN items i ON l.item = i.item
                     WHERE i.cost > 0""",
}
Batches = Mapping[str, ChangeBatch]
Records = list[dict[str, Any]]


class Sources:
    """A lake, and every way in which changes can come into it."""

    def __init__(self, keeper: Keeper, place: Path, dsn: str | None, first: Database) -> None:
        self.keeper, self.place, self.dsn = keeper, place, dsn
        self.number, self.used = 0, set[str]()
        self.stack = ExitStack()
        captured = CAPTURED if dsn else ()
        for name, table in TABLES.items():
            rows = None if name in captured else list(first[name].values())
            keeper.create_table(name, table, rows=rows)
        if dsn:
            self.database = self._fill_database(dsn, first)
            self.capture = self.stack.enter_context(keeper.capture(dsn, captured))
            self.capture.catch_up()

    def _fill_database(self, dsn: str, first: Database) -> Any:
        psycopg = import_module("psycopg")
        database = self.stack.enter_context(psycopg.connect(dsn, autocommit=True))
        for name in CAPTURED:
            columns = [
                f"{f.name} {_POSTGRES.get(f.type.name, f.type)}" for f in TABLES[name].columns
            ]
            key = ", ".join(TABLES[name].key)
            database.execute(f"DROP TABLE IF EXISTS {name}")
            database.execute(f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({key}))")
            for row in first[name].values():
                self._insert(database, name, row)
        return database

    def change(self, batches: Batches, random: Random) -> None:
        """Bring changes in: those of captured tables by PostgreSQL, others by any source."""
        changed = {name: each for name, each in batches.items() if not each.is_empty}
        captured = {n: changed.pop(n) for n in CAPTURED if self.dsn and n in changed}
        if captured:
            self.used.add("capture")
            with self.database.transaction():
                for batch in captured.values():
                    self._write(batch)
            if random.random() < 0.7:
                self.capture.catch_up()
        if len(changed) > 1 and random.random() < 0.3:
            self.used.add("transaction")
            self.keeper.transaction({name: _kinds(each) for name, each in changed.items()})
            return
        for batch in changed.values():
            self.number += 1
            way = random.choice(["apply", "files", "parquet", "debezium", "sink"])
            self.used.add(way)
            getattr(self, f"_by_{way}")(batch, random)

    def _by_apply(self, batch: ChangeBatch, random: Random) -> None:
        apply(self.keeper, batch)

    def _by_files(self, batch: ChangeBatch, random: Random) -> None:
        lines = [json.dumps(each, default=_json) for each in _records(batch)]
        folder = self._folder(batch.name, "files")
        (folder / f"{self.number:04}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        self._ingest(batch.name, folder, "changes", len(lines))

    def _by_parquet(self, batch: ChangeBatch, random: Random) -> None:
        folder = self._folder(batch.name, "files")
        records = _whole_records(batch)
        pq.write_table(_arrow(batch, records), folder / f"{self.number:04}.parquet")
        self._ingest(batch.name, folder, "changes", len(records))

    def _by_debezium(self, batch: ChangeBatch, random: Random) -> None:
        """In any order, and some of them twice."""
        folder, source = (
            self._folder(batch.name, "debezium"),
            {"connector": "postgresql", "name": "x"},
        )
        events = []
        for place, (old, new) in enumerate(batch.steps()):
            rows = {"before": _named(batch, old), "after": _named(batch, new)}
            position = {**source, "table": batch.name, "lsn": 1000 * self.number + place}
            kind = "c" if old is None else "d" if new is None else "u"
            events.append({"op": kind, **rows, "source": position})
        events += random.sample(events, len(events) // 2)
        random.shuffle(events)
        lines = "".join(json.dumps(each, default=_json) + "\n" for each in events)
        (folder / f"{self.number:04}.jsonl").write_text(lines)
        self._ingest(batch.name, folder, "debezium", len(events))

    def _by_sink(self, batch: ChangeBatch, random: Random) -> None:
        """A batch that Spark gives again after a restart changes nothing."""
        rows = _arrow(batch, _whole_records(batch))
        for _ in range(random.randrange(1, 3)):
            self.keeper.sink(batch.name, query="stream").take_in(rows, self.number)

    def _folder(self, name: str, kind: str) -> Path:
        folder = self.place / kind / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _ingest(self, name: str, folder: Path, records: str, count: int) -> None:
        report = self.keeper.ingest(name, folder, records)
        assert (report.records, report.rejected, report.waiting) == (count, 0, ()), report

    def _write(self, batch: ChangeBatch) -> None:
        key = [batch.table.names.index(name) for name in batch.table.key]
        same = " AND ".join(f"{name} = %s" for name in batch.table.key)
        for old, new in batch.steps():
            if old is not None:
                values = [old[place] for place in key]
                self.database.execute(f"DELETE FROM {batch.name} WHERE {same}", values)
            if new is not None:
                self._insert(self.database, batch.name, new)

    @staticmethod
    def _insert(database: Any, name: str, row: tuple[Any, ...]) -> None:
        places = ", ".join(["%s"] * len(row))
        database.execute(f"INSERT INTO {name} VALUES ({places})", row)


_POSTGRES = {"string": "text", "double": "float8"}


def _named(batch: ChangeBatch, row: tuple[Any, ...] | None) -> dict[str, Any] | None:
    return None if row is None else dict(zip(batch.table.names, row, strict=True))


def _kinds(batch: ChangeBatch) -> dict[str, Any]:
    names, key = batch.table.names, batch.table.key
    return {
        "inserts": list(batch.inserts),
        "updates": [dict(zip(names, new, strict=True)) for _, new in batch.updates],
        "deletes": [tuple(old[names.index(name)] for name in key) for old in batch.deletes],
    }


def _records(batch: ChangeBatch) -> Records:
    """Changes as records that name no more than they have to."""
    kinds, key = _kinds(batch), batch.table.key
    deletes = [{"op": "d", **dict(zip(key, each, strict=True))} for each in kinds["deletes"]]
    updates = [{"op": "update", **each} for each in kinds["updates"]]
    return [*deletes, *updates, *({"op": "i", **(_named(batch, r) or {})} for r in batch.inserts)]


def _whole_records(batch: ChangeBatch) -> Records:
    """Changes as records that name all columns."""
    records: Records = []
    for old, new in batch.steps():
        row, kind = _named(batch, new if new is not None else old), "upsert"
        records.append({"op": "delete" if new is None else kind, **(row or {})})
    return records


def _arrow(batch: ChangeBatch, records: Records) -> pa.Table:
    from viewkeep.tables.arrow_rows import arrow_column

    columns = {
        f.name: arrow_column(f.type, [r[f.name] for r in records]) for f in batch.table.columns
    }
    return pa.table({"op": [each["op"] for each in records], **columns})


def _json(value: Any) -> str:
    assert isinstance(value, Decimal | date), value
    return str(value)


# --- the test -------------------------------------------------------------------------------------


@pytest.fixture
def dsn(server_or_none: str | None) -> Iterator[str | None]:
    yield server_or_none
    if server_or_none:
        with import_module("psycopg").connect(server_or_none, autocommit=True) as database:
            database.execute("DROP SCHEMA IF EXISTS viewkeep CASCADE")
            database.execute(f"DROP TABLE IF EXISTS {', '.join(CAPTURED)}")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_views_under_changes_from_everywhere(tmp_path: Path, dsn: str | None, seed: int) -> None:
    random = Random(seed)
    model = random_database(TABLES, random, 10)
    keeper = Keeper(tmp_path / "lake", durable=False)
    sources = Sources(keeper, tmp_path, dsn, model)
    with sources.stack:
        create_views(keeper, random)
        live = {name: keeper.live(name) for name in LIVE}
        for _ in range(ROUNDS):
            for _ in range(random.randrange(1, 4)):
                batches = random_batch(model, TABLES, random, 6)
                sources.change(batches, random)
                model = apply_batches(model, batches)
            if dsn:
                sources.capture.catch_up()
            quiet_point(keeper, live, random, model)
    check_replayed(keeper)
    ways = {"apply", "files", "parquet", "debezium", "sink", "transaction"}
    assert sources.used >= (ways if LONG else {"apply"}) | ({"capture"} if dsn else set())


def create_views(keeper: Keeper, random: Random) -> None:
    for name, sql in LIVE.items():
        keeper.create_view(name, sql)
    created = 0
    for number, sql in enumerate(list(VIEWS.values())[random.randrange(EVERY) :: EVERY]):
        try:
            keeper.create_view(f"v{number}", sql, policy=("auto", "incremental")[number % 2])
            created += 1
        except NeedsSparkError:
            continue
    assert created > len(VIEWS) / EVERY / 2


def quiet_point(keeper: Keeper, live: Mapping[str, Any], random: Random, model: Database) -> None:
    """Views are refreshed, some of them by live views, and compared with a recomputation."""
    for each in live.values():
        each.catch_up()
        if random.random() < 0.5:
            each.write()
    keeper.refresh()
    for name, rows in model.items():
        found = {tuple(row.values()) for row in keeper.read(name).to_pylist()}
        assert found == set(rows.values()), name
    check(keeper)
    as_row: Callable[[Any], Any] = lambda table: sorted(map(repr, table.to_pylist()))  # noqa: E731
    for name, each in live.items():
        assert as_row(each.to_arrow()) == as_row(keeper.read(name)), name
