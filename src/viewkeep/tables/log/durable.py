"""Files that are there after a power failure: data first, then the log entry that names it.

deltalake and Arrow leave to the system when files reach the disk. On local file systems Viewkeep
asks for it: data files and their folders before the commit, the entry and its folder after it and
before anyone is told that the commit has happened.
"""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from viewkeep.tables.failures import StorageError, storage_errors
from viewkeep.tables.log.entries import LOG, entry_path

THREADS = 8
NEW_LEVELS = 6
"""A new table may have made so many folders, itself and those above it."""


def local_path(uri: str) -> str | None:
    """The path of a folder on this machine, None elsewhere."""
    if "://" not in uri:
        return uri
    return uri.removeprefix("file://") if uri.startswith("file://") else None


def check_there(paths: Iterable[str]) -> None:
    """Refuse to commit files that something has removed since they were written."""
    for path in paths:
        if not os.path.exists(path):
            raise _missing_file(path)


def sync_data(base: str, paths: Sequence[str]) -> None:
    """Bring files to the disk, and the folders that name them, up to the table's own."""
    own = [each for each in paths if each.startswith(f"{base}/")]
    folders = {base}
    for path in own:
        folder = os.path.dirname(path)
        while len(folder) > len(base):
            folders.add(folder)
            folder = os.path.dirname(folder)
    _sync(list(dict.fromkeys(paths)), sorted(folders))


def sync_commit(base: str, version: int, is_written: bool = False) -> None:
    """Bring a log entry to the disk, with the one before it: no entry is there without it. An
    entry that `is_written` was brought to the disk before it got its name."""
    log = f"{base}/{LOG}"
    checkpoint = f"{log}/{version:020d}.checkpoint.parquet"
    pending = [version - 1] if is_written else [version - 1, version]
    places = [entry_path(base, each) for each in pending if each >= 0]
    places += [checkpoint, f"{log}/_last_checkpoint"] if os.path.exists(checkpoint) else []
    _sync([each for each in places if os.path.exists(each)], [log])


def sync_new(base: str) -> None:
    """Bring the folder of a new table to the disk, and those above it that may be new."""
    folder = base
    for _ in range(NEW_LEVELS):
        with suppress(StorageError):  # those above may belong to others
            _sync_folder(folder)
        folder = os.path.dirname(folder)


def _sync_file(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError as error:
        raise _missing_file(path) from error
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
    """Files first, since their blocks take longest; many of them at the same time."""
    work = [(_sync_file, each) for each in files] + [(_sync_folder, each) for each in folders]
    if len(work) <= THREADS:
        for sync, path in work:
            sync(path)
        return
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda each: each[0](each[1]), work))


def _missing_file(path: str) -> StorageError:
    return StorageError(
        f"{path} was written for this commit and is gone: something removes files beside "
        "writers; nothing was changed"
    )
