"""The errors of storage, and how those of deltalake, Arrow and the system become them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from viewkeep.errors import ViewkeepError, without_colours
from viewkeep.tables.secrets import without_credentials


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
        _hide_credentials(error)
        raise ConflictError(f"{place}: another process committed first") from error
    except TableNotFoundError as error:
        raise StorageError(f"{place}: there is no Delta table") from error
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise StorageError(f"{place}: {error_text(error)}") from error


def error_text(error: Exception) -> str:
    """The message of an error in one line, without the stack of the library behind it, and without
    credentials, which the error itself has no more either: tracebacks show it."""
    _hide_credentials(error)
    lines = without_colours(str(error).partition("\n   0: ")[0]).splitlines()
    return " ".join(filter(None, map(str.strip, lines)))


def _hide_credentials(error: Exception) -> None:
    if any(isinstance(each, str) and without_credentials(each) != each for each in error.args):
        error.args = tuple(
            without_credentials(each) if isinstance(each, str) else each for each in error.args
        )
