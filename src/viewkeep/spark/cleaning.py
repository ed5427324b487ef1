"""Removes files that no version needs any more, without taking away what views still have to read.

A view that is behind reads its tables as they were, and a cache counts at the version that its
view names: the files of these versions stay, however old they are.
"""

from collections.abc import Callable, Iterable

from deltalake import DeltaTable

from viewkeep.spark.catalog import Catalog, ViewDefinition
from viewkeep.spark.delta import LakeTable, told
from viewkeep.spark.lake import Lake
from viewkeep.spark.views import View


def clean(
    lake: Lake, plan: Callable[[ViewDefinition, Catalog], View], hours: float, dry_run: bool
) -> dict[str, int]:
    """How many files were removed (or would be) in each table, view and cache."""
    catalog = lake.catalog.read()
    views = [plan(each, catalog) for each in catalog.order()]
    states = {view.name: view.found() for view in views}
    needed: dict[str, set[int]] = {name: {found.version} for name, found in states.items()}
    for found in states.values():
        for name, version in found.state.inputs.items():
            needed.setdefault(name, set()).add(version)
    places = {n: lake.at(t.location) for n, t in catalog.tables.items() if t.owned}
    places |= {view.name: view.table for view in views}
    for view in views:
        for name, cache in view.caches(states[view.name].state).items():
            places[f"{view.name}/{name}"] = cache.table
            needed[f"{view.name}/{name}"] = {cache.snapshot.version}
    return {
        name: _vacuum(table, hours, dry_run, needed.get(name, ())) for name, table in places.items()
    }


def _vacuum(table: LakeTable, hours: float, dry_run: bool, needed: Iterable[int]) -> int:
    with told(table.uri):
        found = DeltaTable(table.uri, storage_options=table.options).vacuum(
            retention_hours=round(hours),
            dry_run=dry_run,
            enforce_retention_duration=False,
            full=True,
            keep_versions=sorted(needed),
        )
    return len(found)
