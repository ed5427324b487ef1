"""The files that a refresh writes: of the caches that change, of the view, and of its changes.

What a script has in memory as a whole and in few rows is written anew: that takes less time than
to bring changes into the files that are there. Of all else only what changes is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.execute.backend import ScriptRun
from viewkeep.execute.budget import check_time
from viewkeep.execute.row_changes import RowChanges
from viewkeep.lake import RefreshReport, ViewState
from viewkeep.lake.views.caches import Cache
from viewkeep.lake.views.stored_view import REPORT, STATE
from viewkeep.lake.views.view import View
from viewkeep.refresh.build_view import cache_target, view_target
from viewkeep.tables.change_data import pair_rows
from viewkeep.tables.feed import fed_notes
from viewkeep.tables.files.key_index import KeyIndex
from viewkeep.tables.files.mark import mark_rows
from viewkeep.tables.files.rewrite import Rewrite, rewrite_files
from viewkeep.tables.log.delta import DataFile, Snapshot
from viewkeep.tables.net_changes import changes_between
from viewkeep.tables.table_changes import TableChanges, rows_schema

SMALL_ROWS = 1000
"""The most rows of a relation that is written as a whole whenever it changes."""


@dataclass
class Outcome:
    """Changed rows (None: too many to hold), and what writes whole relations."""

    rows: dict[str, RowChanges | None] = field(default_factory=dict)
    whole: ScriptRun | None = None
    jobs: int = 0
    accesses: int | None = 0

    def add(self, run: ScriptRun) -> None:
        """Count what a run took."""
        self.jobs += run.jobs
        unknown = self.accesses is None or run.accesses is None
        self.accesses = None if unknown else (self.accesses or 0) + (run.accesses or 0)

    def is_small(self, name: str) -> bool:
        """Whether all rows of a changed relation are in memory, and few."""
        rows = None if self.whole is None else self.whole.held_rows(name)
        return rows is not None and rows <= SMALL_ROWS


@dataclass(frozen=True)
class WrittenView:
    """The files of a view's next version, the notes about its changes, and the files of its change
    data feed."""

    files: Rewrite
    notes: Mapping[str, object] = field(default_factory=dict)
    fed: tuple[DataFile, ...] = ()
    rows_changed: int = 0
    """How many rows were inserted, deleted or updated."""


def write_caches(
    view: View, caches: Mapping[str, Cache], outcome: Outcome
) -> dict[str, list[DataFile]]:
    """The files of the next versions of the caches that change."""
    names = [name for name in caches if name in outcome.rows]
    names = [name for name in names if not _has_no_changes(outcome.rows[name])]
    return {name: _files_of_cache(view, caches[name], outcome) for name in names}


def _has_no_changes(changes: RowChanges | None) -> bool:
    return changes is not None and changes.is_empty


def _files_of_cache(view: View, cache: Cache, outcome: Outcome) -> list[DataFile]:
    check_time()
    name = cache.materialized.name
    rows = outcome.rows[name]
    is_whole = rows is None or cache.is_heavy or outcome.is_small(name)
    if outcome.whole is not None and is_whole:
        target = cache_target(view, cache.materialized, cache.table)
        return outcome.whole.write_whole(name, target)
    assert rows is not None, "scripts that run one by one hold their rows"
    return cache.changed(rows.old_rows, rows.new_rows)


def write_view(view: View, snapshot: Snapshot, outcome: Outcome) -> WrittenView:
    """The new files of the view, and its changes where they are few."""
    declared, changes = view.layout.declared, outcome.rows.get(view.script.view.name)
    if changes is None and view.script.view.name in outcome.rows:
        return WrittenView(_whole_view_files(view, snapshot, outcome))
    if changes is None or changes.is_empty:
        none = TableChanges.none(view.name, declared) if declared.key else None
        return WrittenView(Rewrite(), view.changes_written(none))
    old_rows, new_rows = (
        view.layout.to_public(changes.old_rows),
        view.layout.to_public(changes.new_rows),
    )
    keys = _keys_of_rows(view, old_rows)
    files = _changed_view_files(view, snapshot, outcome, old_rows, new_rows)
    if not files.remove or not view.table.feeds(snapshot):
        notes = view.changes_written(_changes_to_note(view, old_rows, new_rows))
        return WrittenView(files, notes, rows_changed=_count_changed_keys(keys, new_rows))
    pairs = pair_rows(keys.column_names, old_rows, new_rows)
    fed = pairs.write(view.table, snapshot.fields)
    notes = fed_notes(fed, pairs.count) if declared.key else {}
    changed = pairs.count if keys.num_columns else _count_changed_keys(keys, new_rows)
    return WrittenView(files, notes, () if fed is None else (fed,), changed)


def commit_written(
    view: View, newest: int, written: WrittenView, state: ViewState, report: RefreshReport
) -> RefreshReport:
    """Show the next version of a view after `newest`, with what it reflects; the report with its
    number."""
    notes = {STATE: state.notes(), REPORT: report.notes(), **written.notes}
    files = written.files
    version = view.table.commit(newest, files.add, files.remove, notes, written.fed)
    return replace(report, version=version)


def _count_changed_keys(keys: pa.Table, new_rows: pa.Table) -> int:
    """The keys of rows that went or came; without keys, there is one row before and after."""
    if not keys.num_columns:
        return int(max(keys.num_rows, new_rows.num_rows))
    return KeyIndex(pa.concat_tables([keys, new_rows.select(keys.column_names)])).count


def _changed_view_files(
    view: View, snapshot: Snapshot, outcome: Outcome, old_rows: pa.Table, new_rows: pa.Table
) -> Rewrite:
    """The files of the view with the rows that came instead of the old ones."""
    if outcome.is_small(view.script.view.name) and not view.marks_rows:
        return _whole_view_files(view, snapshot, outcome)
    about = (view.lake.scans, view.table, snapshot, _keys_of_rows(view, old_rows), new_rows)
    if view.marks_rows:
        return mark_rows(*about, view.lake.driver_bytes)
    return rewrite_files(*about, view.lake.driver_bytes, old_rows=old_rows)


def _keys_of_rows(view: View, rows: pa.Table) -> pa.Table:
    return rows.select(list(dict.fromkeys(view.layout.keys)))


def _whole_view_files(view: View, snapshot: Snapshot, outcome: Outcome) -> Rewrite:
    assert outcome.whole is not None
    files = outcome.whole.write_whole(view.script.view.name, view_target(view))
    return Rewrite(tuple(files), snapshot.files)


def _changes_to_note(view: View, old_rows: pa.Table, new_rows: pa.Table) -> TableChanges | None:
    declared = view.layout.declared
    if not declared.key:
        return None
    names = list(declared.names)
    schema = rows_schema(declared)
    old, new = old_rows.select(names).cast(schema), new_rows.select(names).cast(schema)
    return changes_between(view.name, declared, old, new)
