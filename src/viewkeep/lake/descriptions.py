"""What is defined in a lake, for people and programs."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TableDescription:
    """A base table: how it is declared, where it is, and what its newest version holds.

    `owned` tables are changed by Viewkeep, the others by their own writers. `rows` is None where
    the log does not tell, and `problem` says why a table cannot be read.
    """

    name: str
    owned: bool
    location: str
    columns: Mapping[str, str]
    key: tuple[str, ...] = ()
    foreign_keys: tuple[str, ...] = ()
    fds: tuple[str, ...] = ()
    static: bool = False
    readers: tuple[str, ...] = ()
    version: int | None = None
    rows: int | None = None
    size: int | None = None
    problem: str = ""


@dataclass(frozen=True)
class ViewDescription:
    """A view: its SQL, what it reads and what reads it, and how it is asked to be kept.

    A view that is not `ready` was never finished.
    """

    name: str
    sql: str
    location: str
    reads: tuple[str, ...]
    readers: tuple[str, ...]
    columns: Mapping[str, str]
    key: tuple[str, ...]
    strategy: str
    policy: str
    ready: bool
