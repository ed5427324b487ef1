"""Marks of work that reads versions which are not the newest any more, for `vacuum` to see.

<lake>/_viewkeep/running/<host>-<process>-<number>    one file for each refresh that runs

A refresh reads the tables as they were when it began. The mark is made before it looks at them and
removed at its end; that of a process that died counts for a day, on its own machine not at all.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

FOLDER = "_viewkeep/running"
MOST_SECONDS = 24 * 3600


@contextmanager
def marked_block(lake: str | None) -> Iterator[None]:
    """A block that reads versions of tables; without a mark where none can be written."""
    if lake is None:
        yield
        return
    path = f"{lake}/{FOLDER}/{host_name()}-{os.getpid()}-{uuid4().hex}"
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "x"):
            pass
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)


def earliest(lake: str | None, now: float) -> float:
    """When the oldest work began that still runs, in seconds; `now` if there is none."""
    begun = [now]
    if lake is None:
        return now
    with suppress(OSError), os.scandir(f"{lake}/{FOLDER}") as marks:
        for each in marks:
            started = each.stat().st_mtime
            if now - started < MOST_SECONDS and not is_dead(each.name):
                begun.append(started)
            else:
                os.unlink(each.path)
    return min(begun)


def host_name() -> str:
    """The name of this machine, as marks have it."""
    return "".join(c if c.isalnum() else "_" for c in socket.gethostname()) or "here"


def is_dead(name: str) -> bool:
    """Whether a mark is of a process of this machine that is gone."""
    host, process, _ = name.rsplit("-", 2) if name.count("-") >= 2 else ("", "", "")
    if host != host_name() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
