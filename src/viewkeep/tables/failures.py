"""The errors of storage, and how those of deltalake, Arrow and the system become them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from viewkeep.errors import ViewkeepError, without_colours


class StorageError(ViewkeepError):
    """A table that cannot be read or written; what was committed before is still there."""


class ConflictError(StorageError):
    """Another process committed first; nothing was changed."""


class UnsupportedTableError(StorageError):
    """A table that uses something of Delta which cannot be read correctly here."""


class DamagedLogError(StorageError):
    """A log entry that is there and cannot be believed."""


class MissingEntryError(StorageError):
    """A log entry that is not there: it was cleaned up."""


@contextmanager
def storage_errors(place: str) -> Iterator[None]:
    """Raise errors of deltalake, Arrow and the system as a `StorageError` that names the place."""
    try:
        yield
    except CommitFailedError as error:
        raise ConflictError(f"{place}: another process committed first") from error
    except TableNotFoundError as error:
        raise StorageError(f"{place}: there is no Delta table") from error
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise StorageError(f"{place}: {error_text(error)}") from error


def error_text(error: Exception) -> str:
    """The message of an error in one line, without the stack of the library behind it."""
    lines = without_colours(str(error).partition("\n   0: ")[0]).splitlines()
    return " ".join(filter(None, map(str.strip, lines)))
