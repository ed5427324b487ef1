"""The columns of Parquet files: files of Delta tables never change, so each is asked once."""

import os
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no stubs

from viewkeep.tables.failures import storage_errors

MOST = 10_000
"""The most files whose columns are remembered."""

FileSchema = tuple[tuple[str, str], ...]
"""The columns of a file: names, and types of Arrow."""


class FileSchemas:
    """The columns of files that this process has read."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._lock = most, Lock()
        self._schemas: OrderedDict[str, FileSchema] = OrderedDict()

    def get(self, paths: Sequence[str]) -> list[FileSchema]:
        """The columns of each file; a `FileNotFoundError` if one of them is gone."""
        for path in paths:
            os.stat(path)
        with self._lock:
            schemas = {path: self._schemas[path] for path in paths if path in self._schemas}
        new = {path: _read_file_schema(path) for path in paths if path not in schemas}
        if new:
            schemas |= new
            self._remember(new)
        return [schemas[path] for path in paths]

    def _remember(self, schemas: dict[str, FileSchema]) -> None:
        with self._lock:
            for path, schema in schemas.items():
                self._schemas[path] = schema
                self._schemas.move_to_end(path)
            while len(self._schemas) > self._most:
                self._schemas.popitem(last=False)


def _read_file_schema(path: str) -> FileSchema:
    with storage_errors(path):
        schema = pq.read_schema(path)
    return tuple((field.name, str(field.type)) for field in schema)


FILE_SCHEMAS = FileSchemas()
