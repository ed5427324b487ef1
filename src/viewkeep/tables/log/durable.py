"""Files that are there after a power failure: data first, then the log entry that names it.

deltalake and Arrow leave to the system when files reach the disk. On local file systems Viewkeep
asks for it: data files, their folders and the text of the entry before it has its name, the folder
of the log after it and before anyone is told that the commit has happened.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import lru_cache
from threading import Lock

from viewkeep.tables.failures import StorageError, storage_errors
from viewkeep.tables.file_marks import FileMark, file_mark
from viewkeep.tables.log.entries import LOG, entry_path

THREADS = 8
_ALONE = Lock()
"""Held by the commit whose files are brought to the disk by several threads."""
NEW_LEVELS = 6
"""A new table may have made so many folders, itself and those above it."""


_SETTLED: dict[str, FileMark] = {}
"""The last entry of each table that this process has brought to the disk."""


def local_path(uri: str) -> str | None:
    """The path of a folder on this machine, None elsewhere."""
    if "://" not in uri:
        return uri
    return uri.removeprefix("file://") if uri.startswith("file://") else None


def check_there(paths: Iterable[str]) -> None:
    """Refuse to commit files that something has removed since they were written."""
    for path in paths:
        if not os.path.exists(path):
            raise _missing_file_problem(path)


def sync_data(base: str, paths: Sequence[str], draft: str | None = None) -> None:
    """Bring files to the disk, and the folders that name them, up to the table's own; with them
    the draft of the log entry that will name them."""
    files = dict.fromkeys(paths)
    folders = {base} if files else set()
    for path in files:
        folder = os.path.dirname(path)
        while len(folder) > len(base) and folder.startswith(f"{base}/"):
            folders.add(folder)
            folder = os.path.dirname(folder)
    _sync([*files, *([] if draft is None else [draft])], sorted(folders))


def sync_commit(base: str, version: int, is_written: bool = False) -> None:
    """Bring a log entry to the disk, with the one before it: no entry is there without it. An
    entry that `is_written` was brought to the disk before it got its name, and one that this
    process has settled is there."""
    log, entry, earlier = f"{base}/{LOG}", entry_path(base, version), entry_path(base, version - 1)
    checkpoint = f"{log}/{version:020d}.checkpoint.parquet"
    is_settled = version == 0 or _SETTLED.get(base) == file_mark(earlier)
    places = ([] if is_settled else [earlier]) + ([] if is_written else [entry])
    places += [checkpoint, f"{log}/_last_checkpoint"] if os.path.exists(checkpoint) else []
    _sync([each for each in places if os.path.exists(each)], [log])
    mark = file_mark(entry)
    if mark is not None:
        _SETTLED[base] = mark


def sync_checkpoint(base: str, version: int) -> None:
    """Bring a checkpoint of one file to the disk, with the name of the last one."""
    log = f"{base}/{LOG}"
    places = [f"{log}/{version:020d}.checkpoint.parquet", f"{log}/_last_checkpoint"]
    _sync([each for each in places if os.path.exists(each)], [log])


def sync_new(base: str) -> None:
    """Bring the folder of a new table to the disk, and those above it that may be new."""
    folder = base
    for _ in range(NEW_LEVELS):
        with suppress(StorageError):  # those above may belong to others
            _sync_folder(folder)
        folder = os.path.dirname(folder)


def sync_file(path: str) -> None:
    """Bring a file to the disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError as error:
        raise _missing_file_problem(path) from error
    except OSError as error:
        raise StorageError(f"{path}: {error}") from error
    with storage_errors(path):
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sync_folder(path: str) -> None:
    with storage_errors(path):
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except PermissionError:  # Windows opens no folders
            return
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sync(files: Sequence[str], folders: Sequence[str]) -> None:
    """Files first, since their blocks take longest; several at the same time, since the disk then
    waits for all of them at once. Commits beside each other are several already."""
    work = [(sync_file, each) for each in files] + [(_sync_folder, each) for each in folders]
    if not _ALONE.acquire(blocking=False):
        for sync, path in work:
            sync(path)
        return
    try:
        _sync_at_once(work)
    finally:
        _ALONE.release()


def _sync_at_once(work: Sequence[tuple[Callable[[str], None], str]]) -> None:
    others = [_sync_threads(os.getpid()).submit(sync, path) for sync, path in work[1:]]
    try:
        for sync, path in work[:1]:
            sync(path)
    finally:
        wait(others)
    for each in others:
        each.result()


@lru_cache(1)
def _sync_threads(process: int) -> ThreadPoolExecutor:
    """Threads of this process: a fork has none of them."""
    return ThreadPoolExecutor(THREADS, f"viewkeep sync {process}")


def _missing_file_problem(path: str) -> StorageError:
    return StorageError(
        f"{path} was written for this commit and is gone: something removes files beside "
        "writers; nothing was changed"
    )
