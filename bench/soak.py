"""A watcher under load that is killed again and again: nothing is lost, nothing comes twice.

    python -m bench.soak [--seconds 900] [--kill-every 30] [--rows 1000] [--bound 5]

Files of changes (new rows, changed ones, deletes) come into a folder as fast as the views follow:
the writer waits while the oldest file that is not in the views is older than `--bound` seconds.
Beside it, another table is changed by `apply`. `viewkeep watch` takes files in and refreshes the
views; it is killed (SIGKILL) every few seconds and started anew. At the end the tables are compared
with what was written, and the views with a recomputation. Lag is the time from a complete file to
the views that have it, as a reader sees it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from threading import Event, Thread
from typing import Any

from viewkeep import Keeper

VIEWS = {
    "progress": "SELECT max(file) AS file FROM orders",
    "spent": """SELECT c.region, count(*) AS orders, sum(o.price) AS spent
                FROM orders o JOIN customers c ON o.cid = c.cid GROUP BY c.region""",
}
ORDER, CUSTOMER = ("oid", "cid", "price", "file"), ("cid", "region")
CUSTOMERS = 500
AHEAD = 50
"""So many files may wait at most, so that a new watcher does not begin with all of them."""
PAUSE = 0.01
PATIENCE = 120.0
"""Seconds for which the views may take to be fresh after the last change."""


@dataclass
class Load:
    """What was written: the rows that tables should have, and when each file was complete."""

    orders: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    customers: dict[int, tuple[int, str]] = field(default_factory=dict)
    written: list[float] = field(default_factory=list)
    records: int = 0
    applied: int = 0
    lags: list[float] = field(default_factory=list)
    seen: int = 0
    kills: int = 0

    @property
    def waiting(self) -> float:
        """The age of the oldest file that is not in the views."""
        return time.monotonic() - self.written[self.seen] if self.seen < len(self.written) else 0.0


def soak(place: Path, seconds: float, kill_every: float, rows: int, bound: float) -> dict[str, Any]:
    """Run the load; the figures, or an `AssertionError` if anything was lost or came twice."""
    keeper, load, folder = Keeper(place / "lake", durable=False), Load(), place / "in"
    folder.mkdir()
    create(keeper, load)
    stop = Event()
    watching = Thread(target=kill_watchers, args=(place, folder, kill_every, stop, load))
    reading = Thread(target=read_progress, args=(place, load, stop))
    watching.start()
    reading.start()
    try:
        begun = time.monotonic()
        write_until(begun + seconds, keeper, folder, load, rows, bound)
        writing = time.monotonic() - begun
        end = time.monotonic() + PATIENCE
        while load.seen < len(load.written) and time.monotonic() < end:
            time.sleep(PAUSE)
    finally:
        stop.set()
        watching.join()
        reading.join()
    check(keeper, load)
    lags = sorted(load.lags) or [0.0]
    return {
        "seconds": round(writing, 1),
        "kills": load.kills,
        "files": len(load.written),
        "records": load.records,
        "records_per_second": round(load.records / writing),
        "applies": load.applied,
        "lag_median": round(median(lags), 3),
        "lag_95": round(lags[int(0.95 * (len(lags) - 1))], 3),
        "lag_most": round(lags[-1], 3),
    }


def create(keeper: Keeper, load: Load) -> None:
    """Two tables, and views over them."""
    load.customers = {cid: (cid, f"region {cid % 7}") for cid in range(CUSTOMERS)}
    orders = {"oid": "int", "cid": "int", "price": "int", "file": "int"}
    keeper.create_table("orders", orders, key=["oid"])
    columns = {"cid": "int", "region": "string"}
    keeper.create_table("customers", columns, key=["cid"], rows=list(load.customers.values()))
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql)


def write_until(
    end: float, keeper: Keeper, folder: Path, load: Load, rows: int, bound: float
) -> None:
    """Write files as long as the views follow, at least until a watcher was killed, and change the
    other table now and then."""
    random, oid, latest = Random(0), 0, end + PATIENCE
    while time.monotonic() < (end if load.kills else latest):
        if load.waiting > bound or len(load.written) - load.seen > AHEAD:
            time.sleep(PAUSE)
            continue
        lines = [json.dumps(change) for change in changes(random, load, oid, rows)]
        oid += rows
        name = f"{len(load.written):08}.jsonl"
        (folder / f".{name}").write_text("\n".join(lines) + "\n")
        (folder / f".{name}").rename(folder / name)
        load.records += len(lines)
        load.written.append(time.monotonic())
        if random.random() < 0.05:
            cid = random.randrange(CUSTOMERS)
            load.customers[cid] = (cid, f"region {random.randrange(7)}")
            keeper.apply(
                "customers", updates=[dict(zip(CUSTOMER, load.customers[cid], strict=True))]
            )
            load.applied += 1


def changes(random: Random, load: Load, oid: int, rows: int) -> Iterator[dict[str, Any]]:
    """New rows, of which some are changed or deleted in the same file or a later one."""
    file, orders = len(load.written), load.orders
    for number in range(oid, oid + rows):
        orders[number] = (number, random.randrange(CUSTOMERS), random.randrange(1000), file)
        yield {"op": "insert", **dict(zip(ORDER, orders[number], strict=True))}
        other = random.randrange(number + 1)
        if other in orders and random.random() < 0.5:
            old = orders[other]
            orders[other] = (*old[:2], random.randrange(1000), file)
            yield {"op": "update", "oid": other, "price": orders[other][2], "file": file}
        elif other in orders and other < number:
            del orders[other]
            yield {"op": "delete", "oid": other}


def kill_watchers(place: Path, folder: Path, kill_every: float, stop: Event, load: Load) -> None:
    """Run one watcher after the other; each is killed after a while, but not before it has done
    anything: on a machine that is busy it may only just have started."""
    random = Random(1)
    command = [sys.executable, "-m", "viewkeep", "watch", "--lag", "0s", "--backend", "duckdb"]
    options = ["--lake", str(place / "lake"), "--ingest", f"orders={folder}"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (place / "watch.log").open("ab") as log:
        while not stop.is_set():
            streams: dict[str, Any] = {"stdout": log, "stderr": log, "env": environment}
            with subprocess.Popen([*command, *options], **streams) as it:
                seen, patience = load.seen, time.monotonic() + PATIENCE
                is_last = stop.wait(kill_every)
                while load.seen == seen and time.monotonic() < patience and not is_last:
                    is_last = stop.wait(PAUSE)
                is_last = is_last or stop.wait(random.random())
                it.kill()
                load.kills += not is_last


def read_progress(place: Path, load: Load, stop: Event) -> None:
    """Note when files come into the views."""
    keeper = Keeper(place / "lake", durable=False)
    while not stop.is_set():
        with suppress(IndexError):
            seen = keeper.read("progress").to_pylist()[0]["file"]
            moment = time.monotonic()
            for file in range(load.seen, -1 if seen is None else seen + 1):
                load.lags.append(moment - load.written[file])
                load.seen = file + 1
        time.sleep(PAUSE)


def check(keeper: Keeper, load: Load) -> None:
    """Tables are what was written, nothing is in quarantine, views are their queries."""
    for name, rows in (("orders", load.orders), ("customers", load.customers)):
        found = {tuple(row.values()) for row in keeper.read(name).to_pylist()}
        wanted = set(rows.values())
        lost, extra = len(wanted - found), len(found - wanted)
        assert found == wanted, f"{name}: {lost} rows lost, {extra} too many"
    assert keeper.quarantine("orders").num_rows == 0, "something came twice"
    keeper.refresh()
    for name in VIEWS:
        found = keeper.verify(name)
        assert found.ok, found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--kill-every", type=float, default=30)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--bound", type=float, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = soak(Path(place), given.seconds, given.kill_every, given.rows, given.bound)
    json.dump(found, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
