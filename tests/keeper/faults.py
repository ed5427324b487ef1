"""Processes that die: at the n-th place where anything is written, before or after the write."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from threading import Lock
from typing import Any

import pytest

from viewkeep import Keeper, Table
from viewkeep.changes import ChangeBatch
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import LakeTable

POINTS: tuple[tuple[type, str], ...] = (
    (LakeTable, "create"),
    (LakeTable, "_write"),
    (LakeTable, "_put_form"),
    (LakeTable, "_add_columns"),
    (LakeTable, "_list_bounds"),
    (ParquetFolder, "write"),
    (ParquetFolder, "write_vectors"),
    (ParquetFolder, "described"),
    (ParquetFolder, "write_text"),
    (ParquetFolder, "remove"),
)
"""Whatever is written goes through these; Spark has written when `described` is called."""


class Died(BaseException):
    """What stands for the end of a process: nothing may catch it and go on."""


@dataclass
class Fault:
    """Dies at the `at`-th point, before or after it; a process that is dead writes no more."""

    at: int
    after: bool = False
    calls: int = 0
    dead: bool = False
    place: str = ""
    _lock: Lock = field(default_factory=Lock, repr=False)

    def around(self, name: str, write: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            with self._lock:  # views are committed side by side
                self.calls += 1
                is_last = self.calls == self.at
            if self.dead or (is_last and not self.after):
                self._die(name)
            done = write(*given, **named)
            if self.dead or is_last:
                self._die(name)
            return done

        return called

    def _die(self, name: str) -> None:
        self.place = self.place or name
        self.dead = True
        raise Died(name)


@contextmanager
def fault(at: int, after: bool = False) -> Iterator[Fault]:
    """A block that dies at a point; the block ends, the test goes on."""
    found = Fault(at, after)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in POINTS:
            patch.setattr(owner, name, found.around(name, getattr(owner, name)))
        with suppress(Died):
            yield found


TABLES = {
    "parts": Table({"pid": "int", "price": "int", "name": "string"}, key=["pid"]),
    "uses": Table({"did": "int", "pid": "int", "n": "int not null"}, key=["did", "pid"]),
}
VIEWS = {
    "pairs": "SELECT did, pid, name FROM uses JOIN parts USING (pid) WHERE price > 1",
    "cost": """SELECT did, sum(price * n) AS cost, max(price) AS most, count(*) AS parts
               FROM uses JOIN parts USING (pid) GROUP BY did""",
    "spread": "SELECT most, count(*) AS n, sum(cost) AS cost FROM cost GROUP BY most",
}


def create(keeper: Keeper, model: dict[str, dict[Any, Any]]) -> None:
    """The tables with their first rows, and the views."""
    for name, table in TABLES.items():
        keeper.create_table(name, table, rows=list(model[name].values()))
    for name, sql in VIEWS.items():
        layout = "merge-on-read" if name == "pairs" else "auto"
        keeper.create_view(name, sql, policy="incremental", layout=layout)


def apply(keeper: Keeper, batch: ChangeBatch) -> None:
    """A batch as a user gives it."""
    table = batch.table
    places = [table.names.index(name) for name in table.key]
    keeper.apply(
        batch.name,
        list(batch.inserts),
        [dict(zip(table.names, new, strict=True)) for _, new in batch.updates],
        [tuple(old[place] for place in places) for old in batch.deletes],
    )


def chosen(batches: dict[str, ChangeBatch], rng: Random) -> ChangeBatch:
    """One of the batches that change something."""
    return rng.choice([each for each in batches.values() if not each.is_empty])
