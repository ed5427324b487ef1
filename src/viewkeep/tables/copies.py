"""Copies of equal rows, numbered and counted in vectors. NULL and NaN equal themselves."""

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.changes import ChangeError
from viewkeep.query.tables import COPY, Table
from viewkeep.tables.files.key_index import KeyIndex, Places
from viewkeep.tables.files.scans import SIDE
from viewkeep.tables.row_differences import Mask
from viewkeep.tables.table_changes import TableChanges, rows_schema


def copy_numbers(rows: pa.Table) -> Places:
    """For each row its number among its equals, from 1.

    >>> copy_numbers(pa.table({"a": [7, None, 7, None, 7]})).tolist()
    [1, 1, 2, 2, 3]
    """
    return numbers_in_groups(KeyIndex(rows).own_places)


def numbers_in_groups(groups: Places) -> Places:
    """For each place its number among those of the same group, from 1."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(starts, len(ordered)))
    numbers = np.empty(len(groups), np.int64)
    numbers[order] = np.arange(len(ordered)) - np.repeat(starts, sizes) + 1
    return numbers


def with_numbers(rows: pa.Table, numbers: Places) -> pa.Table:
    """Rows with the numbers of their copies."""
    return rows.append_column(pa.field(COPY, pa.int64()), pa.array(numbers, pa.int64()))


def net_copies(rows: pa.Table, is_old: Mask) -> pa.Table:
    """Cancel equal rows of the two sides: of each value the surplus copies, with the `SIDE` that
    has them."""
    groups = KeyIndex(rows).own_places
    difference = np.zeros(len(groups), np.int64)
    np.add.at(difference, groups, np.where(is_old, -1, 1))
    own = difference[groups]
    first = numbers_in_groups(groups * 2 + is_old) <= np.where(is_old, -own, own)
    side = pa.array(np.where(is_old, "old", "new"), pa.string())
    return rows.append_column(SIDE, side).filter(pa.array(first))


def numbered_changes(
    name: str, table: Table, unpaired: pa.Table, counts: Places | None
) -> TableChanges:
    """The changes of numbered copies, from the rows that only one of two versions has.

    `counts` are for each row the copies before the changes: of `n`, those above are inserted and
    the last ones deleted. Without them the numbers tell the changed copies from each other only.
    """
    rows = unpaired.select(list(table.stored_names))
    is_old = np.asarray(unpaired[SIDE].to_numpy() == "old", np.bool_)
    numbers = copy_numbers(rows)
    if counts is not None:
        numbers = np.where(is_old, counts - numbers + 1, counts + numbers)
        if (numbers < 1).any():
            raise ChangeError(f'table "{name}": more copies of a row are gone than there were')
    numbered = with_numbers(rows, numbers).cast(rows_schema(table))
    none = TableChanges.none(name, table)
    return TableChanges(
        name,
        table,
        inserts=numbered.filter(pa.array(~is_old)),
        deletes=numbered.filter(pa.array(is_old)),
        before=none.before,
        after=none.after,
    )
