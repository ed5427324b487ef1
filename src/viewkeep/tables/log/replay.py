"""The deletion vectors of a version, from its log: deltalake does not tell which one a file has.

The last checkpoint before the version, then the entries after it, one by one.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow.fs as pafs  # type: ignore[import-untyped]  # has no stubs
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from viewkeep.tables.failures import DamagedLogError, MissingEntryError, storage_errors
from viewkeep.tables.log.deletion_vectors import DeletionVector
from viewkeep.tables.log.entries import ENTRY, LOG

Vectors = dict[str, DeletionVector | None]
"""The files of a version by path, each with its vector, if it has one."""

_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(\.\d{10}\.(?P<parts>\d{10})\.parquet|(\.[\w-]{36})?\.(parquet|json))"
)
"""Of one file, of several parts, or with a name of its own and files beside it (version 2)."""
SIDECARS = "_sidecars"


def replay_vectors(
    files: pafs.FileSystem, base: str, version: int, entry: Callable[[int], bytes | None]
) -> Vectors:
    """The vectors of a version of the table in a folder; `entry` reads the text of an entry."""
    start, paths = last_checkpoint(files, base, version)
    vectors: Vectors = {}
    for path in paths:
        vectors |= _vectors_of_checkpoint(files, path)
    for number in range(start + 1, version + 1):
        text = entry(number)
        if text is None:
            raise MissingEntryError(f"{base}: the log entry of version {number} is missing")
        _replay_entry(vectors, base, number, text)
    return vectors


def _replay_entry(vectors: Vectors, base: str, number: int, text: bytes) -> None:
    """Bring an entry in: what it removes, then what it adds."""
    try:
        actions = [json.loads(line) for line in text.decode().split("\n") if line.strip()]
        for each in actions:
            if each.get("remove"):
                vectors.pop(each["remove"]["path"], None)
        for each in actions:
            if each.get("add"):
                vectors[each["add"]["path"]] = _vector_of_add(each["add"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        place = f"{base}: the log entry of version {number}"
        raise DamagedLogError(f"{place} cannot be read ({error!r})") from error


def last_checkpoint(files: pafs.FileSystem, base: str, version: int) -> tuple[int, list[str]]:
    """The last whole checkpoint up to a version, and its files; -1 if there is none."""
    whole = {key: paths for key, paths in _checkpoints(files, base).items() if key[0] <= version}
    last = max(whole, default=(-1, 1))
    # Several checkpoints of a version, each of one file, tell the same.
    return last[0], sorted(whole.get(last, []))[: last[1]]


def first_checkpoint(files: pafs.FileSystem, base: str) -> int:
    """The version of the first whole checkpoint; -1 if there is none."""
    return min((version for version, _ in _checkpoints(files, base)), default=-1)


def entry_versions(files: pafs.FileSystem, base: str) -> set[int]:
    """The versions whose entries are there."""
    with storage_errors(f"{base}/{LOG}"):
        names = [e.base_name for e in files.get_file_info(pafs.FileSelector(f"{base}/{LOG}"))]
    return {int(entry[1]) for entry in map(ENTRY.fullmatch, names) if entry}


def _checkpoints(files: pafs.FileSystem, base: str) -> dict[tuple[int, int], list[str]]:
    """The files of all whole checkpoints, by version and number of parts."""
    with storage_errors(f"{base}/{LOG}"):
        entries = files.get_file_info(pafs.FileSelector(f"{base}/{LOG}"))
    parts: dict[tuple[int, int], list[str]] = {}
    for each in entries:
        name = _CHECKPOINT.fullmatch(each.base_name)
        if name:
            count = int(name["parts"] or 1)
            parts.setdefault((int(name[1]), count), []).append(each.path)
    return {key: paths for key, paths in parts.items() if key[1] in (1, len(paths))}


def _vectors_of_checkpoint(files: pafs.FileSystem, path: str) -> Vectors:
    """The files of a part of a checkpoint, and of the files beside it that it names."""
    with storage_errors(path):
        actions = _checkpoint_actions(files, path)
    vectors = _vectors_of_adds(each["add"] for each in actions if each.get("add"))
    sidecars = [each["sidecar"]["path"] for each in actions if each.get("sidecar")]
    for name in sidecars:
        place = f"{path.rpartition('/')[0]}/{SIDECARS}/{unquote(name).rpartition('/')[2]}"
        with storage_errors(place):
            actions = _checkpoint_actions(files, place)
        vectors |= _vectors_of_adds(each["add"] for each in actions if each.get("add"))
    return vectors


def _checkpoint_actions(files: pafs.FileSystem, path: str) -> list[dict[str, Any]]:
    """What a file of a checkpoint tells of data files, and of files beside it."""
    if path.endswith(".json"):
        with files.open_input_stream(path) as source:
            text = bytes(source.read()).decode()
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    with files.open_input_file(path) as source:
        file = pq.ParquetFile(source)
        leaves = [file.schema.column(i).path for i in range(len(file.schema.names))]
        columns = [n for n in leaves if n.startswith(_NEEDED)]
        actions: list[dict[str, Any]] = file.read(columns).to_pylist()
    return actions


_NEEDED = ("add.path", "add.deletionVector.", "sidecar.path")


def _vectors_of_adds(adds: Iterable[Mapping[str, Any]]) -> Vectors:
    return {each["path"]: _vector_of_add(each) for each in adds if each.get("path")}


def _vector_of_add(add: Mapping[str, Any]) -> DeletionVector | None:
    values = add.get("deletionVector")
    if not values or values.get("storageType") is None:
        return None
    return DeletionVector.from_json(values)
