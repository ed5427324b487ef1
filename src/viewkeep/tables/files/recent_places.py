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
    places_of_keys: pa.Table


class RecentPlaces:
    """The last look-up in each of some versions of tables; the oldest ones are forgotten."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._look_ups: OrderedDict[tuple[str, int], _LookUp] = OrderedDict()

    def add(self, rows: StoredRows, keys: pa.Table, places: pa.Table) -> None:
        """Remember all rows of a version that have one of the keys, named as they are stored."""
        paths = tuple(each.path for each in rows.files)
        with self._lock:
            self._look_ups[rows.table.uri, rows.snapshot.version] = _LookUp(paths, keys, places)
            while len(self._look_ups) > self._most:
                self._look_ups.popitem(last=False)

    def get(self, rows: StoredRows, keys: pa.Table) -> pa.Table | None:
        """The places of rows with one of the keys, as `Scans.row_places` gives them; None if not
        all of the keys were looked up."""
        look_up = self._look_ups.get((rows.table.uri, rows.snapshot.version))
        if look_up is None or set(look_up.keys.column_names) != set(keys.column_names):
            return None
        if {each.path for each in rows.snapshot.files} != set(look_up.paths):  # another table there
            return None
        if (KeyIndex(look_up.keys).places(keys) < 0).any():
            return None
        numbers = {each.path: number for number, each in enumerate(rows.files)}
        renumbered = np.array([numbers.get(path, -1) for path in look_up.paths], np.int64)
        places = look_up.places_of_keys.filter(
            pa.array(KeyIndex(keys).places(look_up.places_of_keys) >= 0)
        )
        files = renumbered[places[FILE].to_numpy()]
        if (files < 0).any():
            return None
        own = {name: places[name] for name in keys.column_names}
        return pa.table({**own, FILE: files, ROW: places[ROW]})


RECENT_PLACES = RecentPlaces(16)
