"""What a process does that changes and refreshes a lake until it is killed, or kills itself."""

import os
import signal
from pathlib import Path
from random import Random
from typing import Any

from tests.diffs.random_tables import Database, apply_batches, random_batch
from tests.keeper.faults import POINTS, TABLES, Fault, apply, chosen
from viewkeep import Keeper
from viewkeep.changes import ChangeBatch


def next_batch(model: Database, seed: int, number: int) -> ChangeBatch:
    """The change with a number: the same in every process that sees the same rows."""
    rng = Random(f"{seed} {number}")
    ordered = {name: dict(sorted(rows.items())) for name, rows in model.items()}
    while True:
        batches = random_batch(ordered, TABLES, rng, 5)
        if any(not each.is_empty for each in batches.values()):
            return chosen(batches, rng)


def change_until_killed(
    keeper: Keeper, model: Database, log: Path, seed: int, number: int, at: int, after: bool
) -> None:
    """Change and refresh for ever; the log tells "begin", "end" and "fresh" of each change."""
    with log.open("a", buffering=1) as told:
        print("ready", file=told)
        _kill_at(at, after)
        while True:
            batch = next_batch(model, seed, number)
            print("begin", number, file=told)
            apply(keeper, batch)
            print("end", number, file=told)
            model = apply_batches(model, {batch.name: batch})
            keeper.refresh()
            print("fresh", number, file=told)
            number += 1


def _kill_at(at: int, after: bool) -> None:
    """This process ends at a place where it writes."""

    class Kill(Fault):
        def _die(self, name: str) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

    kill = Kill(at, after)
    for owner, name in POINTS:
        write: Any = getattr(owner, name)
        setattr(owner, name, kill.around(name, write))
