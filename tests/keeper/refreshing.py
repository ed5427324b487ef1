"""A process that refreshes a lake until a file appears: `python -m tests.keeper.refreshing`.

    python -m tests.keeper.refreshing LAKE STOP

It prints how many refreshes of a view it won.
"""

import sys
from pathlib import Path

from tests.keeper.crashing import attached
from viewkeep import Keeper


def main(place: Path, stop: Path) -> None:
    """Refresh, again and again."""
    keeper, won = Keeper(place, attached()), 0
    print("ready", flush=True)
    while not stop.exists():
        won += sum(report.changed for report in keeper.refresh())
    print(won, flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
