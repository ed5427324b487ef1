"""Removes files and log entries that no version needs any more, without taking away what views
still have to read.

A view that is behind reads its tables as they were, and a cache counts at the version that its
view names: the files of these versions stay, however old they are, and the changes that were made
since. The same holds for kept states of live views. So do files that no entry of the log names
and that are not old: somebody may be about to commit them. The order makes it safe
beside writers and refreshes: files are listed first, then the logs are read, then what runs and
what views reflect; what comes later is in none of the lists. Logs are cleaned last: the files that
an entry names are gone before it. The definitions and the decisions about transactions are tables
as well; decisions go only once the versions that are settled without them are stored.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import unquote

from viewkeep.errors import ArgumentError, ViewkeepError
from viewkeep.lake.catalog import Catalog, TableDefinition, ViewDefinition
from viewkeep.lake.intake import Intake, has_sources
from viewkeep.lake.lake import OWN, Lake
from viewkeep.lake.live_states import versions_kept
from viewkeep.lake.transactions import Transactions, decisions_table
from viewkeep.lake.views.cache_users import cache_users
from viewkeep.lake.views.stored_view import stored_view
from viewkeep.lake.views.view import View
from viewkeep.tables.change_data import FOLDER as FED
from viewkeep.tables.feed import FOLDER as NOTED
from viewkeep.tables.feed import change_file
from viewkeep.tables.files.parquet import ListedFile, ParquetFolder
from viewkeep.tables.log.clean_log import clean_log, remove_drafts, shorten_checkpoint
from viewkeep.tables.log.delta import LakeTable, MissingEntryError, Snapshot, StorageError
from viewkeep.tables.log.entries import Commit

MOST_HOURS = 10_000_000
"""More than a thousand years."""
FLOOR_HOURS = 24
"""Less is kept only by force: a reader or a refresh may take long."""
UNCOMMITTED_HOURS = 24
"""Younger files that no log entry names are never removed: a writer may be about to commit them."""
_HOUR = 3_600_000
DEFINITIONS, DECISIONS = f"{OWN}/catalog", f"{OWN}/transactions"
"""What the lake's own tables are called; they are told of only where something goes."""
_CLOCKS = 60_000
"""Milliseconds by which clocks may differ."""

Plan = Callable[[ViewDefinition, Catalog], View]


def clean(lake: Lake, plan: Plan, hours: float, dry_run: bool, force: bool) -> dict[str, int]:
    """How many files were removed (or would be) in each table, view and cache, those of its log
    among them; what cannot be read is left alone."""
    check_hours(hours, force)
    now = int(time.time() * 1000)
    decided = Transactions(lake).decided()  # before the tables are: others may have later ones
    catalog = lake.catalog.read()
    beside = _beside_tables(lake, catalog)
    unsettled = [] if dry_run else _settle_transactions(lake, (*catalog.tables.values(), *beside))
    places = _places(lake, catalog, _views(catalog, plan))
    places |= {each.name: lake.at(each.location) for each in beside}
    shared = {key: lake.shared_cache(key) for key in lake.shared_caches()}
    places |= {_label(key): table for key, table in shared.items()}
    places |= {DEFINITIONS: lake.at(f"{lake.uri}/{DEFINITIONS}")}
    places |= {DECISIONS: decisions_table(lake)} if decided >= 0 else {}
    files_by_name = dict(_files_of_tables(places))
    oldest_reader = lake.earliest_mark(now / 1000) * 1000
    cutoff = min(now - hours * _HOUR, oldest_reader - _CLOCKS if oldest_reader < now else now)
    versions_read = _versions_read(lake, catalog) | {each.name: set() for each in beside}
    versions_read |= {DEFINITIONS: set(), DECISIONS: {decided}}
    users = cache_users(lake, lake.catalog.read())
    if users is not None:
        versions_read |= {_label(key): set(users.get(key, {}).values()) for key in shared}
    unneeded = {
        name: each.unneeded(cutoff, now, versions_read[name])
        for name, each in files_by_name.items()
        if name in versions_read
    }
    unused = [key for key in shared if users is not None and key not in users]
    unused_caches = [
        _label(key) for key in unused if files_by_name[_label(key)].is_old(cutoff, now)
    ]
    unneeded |= {name: _Unneeded(list(files_by_name[name].files)) for name in unused_caches}
    if not dry_run:
        for name, each in unneeded.items():
            ParquetFolder(files_by_name[name].table).remove_files(each.files)
        for name in unused_caches:
            ParquetFolder(files_by_name[name].table).remove()
    kept_logs = {*unused_caches, *unsettled, *_with_other_columns(catalog, files_by_name)}
    if not dry_run and DECISIONS in unneeded:
        is_old = files_by_name[DECISIONS].clean_log(unneeded[DECISIONS], now, dry_run=True)
        kept_logs |= {DECISIONS} if is_old and not _store_settled(lake, catalog) else set()
    counts = {
        name: len(each.files)
        + (0 if name in kept_logs else files_by_name[name].clean_log(each, now, dry_run))
        for name, each in unneeded.items()
    }
    return {n: count for n, count in counts.items() if count or n not in (DEFINITIONS, DECISIONS)}


