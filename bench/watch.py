"""From a commit in a table to the views that show it, under `viewkeep watch`, in a small lake.

    python -m bench.watch [--changes 50] [--rows 1000]

`viewkeep watch --lag 0s` runs in a process of its own, over three views, one of them on another.
Another process applies single updates and reads until all views have them. Every commit waits for
the disk, as a lake does by default. Asked is a median of 0.2 s.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from viewkeep import Keeper

VIEWS = {
    "total": "SELECT sum(price) AS total FROM parts",
    "dear": "SELECT pid, price FROM parts WHERE price > 500",
    "count_dear": "SELECT count(*) AS n FROM dear",
}
PAUSE, PATIENCE = 0.002, 120.0


def seconds_to_views(place: Path, rows: int, changes: int) -> list[float]:
    """For each change, the seconds from its commit until all views show it."""
    keeper = Keeper(place)
    values = [(pid, pid) for pid in range(rows)]
    keeper.create_table("parts", {"pid": "int", "price": "int"}, ["pid"], rows=values)
    for name, sql in VIEWS.items():
        keeper.create_view(name, sql)
    command = [sys.executable, "-m", "viewkeep", "watch", "--lag", "0s", "--lake", str(place)]
    watcher = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for_views(keeper, _change(keeper, 0))  # until the watcher has started
        return [_wait_for_views(keeper, _change(keeper, n)) for n in range(1, changes + 1)]
    finally:
        watcher.send_signal(signal.SIGTERM)
        watcher.wait()


def _change(keeper: Keeper, number: int) -> float:
    """Change a row; when that was committed."""
    time.sleep(0.013 * (number % 7))  # at any moment between two looks of the watcher
    keeper.apply("parts", updates=[{"pid": 1, "price": 10_000 + number}])
    return time.monotonic()


def _wait_for_views(keeper: Keeper, committed: float) -> float:
    while not all(each.is_fresh for each in keeper.status()):
        assert time.monotonic() - committed < PATIENCE, "the views never had it"
        time.sleep(PAUSE)
    return time.monotonic() - committed


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--changes", type=int, default=50)
    parser.add_argument("--rows", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        seconds = seconds_to_views(Path(place), arguments.rows, arguments.changes)
    print(f"{len(seconds)} changes, each in {len(VIEWS)} views:")
    print(f"median {median(seconds):.3f} s, least {min(seconds):.3f} s, most {max(seconds):.3f} s")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
