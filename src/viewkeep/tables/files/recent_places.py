"""Where rows are that this process has looked up by key: who changes them need not look again."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.tables.files.key_index import KeyIndex
from viewkeep.tables.files.scans import FILE, ROW
from viewkeep.tables.relations import StoredRows


@dataclass(frozen=True)
class _LookUp:
    """Keys that were looked up in files, and the rows that have one, by `FILE` and `ROW`."""

    paths: tuple[str, ...]
    keys: pa.Table
    found: pa.Table


class RecentPlaces:
    """The last look-up in each of some versions of tables; the oldest ones are forgotten."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._look_ups: OrderedDict[tuple[str, int], _LookUp] = OrderedDict()

    def add(self, rows: StoredRows, keys: pa.Table, found: pa.Table) -> None:
        """Remember all rows of a version that have one of the keys, named as they are stored."""
        paths = tuple(each.path for each in rows.files)
        with self._lock:
            self._look_ups[rows.table.uri, rows.snapshot.version] = _LookUp(paths, keys, found)
            while len(self._look_ups) > self._most:
                self._look_ups.popitem(last=False)

    def get(self, rows: StoredRows, keys: pa.Table) -> pa.Table | None:
        """The places of rows with one of the keys, as `Scans.row_places` gives them; None if not
        all of the keys were looked up."""
        known = self._look_ups.get((rows.table.uri, rows.snapshot.version))
        if known is None or set(known.keys.column_names) != set(keys.column_names):
            return None
        if {each.path for each in rows.snapshot.files} != set(known.paths):  # another table there
            return None
        if (KeyIndex(known.keys).places(keys) < 0).any():
            return None
        numbers = {each.path: number for number, each in enumerate(rows.files)}
        renumbered = np.array([numbers.get(path, -1) for path in known.paths], np.int64)
        found = known.found.filter(pa.array(KeyIndex(keys).places(known.found) >= 0))
        files = renumbered[found[FILE].to_numpy()]
        return None if (files < 0).any() else pa.table({FILE: files, ROW: found[ROW]})


RECENT_PLACES = RecentPlaces(16)
