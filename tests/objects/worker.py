"""A process that works on a lake in a bucket; credentials come from its environment.

    python -m tests.objects.worker changes LAKE LOG SEED FIRST AT AFTER
    python -m tests.objects.worker race LAKE NAME

`changes` changes and refreshes until it is killed, or kills itself at the AT-th place where it
writes, before or after. LOG tells what it did: "begin 7" before change number 7, "end 7" after it.
`race` does one round for every line that it reads, and answers with what came of it: it inserts a
row of its own, and one that the other process inserts as well, and refreshes.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.diffs.random_tables import apply_batches
from tests.keeper.faults import POINTS, Fault, apply
from tests.objects.lakes import next_batch, read_model
from viewkeep import Keeper
from viewkeep.changes import ChangeError

OWN = 1_000_000
"""Keys of rows that both processes insert begin with this one."""


def make_changes(uri: str, log: Path, seed: int, number: int, at: int, after: bool) -> None:
    """Change and refresh for ever."""
    keeper, model = Keeper(uri), read_model(uri, None)
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


def race(uri: str, who: int) -> None:
    """A round for each line."""
    keeper = Keeper(uri)
    print("ready", flush=True)
    for line in sys.stdin:
        number = int(line)
        keeper.apply("parts", inserts=[(2 * number + who, who, "own")])
        try:
            keeper.apply("parts", inserts=[(OWN + number, who, "shared")])
            answer = "inserted"
        except ChangeError:
            answer = "refused"
        keeper.refresh()
        print(answer, flush=True)


def main(command: str, uri: str, *more: str) -> None:
    """Do what the arguments say."""
    if command == "race":
        return race(uri, int(more[0]))
    numbers: Sequence[int] = [int(each) for each in more[1:4]]
    return make_changes(uri, Path(more[0]), *numbers, after=more[4] == "after")


if __name__ == "__main__":
    main(*sys.argv[1:])
