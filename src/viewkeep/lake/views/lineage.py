"""Whether the versions that a view reflects are still the ones that it has seen.

A number and the ID of a table do not tell: a table that was put back from a backup, or that lost
its last log entry, goes on with the same ID and the same numbers, and other rows.
"""

from viewkeep.lake import ViewState
from viewkeep.lake.views.view import View
from viewkeep.tables.log.delta import LakeTable, StorageError


def replaced_history(view: View, state: ViewState) -> str:
    """Why changes since the state cannot be told, so that the view has to be computed anew;
    an error for an input that is another table, or whose version cannot be read any more."""
    for name, since in state.inputs.items():
        reason = _replaced_input(view, state, name, since)
        if reason:
            return reason
    return ""


def _replaced_input(view: View, state: ViewState, name: str, since: int) -> str:
    table = view.sources[name].table
    newest = table.version()
    _check_input_identity(view, state, name, min(since, newest))
    if newest < since:
        return f'"{name}" is at version {newest}, and was seen at {since}: it was put back'
    return _compared_fingerprint(f'"{name}"', table, since, state.fingerprints.get(name, ""))


def _check_input_identity(view: View, state: ViewState, name: str, version: int) -> None:
    try:
        same = view.sources[name].table.identity(version) == state.identities[name]
    except StorageError as error:
        raise StorageError(
            f'"{name}": version {version}, which the view reflects, cannot be read any more '
            f'({error}); repair the view: repair("{view.name}")'
        ) from error
    if not same:
        raise StorageError(
            f'"{name}" was removed and made anew since the view was refreshed; '
            f'repair the view: repair("{view.name}")'
        )


def replaced_cache(view: View, state: ViewState) -> str:
    """Why a cache is not the version that the state names; empty if all are."""
    for cache in view.script.caches if state.caches and view.is_incremental else ():
        since, table = state.caches[cache.name], view.cache_table(cache)
        try:
            if table.version() < since:
                return f"the cache {cache.name} was put back to an older version"
            fingerprint = state.cache_fingerprints.get(cache.name, "")
            reason = _compared_fingerprint(f"the cache {cache.name}", table, since, fingerprint)
        except StorageError as error:
            return f"the cache {cache.name} is gone ({error})"
        if reason:
            return reason
    return ""


def _compared_fingerprint(what: str, table: LakeTable, version: int, fingerprint: str) -> str:
    """States of older releases have no fingerprints: IDs and numbers must do."""
    match table.has_fingerprint(version, fingerprint) if fingerprint else True:
        case True:
            return ""
        case False:
            return f"{what} was put back: its version {version} is another one than was seen"
        case _:
            return f"{what} has lost the log entry of version {version}, which tells what was seen"
