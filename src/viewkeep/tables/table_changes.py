"""The net changes of a table in columns: what `ChangeBatch` is in rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # has no stubs

from viewkeep.changes import ChangeBatch, RowFormat
from viewkeep.query.tables import Table
from viewkeep.tables.arrow_rows import arrow_type, to_arrow, to_rows
from viewkeep.tables.row_differences import Mask, differing_rows, differing_values

Classes = Mapping[frozenset[str], tuple[pa.Table, pa.Table]]
"""Updated rows before and after, by the columns that they change."""


@dataclass(frozen=True)
class TableChanges:
    """Whole new rows, whole old rows, and updated rows before and after, at the same places.

    The changes are effective: every key stands once, and `before` and `after` differ in each row.

    >>> parts = Table({"pid": "int", "price": "int"}, key=["pid"])
    >>> batch = ChangeBatch("parts", parts, inserts=[(3, 7)], updates=[((1, 5), (1, 6))])
    >>> TableChanges.of_batch(batch).after.to_pylist()
    [{'pid': 1, 'price': 6}]
    """

    name: str
    table: Table
    inserts: pa.Table
    deletes: pa.Table
    before: pa.Table
    after: pa.Table
    _classes: dict[tuple[frozenset[str], ...], Classes] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @staticmethod
    def none(name: str, table: Table) -> "TableChanges":
        """No changes."""
        return TableChanges(name, table, *[rows_schema(table).empty_table()] * 4)

    @staticmethod
    def of_batch(batch: ChangeBatch) -> "TableChanges":
        """The changes of a batch of rows."""
        old, new = [old for old, _ in batch.updates], [new for _, new in batch.updates]
        parts = (batch.inserts, batch.deletes, old, new)
        fields = batch.table.columns
        return TableChanges(batch.name, batch.table, *(to_arrow(fields, list(p)) for p in parts))

    def batch(self) -> ChangeBatch:
        """The changes as rows."""
        updates = zip(to_rows(self.before), to_rows(self.after), strict=True)
        return ChangeBatch(
            self.name, self.table, to_rows(self.inserts), to_rows(self.deletes), updates
        )

    @property
    def size(self) -> int:
        """How many rows changed."""
        return int(self.inserts.num_rows + self.deletes.num_rows + self.after.num_rows)

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return not self.size

    @property
    def old_rows(self) -> pa.Table:
        """The rows that are no longer there as they were."""
        return pa.concat_tables([self.deletes, self.before])

    @property
    def new_rows(self) -> pa.Table:
        """The rows that were not there as they are."""
        return pa.concat_tables([self.inserts, self.after])

    def inverse(self) -> "TableChanges":
        """The changes that take these back."""
        return TableChanges(
            self.name, self.table, self.deletes, self.inserts, self.after, self.before
        )

    def effective(self, columns: Iterable[str] | None = None) -> "TableChanges":
        """Without updates that change nothing in these columns, or in any but the key."""
        others = [each for each in self.table.names if each not in self.table.key]
        changed = differing_rows(self.before, self.after, others if columns is None else columns)
        return self if changed.all() else self._updates_in_mask(changed)

    def by_changed(self, groups: Sequence[frozenset[str]]) -> Classes:
        """The updated rows before and after by what they change, as `ChangeBatch.by_changed`; found
        once for all views that ask by the same groups."""
        key = tuple(groups)
        if key not in self._classes:
            self._classes[key] = self._classes_of_updates(groups)
        return self._classes[key]

    def _classes_of_updates(self, groups: Sequence[frozenset[str]]) -> Classes:
        self._check_groups(groups)
        masks = {name: self._column_changes(name) for name in frozenset[str]().union(*groups)}
        numbers = np.zeros(self.after.num_rows, np.int64)
        members: dict[int, frozenset[str]] = {0: frozenset()}
        for group in groups:
            hit = np.logical_or.reduce([masks[name] for name in group])
            numbers, members = _split_classes(numbers, members, hit, group)
        classes: dict[frozenset[str], Mask] = {}
        for number, columns in members.items():
            if columns:
                earlier = classes.get(columns, np.zeros(len(numbers), np.bool_))
                classes[columns] = earlier | (numbers == number)
        parts = {columns: self._updates_in_mask(mask) for columns, mask in classes.items()}
        return {columns: (part.before, part.after) for columns, part in parts.items()}

    def _column_changes(self, name: str) -> Mask:
        return differing_values(self.before[name], self.after[name])

    def _updates_in_mask(self, mask: Mask) -> "TableChanges":
        if mask.all():
            return self
        chosen = pa.array(mask)
        return replace(self, before=self.before.filter(chosen), after=self.after.filter(chosen))

    def _check_groups(self, groups: Iterable[frozenset[str]]) -> None:
        format_ = RowFormat(self.name, self.table)
        for group in groups:
            format_.check_names(sorted(group), f'table "{self.name}", group of columns')


def _split_classes(
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]],
    members: dict[int, frozenset[str]],
    hit: Mask,
    group: frozenset[str],
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], dict[int, frozenset[str]]]:
    """Split the classes of updates by one more group of columns, and number them anew from 0."""
    classes, places = np.unique(2 * numbers + hit, return_inverse=True)
    return places, {
        place: members[int(number) // 2] | (group if number % 2 else frozenset())
        for place, number in enumerate(classes)
    }


def rows_schema(table: Table) -> pa.Schema:
    """The columns of rows of a table in Arrow; whether they are NULL is checked elsewhere."""
    return pa.schema([pa.field(each.name, arrow_type(each.type)) for each in table.columns])
