"""Log entries that Viewkeep writes itself, on local file systems.

Opening a table and committing to it through deltalake takes twenty milliseconds, however small the
commit. For a table that asks nothing of its writers but to add and remove files, a plain version,
the entry is a few lines of JSON. It is on the disk before it gets its name, and gets the name only
if no file has it (`link`, as deltalake does it): whoever comes second has a conflict.
"""

import errno
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from deltalake import DeltaTable

from viewkeep.tables.failures import storage_errors
from viewkeep.tables.log.deltalake_commits import FEED
from viewkeep.tables.log.entries import LOG, entry_path
from viewkeep.tables.log.protocol import VECTORS
from viewkeep.tables.log.snapshots import DataFile

ENGINE = "viewkeep"
CHECKPOINTS = 100
"""deltalake writes a checkpoint with the last of so many entries, so it commits that one."""
DRAFT = re.compile(r"_commit_[\w-]+\.json\.tmp")
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})

_PLAIN = re.compile(r"[A-Za-z0-9_.=-]+(/[A-Za-z0-9_.=-]+)*")

VECTORS_PROPERTY = "delta.enableDeletionVectors"
TIMES, CHANGE_FEED = "timestampNtz", "changeDataFeed"
_FEATURES = frozenset({TIMES, CHANGE_FEED, VECTORS})

Action = Mapping[str, Any]


def is_plain_version(table: DeltaTable, properties: Mapping[str, str]) -> bool:
    """Whether an open version asks nothing of writers but to add and remove files, perhaps with
    deletion vectors, and to tell changed rows: no other features, no properties but these, no
    partitions, and no constraints on columns."""
    protocol, metadata = table.protocol(), table.metadata()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    versions = protocol.min_reader_version, protocol.min_writer_version
    own = (FEED, VECTORS_PROPERTY)
    others = {name: value for name, value in metadata.configuration.items() if name not in own}
    return (
        (versions in ((1, 2), (1, 4)) or (versions == (3, 7) and features <= _FEATURES))
        and others == dict(properties)
        and not metadata.partition_columns
        and not any(each.metadata for each in table.schema().fields)
    )


def has_plain_paths(files: Iterable[DataFile]) -> bool:
    """Whether the paths of files are the same in the log, which encodes them, and on the disk."""
    return all(_PLAIN.fullmatch(each.path) for each in files)


def is_checkpoint(version: int) -> bool:
    """Whether a checkpoint belongs to a version."""
    return (version + 1) % CHECKPOINTS == 0


def files_changed(
    add: Iterable[DataFile],
    remove: Iterable[DataFile],
    mode: str,
    notes: Mapping[str, Any],
    fed: Iterable[DataFile] = (),
) -> list[Action]:
    """The actions of a commit that removes files, then adds others, and of files that tell its
    changed rows."""
    parameters = {"mode": mode, "partitionBy": "[]"}
    return [
        _commit_info("WRITE", parameters, notes),
        *(_remove_entry(each) for each in remove),
        *(_add_entry(each) for each in add),
        *(_change_file_entry(each) for each in fed),
    ]


@dataclass(frozen=True)
class TableForm:
    """What the log tells of a table besides its files; `schema` is Delta's JSON, `has_vectors`
    whether files may have deletion vectors, and `features` those that the table has already."""

    schema: str
    description: str | None
    properties: Mapping[str, str]
    has_vectors: bool = False
    identity: str = field(default_factory=lambda: str(uuid4()))
    created: int = field(default_factory=lambda: _now_milliseconds())
    features: frozenset[str] = frozenset()

    def actions(self) -> list[Action]:
        """The protocol and the metadata."""
        vectors = {VECTORS_PROPERTY: "true"} if self.has_vectors else {}
        metadata: dict[str, Any] = {
            "id": self.identity,
            "name": None,
            "description": self.description,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": self.schema,
            "partitionColumns": [],
            "createdTime": self.created,
            "configuration": {**self.properties, **vectors},
        }
        return [{"protocol": self._protocol_action()}, {"metaData": metadata}]

    def _protocol_action(self) -> Action:
        has_feed = FEED in self.properties
        feature_uses = {TIMES: '"timestamp_ntz"' in self.schema, VECTORS: self.has_vectors}
        reader_features = [
            name for name, is_needed in feature_uses.items() if is_needed or name in self.features
        ]
        if not reader_features:
            return {"minReaderVersion": 1, "minWriterVersion": 4 if has_feed else 2}
        writer_features = [
            *reader_features,
            *([CHANGE_FEED] if has_feed or CHANGE_FEED in self.features else []),
        ]
        feature_lists = {"readerFeatures": reader_features, "writerFeatures": writer_features}
        return {"minReaderVersion": 3, "minWriterVersion": 7, **feature_lists}


