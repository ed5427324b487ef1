"""Which views use the caches that views share, as their states tell; nothing is planned for it."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from viewkeep.lake.catalog import Catalog
from viewkeep.lake.lake import Lake
from viewkeep.lake.views.stored_view import stored_view
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import LakeTable, StorageError

CacheUsers = Mapping[str, Mapping[str, int]]
"""The versions of shared caches that views read: by key of the cache and name of the view."""


def cache_users(lake: Lake, catalog: Catalog) -> CacheUsers | None:
    """The users of all shared caches; None if a view cannot tell what it uses."""
    users: dict[str, dict[str, int]] = {}
    for definition in catalog.views.values():
        try:
            table = lake.at(definition.location)
            if not table.exists():  # it is being made, and finds out what is gone
                continue
            state = stored_view(definition.name, table).state
        except StorageError:
            return None
        for name, key in state.shared_caches.items():
            users.setdefault(key, {})[definition.name] = state.caches[name]
    return users


def remove_unused_caches(lake: Lake, catalog: Catalog, keys: Iterable[str]) -> None:
    """Remove those of some shared caches that no view uses."""
    users = cache_users(lake, catalog)
    for key in keys:
        if users is not None and key not in users:
            ParquetFolder(lake.shared_cache(key)).remove()


def used_caches(view: str, table: LakeTable) -> list[str]:
    """The keys of the shared caches that a view uses, as far as it can tell."""
    with suppress(StorageError):
        if table.exists():
            return list(stored_view(view, table).state.shared_caches.values())
    return []
