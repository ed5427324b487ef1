"""Versions of a view's caches: those that its state names, and the next ones.

A cache that views share is written by one of them; the others find its version by the versions of
the tables that it is made from.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from viewkeep.diffs.script import Materialized
from viewkeep.lake.views.caches import Cache
from viewkeep.lake.views.shared_caches import INPUTS, SharedForm, find_version, writer_of
from viewkeep.lake.views.state import Pins, ViewState
from viewkeep.lake.views.view import View
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import ConflictError, DataFile, LakeTable, StorageError

TRIES = 20


def open_caches(view: View, state: ViewState) -> dict[str, Cache]:
    """The caches at the versions that a state names; none, if they were left out."""
    caches = {}
    for cache in view.script.caches if state.caches and view.is_incremental else ():
        table = view.cache_table(cache)
        try:
            snapshot = table.snapshot(state.caches[cache.name])
        except StorageError as error:
            raise StorageError(f"a cache is gone ({error}); repair the view") from error
        caches[cache.name] = Cache(cache, table, snapshot, view.cache_names(cache))
    return caches


@dataclass(frozen=True)
class CacheDescription:
    """A cache of a view: the rows and bytes that it has now, the IDs of its rows, and what it is
    for."""

    name: str
    rows: int
    size: int
    ids: tuple[str, ...]
    why: str


def describe_caches(view: View) -> list[CacheDescription]:
    """The caches of a view as they are now."""
    return [
        CacheDescription(
            name,
            each.snapshot.rows,
            each.snapshot.size,
            each.materialized.ids,
            each.materialized.why,
        )
        for name, each in open_caches(view, view.stored().state).items()
    ]


def shared_version(view: View, cache: Materialized, inputs: Pins, since: int = -1) -> int | None:
    """A version of a cache after one, for these versions of its inputs, if a view has written
    one."""
    form = view.shared_forms.get(cache.name)
    if form is None:
        return None
    return find_version(view.cache_table(cache), _input_versions(view, form, inputs), since)


def shared_versions(view: View, caches: Iterable[Cache], inputs: Pins) -> dict[str, int]:
    """The next versions of those caches that other views have written already."""
    versions = {each.materialized.name: _next_shared_version(view, each, inputs) for each in caches}
    return {name: version for name, version in versions.items() if version is not None}


def caches_over(view: View, caches: Iterable[Cache], inputs: Iterable[str]) -> Iterator[Cache]:
    """The caches that views share and that are made from one of these inputs."""
    names = frozenset(inputs)
    for cache in caches:
        form = view.shared_forms.get(cache.materialized.name)
        if form is not None and not form.inputs.isdisjoint(names):
            yield cache


def _next_shared_version(view: View, cache: Cache, inputs: Pins) -> int | None:
    return shared_version(view, cache.materialized, inputs, cache.snapshot.version)


def write_next_version(view: View, cache: Cache, files: list[DataFile], inputs: Pins) -> int:
    """The next version of a cache: the one that another view has written, or a new one."""
    with writer_of(cache.table.uri):
        version = _next_shared_version(view, cache, inputs)
        if version is None:
            return replace_cache(view, cache.materialized, cache.table, files, inputs)
    old = cache.snapshot.identities
    ParquetFolder(cache.table).remove_paths(f.path for f in files if f.identity not in old)
    return version


def _input_versions(view: View, form: SharedForm, inputs: Pins) -> dict[str, list[Any]]:
    """The versions of the inputs of a cache, and what tells them from others of the number."""
    return {
        name: [inputs[name], view.sources[name].table.fingerprint(inputs[name])]
        for name in sorted(form.inputs)
    }


def replace_cache(
    view: View, cache: Materialized, table: LakeTable, files: list[DataFile], inputs: Pins
) -> int:
    """A cache of exactly these files, as its next version, made for these inputs."""
    notes: dict[str, Any] = {"view": view.name, "cache": cache.name}
    form = view.shared_forms.get(cache.name)
    if form is None:
        return _write_cache_version(view, cache, table, files, notes)
    notes[INPUTS] = _input_versions(view, form, inputs)
    for _ in range(TRIES):
        with suppress(ConflictError):  # another view has written it
            return _write_cache_version(view, cache, table, files, notes)
    raise ConflictError(f"{table.uri}: too many processes write this cache; try again")


def _write_cache_version(
    view: View, cache: Materialized, table: LakeTable, files: list[DataFile], notes: dict[str, Any]
) -> int:
    if table.exists():
        return table.become(files, notes)
    fields = Cache.fields(cache, view.cache_names(cache))
    table.create(fields, files, notes, f'Cache of the view "{view.name}"')
    return 0
