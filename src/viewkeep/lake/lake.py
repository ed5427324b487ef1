"""A lake: a folder of Delta tables.

<lake>/<table>                                   tables that Viewkeep owns
<lake>/<view>                                    views, plain tables for every reader
<lake>/_viewkeep/catalog, catalog.json           the definitions
<lake>/_viewkeep/caches/<view>/<build>/<cache>   what scripts keep besides the views
<lake>/_viewkeep/shared_caches/<key>             the same, where several views may use it
<lake>/_viewkeep/live/<view>                     the state of a live view
"""

import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from viewkeep.errors import SchemaError
from viewkeep.lake.catalog import CatalogError
from viewkeep.lake.catalog_store import CatalogStore
from viewkeep.lake.lease import FOLDER as LEASES
from viewkeep.lake.lease import Lease, StoreLease
from viewkeep.lake.marks import FOLDER as MARKS
from viewkeep.lake.marks import earliest, earliest_in_store, marked_block, marked_in_store
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.files.rewrite import DRIVER_BYTES
from viewkeep.tables.files.scans import Scans
from viewkeep.tables.log.delta import LakeTable, StorageError
from viewkeep.tables.log.durable import local_path
from viewkeep.tables.log.memory import log_memory
from viewkeep.tables.open_table import open_table
from viewkeep.tables.places import check_inside
from viewkeep.tables.secrets import has_credentials

OWN = "_viewkeep"
_NOT_IN_PATHS = frozenset("%?#^|[]\\")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")


@dataclass(frozen=True)
class Lake:
    """Where tables are, and how they are reached."""

    uri: str
    scans: Scans
    """The engine that reads and writes files that are too large for the driver's memory."""
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Credentials among them: they are not shown."""
    driver_bytes: int = DRIVER_BYTES
    is_durable: bool = True

    @property
    def catalog(self) -> CatalogStore:
        """Where the definitions are kept."""
        return CatalogStore(self.at(f"{self.uri}/{OWN}/catalog"), self.uri)

    def at(self, uri: str) -> LakeTable:
        """The table at a URI; inside the lake, a link that leads out of it is refused."""
        memory, key = log_memory(), ("inside", uri, None)
        if memory is None or key not in memory:
            check_inside(self.uri, uri)
        if memory is not None:
            memory[key] = True
        return open_table(uri, self.options, self.is_durable)

    def place(self, name: str) -> str:
        """The folder of a table or view; names are plain, since they become parts of paths."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise SchemaError(
                f'"{name}" is not a name: give a letter from a to z, then such letters, digits '
                "and underscores"
            )
        return f"{self.uri}/{name}"

    def cache(self, view: str, build: str, name: str) -> LakeTable:
        """The table of a cache."""
        safe = re.sub(r"[^A-Za-z0-9_]", "_", name)
        return self.at(f"{self.uri}/{OWN}/caches/{view}/{build}/{safe}")

    def shared_cache(self, key: str) -> LakeTable:
        """The table of a cache that several views may use."""
        return self.at(f"{self.uri}/{OWN}/shared_caches/{key}")

    def shared_caches(self) -> list[str]:
        """The keys of all such caches."""
        return ParquetFolder(self.at(f"{self.uri}/{OWN}/shared_caches")).folders()

    @staticmethod
    def live_folder(view: str) -> str:
        """Where the state of a live view is kept, in the lake."""
        return f"{OWN}/live/{view}"

    def remove_view(self, name: str, location: str) -> None:
        """Remove the files of a view, of its caches and of its live state."""
        beside = (f"{OWN}/caches/{name}", self.live_folder(name))
        for place in (location, *(f"{self.uri}/{each}" for each in beside)):
            ParquetFolder(self.at(place)).remove()

    def remove_damaged(self, location: str) -> None:
        """Remove a table whose log cannot be read or written, so that it can be made anew."""
        table = self.at(location)
        try:
            if not table.exists():
                return
            table.snapshot()
            is_damaged = not table.is_writable()
        except StorageError:
            is_damaged = True
        if is_damaged:
            ParquetFolder(table).remove()

    def marked(self) -> AbstractContextManager[None]:
        """A block that reads versions of tables, which `vacuum` then leaves alone."""
        place = local_path(self.uri)
        return marked_block(place) if place is not None else marked_in_store(self._marks())

    def earliest_mark(self, now: float) -> float:
        """When the oldest such block began that still runs, in seconds; `now` if there is none."""
        place = local_path(self.uri)
        return earliest(place, now) if place is not None else earliest_in_store(self._marks(), now)

    def lease(self, work: str) -> Lease | StoreLease:
        """The right to do a work, which one process of several has."""
        place = local_path(self.uri)
        if place is not None:
            return Lease(place, work)
        return StoreLease(ParquetFolder(self.at(f"{self.uri}/{LEASES}")), work)

    def _marks(self) -> ParquetFolder:
        return ParquetFolder(self.at(f"{self.uri}/{MARKS}"))


def open_lake(lake: Lake, create: bool) -> Lake:
    """The lake, made where there is none if `create` is true."""
    if not lake.catalog.exists():
        if not create:
            raise CatalogError(f"there is no lake in {lake.uri}; `viewkeep init` makes one")
        lake.catalog.create()
    return lake


def lake_location(uri: str | os.PathLike[str]) -> str:
    """A folder as an absolute path, or a URI as it is."""
    text = os.fspath(uri)
    if not text.strip():
        raise StorageError('an empty path is no folder; "." is the current one')
    text = text.rstrip("/") or "/"
    if has_credentials(text):
        raise StorageError(
            "the URI has credentials in it, and a lake keeps the URIs of its tables; give them as "
            "storage_options or in the environment"
        )
    if "://" in text:
        return text
    text = str(Path(text).expanduser().absolute())
    bad = sorted(set(text) & _NOT_IN_PATHS)
    if bad:
        raise StorageError(
            f"{text}: deltalake cannot read folders with {' '.join(bad)} in their path; "
            "choose another one"
        )
    return text
