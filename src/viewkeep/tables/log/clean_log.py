"""Takes entries and checkpoints out of a Delta log that no version needs which can still be read.

The log begins with a checkpoint then: the last one up to the oldest version that is needed. What is
before it goes oldest first, so that a process which dies leaves a log without gaps, and only once
`_last_checkpoint` names a checkpoint that stays: readers of the newest version need nothing else.
"""

import json
import os
import re
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.fs as pafs  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from deltalake import DeltaTable

from viewkeep.tables.failures import StorageError, storage_errors
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import LakeTable
from viewkeep.tables.log.durable import local_path, sync_checkpoint, sync_file
from viewkeep.tables.log.entries import LOG
from viewkeep.tables.log.read_log import file_system
from viewkeep.tables.log.replay import last_checkpoint
from viewkeep.tables.log.write_entry import CHECKPOINTS, DRAFT, new_draft

POINTER = "_last_checkpoint"
_OF_VERSION = re.compile(r"\.?(\d{20})\..+")
"""Entries, checkpoints, and what engines write beside them: checksums, entries put together."""
GONE_FILES = 100
"""With so many removed files in it that are gone, a checkpoint is followed by one without."""


def clean_log(table: LakeTable, needed: int, dry_run: bool = False) -> int:
    """Remove what versions from `needed` on can do without; the number of files (or how many they
    would be)."""
    folder = _log_folder(table)
    start = _first_checkpoint(table, needed, dry_run)
    names = [each for _, each in sorted(_names_before(folder.names(), start))]
    if names and not dry_run:
        _check_start(table, start)
        for each in names:
            folder.remove_file(each)
    return len(names)


def _log_folder(table: LakeTable) -> ParquetFolder:
    return ParquetFolder(LakeTable(f"{table.uri}/{LOG}", table.options))


def _first_checkpoint(table: LakeTable, needed: int, dry_run: bool) -> int:
    """The last checkpoint up to a version, made where none was in time; -1 if there is none."""
    at = _checkpoint_up_to(table, needed)
    if needed - at < CHECKPOINTS or _checkpoint_up_to(table, sys.maxsize) > at:
        return at
    if not dry_run:
        _write_checkpoint(table, needed)
    return needed


def _checkpoint_up_to(table: LakeTable, version: int) -> int:
    return last_checkpoint(*file_system(table), version)[0]


def _names_before(names: Iterable[str], start: int) -> list[tuple[int, str]]:
    """The files of versions before one, with these versions."""
    matches = [(each, _OF_VERSION.fullmatch(each)) for each in names]
    return [(int(match[1]), each) for each, match in matches if match and int(match[1]) < start]


def _check_start(table: LakeTable, start: int) -> None:
    """Make sure that the table can be read from a checkpoint on: it is whole, on the disk, and
    readers are led to it or to a later one."""
    with storage_errors(table.uri):
        DeltaTable(table.uri, start, table.options).protocol()
    named = _named_checkpoint(table)
    if named < start or _checkpoint_up_to(table, named) != named:
        _name_checkpoint(table, start)
    place = local_path(table.uri)
    if place is not None:
        sync_checkpoint(place, start)


def _named_checkpoint(table: LakeTable) -> int:
    """The checkpoint that readers start from; -1 if none is named."""
    with suppress(StorageError, ValueError, KeyError, TypeError):
        return int(json.loads(_log_folder(table).read_text(POINTER))["version"])
    return -1


def _name_checkpoint(table: LakeTable, version: int) -> None:
    """Lead readers to a checkpoint: deltalake does not where it is there already."""
    files, base = file_system(table)
    _, paths = last_checkpoint(files, base, version)
    rows = 0
    for each in paths:
        with storage_errors(each), files.open_input_file(each) as source:
            rows += pq.read_metadata(source).num_rows
    parts = {"parts": len(paths)} if len(paths) > 1 else {}
    _replace_file(table, POINTER, json.dumps({"version": version, "size": rows, **parts}).encode())


def _write_checkpoint(table: LakeTable, version: int) -> None:
    with storage_errors(table.uri):
        DeltaTable(table.uri, version, table.options).create_checkpoint()