def table_made(
    form: TableForm, files: Iterable[DataFile], notes: Mapping[str, Any]
) -> list[Action]:
    """The actions of a table's first commit."""
    info = _commit_info("CREATE TABLE", {"mode": "ErrorIfExists"}, notes)
    return [info, *form.actions(), *(_add_entry(each) for each in files)]


def table_replaced(
    form: TableForm, add: Iterable[DataFile], remove: Iterable[DataFile], notes: Mapping[str, Any]
) -> list[Action]:
    """The actions of a commit that gives a table another form, and other files."""
    info, *changed = files_changed(add, remove, "Overwrite", notes)
    return [info, *form.actions(), *changed]


def table_altered(
    form: TableForm, add: Iterable[DataFile], remove: Iterable[DataFile], notes: Mapping[str, Any]
) -> list[Action]:
    """The actions of a commit that gives a table other columns: its rows stay."""
    return [
        _commit_info("CHANGE COLUMNS", {}, notes),
        *form.actions(),
        *(_remove_entry(each, data_change=False) for each in remove),
        *(_add_entry(each, data_change=False) for each in add),
    ]


def put_entry(
    base: str, version: int, actions: Sequence[Action], sync: Callable[[str], None]
) -> bytes | None:
    """Write an entry under its name, and return its text; a `FileExistsError` if the name is taken,
    None where the file system has no links. `sync` brings the draft of the entry to the disk, and
    all that it names."""
    text = "\n".join(json.dumps(each, ensure_ascii=False) for each in actions).encode()
    path = entry_path(base, version)
    draft = f"{base}/{LOG}/{new_draft()}"
    try:
        _write(draft, text)
        sync(draft)
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno in _NO_LINKS:
            return None
        with storage_errors(path):
            raise
    finally:
        with suppress(OSError):
            os.unlink(draft)
    return text


def new_draft() -> str:
    """The name of a file in a log that readers pass over, until it gets another one."""
    return f"_commit_{uuid4()}.json.tmp"


def _write(path: str, text: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with open(descriptor, "wb", buffering=0) as file:
        left = memoryview(text)
        while left:
            left = left[file.write(left) :]


def _commit_info(operation: str, parameters: Mapping[str, str], notes: Mapping[str, Any]) -> Action:
    info = {
        "timestamp": _now_milliseconds(),
        "operation": operation,
        "operationParameters": parameters,
    }
    info["engineInfo"] = ENGINE
    return {"commitInfo": info | ({ENGINE: notes} if notes else {})}


def _vector_entry(each: DataFile) -> dict[str, Any]:
    return {} if each.vector is None else {"deletionVector": each.vector.as_json()}


def _add_entry(each: DataFile, data_change: bool = True) -> Action:
    return {
        "add": {
            "path": each.path,
            "partitionValues": {},
            "size": each.size,
            "modificationTime": each.modified,
            "dataChange": data_change,
            "stats": each.stats(),
            **_vector_entry(each),
        }
    }


def _change_file_entry(each: DataFile) -> Action:
    action = {"path": each.path, "partitionValues": {}, "size": each.size, "dataChange": False}
    return {"cdc": action}


def _remove_entry(each: DataFile, data_change: bool = True) -> Action:
    return {
        "remove": {
            "path": each.path,
            "dataChange": data_change,
            "deletionTimestamp": _now_milliseconds(),
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": each.size,
            **_vector_entry(each),
        }
    }


def _now_milliseconds() -> int:
    return int(time.time() * 1000)