def _store_settled(lake: Lake, catalog: Catalog) -> bool:
    """Store up to which versions tables are settled; False if one of them cannot be read."""
    owned = [each for each in catalog.tables.values() if each.owned]
    try:
        beside = [
            one
            for each in owned
            if has_sources(lake, each.name)
            for one in Intake(lake, each).all_tables
        ]
        tables = [each for each in (*owned, *beside) if lake.at(each.location).exists()]
        return Transactions(lake).store_settled(tables)
    except StorageError:
        return False


def _with_other_columns(catalog: Catalog, files: Mapping[str, "_TableFiles"]) -> list[str]:
    """The tables whose columns are not the declared ones yet: the log tells the definition."""
    tables = [(name, each.table) for name, each in catalog.tables.items() if name in files]
    columns = [
        (name, [[(f.name, f.type) for f in fields] for fields in (table.columns, newest.fields)])
        for name, table in tables
        for newest in (files[name].newest,)
    ]
    return [name for name, (declared, there) in columns if declared != there]


def _label(key: str) -> str:
    """What a shared cache is called."""
    return f"shared cache {key[:8]}"


def _beside_tables(lake: Lake, catalog: Catalog) -> list[TableDefinition]:
    """The tables of intakes (files, quarantine, positions) of all base tables."""
    beside = []
    for each in catalog.tables.values():
        with suppress(StorageError):
            if each.owned and has_sources(lake, each.name):
                intake = Intake(lake, each)
                beside += [one for one in intake.all_tables if intake.exists(one)]
    return beside


def _settle_transactions(lake: Lake, tables: Iterable[TableDefinition]) -> list[str]:
    """Undo transactions of dead processes, which needs files of old versions; the tables where
    that could not be done."""
    transactions, unsettled = Transactions(lake), []
    for each in tables:
        try:
            if each.owned:
                transactions.settle(each, lake.at(each.location))
        except StorageError:
            unsettled.append(each.name)
    return unsettled


def check_hours(hours: float, force: bool) -> None:
    """Refuse hours out of range and, without `force`, fewer than are safe beside writers."""
    if not 0 <= hours <= MOST_HOURS:
        raise ArgumentError(f"hours={hours}: expected a number from 0 to {MOST_HOURS}")
    if hours < FLOOR_HOURS and not force:
        raise ArgumentError(
            f"hours={hours:g}: fewer than {FLOOR_HOURS} are not safe: readers and other programs "
            "may still need the files; force it (force=True, --force) if nothing else runs"
        )


def _views(catalog: Catalog, plan: Plan) -> list[View]:
    """The views that can be planned."""
    views = []
    for each in catalog.order():
        with suppress(ViewkeepError):
            views.append(plan(each, catalog))
    return views


def _places(lake: Lake, catalog: Catalog, views: Iterable[View]) -> dict[str, LakeTable]:
    places: dict[str, LakeTable] = {}
    for name, table in catalog.tables.items():
        with suppress(StorageError):
            places |= {name: lake.at(table.location)} if table.owned else {}
    for view in views:
        with suppress(ViewkeepError):
            places[view.name] = view.table
            for kept in view.script.caches if view.is_incremental else ():
                if kept.name not in view.shared_forms:
                    places[f"{view.name}/{kept.name}"] = view.cache_table(kept)
    return places


def _versions_read(lake: Lake, catalog: Catalog) -> dict[str, set[int]]:
    """The versions that views and live views read, of everything that can be cleaned; also views
    that cannot be planned."""
    versions_read: dict[str, set[int]] = {
        n: set() for n, table in catalog.tables.items() if table.owned
    }
    inputs = versions_kept(lake, catalog)
    for view in catalog.views.values():
        with suppress(ViewkeepError):
            stored = stored_view(view.name, lake.at(view.location))
            versions_read[view.name] = {stored.version}
            versions_read |= {f"{view.name}/{n}": {v} for n, v in stored.state.caches.items()}
            inputs += stored.state.inputs.items()
    for name, version in inputs:
        if name in versions_read:
            versions_read[name].add(version)
    return versions_read


