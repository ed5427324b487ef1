"""What the log of a view's table tells: the version that a refresh made, and what it reflects."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from viewkeep.lake import RefreshReport, ViewState
from viewkeep.tables.feed import HARMLESS
from viewkeep.tables.log.delta import LakeTable, MissingEntryError, StorageError
from viewkeep.tables.log.entries import Commit

STATE, REPORT = "state", "report"
"""The notes of a view's commit."""


@dataclass(frozen=True)
class StoredView:
    """A view as it stands: the version that a refresh made, and what its rows reflect.

    `newest` may be later, where others have put files together without changing rows.
    """

    version: int
    newest: int
    state: ViewState
    report: RefreshReport


def stored_view(name: str, table: LakeTable) -> StoredView:
    """The newest version of a view that a refresh made; an error if others have changed rows."""
    newest = table.version()
    try:
        return _stored_view_at(name, table, newest)
    except MissingEntryError as error:
        raise StorageError(
            f'view "{name}": {error}, so that what it reflects is not known any more; '
            f'repair the view: repair("{name}")'
        ) from error


def _stored_view_at(name: str, table: LakeTable, newest: int) -> StoredView:
    for commit in commits(table, newest):
        if commit.notes is not None and STATE in commit.notes:
            state = ViewState.from_notes(commit.notes[STATE])
            about = (commit.notes[REPORT], commit.version, commit.timestamp)
            return StoredView(commit.version, newest, state, RefreshReport.from_notes(*about))
        if commit.operation not in HARMLESS:
            raise StorageError(
                f'view "{name}": version {commit.version} ({commit.operation}) was '
                "written by something else than a refresh; repair the view"
            )
    raise StorageError(f'view "{name}": its table was not made by Viewkeep')


def is_table_of_view(table: LakeTable) -> bool:
    """Whether Viewkeep made a table for a view: its first commit tells, or where that was cleaned
    up any other one."""
    with suppress(MissingEntryError):
        [first] = table.log(-1, 0)
        return STATE in (first.notes or {})
    with suppress(MissingEntryError):
        return any(STATE in (each.notes or {}) for each in commits(table, table.version()))
    return False


def refresh_reports(table: LakeTable) -> Iterator[RefreshReport]:
    """The reports of the refreshes of a view, newest first, as far as its log goes back; it is read
    as far as they are asked for."""
    with suppress(MissingEntryError):  # those before were cleaned up
        for each in commits(table, table.version()):
            if each.notes is not None and REPORT in each.notes:
                yield RefreshReport.from_notes(each.notes[REPORT], each.version, each.timestamp)


def commits(table: LakeTable, newest: int) -> Iterator[Commit]:
    """The commits of a view from a version on, newest first."""
    for version in range(newest, -1, -1):
        yield from table.log(version - 1, version)