def remove_drafts(table: LakeTable, before: float) -> None:
    """Remove drafts of entries that dead processes have left, by a time in milliseconds."""
    folder = _log_folder(table)
    for name, seconds in folder.modified_times().items():
        if DRAFT.fullmatch(name) and seconds * 1000 < before:
            folder.remove_file(name)


def shorten_checkpoint(table: LakeTable, present: Collection[str]) -> None:
    """Write a checkpoint of the newest version without files that were removed and are gone, if
    the last one has many: the next ones are made from it, and Delta would keep a week of them.
    `present` are paths in the folder.

    No checkpoint is ever replaced: who reads one may have read half of it.
    """
    files, base = file_system(table)
    at, paths = last_checkpoint(files, base, sys.maxsize)
    newest = table.version()
    if at == newest or len(paths) != 1 or not paths[0].endswith(".parquet"):
        return
    with storage_errors(paths[0]), files.open_input_file(paths[0]) as source:
        actions = pq.ParquetFile(source).read()
    if sum(_gone_files(actions, present)) >= GONE_FILES:
        actions = _checkpoint_actions(table, paths[0], at, newest)
        gone = pa.array(_gone_files(actions, present), pa.bool_())
        _add_checkpoint(table, newest, actions.filter(pc.invert(gone)))


def _checkpoint_actions(table: LakeTable, path: str, at: int, newest: int) -> pa.Table:
    """The actions of a checkpoint of the newest version, which deltalake makes of a copy of the
    last one and of the entries since."""
    files, base = file_system(table)
    names = [path.rpartition("/")[2], *(f"{each:020d}.json" for each in range(at, newest + 1))]
    with TemporaryDirectory(prefix="viewkeep") as folder:
        copy = Path(folder, LOG)
        copy.mkdir()
        for name in names:
            with (
                storage_errors(f"{base}/{LOG}/{name}"),
                files.open_input_stream(f"{base}/{LOG}/{name}", compression=None) as source,
            ):
                Path(copy, name).write_bytes(source.read())
        with storage_errors(table.uri):
            DeltaTable(folder, newest).create_checkpoint()
            return pq.read_table(copy / f"{newest:020d}.checkpoint.parquet")


def _add_checkpoint(table: LakeTable, version: int, actions: pa.Table) -> None:
    """Add a checkpoint of a version, unless another process has, and lead readers to it."""
    sink = pa.BufferOutputStream()
    pq.write_table(actions, sink)
    name = f"{version:020d}.checkpoint.parquet"
    if _add_file(table, name, sink.getvalue().to_pybytes()):
        _name_checkpoint(table, version)


def _add_file(table: LakeTable, name: str, data: bytes) -> bool:
    """Add a file to a log, whole or not at all; False if it is there."""
    files, base = file_system(table)
    path = f"{base}/{LOG}/{name}"
    if local_path(table.uri) is None:
        if files.get_file_info(path).type is not pafs.FileType.NotFound:
            return False
        _write_file(files, path, data)
        return True
    draft = f"{base}/{LOG}/{new_draft()}"
    _write_file(files, draft, data)
    sync_file(draft)
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        os.remove(draft)
    return True


def _replace_file(table: LakeTable, name: str, data: bytes) -> None:
    """A file of a log with another text; in an object store, every write is at once."""
    files, base = file_system(table)
    is_local = local_path(table.uri) is not None
    draft = f"{base}/{LOG}/{new_draft() if is_local else name}"
    _write_file(files, draft, data)
    if is_local:
        with storage_errors(draft):
            sync_file(draft)
            os.replace(draft, f"{base}/{LOG}/{name}")


def _write_file(files: pafs.FileSystem, path: str, data: bytes) -> None:
    with storage_errors(path), files.open_output_stream(path) as sink:
        sink.write(data)


def _gone_files(actions: pa.Table, present: Collection[str]) -> list[bool]:
    """Which actions of a checkpoint tell of files that were removed and are gone."""
    if "remove" not in actions.column_names:
        return []
    paths = pc.struct_field(actions["remove"], "path").to_pylist()
    return [
        each is not None and _is_inside(each) and unquote(each) not in present for each in paths
    ]


def _is_inside(path: str) -> bool:
    return "://" not in path and not path.startswith("/")
