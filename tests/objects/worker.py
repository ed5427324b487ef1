"""A process that works on a lake in a bucket; credentials come from its environment.

    python -m tests.objects.worker changes LAKE LOG SEED FIRST AT AFTER
    python -m tests.objects.worker race LAKE NAME

`changes` changes and refreshes until it is killed, or kills itself at the AT-th place where it
writes, before or after. LOG tells what it did: "begin 7" before change number 7, "end 7" after it.
`race` does one round for every line that it reads, and answers with what came of it: it inserts a
row of its own, and one that the other process inserts as well, and refreshes.
"""

import sys
from pathlib import Path

from tests.keeper.victim import change_until_killed
from tests.objects.lakes import read_model
from viewkeep import Keeper
from viewkeep.changes import ChangeError

OWN = 1_000_000
"""Keys of rows that both processes insert begin with this one."""


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
    keeper, model = Keeper(uri), read_model(uri, None)
    numbers = [int(each) for each in more[1:4]]
    return change_until_killed(keeper, model, Path(more[0]), *numbers, after=more[4] == "after")


if __name__ == "__main__":
    main(*sys.argv[1:])
