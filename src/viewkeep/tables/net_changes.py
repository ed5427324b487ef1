"""Net changes in vectors: of two states of a table, of changes after each other, of a feed."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs
import pyarrow.compute as pc  # type: ignore[import-untyped]

from viewkeep.changes import RowFormat, compose_batches
from viewkeep.query.tables import Table
from viewkeep.tables.arrow_rows import to_rows
from viewkeep.tables.files.key_index import KeyIndex, Places
from viewkeep.tables.row_differences import Mask, differing_rows
from viewkeep.tables.table_changes import TableChanges


def changes_between(name: str, table: Table, old: pa.Table, new: pa.Table) -> TableChanges:
    """The changes, by key, that lead from some rows to others."""
    olds, news = checked_keys(name, table, old), checked_keys(name, table, new)
    there = olds.places(news.keys)
    missing = np.ones(old.num_rows, np.bool_)
    missing[there[there >= 0]] = False
    updated = there >= 0
    return TableChanges(
        name,
        table,
        inserts=_rows_of_mask(new, ~updated),
        deletes=_rows_of_mask(old, missing),
        before=take_rows(old, there[updated]),
        after=_rows_of_mask(new, updated),
    ).effective()


def checked_keys(name: str, table: Table, rows: pa.Table) -> KeyIndex:
    """The keys of rows, checked: no value is missing, and no two rows have one key."""
    format_ = RowFormat(name, table)
    for field in table.columns:
        column = rows[field.name]
        in_key = field.name in table.key
        if (column.null_count and not field.nullable) or (in_key and _has_nan(column)):
            format_.keyed(to_rows(rows.select(list(table.names))))
    index = KeyIndex(rows.select(list(table.key)))
    if index.repeated is not None:
        [key] = to_rows(index.keys.slice(index.repeated, 1))
        format_.refuse(key, "two rows have this key; keep one of them")
    return index


def _has_nan(column: pa.ChunkedArray) -> bool:
    is_nan = pa.types.is_floating(column.type) and pc.any(pc.is_nan(column), min_count=0)
    return bool(is_nan and is_nan.as_py())


def compose_changes(name: str, table: Table, changes: Sequence[TableChanges]) -> TableChanges:
    """Changes of one table, each starting where the one before ends, as one."""
    parts = [each for each in changes if not each.is_empty]
    if not parts:
        return TableChanges.none(name, table)
    if len(parts) == 1:
        return parts[0]
    steps = _Steps(name, table, parts)
    steps.check()
    return steps.net()


class _Steps:
    """Rows before and after, one step after the other: places in all old and all new rows."""

    def __init__(self, name: str, table: Table, parts: Sequence[TableChanges]) -> None:
        self._name, self._table, self._parts = name, table, parts
        self._old = pa.concat_tables([each.old_rows for each in parts]).combine_chunks()
        self._new = pa.concat_tables([each.new_rows for each in parts]).combine_chunks()
        self._old_places, self._new_places = _step_places(parts)
        names = list(table.key)
        keys = [
            rows.select(names)
            for part in parts
            for rows in (part.deletes, part.before, part.inserts)
        ]
        self._groups = KeyIndex(pa.concat_tables(keys).combine_chunks()).own_places

    def check(self) -> None:
        """Refuse a step that does not start where the one before it ended."""
        order = np.argsort(self._groups, kind="stable")
        follows = self._groups[order][1:] == self._groups[order][:-1]
        last_places, first_places = (
            self._new_places[order[:-1][follows]],
            self._old_places[order[1:][follows]],
        )
        wrong = (last_places < 0) != (first_places < 0)
        both = np.flatnonzero((last_places >= 0) & (first_places >= 0))
        last, first = (
            take_rows(self._new, last_places[both]),
            take_rows(self._old, first_places[both]),
        )
        wrong[both] |= differing_rows(last, first, self._table.names)
        if wrong.any():  # in rows, the error tells the key and both rows
            compose_batches(self._name, self._table, [each.batch() for each in self._parts])
            raise AssertionError("steps that do not follow each other were put together")

    def net(self) -> TableChanges:
        """From the first row of every key to the last one."""
        first = np.flatnonzero(self._groups == np.arange(len(self._groups)))
        last = np.zeros(len(self._groups), np.int64)
        last[self._groups] = np.arange(len(self._groups))  # the last one is written last
        old, new = self._old_places[first], self._new_places[last[first]]
        return net_rows(self._name, self._table, (self._old, old), (self._new, new))


def net_rows(
    name: str, table: Table, old: tuple[pa.Table, Places], new: tuple[pa.Table, Places]
) -> TableChanges:
    """The changes of keys whose rows before and after stand at these places."""
    (old_rows, olds), (new_rows, news) = old, new
    both = (olds >= 0) & (news >= 0)
    return TableChanges(
        name,
        table,
        inserts=take_rows(new_rows, news[(olds < 0) & (news >= 0)]),
        deletes=take_rows(old_rows, olds[(olds >= 0) & (news < 0)]),
        before=take_rows(old_rows, olds[both]),
        after=take_rows(new_rows, news[both]),
    ).effective()


def _step_places(parts: Sequence[TableChanges]) -> tuple[Places, Places]:
    """Where the rows of each step are: of every part, deletes, then updates, then inserts."""
    olds, news = [], []
    old = new = 0
    for part in parts:
        deletes, updates, inserts = (
            part.deletes.num_rows, part.after.num_rows, part.inserts.num_rows,
        )  # fmt: skip
        none = np.full(max(deletes, inserts), -1, np.int64)
        olds += [old + np.arange(deletes + updates), none[:inserts]]
        after = new + inserts + np.arange(updates)
        news += [none[:deletes], after, new + np.arange(inserts)]
        old, new = old + deletes + updates, new + updates + inserts
    return np.concatenate(olds), np.concatenate(news)


def net_feed(
    name: str, table: Table, rows: pa.Table, is_old: Mask, commits: Places
) -> TableChanges:
    """The net changes of rows that commits took away or brought.

    A key leads from its row before the first commit that names it to its row after the last one.
    """
    keys = KeyIndex(rows.select(list(table.key)))
    _, commit = np.unique(commits, return_inverse=True)
    groups = keys.own_places
    key_commits = pa.table({"key": groups, "commit": commit, "is_old": is_old})
    twice = KeyIndex(key_commits).repeated
    if twice is not None:
        [key] = to_rows(keys.keys.slice(twice, 1))
        RowFormat(name, table).refuse(key, "two rows have this key; keep one of them")
    first, last = np.full((2, len(groups)), -1, np.int64)
    order = np.argsort(commit, kind="stable")
    first[groups[order[::-1]]] = commit[order[::-1]]
    last[groups[order]] = commit[order]
    olds, news = np.full((2, len(groups)), -1, np.int64)
    starts, ends = is_old & (commit == first[groups]), ~is_old & (commit == last[groups])
    olds[groups[starts]], news[groups[ends]] = np.flatnonzero(starts), np.flatnonzero(ends)
    return net_rows(name, table, (rows, olds), (rows, news))


def take_rows(rows: pa.Table, places: Places) -> pa.Table:
    """The rows at these places."""
    if len(places) == rows.num_rows and (places == np.arange(len(places))).all():
        return rows
    return rows.take(pa.array(places))


def _rows_of_mask(rows: pa.Table, mask: Mask) -> pa.Table:
    return rows if mask.all() else rows.filter(pa.array(mask))
