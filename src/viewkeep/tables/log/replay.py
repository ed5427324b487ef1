"""The deletion vectors of a version, from its log: deltalake does not tell which one a file has.

The last checkpoint before the version, then the entries after it, one by one.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow.fs as pafs  # type: ignore[import-untyped]  # has no stubs
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from viewkeep.tables.failures import DamagedLogError, MissingEntryError, storage_errors
from viewkeep.tables.log.deletion_vectors import DeletionVector
from viewkeep.tables.log.entries import LOG

Vectors = dict[str, DeletionVector | None]
"""The files of a version by path, each with its vector, if it has one."""

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(\.\d{10}\.(\d{10}))?\.parquet")


def replay_vectors(
    files: pafs.FileSystem, base: str, version: int, entry: Callable[[int], bytes | None]
) -> Vectors:
    """The vectors of a version of the table in a folder; `entry` reads the text of an entry."""
    start, paths = _last_checkpoint(files, base, version)
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


def _last_checkpoint(files: pafs.FileSystem, base: str, version: int) -> tuple[int, list[str]]:
    """The last whole checkpoint up to a version, and its files; -1 if there is none."""
    with storage_errors(f"{base}/{LOG}"):
        entries = files.get_file_info(pafs.FileSelector(f"{base}/{LOG}"))
    parts: dict[int, list[tuple[str, int]]] = {}
    for each in entries:
        name = _CHECKPOINT.fullmatch(each.base_name)
        if name and int(name[1]) <= version:
            parts.setdefault(int(name[1]), []).append((each.path, int(name[3] or 1)))
    whole = [n for n, some in parts.items() if len(some) == _checkpoint_part_count(some)]
    last = max(whole, default=-1)
    return last, [path for path, _ in parts.get(last, [])]


def _checkpoint_part_count(parts: Iterable[tuple[str, int]]) -> int:
    return max(count for _, count in parts)


def _vectors_of_checkpoint(files: pafs.FileSystem, path: str) -> Vectors:
    with storage_errors(path), files.open_input_file(path) as source:
        file = pq.ParquetFile(source)
        leaves = [file.schema.column(i).path for i in range(len(file.schema.names))]
        columns = [n for n in leaves if n == "add.path" or n.startswith("add.deletionVector.")]
        rows = file.read(columns)["add"].to_pylist()
    return {each["path"]: _vector_of_add(each) for each in rows if each and each.get("path")}


def _vector_of_add(add: Mapping[str, Any]) -> DeletionVector | None:
    values = add.get("deletionVector")
    if not values or values.get("storageType") is None:
        return None
    return DeletionVector.from_json(values)
