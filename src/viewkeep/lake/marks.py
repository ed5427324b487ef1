"""Marks of work that reads versions which are not the newest any more, for `vacuum` to see.

<lake>/_viewkeep/running/<host>-<process>-<number>    one file for each refresh that runs

A refresh reads the tables as they were when it began. The mark is made before it looks at them and
removed at its end; that of a process that died counts for a day, on its own machine not at all.
In an object store, a mark is an object, and its time the one that the store tells.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from viewkeep.tables.failures import StorageError
from viewkeep.tables.files.parquet import ParquetFolder

FOLDER = "_viewkeep/running"
MOST_SECONDS = 24 * 3600


@contextmanager
def marked_block(lake: str) -> Iterator[None]:
    """A block that reads versions of tables of a lake in a local folder; without a mark where none
    can be written."""
    path = f"{lake}/{FOLDER}/{_new_mark()}"
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "x"):
            pass
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)


@contextmanager
def marked_in_store(folder: ParquetFolder) -> Iterator[None]:
    """The same in an object store, with the folder of its marks."""
    name = _new_mark()
    with suppress(StorageError):
        folder.write_text(name, "")
    try:
        yield
    finally:
        with suppress(StorageError):
            folder.remove_file(name)


def earliest(lake: str, now: float) -> float:
    """When the oldest work began that still runs, in seconds; `now` if there is none."""
    begun = [now]
    with suppress(OSError), os.scandir(f"{lake}/{FOLDER}") as marks:
        for each in marks:
            started = each.stat().st_mtime
            if now - started < MOST_SECONDS and not is_dead(each.name):
                begun.append(started)
            else:
                os.unlink(each.path)
    return min(begun)


def earliest_in_store(folder: ParquetFolder, now: float) -> float:
    """The same in an object store. Where marks cannot be listed, that is an error: work that nobody
    sees may need any file."""
    begun = [now]
    for name, started in folder.modified_times().items():
        if now - started < MOST_SECONDS and not is_dead(name):
            begun.append(started)
        else:
            folder.remove_file(name)
    return min(begun)


def _new_mark() -> str:
    return f"{host_name()}-{os.getpid()}-{uuid4().hex}"


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
