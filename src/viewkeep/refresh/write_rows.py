"""Rows that were computed beside the lake as the next version of a view.

They come without the hidden columns and the caches by which a refresh brings changes in. The state
says so (`WRITTEN`): the next refresh that finds changes computes the view anew, with its caches.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.diffs.passes.identify import ALL
from viewkeep.errors import QueryError
from viewkeep.execute.row_changes import RowChanges
from viewkeep.lake import Pins, RefreshReport, Timer
from viewkeep.lake.views.state import WRITTEN
from viewkeep.lake.views.stored_view import StoredView
from viewkeep.lake.views.view import View
from viewkeep.refresh.write_changes import Outcome, commit_written, write_view
from viewkeep.tables.arrow_rows import arrow_type
from viewkeep.tables.change_data import pair_rows
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import ConflictError, Snapshot
from viewkeep.tables.log.memory import remembered_logs

TRIES = 10
STRATEGY = "live"


def write_live_rows(view: View, rows: Callable[[], pa.Table], inputs: Pins) -> RefreshReport:
    """Commit all rows of a view, which reflect these versions of its tables.

    Nothing is committed if the view reflects them already; an error if it reflects newer ones.
    """
    _check_form(view)
    for _ in range(TRIES):
        with remembered_logs():
            stored = view.stored()
            _check_state(view, stored, inputs)
            if dict(stored.state.inputs) == dict(inputs):
                return _untouched(stored)
            with suppress(ConflictError):  # another process was first: look what it wrote
                return _committed(view, stored, rows(), inputs)
    raise ConflictError(f'view "{view.name}": other processes write it all the time; try again')


def _check_form(view: View) -> None:
    """Refuse views whose tables hold more than their rows."""
    reason = _obstacle(view)
    if reason:
        raise QueryError(f'view "{view.name}" cannot be written by a live view: {reason}')


def _obstacle(view: View) -> str:
    if not view.is_incremental:
        return "it is always computed as a whole; refresh it"
    if view.definition.policy == "strict":
        return "its policy strict allows no later recomputation; refresh it"
    if view.clock_columns:
        return "it reads the clock; refresh it"
    layout = view.layout
    hidden = [each for each in layout.keys if each not in layout.names and each != ALL]
    if hidden:
        return f"its rows are told apart by columns that it does not select ({', '.join(hidden)})"
    if not layout.declared.key:
        return "floats tell its rows apart"
    return ""


def _check_state(view: View, stored: StoredView, inputs: Pins) -> None:
    """Refuse a view that is newer than the rows, or that has the table of another plan."""
    state = stored.state
    if state.build != view.definition.build or state.plan not in (view.plan, WRITTEN):
        raise ConflictError(f'view "{view.name}" has a new definition or plan; refresh it first')
    if state.is_ahead_of(inputs):
        raise ConflictError(
            f'view "{view.name}" reflects newer versions of its tables than the live view; '
            "catch_up(), then write()"
        )


def _untouched(stored: StoredView) -> RefreshReport:
    report = stored.report
    return RefreshReport(
        report.view,
        "none",
        "nothing changed",
        rows=report.rows,
        before=stored.state.inputs,
        after=stored.state.inputs,
        version=stored.newest,
    )


def _committed(view: View, stored: StoredView, rows: pa.Table, inputs: Pins) -> RefreshReport:
    """Write what differs from the stored rows, and commit it with the versions."""
    timer, snapshot = Timer(), view.table.snapshot(stored.newest)
    with timer.phase("compute"):
        changes = _differences(view, snapshot, rows)
    with timer.phase("write"):
        written = write_view(view, snapshot, Outcome({view.script.view.name: changes}))
    report = RefreshReport(
        view.name,
        STRATEGY,
        "written by a live view",
        rows_changed=written.rows_changed,
        rows=rows.num_rows,
        before=stored.state.inputs,
        after=dict(inputs),
        experience=stored.report.experience,
    )
    state = replace(view.state(inputs, inputs, {}), plan=WRITTEN)
    return commit_written(view, stored.newest, written, state, timer.stamp(report))


def _differences(view: View, snapshot: Snapshot, rows: pa.Table) -> RowChanges:
    """The stored rows that are not among the new ones as they are, and the other way round."""
    keys = list(dict.fromkeys(view.layout.keys))
    names = list(dict.fromkeys([*view.layout.names, *keys]))
    fields = [each for each in view.layout.fields if each.name in names]
    old_rows = ParquetFolder(view.table).read(snapshot.files, fields).select(names)
    if ALL in keys:  # such a view has one row
        rows = rows.append_column(ALL, old_rows[ALL])
    pairs = pair_rows(keys, old_rows, rows.select(names).cast(old_rows.schema))
    old = pa.concat_tables([pairs.deletes, pairs.before])
    new = pa.concat_tables([pairs.inserts, pairs.after])
    return RowChanges(_as_stored(view, old), _as_stored(view, new))


def _as_stored(view: View, rows: pa.Table) -> pa.Table:
    """Rows with the columns of the view's script; hidden ones are not known."""
    types = {field.name: arrow_type(field.type) for field in view.layout.stored}
    columns = {
        stored: rows[public] if public in rows.column_names else pa.nulls(len(rows), types[stored])
        for public, stored in view.layout.columns
    }
    return pa.table(columns)
