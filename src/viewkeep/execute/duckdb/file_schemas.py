"""The columns of Parquet files: files of Delta tables never change, so each is asked once."""

import os
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import duckdb

MOST = 10_000
"""The most files whose columns are remembered."""

FileSchema = tuple[tuple[str, str], ...]
"""The columns of a file: names, and types of DuckDB."""


class FileSchemas:
    """The columns of files that this process has read."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._lock = most, Lock()
        self._schemas: OrderedDict[str, FileSchema] = OrderedDict()

    def get(self, connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> list[FileSchema]:
        """The columns of each file; an error if one of them is gone."""
        for path in paths:
            os.stat(path)
        with self._lock:
            found = {path: self._schemas[path] for path in paths if path in self._schemas}
        new = [path for path in paths if path not in found]
        if new:
            found |= _read(connection, new)
            self._remember(found)
        return [found[path] for path in paths]

    def _remember(self, found: dict[str, FileSchema]) -> None:
        with self._lock:
            for path, schema in found.items():
                self._schemas[path] = schema
                self._schemas.move_to_end(path)
            while len(self._schemas) > self._most:
                self._schemas.popitem(last=False)


def _read(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> dict[str, FileSchema]:
    rows = connection.execute(
        "SELECT file_name, name, duckdb_type, coalesce(num_children, 0) "
        "FROM parquet_schema($paths)",
        {"paths": list(paths)},
    ).fetchall()
    nodes: dict[str, list[tuple[str, str, int]]] = {path: [] for path in paths}
    for path, *node in rows:
        nodes[path].append(tuple(node))
    return {path: _columns(found) for path, found in nodes.items()}


def _columns(nodes: Sequence[tuple[str, str, int]]) -> FileSchema:
    """The columns among the nodes of a schema: the root is first, parts follow what they are of."""
    found, inside = [], 0
    for name, kind, parts in nodes[1:]:
        if not inside:
            found.append((name, kind))
        inside += parts - (1 if inside else 0)
    return tuple(found)


FILE_SCHEMAS = FileSchemas()
