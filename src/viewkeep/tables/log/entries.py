"""Entries of a Delta log as files: read, checked before they are believed, and fingerprinted.

deltalake reads an entry that is empty, as a power failure may leave it, as a version that changes
nothing: the rows of that commit, or the files that it removed, would silently be wrong.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import Any

from viewkeep.tables.failures import DamagedLogError, storage_errors
from viewkeep.tables.log.deletion_vectors import DeletionVector

ACTIONS = "add|remove|metaData|protocol|commitInfo|txn|cdc|domainMetadata"
_ACTION = re.compile(rb'\{\s*"(' + ACTIONS.encode() + rb')"\s*:')
ENTRY = re.compile(r"(\d{20})\.json")
LOG = "_delta_log"
RECENT = 100
"""So many entries are looked at when a table is opened: those before stand in a checkpoint."""
SHORT = 64
"""An entry of fewer bytes is read: it may be blank."""
HEAD = 1 << 16


@dataclass(frozen=True)
class Commit:
    """One entry of a table's log; `notes` are Viewkeep's, None in the commits of others."""

    version: int
    timestamp: int
    operation: str
    notes: Mapping[str, Any] | None
    added: tuple[str, ...] = ()
    """Files of rows and of deletion vectors."""
    removed: tuple[str, ...] = ()
    fed: tuple[str, ...] = ()
    """The files that tell its changed rows."""


def entry_path(base: str, version: int) -> str:
    """The file of an entry."""
    return f"{base}/{LOG}/{version:020d}.json"


def read_entry(base: str, version: int) -> bytes | None:
    """The text of a local entry; None if it is not there."""
    path = entry_path(base, version)
    with storage_errors(path):
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None


def read_commit(place: str, version: int, text: bytes, notes: str) -> Commit:
    """An entry that is checked; `notes` is the key of Viewkeep's notes."""
    actions = _parsed_entry(place, text)
    info: dict[str, Any] = next((e["commitInfo"] for e in actions if "commitInfo" in e), {})
    try:
        added = tuple(path for e in actions if "add" in e for path in _paths_of_action(e["add"]))
        removed = tuple(
            path for e in actions if "remove" in e for path in _paths_of_action(e["remove"])
        )
        fed = tuple(e["cdc"]["path"] for e in actions if "cdc" in e)
        return Commit(
            version,
            int(info.get("timestamp") or 0),
            str(info.get("operation") or ""),
            info.get(notes),
            added,
            removed,
            fed,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged_entry(place, f"it has an action that is not whole ({error!r})") from error


def _paths_of_action(action: Mapping[str, Any]) -> list[str]:
    """The file of an action, and that of its deletion vector."""
    vector = action.get("deletionVector")
    path = DeletionVector.from_json(vector).path if vector else None
    return [action["path"], *([] if path is None else [path])]


def _parsed_entry(place: str, text: bytes) -> list[dict[str, Any]]:
    if not _ACTION.search(text):
        raise _damaged_entry(place, "it has no actions" if text.strip() else "it is empty")
    try:
        lines = text.decode().split("\n")
        actions = [json.loads(line) for line in lines if line.strip()]
    except ValueError as error:
        raise _damaged_entry(place, f"it is no JSON ({error})") from error
    if not all(isinstance(each, dict) for each in actions):
        raise _damaged_entry(place, "it is no list of actions")
    return actions


def recent_entries(base: str, newest: int, count: int = RECENT) -> dict[int, tuple[int, int]]:
    """The sizes and times of the last entries of a local table, back to one that is not there."""
    entries = {}
    for version in range(newest, max(-1, newest - count), -1):
        try:
            status = os.stat(entry_path(base, version))
        except OSError:
            break
        entries[version] = status.st_size, status.st_mtime_ns
    return entries


def check_recent(base: str, newest: int) -> None:
    """Refuse a local table if one of its last entries says nothing."""
    for version in range(newest, max(-1, newest - RECENT), -1):
        place = entry_path(base, version)
        try:
            size = os.stat(place).st_size
        except OSError:  # cleaned up: a checkpoint stands for it, or deltalake has complained
            return
        if size < SHORT or version == newest:
            with open(place, "rb") as file:
                text = file.read(HEAD)
            if not _ACTION.search(text):
                raise _damaged_entry(place, "it has no actions" if text.strip() else "it is empty")


def find_damage(base: str) -> None:
    """Name the entry because of which a local table cannot be opened, if it is one."""
    try:
        names = sorted(os.listdir(f"{base}/{LOG}"))
    except OSError:
        return
    versions = [int(entry[1]) for entry in map(ENTRY.fullmatch, names) if entry]
    recent = versions[-RECENT:]
    for before, after in pairwise(recent):
        if after != before + 1:
            raise _damaged_entry(
                entry_path(base, before + 1), "it is missing, and later ones are there"
            )
    for version in recent:
        place = entry_path(base, version)
        with open(place, "rb") as file:
            _parsed_entry(place, file.read())


def _damaged_entry(place: str, problem: str) -> DamagedLogError:
    return DamagedLogError(
        f"{place}: the log entry is damaged: {problem}; restore the table from a backup, or, if it "
        "is a view, repair it"
    )


@lru_cache(1024)
def entry_fingerprint(text: bytes) -> str:
    """What tells a commit from another one of the same number."""
    return f"entry:{sha256(text).hexdigest()[:32]}"


def files_fingerprint(identity: str, files: Iterable[tuple[str, int]]) -> str:
    """The same from the files of a version, where its entry is gone and a checkpoint is left."""
    text = json.dumps([identity, *sorted(files)])
    return f"files:{sha256(text.encode()).hexdigest()[:32]}"