@dataclass(frozen=True)
class _Unneeded:
    """Files of a table that can go, and the log before its oldest version that is needed."""

    files: list[ListedFile]
    oldest_version: int = 0


@dataclass(frozen=True)
class _TableFiles:
    """The files in a table's folder, and then the newest version, in this order."""

    table: LakeTable
    files: Sequence[ListedFile]
    change_files: Sequence[ListedFile]
    newest: Snapshot

    def unneeded(self, cutoff: float, now: int, versions_read: Iterable[int]) -> "_Unneeded":
        """The files that were not current since the cutoff, are not needed, and are not new; the
        versions that were, or that views read, need their log."""
        young, versions_read = now - UNCOMMITTED_HOURS * _HOUR, set(versions_read)
        oldest_read = min(versions_read, default=self.newest.version)
        commits = list(self._commits(min(cutoff, young - _CLOCKS), oldest_read))
        live_paths = _paths(self.newest)
        live_paths |= {
            path for each in commits if each.timestamp >= cutoff for path in each.removed
        }
        needed = [max(self.newest.version - 1, 0)]  # a transaction may be taken back to it
        needed += [max(each.version - 1, 0) for each in commits if each.timestamp >= cutoff]
        for version in versions_read:
            with suppress(StorageError):  # a version that is gone needs nothing
                live_paths |= _paths(self.table.snapshot(version))
                needed.append(version)
        logged = {path for each in commits for path in (*each.added, *each.removed)}
        live_paths, logged = set(map(unquote, live_paths)), set(map(unquote, logged))
        unused = [
            each
            for each in self.files
            if each.path not in live_paths and (each.modified < young or each.path in logged)
        ]
        files = unused + self._old_changes(commits, cutoff, young, oldest_read)
        return _Unneeded(files, min(needed))

    def clean_log(self, unneeded: "_Unneeded", now: int, dry_run: bool) -> int:
        """Remove what is before the oldest version that is needed; the number of files."""
        removed_paths = {each.path for each in unneeded.files}
        present = {each.path for each in self.files} - removed_paths
        with suppress(StorageError):
            count = clean_log(self.table, unneeded.oldest_version, dry_run)
            if not dry_run:
                shorten_checkpoint(self.table, present)
                remove_drafts(self.table, now - UNCOMMITTED_HOURS * _HOUR)
            return count
        return 0

    def is_old(self, cutoff: float, now: int) -> bool:
        """Whether it was written last before the cutoff, and not a short time ago."""
        [commit] = self.table.log(self.newest.version - 1, self.newest.version)
        return 0 < commit.timestamp < min(cutoff, now - UNCOMMITTED_HOURS * _HOUR)

    def _old_changes(
        self, commits: Sequence[Commit], cutoff: float, young: float, oldest_read: int
    ) -> list[ListedFile]:
        """The files of changes that were committed before the cutoff, and that no view which is
        behind still has to read: all reflect `oldest_read` or a later version. The last one of
        Viewkeep's own stays: if its transaction is open, it may be taken back."""
        commits_by_path = {path: each for each in commits for path in each.fed}
        noted = {path: each for each in commits if (path := change_file(each)) is not None}
        commits_by_path |= noted
        last = next(iter(noted), None)
        return [
            file
            for file in self.change_files
            if file.path != last
            and (
                commits_by_path[file.path].timestamp < cutoff
                and commits_by_path[file.path].version <= oldest_read
                if file.path in commits_by_path
                else file.modified < young
            )
        ]

    def _commits(self, since: float, oldest_read: int) -> Iterator[Commit]:
        """Newest first, back to a time and to the oldest version that is read; without a time, a
        commit counts as new."""
        for version in range(self.newest.version, -1, -1):
            try:
                (commit,) = self.table.log(version - 1, version)
            except MissingEntryError:
                return
            yield commit if commit.timestamp else replace(commit, timestamp=sys.maxsize)
            if 0 < commit.timestamp < since and version <= oldest_read:
                return


def _files_of_tables(places: Mapping[str, LakeTable]) -> Iterator[tuple[str, _TableFiles]]:
    for name, table in places.items():
        with suppress(StorageError):
            folder = ParquetFolder(table)
            change_files = [*folder.listed(f"{FED}/"), *folder.listed(f"{NOTED}/")]
            yield name, _TableFiles(table, folder.listed(), change_files, table.snapshot())


def _paths(snapshot: Snapshot) -> set[str]:
    """The files of a version, and those of its deletion vectors."""
    vectors = [each.vector.path for each in snapshot.files if each.vector is not None]
    return {*(each.path for each in snapshot.files), *filter(None, vectors)}
