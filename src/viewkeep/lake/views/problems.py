"""Why the last refresh of a view failed, for `status` to tell.

<lake>/_viewkeep/problems/<view>.json    there from a refresh that failed until one that did not
"""

import json
from collections.abc import Iterable
from contextlib import suppress

from viewkeep.lake import RefreshReport
from viewkeep.lake.lake import OWN, Lake
from viewkeep.tables.files.parquet import ParquetFolder
from viewkeep.tables.log.delta import StorageError


def note_problems(lake: Lake, reports: Iterable[RefreshReport]) -> None:
    """Note the errors of a round, and forget those that are over; not worth a failure itself."""
    with suppress(StorageError):
        folder = _problems_folder(lake)
        noted = set(folder.names())
        for each in reports:
            file = f"{each.view}.json"
            if each.error:
                folder.write_text(file, json.dumps({"error": each.error}) + "\n")
            elif file in noted:
                folder.remove_file(file)


def noted_problem(lake: Lake, view: str) -> str:
    """The error of the last refresh, if it failed."""
    with suppress(StorageError, ValueError, KeyError, TypeError):
        folder = _problems_folder(lake)
        if f"{view}.json" in folder.names():
            return str(json.loads(folder.read_text(f"{view}.json"))["error"])
    return ""


def forget_problem(lake: Lake, view: str) -> None:
    """A view that was computed anew, or dropped, has none."""
    with suppress(StorageError):
        folder = _problems_folder(lake)
        if f"{view}.json" in folder.names():
            folder.remove_file(f"{view}.json")


def _problems_folder(lake: Lake) -> ParquetFolder:
    return ParquetFolder(lake.at(f"{lake.uri}/{OWN}/problems"))
